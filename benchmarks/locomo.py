"""The LoCoMo conversations as plain objects: sessions, turns, questions, and where a turn lies in its session.

Data: Maharana et al., ACL 2024 (CC BY-NC 4.0), evaluation only; it is never part of this repository. Give the folder
with the JSON files as a path. A session is remembered as one text (`Session.text`), one line per turn ("Speaker:
words"); `Session.turns_between` leads back from a span of that text to the marked evidence.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
SECONDS_PER_TURN = 30  # the data dates sessions, not turns: this keeps turns in order within the session

_SESSION = re.compile(r"session_(\d+)")
_DIA_ID = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Turn:
    """One thing said. `at` is the session's time plus `SECONDS_PER_TURN` for each earlier turn."""

    dia_id: str
    speaker: str
    text: str
    caption: str | None
    at: datetime

    @property
    def line(self) -> str:
        """The turn as one line of the session's text, the shared picture's caption at its end."""
        said = " ".join(self.text.split())
        picture = f" [shares a photo: {self.caption}]" if self.caption else ""
        return f"{self.speaker}: {said}{picture}"


@dataclass(frozen=True)
class Session:
    """One session of a conversation, remembered under `conversation_id`."""

    conversation_id: str
    number: int
    at: datetime
    turns: tuple[Turn, ...]

    @cached_property
    def text(self) -> str:
        """All turn lines, joined by line breaks."""
        return "\n".join(turn.line for turn in self.turns)

    @cached_property
    def _starts(self) -> list[int]:
        starts, position = [], 0
        for turn in self.turns:
            starts.append(position)
            position += len(turn.line) + 1
        return starts

    def span(self, dia_id: str) -> tuple[int, int]:
        """Span of this turn in `text`; KeyError when the session has no such turn."""
        for turn, start in zip(self.turns, self._starts, strict=True):
            if turn.dia_id == dia_id:
                return start, start + len(turn.line)
        raise KeyError(dia_id)

    def turn_at(self, offset: int) -> Turn:
        """The turn that the character at `offset` of `text` belongs to."""
        return self.turns[max(0, bisect_right(self._starts, offset) - 1)]

    def turns_between(self, start: int, end: int) -> list[Turn]:
        """Turns of which at least one character lies in `text[start:end]`, in order.

        For a chunk: `start, end = chunk.metadata.provenance["span"]`; for a segment of it add the segment's
        own offsets to that start.
        """
        if end <= start:
            return []
        first = max(0, bisect_right(self._starts, start) - 1)
        if start >= self._starts[first] + len(self.turns[first].line):  # only the line break was in the span
            first += 1
        return list(self.turns[first : bisect_right(self._starts, end - 1)])


@dataclass(frozen=True)
class Question:
    """A question with the dia_ids of the turns that answer it. Category 5 has no true answer (`answer` is None)."""

    text: str
    answer: str | None
    evidence: tuple[str, ...]
    category: int
    trap: str | None = None


@dataclass(frozen=True)
class Conversation:
    """One file: two speakers, many sessions, the questions about them."""

    name: str
    speakers: tuple[str, str]
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...] = field(repr=False)

    @property
    def turns(self) -> Iterator[Turn]:
        for session in self.sessions:
            yield from session.turns

    @cached_property
    def session_of(self) -> dict[str, Session]:
        """dia_id -> its session."""
        return {turn.dia_id: session for session in self.sessions for turn in session.turns}

    @cached_property
    def by_conversation_id(self) -> dict[str, Session]:
        return {session.conversation_id: session for session in self.sessions}


def load(path: str | Path) -> list[Conversation]:
    """Every conversation under `path` (a folder of JSON files, or of which `locomo` is one; or one file), by name.

    Raises FileNotFoundError with the path when there is none.
    """
    place = Path(path)
    if (place / "locomo").is_dir():
        place /= "locomo"
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        raise FileNotFoundError(f"no LoCoMo conversation (*.json) in {place}")
    return [_conversation(file.stem, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _conversation(name: str, data: dict[str, Any]) -> Conversation:
    numbers = sorted(int(m[1]) for key in data if (m := _SESSION.fullmatch(key)) and data[key])
    sessions = tuple(_session(name, number, data) for number in numbers)
    known = {turn.dia_id for session in sessions for turn in session.turns}
    questions = tuple(_question(entry, known) for entry in data.get("qa", []))
    return Conversation(name, (data["speaker_a"], data["speaker_b"]), sessions, questions)


def _session(name: str, number: int, data: dict[str, Any]) -> Session:
    at = datetime.strptime(data[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    turns = tuple(
        Turn(
            dia_id=entry["dia_id"],
            speaker=entry["speaker"],
            text=entry["text"],
            caption=entry.get("blip_caption"),
            at=at + timedelta(seconds=SECONDS_PER_TURN * index),
        )
        for index, entry in enumerate(data[f"session_{number}"])
    )
    return Session(f"locomo-{name}-session-{number:02d}", number, at, turns)


def _question(entry: dict[str, Any], known: set[str]) -> Question:
    # Some strings have several ids ("D8:6; D9:17") or a typing error ("D:11:26"); ids of no turn are dropped.
    found = [f"D{m[1]}:{int(m[2])}" for text in entry["evidence"] for m in _DIA_ID.finditer(text)]
    evidence = tuple(dict.fromkeys(dia_id for dia_id in found if dia_id in known))
    adversarial = entry["category"] == 5
    return Question(
        text=entry["question"],
        answer=None if adversarial else str(entry["answer"]),
        evidence=evidence,
        category=entry["category"],
        trap=str(entry["adversarial_answer"]) if "adversarial_answer" in entry else None,
    )
