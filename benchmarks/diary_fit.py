"""Learn the weights by which a later note counts as the answer (`rlm_mem.text.update_score.WEIGHTS`) from the diaries.

For each question of a diary the note planted first is paired with the later notes that a search finds: the one that
changes what is asked for, the one that only looks like it, and others. A logistic regression of the signs of a pair is
fitted, once on all diaries and once without each group of diaries by one author; the figures are of the group left out.
What a rule finds in a pair (`exceptions`) is fitted with them, as two more signs; as these rules were written with the
same diaries, they are worth less for others.

    python benchmarks/diary_fit.py
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from diary import CORPORA, DIARIES, entries
from rlm_mem import Memory
from rlm_mem.search import ranked_ids
from rlm_mem.text.distinct import exceptions
from rlm_mem.text.languages import analyser_of
from rlm_mem.text.present import PresentQuestion, stems_in
from rlm_mem.text.update_score import LIKELY, WEIGHTS, signs

_GROUPS: dict[str, list[str]] = {}
for _label, _file in DIARIES:
    _GROUPS.setdefault(_label.partition(",")[0], []).append(_file.removesuffix(".jsonl"))
_FOUND = 8  # notes of a search
_LONGEST = 600  # characters of a note
_RIDGE = 3.0
_STEPS = 60
_KINDS = ("change", "look-alike", "other")
_WORTH = {"change": 1.0, "look-alike": 1.0, "other": 0.5}
_PLAIN = 0.5
"""Worth of the pairs of the first three groups, whose changes are stated in nearly the words of the note before."""

Floats = npt.NDArray[np.float64]


def pairs(name: str) -> Iterator[tuple[str, tuple[float, ...] | None]]:
    """The kind of each pair of a diary and its signs; None for a pair that shares too little."""
    lines = (CORPORA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as place, Memory.open(Path(place) / "brain") as memory:
        days = {}
        for day, text in entries(rows, seed=len(name)):
            memory.remember(text, occurred_at=day.isoformat())
            days[text] = day
        for row in rows:
            analyser = analyser_of(row.get("ask", ""))
            asked = PresentQuestion.of(row["ask"], analyser) if "ask" in row else None
            if asked is None:
                continue
            ids = [chunk_id for chunk_id, _ in ranked_ids(memory.store, row["ask"], limit=_FOUND)]
            found = [memory.store.get_chunk(chunk_id, track=False).content for chunk_id in ids]
            told = [row["older"], *(text for text in found if text != row["older"] and len(text) <= _LONGEST)]
            texts = {text: stems_in(text, analyser) for text in told}
            for later in told[1:] if row["older"] in found else ():
                if later not in days or days[later] <= days[row["older"]]:
                    continue
                kind = _KINDS[0 if row["kind"] == "change" else 1] if later == row["newer"] else _KINDS[2]
                found_signs = signs(asked, told[0], later, texts, analyser, is_next=later == told[1])
                apart, doubtful = exceptions(asked, told[0], later, texts, analyser, days[told[0]].year)
                yield kind, (*found_signs, float(apart), float(doubtful)) if found_signs else None


def fitted(values: Floats, wanted: Floats, worth: Floats) -> Floats:
    """Bias and weights of a logistic regression with a ridge on standardised values, by Newton's method."""
    mean, spread = values.mean(0), values.std(0) + 1e-9
    design = np.c_[np.ones(len(values)), (values - mean) / spread]
    found = np.zeros(design.shape[1])
    ridge = np.diag([1e-6] + [_RIDGE] * values.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-design @ found))
        slope = design.T @ (worth * (chance - wanted)) + ridge @ found
        found -= np.linalg.solve(
            (design * (worth * chance * (1 - chance))[:, None]).T @ design + ridge, slope
        )
    weights = found[1:] / spread
    return np.r_[found[0] - (weights * mean).sum(), weights]


def main() -> None:
    """Weights of all diaries; for each group, the share of each kind that counts as the answer without it."""
    told = [
        (number, kind, values)
        for number, names in enumerate(_GROUPS.values())
        for name in names
        for kind, values in pairs(name)
    ]
    kept = [(number, kind, values) for number, kind, values in told if values is not None]
    group = np.array([number for number, _, _ in kept])
    kinds = np.array([kind for _, kind, _ in kept])
    values = np.array([values for _, _, values in kept])
    wanted = (kinds == _KINDS[0]).astype(np.float64)
    worth = np.array([_WORTH[kind] for kind in kinds]) * np.where(group < 3, _PLAIN, 1.0)
    for number, name in enumerate(_GROUPS):
        rest = group != number
        weights = fitted(values[rest], wanted[rest], worth[rest])
        odds = weights[0] + values @ weights[1:]
        counts = (
            f"{kind} {int(((odds > LIKELY) & ~rest & (kinds == kind)).sum())} of "
            f"{sum(one == number and which == kind for one, which, _ in told)}"
            for kind in _KINDS
        )
        print(f"{name}, left out:", ", ".join(counts))
    weights = fitted(values, wanted, worth)
    print(
        f"bias {weights[0]:.2f}",
        *(
            f"{name}: {one:.2f}"
            for name, one in zip((*WEIGHTS, "apart", "doubtful"), weights[1:], strict=True)
        ),
        sep="\n",
    )


if __name__ == "__main__":
    main()
