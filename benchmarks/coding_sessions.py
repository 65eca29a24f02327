"""What capture keeps of labelled sessions of coding agents: recall and precision.

    python benchmarks/coding_sessions.py                 the sessions of the repository
    python benchmarks/coding_sessions.py --data FOLDER   real sessions as well: its fitted.jsonl and apart.jsonl
    python benchmarks/coding_sessions.py --quick         the half for development only; records nothing
    python benchmarks/coding_sessions.py --fit           fits the weights of the signs to development, and with --data
                                                         to fitted.jsonl, and writes them

`corpora/sessions` holds short sessions of thirteen developers on fourteen projects, in English and German, written by
two authors who did not know the rules, in `development` also the single sentences of the tests of capture. Each
sentence that a colleague would write down is labelled, as one that has to be kept or as one that may be; all others are
junk. The signs were written and weighed on `development`; `apart`, by one of the authors, is for evaluation only. A
sentence counts as kept if most of its words are in one memory, or the reverse.

Real sessions, which people committed to public repositories, are the words of others and not part of this one: a folder
with the same two files is given with `--data`. The shipped weights were fitted to 73 of them, of some 60 people, beside
`development`; 33 others are the real half that is held out. Three labellers who did not know the rules marked them.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rlm_mem.capture.rules import SHIPPED, Rules, load_rules
from rlm_mem.capture.transcripts import SessionMessage, Speaker
from support import Floats, Report, arguments, fit_logistic, json_lines

CORPORA = Path(__file__).parent / "corpora" / "sessions"
MAY = 0.6
"""Target of a sentence that may be kept."""
PENALTY = 2.0
"""Strength of the penalty on weights; the best of 0.5, 1, 2 and 4 in cross-validation."""
FEW = 2.0
"""Worth of a labelled sentence of an agent, of which there are few."""


class Label(msgspec.Struct, frozen=True):
    """A sentence to keep: `turn` counts from 0; `must` is false where it is arguable."""

    turn: int
    sentence: str
    kind: str
    must: bool


class Turn(msgspec.Struct, frozen=True):
    """One message."""

    role: str
    text: str

    @property
    def speaker(self) -> Speaker:
        """The speaker as capture calls it."""
        return "user" if self.role == "user" else "agent"


class Labelled(msgspec.Struct, frozen=True):
    """One session."""

    id: str
    developer: str
    project: str
    turns: list[Turn]
    keep: list[Label]


class Example(NamedTuple):
    """A sentence with the signs that it shows and the probability to be fitted."""

    session: str
    speaker: Speaker
    signs: tuple[int, ...]
    target: float


def same(kept: str, sentence: str) -> bool:
    """Whether two texts state the same: one is in the other, or most words of the shorter one are."""
    one, other = (" ".join(text.replace("’", "'").split()) for text in (kept, sentence))
    if one in other or other in one:
        return True
    words, others = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    fewer = min(len(words), len(others))
    return fewer > 2 and len(words & others) >= 0.7 * fewer


def evaluate(sessions: Sequence[Labelled], rules: Rules, show: bool = False) -> dict[str, Any]:
    """Count what the rules keep of some sessions."""
    must = may = 0
    of_must = of_may = kept_count = right = 0
    for session in sessions:
        kept = [
            (turn, one)
            for turn in session.turns
            for one in rules.kept(SessionMessage(turn.speaker, turn.text))
        ]
        for label in session.keep:
            found = any(same(one.text, label.sentence) for _, one in kept)
            must, of_must = must + found * label.must, of_must + label.must
            may, of_may = may + found * (not label.must), of_may + (not label.must)
            if show and label.must and not found:
                print(f"missed {session.id} ({label.kind}): {label.sentence}")
        for turn, one in kept:
            good = any(same(one.text, label.sentence) for label in session.keep)
            kept_count, right = kept_count + 1, right + good
            if show and not good:
                print(f"junk {session.id} ({turn.role}, {one.rule}): {one.text}")
    messages = sum(len(session.turns) for session in sessions)
    return {
        "sessions": len(sessions),
        "messages": messages,
        "to keep": of_must,
        "kept %": round(100 * must / of_must, 1),
        "arguable": of_may,
        "arguable kept %": round(100 * may / max(1, of_may), 1),
        "memories": kept_count,
        "labelled memories %": round(100 * right / max(1, kept_count), 1),
    }


def examples(sessions: Sequence[Labelled], rules: Rules) -> list[Example]:
    """All sentences that could be kept, with their signs."""
    names = {sign.name: number for number, (sign, _) in enumerate(rules.signs)}
    return [
        Example(
            f"{session.developer} {session.id}",
            turn.speaker,
            tuple(names[sign.name] for sign in rules.shown(sentence)),
            max(
                (
                    1.0 if label.must else MAY
                    for label in session.keep
                    if label.turn == number and same(sentence, label.sentence)
                ),
                default=0.0,
            ),
        )
        for session in sessions
        for number, turn in enumerate(session.turns)
        for sentence in rules.sentences(turn.text)
    ]


def fitted(rows: Sequence[Example], signs: int) -> tuple[Floats, float]:
    """Weights and base for the signs, which are so many."""
    worth = [FEW if row.speaker == "agent" and row.target else 1.0 for row in rows]
    wanted = np.array([row.target for row in rows])
    return fit_logistic(_table(rows, signs), wanted, penalty=PENALTY, worth=np.array(worth))


def _table(rows: Sequence[Example], signs: int) -> Floats:
    shown = np.zeros((len(rows), signs))
    for number, row in enumerate(rows):
        shown[number, list(row.signs)] = 1.0
    return shown


def cross_validated(rows: Sequence[Example], signs: int) -> None:
    """Print recall and precision by threshold, each session weighed by weights fitted without it."""
    ids = sorted({row.session for row in rows})
    random.Random(1).shuffle(ids)
    fold = {one: number % 5 for number, one in enumerate(ids)}
    scored: list[tuple[float, float]] = []
    for number in range(5):
        weights, base = fitted([row for row in rows if fold[row.session] != number], signs)
        mine = [row for row in rows if fold[row.session] == number]
        chances = 1 / (1 + np.exp(-_table(mine, signs) @ weights - base))
        scored += [(float(chance), row.target) for chance, row in zip(chances, mine, strict=True)]
    must = sum(target == 1 for _, target in scored)
    for threshold in (0.3, 0.4, 0.5, 0.6, 0.7):
        kept = [target for chance, target in scored if chance >= threshold]
        good = sum(target > 0 for target in kept)
        print(f"  {threshold}: {kept.count(1.0)} of {must} kept; {good} of {len(kept)} kept are labelled")


def fit(rules: Rules, sessions: Sequence[Labelled]) -> None:
    """Fit the weights and write them into the shipped rules."""
    rows = examples(sessions, rules)
    text = SHIPPED.read_text(encoding="utf-8")
    for speaker in ("user", "agent"):
        mine = [row for row in rows if row.speaker == speaker]
        print(f"{speaker}, cross-validated, of {len(mine)} sentences:")
        cross_validated(mine, len(rules.signs))
        weights, base = fitted(mine, len(rules.signs))
        text = re.sub(rf"(?m)(^\[weighing\]\n(?:.+\n)*?{speaker} = )\S+", rf"\g<1>{base:.2f}", text)
        for (sign, _), weight in zip(rules.signs, weights, strict=True):
            pattern = rf'(?m)(^name = "{re.escape(sign.name)}"\n(?:(?!patterns).+\n)*?{speaker} = )\S+'
            text, changed = re.subn(pattern, rf"\g<1>{weight:.2f}", text)
            if changed != 1:
                sys.exit(f"{SHIPPED}: sign {sign.name!r} has no line {speaker!r}")
    SHIPPED.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure and write the report, or fit."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true", help="fit the weights instead, and write them")
    parser.add_argument(
        "--show", action="store_true", help="print what was missed, and the junk, of development"
    )
    options = parser.parse_args()
    rules = load_rules(None)
    sets = {"development": CORPORA / "development.jsonl", "held out": CORPORA / "apart.jsonl"}
    if options.data is not None:
        sets |= {
            "real, fitted": options.data / "fitted.jsonl",
            "real, held out": options.data / "apart.jsonl",
        }
    if options.fit:
        fit(
            rules,
            [
                one
                for name, file in sets.items()
                if "held out" not in name
                for one in json_lines(file, Labelled)
            ],
        )
        return
    report = Report("coding_sessions", "What capture keeps of labelled sessions.")
    for name, file in sets.items():
        if not (options.quick and name != "development"):
            report.add(
                half=name,
                **evaluate(json_lines(file, Labelled), rules, options.show and "held out" not in name),
            )
    if options.quick:
        print(report.table())
    else:
        report.finish(options.output)


if __name__ == "__main__":
    main()
