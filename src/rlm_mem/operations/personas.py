"""The persona over HTTP: mode, sliders, system prompt, and the figures of LIVEHUD."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import LongText, Request, about, matching

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.persona import Persona

_GROUP = "persona"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_Mode = Annotated[str, matching("[A-Za-z0-9_]{1,64}", "A mode, by its name in any letter case.")]
_Value = Annotated[int, about("Within the range of the slider.", ge=0, le=100)]


class PersonaOut(Struct):
    """The persona: its mode, every slider's value, and those that were set by hand."""

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

    message: Annotated[str, about("A message that is not a command changes nothing.", max_length=20_000)]


class PersonaReply(Struct):
    """What a message changed, and the resulting persona."""

    changed: list[str]
    persona: PersonaOut


class Prompt(MayBeCut):
    """The composed system prompt."""

    prompt: str


class SliderOut(Struct):
    """A dimension of behaviour with its range, its current value, and the behaviour that this stands for."""

    name: str
    title: str
    low: int
    high: int
    default: int
    value: int
    description: str
    behavior: str


class PersonaLibraryResponse(Struct):
    """Every mode by name, and every slider."""

    modes: list[str]
    sliders: list[SliderOut]


class HudResponse(Struct):
    """The figures of LIVEHUD by their keys."""

    figures: dict[str, Any]


class PersonaState(MayBeCut):
    """The persona: mode, sliders, what the message changed, and the resulting system prompt."""

    mode: str
    sliders: dict[str, int]
    changed: list[str]
    prompt: str


class PersonaArguments(Bounded, kw_only=True):
    """The tool's arguments."""

    message: Annotated[LongText, about("A chat command that changes it, for example a mode.")] | None = None


def persona_of(memory: Memory) -> Persona:
    """Return the persona of a namespace, which has its own session, since namespaces share the folder of states."""
    name = memory.store.namespace
    session = name if _SESSION.fullmatch(name) else f"ns-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return memory.persona(session, keep=True)


def _out(context: Context, _: object) -> PersonaOut:
    return fill(PersonaOut, persona_of(context.memory))


def _mode(context: Context, request: ModeRequest) -> PersonaOut:
    persona_of(context.memory).use(request.mode)
    return _out(context, None)


def _set(context: Context, request: SliderRequest) -> PersonaOut:
    persona_of(context.memory).set(context.path["slider"], request.value)
    return _out(context, None)


def _reset(context: Context, _: object) -> PersonaOut:
    persona_of(context.memory).reset(context.path.get("slider"))
    return _out(context, None)


def _say(context: Context, request: SayRequest) -> PersonaReply:
    done = persona_of(context.memory).say(request.message)
    return PersonaReply([one.kind for one in done], _out(context, None))


def _prompt(context: Context, _: Bounded) -> Prompt:
    return Prompt(persona_of(context.memory).prompt())


def _library(context: Context, _: object) -> PersonaLibraryResponse:
    persona = persona_of(context.memory)
    values = persona.sliders
    return PersonaLibraryResponse(
        persona.library.modes(),
        [
            fill(SliderOut, one, value=values[name], behavior=one.behavior(values[name]))
            for name, one in persona.library.sliders().items()
        ],
    )


def _hud(context: Context, _: object) -> HudResponse:
    return HudResponse(dict(context.memory.hud_figures(persona_of(context.memory))))


def _persona(context: Context, request: PersonaArguments) -> PersonaState:
    persona = persona_of(context.memory)
    done = persona.say(request.message) if request.message else []
    return fill(PersonaState, persona, changed=[one.kind for one in done], prompt=persona.prompt())


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/persona", "getPersona", "Mode and sliders.", _GROUP, run=_out),
    Operation("PUT", "/persona/mode", "setMode", "Change the mode.", _GROUP, run=_mode, writes=True),
    Operation("PUT", "/persona/sliders/{slider}", "setSlider", "Set a slider by hand.", _GROUP, run=_set, writes=True),
    Operation(
        "DELETE", "/persona/sliders/{slider}", "resetSlider", "Reset a slider to the value of the mode.", _GROUP,
        run=_reset, writes=True,
    ),
    Operation(
        "DELETE", "/persona/sliders", "resetSliders", "Reset every slider to the values of the mode.", _GROUP,
        run=_reset, writes=True,
    ),
    Operation(
        "POST", "/persona/say", "sayToPersona", "Carry out a chat command, for example a change of mode.", _GROUP,
        run=_say, writes=True,
        tool=Tool(
            name="persona",
            title="Persona",
            description="Show the persona's mode, sliders and system prompt, after carrying out a chat "
            "command, if given.",
            run=_persona,
            aliases={"text": "message", "command": "message"},
            default=False,
        ),
    ),
    Operation("GET", "/persona/prompt", "getPrompt", "The composed system prompt.", _GROUP, run=_prompt),
    Operation("GET", "/persona/library", "getLibrary", "Every mode and slider.", _GROUP, run=_library),
    Operation("GET", "/hud", "getHud", "The figures of LIVEHUD.", _GROUP, run=_hud),
)  # fmt: skip
