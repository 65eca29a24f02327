"""Pages of the persona and LIVEHUD: modes, sliders and the resulting prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rlm_mem.dashboard.words import visible
from rlm_mem.errors import RlmMemError
from rlm_mem.operations.personas import persona_of
from rlm_mem.persona.gauges import render_gauge
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.requests import PageRequest
    from rlm_mem.persona import Persona

_HUD_WIDTH = 60


def persona_page(request: PageRequest) -> Response:
    """The persona of the default session, its prompt and the HUD."""
    persona = persona_of(request.memory)
    return _prompt(request, persona, "") if request.partial else _page(request, persona)


def hud_part(request: PageRequest) -> Response:
    """The HUD with current figures."""
    persona = persona_of(request.memory)
    return request.fragment("persona.html", block="gauge", hud=_hud(request, persona))


def change(request: PageRequest) -> Response:
    """Set a slider, choose a mode, reset sliders, or run a chat command."""
    persona = persona_of(request.memory)
    before = persona.prompt()
    what = request.text("do", 20)
    if what == "mode":
        request.carry_out("setMode", mode=request.text("mode", 100))
    elif what == "reset":
        slider = request.text("slider", 100)
        request.carry_out("resetSlider" if slider else "resetSliders", {"slider": slider} if slider else None)
    elif what == "say":
        message = request.text("message", 1_000)
        if not request.carry_out("sayToPersona", message=message).changed:
            return _page(request, persona, refused=message)
    else:
        # Without scripts, the form sends all sliders, so unchanged ones are skipped.
        now = persona.sliders
        for name, value in request.form:
            if name in now and value != str(now[name]):
                request.carry_out("setSlider", {"slider": name}, value=value)
    persona = persona_of(request.memory)
    if request.partial and what == "set":
        return _prompt(request, persona, before)
    return request.go("/persona", "persona")


def _page(request: PageRequest, persona: Persona, refused: str = "") -> Response:
    """The whole page, with a chat message that is no command, if there is one."""
    return request.page(
        "persona.html",
        status=422 if refused else 200,
        **_values(persona, ""),
        refused=refused,
        hud=_hud(request, persona),
        live="persona recalls memories",
    )


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
        "prompt": _highlight_new_lines(prompt, before),
        "tokens": count_tokens(prompt),
        "here": "/persona",
    }


def _prompt(request: PageRequest, persona: Persona, before: str) -> Response:
    return request.fragment("persona.html", **_values(persona, before))


def _highlight_new_lines(prompt: str, before: str) -> Markup:
    if not before:
        return escape(visible(prompt))
    former = set(before.splitlines())
    return Markup("\n").join(
        escape(visible(line))
        if line in former
        else Markup('<span class="new">{}</span>').format(visible(line))
        for line in prompt.splitlines()
    )


def _hud(request: PageRequest, persona: Persona) -> str:
    try:
        gauge = persona.library.gauge("LIVEHUD")
        return render_gauge(gauge, request.memory.hud_figures(persona), _HUD_WIDTH)
    except RlmMemError as error:  # an invalid custom gauge must not break the rest of the page
        return error.sentence
