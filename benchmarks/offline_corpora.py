"""Usefulness of the offline model on other kinds of text: documentation of tools, notes of agents, languages.

    python benchmarks/offline_corpora.py                       all sets; records the figures of both halves
    python benchmarks/offline_corpora.py --markdown FOLDER     documentation in Markdown beside that of Python
    python benchmarks/offline_corpora.py --misses              the questions of the first half that went wrong
    python benchmarks/offline_corpora.py --keep FOLDER         memories are made there once and reused
    python benchmarks/offline_corpora.py --fit                 fit the shipped table for the nearest memory anew
    python benchmarks/offline_corpora.py --shipped             with that table, instead of one fitted on other sets

The documentation is that of the standard library of the Python that runs this, from its docstrings, and the given
Markdown folders; the questions are in `corpora/offline/docs.jsonl`, and those whose answer is not in the corpus are
left out. `notes.jsonl` has facts that an agent would note, with questions in other words, `projects.jsonl` the notes
of one company with its people and projects, in which many notes share the words of a question, `agents.jsonl` the
dated notes of twelve agents, each with a memory of its own, `trades.jsonl` those of twelve more, from a hospital ward
to a bicycle workshop, `desks.jsonl` those of a backend team, of a writer's assistant and of a pottery club, asked about
as somebody does who does not have the note at hand, `worlds.jsonl` those of six more, from a bakery to a field station,
asked about in the same way, `years.jsonl` a year of a family, of a coding agent and of a restaurant, in which a third
of the notes change what was noted before and half of the questions ask for what changed (a quarter of one diary is in
German), and `languages.jsonl` notes in twelve languages. A question without answers is one that the corpus does not
answer.

Each set is split in two by a hash of the question. Rules were developed on misses of the first half; for the second
half only the figures are shown. Both halves of `agents.jsonl` and of `desks.jsonl`, whose authors had not read the
rules, were asked once and opened then, and so were `worlds.jsonl` and `years.jsonl`. On these four no rule was changed
before that.

Whether the nearest memory, quoted, answers is a probability from a table of weights. The table is fitted on all
questions in English; here each set is asked with one that was fitted on the other sets.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from offline_fit import fit_logistic
from rlm_mem import Memory
from rlm_mem.models.base import Completion, as_messages
from rlm_mem.offline import OfflineLLM
from rlm_mem.offline.closest import nearness
from rlm_mem.offline.model import given_passages
from rlm_mem.offline.nearest import quotation
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.weights import Weights, load_weights
from rlm_mem.recall.recall import RecallResult
from rlm_mem.text.languages import is_foreign
from support import Report, arguments

WEIGHTS = Path(__file__).parents[1] / "src" / "rlm_mem" / "offline" / "weights.json"
DECAY = 0.003  # of the fitted weights; from 0.001 to 0.01 it makes no difference

CORPORA = Path(__file__).parent / "corpora" / "offline"
FILES = {
    "documentation": "docs.jsonl",
    "notes": "notes.jsonl",
    "projects": "projects.jsonl",
    "agents": "agents.jsonl",
    "trades": "trades.jsonl",
    "desks": "desks.jsonl",
    "worlds": "worlds.jsonl",
    "years": "years.jsonl",
    "languages": "languages.jsonl",
}
SETS = tuple(FILES)
SHOWN = 3
SURE = 0.6
MODULE_NAMES = """
    argparse asyncio bisect calendar codecs collections configparser contextlib copy csv datetime difflib
    email enum fileinput filecmp fnmatch fractions functools getpass gettext glob gzip hashlib heapq hmac
    html http.client http.cookies http.server imaplib ipaddress itertools json linecache locale logging lzma
    mailbox math mimetypes multiprocessing netrc numbers operator optparse os pathlib pdb pickle pkgutil
    platform plistlib poplib pprint profile queue random re reprlib sched secrets select selectors shelve
    shlex shutil signal smtplib socket socketserver sqlite3 ssl stat statistics string struct subprocess
    tarfile tempfile textwrap threading time timeit tokenize trace traceback tracemalloc types typing
    unicodedata unittest urllib.parse urllib.request uuid venv warnings wave weakref webbrowser
    xml.dom.minidom xml.etree.ElementTree zipfile zlib zoneinfo
"""
MODULES = MODULE_NAMES.split()


@dataclass(frozen=True)
class Asked:
    """A question; ``answers``: fragments of which one must be in the answer, none where nothing answers it."""

    question: str
    answers: tuple[str, ...]
    beside: str = ""
    store: str = ""

    @property
    def first_half(self) -> bool:
        """Whether it belongs to the half whose misses may be inspected."""
        return hashlib.sha256(self.question.encode()).digest()[0] % 2 == 0

    def is_answered_by(self, text: str) -> bool:
        """Whether a text contains an accepted answer and the words that identify its subject."""
        return has_any(text, self.answers) and self.beside.lower() in text.lower()


@dataclass(frozen=True)
class Note:
    """A note of a set; ``at``: when it was written, if that is known; ``store``: the memory it belongs to."""

    text: str
    at: str | None = None
    store: str = ""


def questions(name: str) -> tuple[list[Note], list[Asked]]:
    """The notes of a set (none for the documentation), and its questions."""
    rows = [json.loads(line) for line in (CORPORA / FILES[name]).read_text(encoding="utf-8").splitlines()]
    notes = [Note(row["note"], row.get("at"), row.get("store", "")) for row in rows if "note" in row]
    asked = [
        Asked(row["question"], tuple(row["answers"]), row.get("beside", ""), row.get("store", ""))
        for row in rows
        if "question" in row
    ]
    return notes, asked


def library() -> Iterator[tuple[str, str]]:
    """The documentation of the standard library, a Markdown text for each module."""
    for name in MODULES:
        module = importlib.import_module(name)
        parts = [f"# {name}", inspect.getdoc(module) or ""]
        for member, value in sorted(vars(module).items()):
            if member.startswith("_") or not (inspect.isroutine(value) or inspect.isclass(value)):
                continue
            parts += [f"## {name}.{member}", inspect.getdoc(value) or ""]
            for inner, method in sorted(vars(value).items()) if inspect.isclass(value) else ():
                if not inner.startswith("_") and inspect.isroutine(method) and inspect.getdoc(method):
                    parts += [f"### {name}.{member}.{inner}", inspect.getdoc(method) or ""]
        yield name, "\n\n".join(part for part in parts if part)


def remember(name: str, memory: Memory, folders: list[Path], store: str = "") -> int:
    """Put the corpus of a set, or one store of it, into an empty memory; returns the number of its documents."""
    if name != "documentation":
        notes = [note for note in questions(name)[0] if note.store == store]
        with memory.store.batch():
            for note in notes:
                memory.remember(note.text, occurred_at=note.at)
        return len(notes)
    texts = list(library())
    for folder in folders:
        for path in sorted(folder.rglob("*.md")):
            texts.append((path.stem, path.read_text(encoding="utf-8", errors="replace")))
    for title, text in texts:
        memory.remember(text, conversation_id=title)
    return len(texts)


def add_rows(
    name: str, results: list[tuple[Asked, RecallResult]], seconds: float, report: Report, *, misses: bool
) -> None:
    """Add a row for each half of the questions of a set."""
    for first in (True, False):
        half = [pair for pair in results if pair[0].first_half == first]
        there = [pair for pair in half if pair[0].answers]
        without = [result for one, result in half if not one.answers]
        report.add(
            set=name,
            half="development" if first else "held out",
            answerable=len(there),
            right=share(is_right(*pair) for pair in there),
            right_as_suggestion=share(holds(one, result.suggestion) for one, result in there),
            right_or_passage=share(is_useful(*pair) for pair in there),
            wrongly_not_held=share(result.outcome == "not held" for _, result in there),
            wrong_and_confident=share(
                result.outcome == "answered" and result.confidence > SURE and not is_right(one, result)
                for one, result in half
            ),
            right_if_suggested=share(
                holds(one, result.suggestion) for one, result in half if result.suggestion
            ),
            right_if_confident=share(
                is_right(*pair) for pair in half if pair[1].content and pair[1].confidence > SURE
            ),
            unanswerable=len(without),
            not_answered_if_unanswerable=share(result.outcome != "answered" for result in without),
            seconds_per_question=round(seconds / max(1, len(results)), 3),
        )
        if misses and first:
            for one, result in half:
                show(one, result)


def is_right(asked: Asked, result: RecallResult) -> bool:
    """Whether a question was answered with an accepted answer."""
    return result.outcome == "answered" and holds(asked, result.content)


def holds(asked: Asked, text: str | None) -> bool:
    """Whether a text has an accepted answer."""
    return has_any(text or "", asked.answers)


def has_any(text: str, answers: Sequence[str]) -> bool:
    """Whether a text has one of some answers; a number not as a part of another one."""
    low = text.lower()
    return any(
        re.search(rf"(?<![\d.,]){one}(?![\d]|[.,]\d)", low) if one.isdecimal() else one in low
        for one in map(str.lower, answers)
    )


def is_useful(asked: Asked, result: RecallResult) -> bool:
    """Whether the right answer was given, or its passage is among the first three closest memories."""
    if result.outcome in ("answered", "not held"):
        return is_right(asked, result)
    return any(asked.is_answered_by(one.excerpt) for one in result.sources[:SHOWN])


def show(asked: Asked, result: RecallResult) -> None:
    """A question with its result."""
    good = is_useful(asked, result) if asked.answers else result.outcome != "answered"
    mark = "+" if is_right(asked, result) else "·" if good else "-"
    print(f"{mark} {asked.question}  [{'; '.join(asked.answers)}]")
    print(
        f"      {result.outcome} {result.confidence:.2f}: {(result.content or result.suggestion or '')[:300]!r}"
    )
    if not good and asked.answers:
        for near in result.sources[:SHOWN]:
            print(f"      ~ {near.excerpt[:160]!r}")


def share(values: Any) -> float:
    """The share of true values, rounded to three digits."""
    known = list(values)
    return round(sum(map(bool, known)) / len(known), 3) if known else 0.0


class Listening(OfflineLLM):
    """The offline model; keeps the passages of the last reading."""

    passages: list[Passage] | None = None

    def complete(self, messages: Any, **options: Any) -> Completion:
        """Answer as usual; keep the passages."""
        self.passages = given_passages(as_messages(messages)[-1].content, wider=True) or self.passages
        return super().complete(messages, **options)


@dataclass
class Run:
    """The questions of a set with their results, and for each quotation its signs and whether it has the answer."""

    results: list[tuple[Asked, RecallResult]] = field(default_factory=list)
    quoted: list[tuple[dict[str, float], bool]] = field(default_factory=list)
    chunks: int = 0
    seconds: float = 0.0

    def ask(self, memory: Memory, model: Listening, asked: Asked) -> None:
        """Ask one question."""
        began = time.perf_counter()
        self.results.append((asked, memory.recall(asked.question)))
        self.seconds += time.perf_counter() - began
        if not is_foreign(asked.question):
            question, passages = analyse_question(asked.question), model.passages or []
            found = quotation(question, passages, nearness(question, passages))
            if found is not None:
                self.quoted.append((dict(found.signs), holds(asked, found.text)))


def ask_all(name: str, place: Path, folders: list[Path], weights: Weights) -> Run:
    """Ask all questions of a set; its memories are made if they are not there."""
    run = Run()
    notes, asked = questions(name)
    for store in dict.fromkeys(note.store for note in notes) or ("",):
        made, model = (place / name / store).exists(), Listening(weights)
        with Memory.open(place / name / store, llm=model) as memory:
            if not made:
                remember(name, memory, folders, store)
            own = [one for one in asked if one.store == store]
            if name == "documentation":
                texts = [memory.store.get_chunk(i, track=False) for i in memory.store.list_chunks()]
                held = [one.content for one in texts if one is not None]
                own = [one for one in own if not one.answers or any(map(one.is_answered_by, held))]
            run.chunks += memory.stats().chunk_count
            for one in own:
                run.ask(memory, model, one)
    return run


def fitted(runs: dict[str, Run], leave_out: str = "") -> Weights:
    """The shipped tables, that of quotations fitted on all sets except ``leave_out``."""
    examples = [one for name, run in runs.items() if name != leave_out for one in run.quoted]
    table = fit_logistic([signs for signs, _ in examples], [right for _, right in examples], l2=DECAY)
    return replace(load_weights(), nearest=table)


def main() -> int:
    """Run from the command line."""
    options = arguments(__doc__ or "")
    options.add_argument("--markdown", type=Path, action="append", default=[], metavar="FOLDER")
    options.add_argument("--only", choices=SETS, action="append", default=[])
    options.add_argument("--misses", action="store_true", help="show the questions of the first half")
    options.add_argument("--keep", type=Path, default=None, metavar="FOLDER", help="keep the memories here")
    options.add_argument(
        "--fit", action="store_true", help="fit the shipped table for the nearest memory anew"
    )
    options.add_argument("--shipped", action="store_true", help="use the shipped table on every set")
    chosen = options.parse_args()
    report = Report("offline_corpora", "The offline model on documentation, notes and other languages")
    report.facts["table for the nearest memory"] = "shipped" if chosen.shipped else "fitted on the other sets"
    with tempfile.TemporaryDirectory() as scratch:
        place = chosen.keep or Path(scratch)
        first = (
            {}
            if chosen.shipped
            else {name: ask_all(name, place, chosen.markdown, load_weights()) for name in SETS}
        )
        if chosen.fit:
            data = json.loads(WEIGHTS.read_text(encoding="utf-8")) | {"nearest": fitted(first).nearest}
            WEIGHTS.write_text(json.dumps(data, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        for name in chosen.only or SETS:
            weights = load_weights() if chosen.shipped else fitted(first, name)
            run = ask_all(name, place, chosen.markdown, weights)
            report.facts[f"chunks of {name}"] = run.chunks
            add_rows(name, run.results, run.seconds, report, misses=chosen.misses)
    output = chosen.output
    if output is None and (chosen.quick or chosen.only or chosen.misses or chosen.shipped):
        output = Path(tempfile.gettempdir()) / "offline_corpora.json"
    report.finish(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
