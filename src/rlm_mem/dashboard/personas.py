"""Persona and LIVEHUD: modes, sliders and the resulting prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rlm_mem.dashboard.words import visible
from rlm_mem.errors import InputError, RlmMemError
from rlm_mem.operations.personas import persona_of
from rlm_mem.persona.gauges import render_gauge
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.persona import Persona

_HUD_WIDTH = 60


def persona_page(visit: Visit) -> Response:
    """The kept persona of the default session, its prompt and the HUD."""
    persona = persona_of(visit.memory)
    if visit.partial:
        return _prompt(visit, persona, "")
    return visit.page(
        "persona.html",
        **_values(persona, ""),
        hud=_hud(visit, persona),
        live="persona recalls memories",
    )


def hud_part(visit: Visit) -> Response:
    """The HUD alone, with current figures."""
    persona = persona_of(visit.memory)
    return visit.fragment("persona.html", block="gauge", hud=_hud(visit, persona))


def change(visit: Visit) -> Response:
    """Set a slider, choose a mode, reset sliders, or run a chat command."""
    persona = persona_of(visit.memory)
    before = persona.prompt()
    what = visit.text("do", 20)
    if what == "mode":
        visit.carry_out("setMode", mode=visit.text("mode", 100))
    elif what == "reset":
        slider = visit.text("slider", 100)
        visit.carry_out("resetSlider" if slider else "resetSliders", {"slider": slider} if slider else None)
    elif what == "say":
        if not visit.carry_out("sayToPersona", message=visit.text("message", 1_000)).changed:
            raise InputError(
                "the message is not a command for the persona", hint="say for example: set verbosity to 80"
            )
    else:
        # Only changed values; without scripts the form sends all of them.
        now = persona.sliders
        for name, value in visit.form:
            if name in now and value != str(now[name]):
                visit.carry_out("setSlider", {"slider": name}, value=value)
    persona = persona_of(visit.memory)
    if visit.partial and what == "set":
        return _prompt(visit, persona, before)
    return visit.go("/persona", "persona")


def _values(persona: Persona, before: str) -> dict[str, Any]:
    known = persona.library.sliders()
    values, defaults, prompt = persona.sliders, persona.defaults, persona.prompt()
    return {
        "mode": persona.mode,
        "modes": persona.library.modes(),
        "sliders": [
            (slider, values[name], defaults[name], slider.behavior(values[name]), name in persona.by_hand)
            for name, slider in known.items()
        ],
        "values": values,
        "by_hand": bool(persona.by_hand),
        "prompt": _shown(prompt, before),
        "tokens": count_tokens(prompt),
        "here": "/persona",
    }


def _prompt(visit: Visit, persona: Persona, before: str) -> Response:
    return visit.fragment("persona.html", **_values(persona, before))


def _shown(prompt: str, before: str) -> Markup:
    """The prompt, with new lines marked."""
    if not before:
        return escape(visible(prompt))
    former = set(before.splitlines())
    return Markup("\n").join(
        escape(visible(line))
        if line in former
        else Markup('<span class="new">{}</span>').format(visible(line))
        for line in prompt.splitlines()
    )


def _hud(visit: Visit, persona: Persona) -> str:
    try:
        gauge = persona.library.gauge("LIVEHUD")
        return render_gauge(gauge, visit.memory.hud_figures(persona), _HUD_WIDTH)
    except RlmMemError as error:  # a hand-written gauge may be invalid: the rest of the page still works
        return error.sentence
