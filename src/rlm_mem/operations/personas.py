"""The persona over HTTP: mode, sliders, system prompt, and the figures of LIVEHUD."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from rlm_mem.operations.operation import Ask, Endpoint
from rlm_mem.operations.types import Request

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.persona import Persona

__all__ = ["ENDPOINTS", "persona_of"]

_GROUP = "persona"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_Mode = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_]{1,64}$(?!\n)", description="A mode, by its name in any letter case.")
]
_Value = Annotated[int, Meta(ge=0, le=100, description="Within the range of the slider.")]


class PersonaOut(Struct):
    """How to speak: the mode, every slider's value, and those that were set by hand."""

    mode: str
    sliders: dict[str, int]
    by_hand: dict[str, int]


class ModeRequest(Request):
    """Which mode."""

    mode: _Mode


class SliderRequest(Request):
    """Which value."""

    value: _Value


class SayRequest(Request):
    """A chat message."""

    message: Annotated[str, Meta(max_length=20_000, description="What is no command changes nothing.")]


class Said(Struct):
    """What a message changed, and the persona after it."""

    changed: list[str]
    persona: PersonaOut


class Prompt(Struct):
    """The composed system prompt."""

    prompt: str


class SliderOut(Struct):
    """A dimension of behaviour with its range, its value now, and what that means."""

    name: str
    title: str
    low: int
    high: int
    default: int
    value: int
    description: str
    behavior: str


class Library(Struct):
    """Every mode by name, and every slider."""

    modes: list[str]
    sliders: list[SliderOut]


class Hud(Struct):
    """The figures of LIVEHUD by their keys."""

    figures: dict[str, Any]


def persona_of(memory: Memory) -> Persona:
    """The persona of a namespace: states lie beside all namespaces of a brain, so each gets a session of its own."""
    name = memory.store.namespace
    session = name if _SESSION.fullmatch(name) else f"ns-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return memory.persona(session, keep=True)


def _out(ask: Ask) -> PersonaOut:
    persona = persona_of(ask.memory)
    return PersonaOut(persona.mode, persona.sliders, persona.by_hand)


def _mode(ask: Ask) -> PersonaOut:
    persona_of(ask.memory).use(ask.body.mode)
    return _out(ask)


def _set(ask: Ask) -> PersonaOut:
    persona_of(ask.memory).set(ask.path["slider"], ask.body.value)
    return _out(ask)


def _reset(ask: Ask) -> PersonaOut:
    persona_of(ask.memory).reset(ask.path["slider"])
    return _out(ask)


def _reset_all(ask: Ask) -> PersonaOut:
    persona_of(ask.memory).reset()
    return _out(ask)


def _say(ask: Ask) -> Said:
    done = persona_of(ask.memory).say(ask.body.message)
    return Said([one.kind for one in done], _out(ask))


def _prompt(ask: Ask) -> Prompt:
    return Prompt(persona_of(ask.memory).prompt())


def _library(ask: Ask) -> Library:
    persona = persona_of(ask.memory)
    values = persona.sliders
    return Library(
        persona.library.modes(),
        [
            SliderOut(
                one.name, one.title, one.low, one.high, one.default, values[name], one.description,
                one.behavior(values[name]),
            )
            for name, one in persona.library.sliders().items()
        ],
    )  # fmt: skip


def _hud(ask: Ask) -> Hud:
    return Hud(dict(ask.memory.hud_figures(persona_of(ask.memory))))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/persona", "getPersona", "Mode and sliders as they are.", _GROUP, run=_out, gives=PersonaOut),
    Endpoint(
        "PUT", "/persona/mode", "setMode", "Change the mode.", _GROUP,
        run=_mode, takes=ModeRequest, gives=PersonaOut, writes=True,
    ),
    Endpoint(
        "PUT", "/persona/sliders/{slider}", "setSlider", "Set a slider by hand.", _GROUP,
        run=_set, takes=SliderRequest, gives=PersonaOut, writes=True,
    ),
    Endpoint(
        "DELETE", "/persona/sliders/{slider}", "resetSlider", "Let the mode say where a slider stands.", _GROUP,
        run=_reset, gives=PersonaOut, writes=True,
    ),
    Endpoint(
        "DELETE", "/persona/sliders", "resetSliders", "Let the mode say where every slider stands.", _GROUP,
        run=_reset_all, gives=PersonaOut, writes=True,
    ),
    Endpoint(
        "POST", "/persona/say", "sayToPersona", "Carry out a chat command, for example a change of mode.", _GROUP,
        run=_say, takes=SayRequest, gives=Said, writes=True,
    ),
    Endpoint("GET", "/persona/prompt", "getPrompt", "The composed system prompt.", _GROUP, run=_prompt, gives=Prompt),
    Endpoint(
        "GET", "/persona/library", "getLibrary", "Every mode and slider there is.", _GROUP,
        run=_library, gives=Library,
    ),
    Endpoint("GET", "/hud", "getHud", "The figures of LIVEHUD.", _GROUP, run=_hud, gives=Hud),
)  # fmt: skip
