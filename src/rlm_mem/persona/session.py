"""The persona of a session: its mode, the sliders set by hand, and the file that stores both."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm_mem.arguments import check_flag
from rlm_mem.errors import InvalidConfig
from rlm_mem.persona.commands import Command, parse_commands
from rlm_mem.persona.library import BASE, Library
from rlm_mem.persona.prompt import PromptContext, compose_prompt
from rlm_mem.store.core.brain_files import BrainFiles
from rlm_mem.store.core.files import Signature

SESSION = "default"
FOLDER = "persona"
"""Folder of the brain with one small JSON file per session."""
_VERSION = 1
_SESSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?")


class Persona:
    """The mode and sliders of one session.

    The last command wins: a mode sets the sliders that it names, and a slider set by hand keeps its value until it is
    reset, set again, or named by a mode chosen later.

    Args:
        brain: the files of an open store (``Backend.files``), or a brain folder; None: the package's defaults, not
            kept.
        session: name of the session.
        mode: the initial mode if none is stored.
        keep: whether to load and store the state in ``persona/SESSION.json`` of the brain.

    Raises:
        InvalidConfig: a name or the stored file is invalid. NotFoundError: there is no such mode.
    """

    def __init__(
        self,
        brain: BrainFiles | Path | str | None = None,
        session: str = SESSION,
        *,
        mode: str = BASE,
        keep: bool = False,
    ) -> None:
        if not isinstance(session, str) or not _SESSION.fullmatch(session):
            raise InvalidConfig(
                f"{session!r:.80} is not a valid name of a session",
                hint="use letters, digits, . - and _ (at most 64)",
            )
        self.library = Library(brain)
        self.session = session
        self._file = f"{FOLDER}/{session}.json"
        self._brain = self.library.brain if check_flag(keep, "keep") else None
        self._by_hand: dict[str, int] = {}
        self._mode = self.library.personality(mode).name
        if self._brain is not None:
            self._load(self._brain)

    # --- state ---------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """Name of the current mode."""
        return self._mode

    @property
    def by_hand(self) -> dict[str, int]:
        """Values of sliders that were set by hand."""
        return dict(self._by_hand)

    @property
    def defaults(self) -> dict[str, int]:
        """Value of every slider in BASE."""
        return self.library.defaults()

    @property
    def sliders(self) -> dict[str, int]:
        """Current value of every slider."""
        return {**self.library.values(self._mode), **self._by_hand}

    def prompt(self, context: PromptContext | Mapping[str, object] | None = None) -> str:
        """The composed system prompt (see ``compose_prompt``)."""
        library = self.library
        return compose_prompt(
            library.personality(self._mode),
            library.personality(BASE),
            self.sliders,
            library.sliders(),
            context,
        )

    # --- changes --------------------------------------------------------------------------------------

    def say(self, text: str) -> list[Command]:
        """Apply a chat message if it is a command; returns its commands, empty for ordinary text.

        Raises:
            InvalidConfig: a value is out of range; nothing was changed.
        """
        commands = parse_commands(text, self.library)
        before = self._mode, dict(self._by_hand)
        try:
            for command in commands:
                self._apply(command)
        except InvalidConfig:
            self._mode, self._by_hand = before
            raise
        if commands:
            self._save()
        return commands

    def set(self, slider: str, value: int) -> None:
        """Set a slider by hand.

        Raises:
            InvalidConfig: the value is not an integer in the range. NotFoundError: there is no such slider.
        """
        found = self.library.slider(slider)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidConfig(f"{found.title} must be a whole number, not {value!r:.60}")
        self._by_hand[found.name] = found.checked(value)
        self._save()

    def use(self, mode: str) -> str:
        """Select a mode; returns its full name.

        Raises:
            InvalidConfig: the name or its file is invalid. NotFoundError: there is no such mode.
        """
        self._use(mode)
        self._save()
        return self._mode

    def reset(self, slider: str | None = None) -> None:
        """Reset one slider or all to the values of the mode."""
        self._apply(Command("reset", None if slider is None else self.library.slider(slider).name))
        self._save()

    def _use(self, mode: str) -> None:
        chosen = self.library.personality(mode)
        self._mode = chosen.name
        # BASE, also selected as "normal", resets the sliders that it sets, like any other mode.
        self._by_hand = {name: value for name, value in self._by_hand.items() if name not in chosen.values}

    def _apply(self, command: Command) -> None:
        if command.kind == "mode":
            self._use(str(command.mode))
        elif command.kind == "reset":
            if command.slider is None:
                self._by_hand.clear()
            else:
                self._by_hand.pop(command.slider, None)
        else:
            slider = self.library.slider(str(command.slider))
            value = int(command.value or 0)
            if command.kind == "change":
                # "Raise by 30" is limited to the range.
                value = min(slider.high, max(slider.low, self.sliders[slider.name] + value))
            self._by_hand[slider.name] = slider.checked(value)

    # --- storage --------------------------------------------------------------------------------------

    def signature(self) -> Signature | None:
        """A value that changes with the stored state, for watchers; None if the state is not stored."""
        return self._brain.signature(self._file) if self._brain is not None else None

    def _save(self) -> None:
        if self._brain is None:
            return
        state = {"version": _VERSION, "session": self.session, "mode": self._mode, "sliders": self._by_hand}
        data = json.dumps(state, ensure_ascii=False, indent=2).encode("utf-8") + b"\n"
        if not self._brain.transactional:
            self._brain.write(self._file, data, durable=False)
            return
        with self._brain.transaction():
            self._brain.write(self._file, data)

    def _load(self, brain: BrainFiles) -> None:
        where = brain.where(self._file)
        try:
            data = brain.read(self._file)
        except OSError as error:
            raise InvalidConfig(str(error)) from None
        if data is None:
            return
        try:
            state: Any = json.loads(data.decode("utf-8"))
            mode, sliders = state["mode"], state["sliders"]
            if not isinstance(mode, str) or not isinstance(sliders, dict):
                raise TypeError("mode or sliders")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidConfig(
                f"{where} is not the state of a session", hint="delete it to start the session over"
            ) from None
        self._mode = self.library.personality(mode).name
        known = self.library.sliders()
        for name, value in sliders.items():
            # Ignore a slider whose file was removed.
            if name in known:
                if isinstance(value, bool) or not isinstance(value, int):
                    raise InvalidConfig(f"{where}: {name} must be a whole number, not {value!r:.60}")
                self._by_hand[name] = known[name].checked(value, f"{where}: {known[name].title}")
