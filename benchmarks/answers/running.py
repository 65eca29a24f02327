"""Run and resume: one line of a file for each question, so that a killed run loses and repeats none."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from answers.answering import Answerer, given_by_host, remembered
from answers.scoring import judged
from answers.sets import Case, Corpus
from rlm_mem.models.base import LLM


class Lines:
    """A file of JSON lines with an id each; the last line may have been cut off by a kill and is then dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: dict[str, dict[str, Any]] = {}
        whole = b""
        if path.exists():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.splitlines():
                row = json.loads(line)
                self.rows.setdefault(row["id"], row)
            if whole != data:
                path.write_bytes(whole)

    def forget_failed(self) -> None:
        """Remove the questions on which the model failed, so that they are asked again."""
        kept = {name: row for name, row in self.rows.items() if row.get("error") is None}
        if len(kept) < len(self.rows):
            unfinished = self.path.with_suffix(".tmp")
            unfinished.write_bytes(b"".join(_line(row) for row in kept.values()))
            unfinished.replace(self.path)
            self.rows = kept

    def add(self, row: dict[str, Any]) -> None:
        """Append a line, unless there is one with this id."""
        if row["id"] in self.rows:
            return
        with self.path.open("ab") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())
        self.rows[row["id"]] = row


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder for this run.

    Raises:
        SystemExit: another run writes to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"another run writes to {folder}: wait for it, or name another --out") from None
        yield


def folder_of(out: Path, mode: str, reader: str | None) -> Path:
    """Where a system's answers are kept."""
    name = mode if reader is None else f"{mode} read by {reader}"
    return out / "".join(sign if sign.isalnum() or sign in "-._ " else "_" for sign in name)


def settle(folder: Path, settings: dict[str, Any]) -> None:
    """Record the settings of a run, or compare them with those that it was started with.

    Raises:
        SystemExit: they differ, so the figures would not be comparable.
    """
    path = folder / "settings.json"
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before != settings:
            raise SystemExit(f"{folder} was begun with {before}: go on with that, or name another --out")
        return
    path.write_text(json.dumps(settings, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def run(
    cases: Sequence[Case],
    corpora: dict[str, dict[str, Corpus]],
    out: Path,
    *,
    mode: str,
    llm: object = None,
    reader: LLM | None = None,
    reader_name: str | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Lines:
    """Answer the questions without an answer, corpus by corpus.

    Args:
        corpora: by set and name. llm: what answers, where ``mode`` is only its name.
        tell: called with a line for each answer.
    """
    lines = Lines(folder_of(out, mode, reader_name) / "answers.jsonl")
    lines.forget_failed()
    left = [case for case in cases if case.id not in lines.rows]
    for key in dict.fromkeys((case.set, case.corpus) for case in left):
        brain = remembered(corpora[key[0]][key[1]], out / "brains" / key[0] / key[1])
        answerer = Answerer(brain, mode, mode if llm is None else llm, reader)
        try:
            for case in left:
                if (case.set, case.corpus) == key:
                    answered = answerer.answer(case)
                    lines.add(answered.row())
                    tell(f"{len(lines.rows)}/{len(cases)} {case.id} {answered.outcome} {answered.score}")
        finally:
            answerer.close()
    return lines


def judge(cases: Iterable[Case], folder: Path, ask: Callable[[str], str]) -> Lines:
    """Judge every answer of a folder that has no mark."""
    answers, marks = Lines(folder / "answers.jsonl"), Lines(folder / "judged.jsonl")
    for case in cases:
        row = answers.rows.get(case.id)
        if row is not None and row["error"] is None and case.id not in marks.rows:
            marks.add({"id": case.id, **judged(case, row["answer"], ask)})
    return marks


def write_tasks(cases: Sequence[Case], corpora: dict[str, dict[str, Corpus]], out: Path) -> Path:
    """Write the questions for an agent that answers over MCP or the command line, without the right answers."""
    path = out / "tasks.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for case in cases:
            brain = remembered(corpora[case.set][case.corpus], out / "brains" / case.set / case.corpus)
            task = {"id": case.id, "brain": str(brain.absolute()), "question": case.question}
            file.write(json.dumps(task, ensure_ascii=False) + "\n")
    return path


def take_answers(cases: Sequence[Case], given: Path, out: Path, name: str) -> tuple[Lines, list[str]]:
    """Score answers that an agent wrote, lines of ``{"id", "answer"}``; returns them, and the unusable lines."""
    lines, wrong = Lines(folder_of(out, name, None) / "answers.jsonl"), []
    known = {case.id: case for case in cases}
    for number, line in enumerate(given.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            case, answer = known[row["id"]], row["answer"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            wrong.append(f"line {number}: {type(error).__name__} {str(error)[:100]}")
            continue
        if answer is not None and not isinstance(answer, str):
            wrong.append(f"line {number}: the answer is neither text nor null")
            continue
        lines.add(given_by_host(case, answer).row())
    return lines, wrong
