"""`rlm-mem persona`: modes, sliders, and the HUD."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

from rlm_mem.cli import rich
from rlm_mem.cli.call import Call
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import FOLDED, RIGHT, note, print_json, print_table, print_text, safe, screen
from rlm_mem.errors import InvalidConfig, InvalidQuery
from rlm_mem.own_process import until_stopped
from rlm_mem.persona.commands import Command
from rlm_mem.persona.gauges import render_gauge
from rlm_mem.persona.library import BASE, Library, Survey, located_files
from rlm_mem.persona.session import Persona
from rlm_mem.store.core.brain_files import BrainFiles

Session = Annotated[str, option("--session -s", "NAME", "The name of the session.")]


def show(
    call: Call,
    mode: Annotated[
        str | None, argument("[MODE]", "A mode as defined by its file. Default: that of the session.")
    ] = None,
    user: Annotated[str, option("--user", "NAME", "The person the agent speaks with.")] = "",
    project: Annotated[str, option("--project", "NAME", "The project they work on.")] = "",
    session: Session = "default",
) -> None:
    """Show the composed system prompt, and the sliders it is based on."""
    with _persona(call, session) as persona:
        if mode is not None:
            persona = Persona(persona.library.brain, session, mode=mode)
        prompt = persona.prompt({"user": user, "project": project})
        data = {**_state(persona), "prompt": prompt}
    call.report(data, lambda: print_text(prompt.rstrip("\n"), wrap=screen().is_terminal))


def list_(call: Call) -> None:
    """List the modes, the sliders and the gauges."""
    with _files(call) as files:
        found = Library(files).survey()
    in_base = next((one.values for one in found.modes if one.name == BASE), {})
    data = {
        "modes": [
            {"mode": one.name, "activated_when": one.activated_when, "configuration": one.values}
            for one in found.modes
        ],
        "sliders": [one.to_dict() for one in found.sliders],
        "gauges": found.gauges,
        "invalid": [one.message for one in found.invalid],
    }
    call.report(data, lambda: _show_survey(found, in_base))
    if found.invalid:
        hints = dict.fromkeys(one.hint for one in found.invalid if one.hint)
        raise InvalidConfig("; ".join(one.message for one in found.invalid), hint="; ".join(hints))


def _show_survey(found: Survey, in_base: Mapping[str, int]) -> None:
    modes = ((one.name, one.activated_when or one.description.split("\n", 1)[0]) for one in found.modes)
    print_table((("mode", {"style": "cyan"}), ("when", FOLDED)), modes)
    print_text("")
    sliders = (
        (one.title, f"{one.low}-{one.high}", in_base.get(one.name, one.default), one.description)
        for one in found.sliders
    )
    columns = (("slider", {"style": "cyan"}), "range", ("default", RIGHT), ("controls", FOLDED))
    print_table(columns, sliders)
    print_text("")
    print_text(f"gauges  {', '.join(found.gauges)}")


def slider(call: Call, dimension: Annotated[str, argument("SLIDER", "Its name.")]) -> None:
    """Show what a slider controls and what its values mean."""
    with _files(call) as files:
        known = Library(files).slider(dimension)
    if call.printed_json(known.to_dict()):
        return
    print_text(f"{known.title}  {known.low}-{known.high}, default {known.default}", "bold")
    print_text(known.description, indent=2)
    meanings = [(str(value), meaning) for value, meaning in known.examples]
    meanings += [(f"{one.low}-{one.high}", f"{one.mode}: {one.behavior}") for one in known.levels]
    print_table((("value", {**RIGHT, "style": "cyan"}), ("means", FOLDED)), meanings)


def use(
    call: Call, mode: Annotated[str, argument("MODE", "For example research.")], session: Session = "default"
) -> None:
    """Change the mode of a session, and the sliders it sets."""
    with _persona(call, session) as persona:
        persona.use(mode)
        _show_persona(persona, call.json)


def set_(
    call: Call,
    dimension: Annotated[str, argument("SLIDER", "Its name.")],
    value: Annotated[int, argument("VALUE", "Within its range.")],
    session: Session = "default",
) -> None:
    """Set a slider of a session by hand."""
    with _persona(call, session) as persona:
        persona.set(dimension, value)
        _show_persona(persona, call.json)


def reset(
    call: Call,
    dimension: Annotated[str | None, argument("[SLIDER]", "Only this slider.")] = None,
    session: Session = "default",
) -> None:
    """Reset sliders set by hand to the values of the mode."""
    with _persona(call, session) as persona:
        persona.reset(dimension)
        _show_persona(persona, call.json)


def say(
    call: Call,
    words: Annotated[list[str], argument("WORDS", 'For example "Set humor to 20%".')],
    session: Session = "default",
) -> None:
    """Carry out a chat command: "Set humor to 20%", "Max directness", "Reset sliders", "Research mode"."""
    message = " ".join(words)
    with _persona(call, session) as persona:
        done = persona.say(message)
        if not done:
            raise InvalidQuery(
                f"{message!r:.80} is not a command for the persona",
                hint='say "Set humor to 20%", "Max directness", "Min humor", "Reset sliders" or "Research mode"',
            )
        _show_persona(persona, call.json, done)


def hud(
    call: Call,
    gauge: Annotated[str, argument("[GAUGE]", "A gauge from brain/gauges.", show_default=False)] = "LIVEHUD",
    watch: Annotated[bool, flag("--watch -w", "Keep it up to date on the screen until Ctrl-C.")] = False,
    interval: Annotated[
        float, option("--interval", "S", "With --watch: seconds between checks.", min=0.2, max=3600)
    ] = 2.0,
    width: Annotated[int | None, option("--width", "N", "Width in columns.", min=24, max=500)] = None,
    ascii_only: Annotated[bool, flag("--ascii", "Draw frame and bars with + - | # and dots.")] = False,
    session: Session = "default",
) -> None:
    """Show the live figures: sliders, memory, system, store, tiers, cost."""
    with call.open() as memory:

        def current_figures() -> dict[str, Any]:
            return dict(memory.hud_figures(memory.persona(session, keep=True)))

        if call.json:
            print_json(current_figures())
            return
        draw = _renderer(memory.persona(session, keep=True), gauge, width, ascii_only=ascii_only)
        if watch:
            _watch(lambda: draw(current_figures()), interval)
        else:
            screen().print(draw(current_figures()), soft_wrap=True)


def _renderer(
    persona: Persona, gauge: str, width: int | None, *, ascii_only: bool
) -> Callable[[dict[str, Any]], rich.Text]:
    """Return a function that draws the gauge with given figures, at the current width of the terminal."""
    console = screen()
    plain_frame = ascii_only or not _can_show("│─█░")
    template = persona.library.gauge(gauge)

    def draw(figures: dict[str, Any]) -> rich.Text:
        across = width or min(console.size.width, 120)
        drawn = rich.Text(safe(render_gauge(template, figures, across, ascii_only=plain_frame)), no_wrap=True)
        drawn.highlight_regex(r"^[│|]|[│|]$|[┌├└+].*[┐┤┘+]$", "dim")
        drawn.highlight_regex(r"(?m)^[│|]|[│|]$", "dim")
        drawn.highlight_regex("█+", "cyan")
        drawn.highlight_regex("░+", "dim")
        return drawn

    return draw


def _can_show(signs: str) -> bool:
    try:
        signs.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@until_stopped()
def _watch(frame: Callable[[], rich.Text], interval: float) -> None:
    """Redraw frames in place; without a terminal, print each frame that differs from the previous one."""
    console = screen()
    if not console.is_terminal:
        before = None
        while True:
            made = frame()
            if made.plain != before:
                console.print(made, soft_wrap=True)
                before = made.plain
            time.sleep(interval)
    with rich.Live(
        frame(), console=console, screen=True, auto_refresh=False, vertical_overflow="crop"
    ) as live:
        while True:
            time.sleep(interval)
            live.update(frame(), refresh=True)


def _files(call: Call) -> AbstractContextManager[BrainFiles]:
    """Open the files of the persona, in a folder or in a namespace of a database."""
    return located_files(call.place, namespace=call.namespace)


@contextmanager
def _persona(call: Call, session: str) -> Iterator[Persona]:
    with _files(call) as files:
        yield Persona(files, session, keep=True)


def _state(persona: Persona) -> dict[str, Any]:
    return {
        "session": persona.session,
        "mode": persona.mode,
        "sliders": persona.sliders,
        "by_hand": persona.by_hand,
        "defaults": persona.defaults,
    }


def _show_persona(persona: Persona, as_json: bool, done: list[Command] | None = None) -> None:
    if as_json:
        print_json(_state(persona) | ({"commands": done} if done is not None else {}))
        return
    defaults, by_hand = persona.defaults, persona.by_hand
    rows = (
        (persona.library.slider(name).title, value, defaults[name], "by hand" if name in by_hand else "")
        for name, value in persona.sliders.items()
    )
    print_text(f"{persona.mode}, session {persona.session}", "bold")
    print_table((("slider", {"style": "cyan"}), ("value", RIGHT), ("default", RIGHT), ""), rows)
    note("rlm-mem persona show prints the resulting system prompt")
