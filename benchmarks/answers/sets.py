"""The four sets as one shape: bodies of text to remember, and questions about them. The data is given by path."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from locomo import CATEGORIES, Conversation, load

SEED = "rlm-mem answers 1"
"""Of the samples: which questions are asked depends on nothing but this and their ids."""


@dataclass(frozen=True)
class Text:
    """One text to remember: its conversation, and when it was said (ISO 8601) or None."""

    conversation: str
    text: str
    at: str | None = None


@dataclass(frozen=True)
class Case:
    """One question.

    Attributes:
        id: unique within all sets; a run is resumed by it.
        set, kind: name of the set, and its name for the kind of question.
        corpus: name of the texts that the question is about.
        question: with the options of a choice.
        gold: accepted answers; empty: the texts contain none.
        options: letter -> text of a choice.
        rubric: points that an answer should meet.
    """

    id: str
    set: str
    kind: str
    corpus: str
    question: str
    gold: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """Texts that are remembered together: one memory for each."""

    name: str
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Loaded:
    """A set: its texts by name, and its questions."""

    corpora: dict[str, Corpus]
    cases: tuple[Case, ...]


def sample(cases: tuple[Case, ...], most: int) -> list[Case]:
    """At most so many questions, as many of each kind as there are, chosen by a hash of their ids; 0 takes all."""
    if not most:
        return list(cases)
    by_kind: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda one: hashlib.sha256(f"{SEED} {one.id}".encode()).hexdigest()):
        by_kind.setdefault(case.kind, []).append(case)
    rounds = zip_longest(*(by_kind[kind] for kind in sorted(by_kind)))
    return [case for one in rounds for case in one if case is not None][:most]


def load_locomo(place: Path) -> Loaded:
    """LoCoMo: `*.json`, one conversation each."""
    corpora, cases = {}, []
    for conversation in load(place):
        corpora[conversation.name] = Corpus(conversation.name, tuple(_locomo_texts(conversation)))
        for number, asked in enumerate(conversation.questions):
            cases.append(
                Case(
                    id=f"locomo/{conversation.name}/{number}",
                    set="locomo",
                    kind=CATEGORIES[asked.category],
                    corpus=conversation.name,
                    question=asked.text,
                    gold=() if asked.answer is None else (asked.answer,),
                )
            )
    return Loaded(corpora, tuple(cases))


def _locomo_texts(conversation: Conversation) -> Iterator[Text]:
    for session in conversation.sessions:
        yield Text(session.conversation_id, session.text, session.at.isoformat())


def load_beam(place: Path) -> Loaded:
    """BEAM: `*.json.gz`, one chat each; its questions have a rubric."""
    corpora, cases = {}, []
    for file in _files(place, "*.json.gz"):
        data = _json(file)
        name = file.name.removesuffix(".json.gz")
        corpora[name] = Corpus(name, tuple(_beam_texts(data["chat"])))
        for kind, asked in data["probing_questions"].items():
            for number, one in enumerate(asked):
                cases.append(
                    Case(
                        id=f"beam/{name}/{kind}/{number}",
                        set="beam",
                        kind=kind,
                        corpus=name,
                        question=one["question"],
                        rubric=tuple(str(point) for point in one["rubric"]),
                    )
                )
    return Loaded(corpora, tuple(cases))


_LABEL = re.compile(r"\s*->->\s*[\dNA/(),\s]*$")


def _beam_texts(batches: list[dict[str, Any]]) -> Iterator[Text]:
    at = None
    for batch in batches:
        for number, group in enumerate(batch["turns"]):
            lines = []
            for message in group:
                at = _day(message.get("time_anchor")) or at
                who = "User" if message["role"] == "user" else "Assistant"
                lines.append(f"{who}: {_LABEL.sub('', message['content']).strip()}")
            yield Text(f"batch-{batch['batch_number']:03d}-{number:03d}", "\n".join(lines), at)


def _day(anchor: str | None) -> str | None:
    for form in ("%B-%d-%Y", "%B %d, %Y", "%Y-%m-%d"):
        try:
            return datetime.strptime(anchor or "", form).replace(tzinfo=UTC).isoformat()
        except ValueError:
            continue
    return None


def load_facts(place: Path) -> Loaded:
    """FactConsolidation: `*.json`, numbered facts; of two that contradict each other the later one holds."""
    corpora, cases = {}, []
    for file in _files(place, "*.json"):
        data = _json(file)
        corpora[file.stem] = Corpus(file.stem, (Text("facts", data["context"]),))
        for number, (question, answers) in enumerate(zip(data["questions"], data["answers"], strict=True)):
            cases.append(
                Case(
                    id=f"facts/{file.stem}/{number}",
                    set="facts",
                    kind=file.stem,
                    corpus=file.stem,
                    question=question,
                    gold=tuple(answers),
                )
            )
    return Loaded(corpora, tuple(cases))


_OPTION = re.compile(r"^\(([a-z])\)\s*", re.MULTILINE)


def load_personamem(place: Path) -> Loaded:
    """PersonaMem: chats by user, and questions with four options."""
    corpora, cases = {}, []
    for file in _files(place, "*.json.gz"):
        data = _json(file)
        documents: dict[str, list[Text]] = {}
        for one in data["documents"]:
            documents.setdefault(one["user_id"], []).append(Text(one["id"], one["content"], one["timestamp"]))
        for user, texts in documents.items():
            corpora[user] = Corpus(user, tuple(texts))
        for one in data["queries"]:
            _, *parts = _OPTION.split(one["query"])
            options = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
            right = next(answer for answer in one["gold_answers"] if answer.strip() in options)
            cases.append(
                Case(
                    id=f"personamem/{one['id']}",
                    set="personamem",
                    kind=one["meta"]["question_type"],
                    corpus=one["user_id"],
                    question=one["query"],
                    gold=(right.strip(),),
                    options=options,
                )
            )
    return Loaded(corpora, tuple(cases))


SETS: dict[str, Callable[[Path], Loaded]] = {
    "locomo": load_locomo,
    "beam": load_beam,
    "facts": load_facts,
    "personamem": load_personamem,
}
FOLDERS = {"locomo": "locomo", "beam": "beam", "facts": "factconsolidation", "personamem": "personamem"}
"""Where each lies below the folder that `--data` names."""


def load_set(name: str, data: Path) -> Loaded:
    """A set by its name.

    Raises:
        FileNotFoundError: its folder is missing, or has none of its files.
    """
    return SETS[name](data / FOLDERS[name])


def _files(place: Path, pattern: str) -> list[Path]:
    found = sorted(place.glob(pattern))
    if not found:
        raise FileNotFoundError(f"there is no {pattern} in {place}")
    return found


def _json(file: Path) -> Any:
    data = file.read_bytes()
    return json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
