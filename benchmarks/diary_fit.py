"""Learn the weights by which a later note counts as the answer (`rlm_mem.text.update_score.WEIGHTS`) from the diaries.

For each question of a diary the note planted first is paired with the later notes that a search finds: the one that
changes what is asked for, the one that only looks like it, and others. A logistic regression of the signs of a pair is
fitted, once on all diaries and once without each group of diaries by one author; the figures are of the group left out.
What a rule finds in a pair (`exceptions`) is fitted with them, as two more signs; as these rules were written with the
same diaries, they are worth less for others.

Diaries have short notes, and a change for most questions. The weight of "in passing" is therefore learned afterwards,
together with the first halves of the notes among which little changes (`diary.ORDINARY`): it is the one nearest to 0
with which the fewest pairs of all are decided wrongly.

    python benchmarks/diary_fit.py
    python benchmarks/diary_fit.py --keep FOLDER    memories are made there once and reused
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diary import CORPORA, DIARIES, ORDINARY, entries
from offline_corpora import questions, remember
from rlm_mem import Memory
from rlm_mem.chunk import Chunk
from rlm_mem.search import ranked_ids
from rlm_mem.text.distinct import exceptions
from rlm_mem.text.languages import analyser_of
from rlm_mem.text.present import PresentQuestion, stems_in
from rlm_mem.text.update_score import LIKELY, WEIGHTS, signs
from support import Floats, fit_logistic

_GROUPS: dict[str, list[str]] = {}
for _label, _file in DIARIES:
    _GROUPS.setdefault(_label.partition(",")[0], []).append(_file.removesuffix(".jsonl"))
_FOUND = 8  # notes of a search
_LONGEST = 600  # characters of a note
_RIDGE = 3.0
_KINDS = ("change", "look-alike", "other")
_WORTH = {"change": 1.0, "look-alike": 1.0, "other": 0.5}
_PLAIN = 0.5
"""Worth of the pairs of the first three groups, whose changes are stated in nearly the words of the note before."""
_PASSING = list(WEIGHTS).index("in passing")
_GRID = tuple(-number / 10 for number in range(41))
"""Weights of "in passing" that are tried."""

Pair = tuple[str, tuple[float, ...] | None]
"""The kind of a pair and its signs; None for a pair that shares too little."""


def diary_pairs(name: str, folder: Path) -> Iterator[Pair]:
    """The pairs of a diary."""
    lines = (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    made = (folder / name).exists()
    with Memory.open(folder / name) as memory:
        for day, text in () if made else entries(rows, seed=len(name)):
            memory.remember(text, occurred_at=day.isoformat())
        for row in rows:
            found = _found(memory, row["ask"]) if "ask" in row else []
            older = next((one for one in found if one.content == row["older"]), None)
            for later in found if older is not None else ():
                kind = (
                    _KINDS[0 if row["kind"] == "change" else 1]
                    if later.content == row["newer"]
                    else _KINDS[2]
                )
                yield from _pair(kind, row["ask"], older, later, found)


def ordinary_pairs(name: str, folder: Path) -> Iterator[Pair]:
    """The first hit and each later note, of which one answers the question, in the first half of a set of notes."""
    notes, asked = questions(name)
    for store in dict.fromkeys(note.store for note in notes):
        place = folder / name / store
        made = place.exists()
        with Memory.open(place) as memory:
            if not made:
                remember(name, memory, [], store)
            for one in (one for one in asked if one.store == store and one.answers and one.first_half):
                found = _found(memory, one.question)
                for later in found[1:]:
                    answers = one.is_answered_by(later.content)
                    if answers != one.is_answered_by(found[0].content):
                        yield from _pair(_KINDS[0 if answers else 2], one.question, found[0], later, found)


def _found(memory: Memory, question: str) -> list[Chunk]:
    """The best short notes for a question, by words alone."""
    ids = [chunk_id for chunk_id, _ in ranked_ids(memory.store, question, limit=_FOUND)]
    found = [memory.store.get_chunk(chunk_id, track=False) for chunk_id in ids]
    return [one for one in found if len(one.content) <= _LONGEST]


def _pair(kind: str, question: str, earlier: Chunk, later: Chunk, found: list[Chunk]) -> Iterator[Pair]:
    """A pair with its signs, if one note is later than the other and the question is about the present."""
    analyser = analyser_of(question)
    asked = PresentQuestion.of(question, analyser)
    if asked is None or later.metadata.at <= earlier.metadata.at:
        return
    texts = {one.content: stems_in(one.content, analyser) for one in found}
    told, said = earlier.content, later.content
    is_next = said == next(text for text in texts if text != told)
    found_signs = signs(asked, told, said, texts, analyser, is_next=is_next)
    apart, doubtful = exceptions(asked, told, said, texts, analyser, int(earlier.metadata.at[:4]))
    yield kind, (*found_signs, float(apart), float(doubtful)) if found_signs else None


def fitted(values: Floats, wanted: Floats, worth: Floats) -> Floats:
    """Bias and weights of a logistic regression with a penalty on the weights of standardised values."""
    mean, spread = values.mean(0), values.std(0) + 1e-9
    found, bias = fit_logistic((values - mean) / spread, wanted, penalty=_RIDGE, worth=worth)
    weights = found / spread
    return np.r_[bias - (weights * mean).sum(), weights]


def weight_in_passing(odds: Floats, passing: Floats, wanted: Floats) -> float:
    """The weight of "in passing" nearest to 0 with which fewest pairs are decided wrongly; odds: without it."""
    return min(_GRID, key=lambda weight: _wrong(odds + weight * passing, wanted))


def _wrong(odds: Floats, wanted: Floats) -> int:
    return int(((odds > LIKELY) != (wanted > 0)).sum())


def main() -> None:
    """Weights of all pairs; for each group, how the pairs of each kind are decided without it."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--keep", type=Path, default=None, metavar="FOLDER", help="keep the memories here")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.parse_args().keep or Path(scratch)
        told = [
            (group, *pair)
            for group, names in _GROUPS.items()
            for name in names
            for pair in diary_pairs(name, folder)
        ]
        told += [(name, *pair) for name in ORDINARY for pair in ordinary_pairs(name, folder)]
    kept = [(group, kind, values) for group, kind, values in told if values is not None]
    group = np.array([group for group, _, _ in kept])
    kinds = np.array([kind for _, kind, _ in kept])
    signs_of = np.array([values for _, _, values in kept])
    values, passing = np.delete(signs_of, _PASSING, 1), signs_of[:, _PASSING]
    wanted = (kinds == _KINDS[0]).astype(np.float64)
    worth = np.array([_WORTH[kind] for kind in kinds]) * np.where(
        np.isin(group, list(_GROUPS)[:3]), _PLAIN, 1.0
    )
    of_diary = np.isin(group, list(_GROUPS))
    for name in (*_GROUPS, *ORDINARY):
        own = group == name
        learned = of_diary & ~own
        weights = fitted(values[learned], wanted[learned], worth[learned])
        plain = weights[0] + values @ weights[1:]
        weight = weight_in_passing(plain[~own], passing[~own], wanted[~own])
        odds = plain + weight * passing
        counts = (
            f"{kind} {int(((odds > LIKELY) & own & (kinds == kind)).sum())}"
            f" (were {int(((plain > LIKELY) & own & (kinds == kind)).sum())}) of "
            f"{sum(one == name and which == kind for one, which, _ in told)}"
            for kind in _KINDS
        )
        print(f"{name}, left out (in passing: {weight}):", ", ".join(counts))
    weights = fitted(values[of_diary], wanted[of_diary], worth[of_diary])
    in_passing = weight_in_passing(weights[0] + values @ weights[1:], passing, wanted)
    print(
        f"bias {weights[0]:.2f}",
        *(
            f"{name}: {one:.2f}"
            for name, one in zip(
                (*WEIGHTS, "apart", "doubtful"), np.insert(weights[1:], _PASSING, in_passing), strict=True
            )
        ),
        sep="\n",
    )


if __name__ == "__main__":
    main()
