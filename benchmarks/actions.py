"""What agents are told as they run commands and change files: is it what a colleague would mention?

    python benchmarks/actions.py          both halves
    python benchmarks/actions.py --quick  the half for development only; records nothing

`corpora/actions` has memories of eight projects, and commands and changes of files as coding agents make them there.
For each, the memories are labelled that a colleague looking on would mention at that moment ("governed"), and those
on the same subject ("near"); most actions are routine and have neither. The rule was written on `development`; the
labels of `apart`, by an author who did not know the rule, were not looked at. The actions of a half in a project are
one session: a memory is told once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlm_mem import Memory
from rlm_mem.capture.actions import action_context, action_text
from rlm_mem.capture.rules import CaptureLimits
from rlm_mem.text.tokens import count_tokens
from support import Report, arguments, json_lines, percentile, timed

CORPORA = Path(__file__).parent / "corpora" / "actions"
HALVES = {"development": "development", "held out": "apart"}


class Remembered(msgspec.Struct, frozen=True):
    """A memory of a project."""

    id: str
    project: str
    type: str
    text: str


class Action(msgspec.Struct, frozen=True):
    """The use of a tool: `root` is the folder of the project; `governed` and `near` are ids of memories."""

    id: str
    project: str
    root: str
    input: dict[str, Any]
    governed: list[str]
    near: list[str]


def session(
    memories: Iterable[Remembered], actions: Sequence[Action]
) -> list[tuple[Action, list[str], int, float]]:
    """The memories told with each action of a project, the tokens of their context and the milliseconds it took."""
    told: list[tuple[Action, list[str], int, float]] = []
    with tempfile.TemporaryDirectory() as folder, Memory.open(f"{folder}/brain") as memory:
        ids: dict[str, str] = {}
        for one in memories:
            for chunk_id in memory.remember(f"User: {one.text}", chunk_type=one.type).chunk_ids:
                ids[chunk_id] = one.id
        known: set[str] = set()
        budget = CaptureLimits().tool_tokens
        for action in actions:
            text = action_text(action.input, Path(action.root))
            took, context = timed(
                lambda text=text: action_context([memory], text, budget=budget, known=known)
            )
            known.update(context.chunk_ids)
            tokens = count_tokens(context.text) if context.text else 0
            told.append((action, [ids[one] for one in context.chunk_ids], tokens, took))
    return told


def evaluate(actions: Sequence[Action], memories: Sequence[Remembered]) -> dict[str, Any]:
    """Count what is told with some actions."""
    told: list[tuple[Action, list[str], int, float]] = []
    for project in sorted({action.project for action in actions}):
        told += session(
            [one for one in memories if one.project == project],
            [one for one in actions if one.project == project],
        )
    pairs = [(action, one) for action, ids, _, _ in told for one in ids]
    governed = sum(one in action.governed for action, one in pairs)
    near = sum(one in action.near for action, one in pairs)
    return {
        "actions": len(actions),
        "told something": sum(bool(ids) for _, ids, _, _ in told),
        "memories told": len(pairs),
        "to be mentioned": governed,
        "on the subject": near,
        "all to be mentioned": sum(len(action.governed) for action in actions),
        "tokens an action": round(sum(tokens for _, _, tokens, _ in told) / len(told), 1),
        "p50_ms": round(percentile([took for *_, took in told], 0.5), 1),
    }


def main() -> None:
    """Measure and write the report."""
    options = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report("actions", "What agents are told as they run commands and change files.")
    memories = json_lines(CORPORA / "memories.jsonl", Remembered)
    for half, name in HALVES.items():
        if options.quick and name != "development":
            break
        report.add(half=half, **evaluate(json_lines(CORPORA / f"{name}.jsonl", Action), memories))
    if options.quick:
        print(report.table())
    else:
        report.finish(options.output)


if __name__ == "__main__":
    main()
