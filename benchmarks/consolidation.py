"""Facts that change: numbered statements of which the last one holds, asked of the offline model through recall.

The data is that of FactConsolidation (MemoryAgentBench, Hu et al., 2025), which is not part of this repository: files
`sh_SIZE.json` (one statement answers) and `mh_SIZE.json` (several do) with `context`, `questions` and `answers`. An
answer is right if it contains an accepted one, ignoring case. "earlier" remembers each statement as a chunk with a day
of its own and asks as of the day before the last one: right is the value until then.

    python benchmarks/consolidation.py --data FOLDER
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from rlm_mem import Memory
from support import Report, arguments

_STATEMENT = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_FIRST_DAY = date(2020, 1, 1)


def share_right(memory: Memory, asked: list[tuple[str, list[str], str | None]]) -> float:
    """The share of (question, accepted answers, as of) that is answered right."""
    right = 0
    for question, accepted, as_of in asked:
        answer = (memory.recall(question, as_of=as_of).content or "").lower()
        right += any(one.lower() in answer for one in accepted)
    return right / len(asked) if asked else 0.0


def earlier(data: dict[str, Any]) -> list[tuple[str, list[str], str | None]]:
    """For each question whose answer changed: the former answer, and the day before the change."""
    statements = [
        (int(number), text.removesuffix(".")) for number, text in _STATEMENT.findall(data["context"])
    ]
    asked = []
    for question, accepted in zip(data["questions"], data["answers"], strict=True):
        ends = [(number, text) for number, text in statements if text.endswith(accepted[0])]
        named = [
            one
            for one in ends
            if any(word in one[1] for word in question.rstrip("?").split() if word.istitle())
        ]
        for number, text in reversed(named):
            frame = text.removesuffix(accepted[0])
            before = [other for n, other in statements if n < number and other.startswith(frame)]
            if before and all(word in frame for word in re.findall(r"[A-Z]\w+", question)[1:]):
                day = _FIRST_DAY + timedelta(days=number - 1)
                asked.append((question, [before[-1].removeprefix(frame)], day.isoformat()))
                break
    return asked


def main() -> None:
    """Each file of the folder, the small ones first."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("consolidation", "Facts that change: right answers of the offline model")
    folder = None if options.data is None else options.data / "factconsolidation"
    files = [] if folder is None else sorted(folder.glob("?h_*k.json"), key=lambda one: one.stat().st_size)
    if not files:
        raise SystemExit(
            "nothing to measure: --data FOLDER names a folder with factconsolidation/sh_6k.json and so on"
        )
    for path in files[:2] if options.quick else files:
        data = json.loads(path.read_text(encoding="utf-8"))
        questions = [(q, a, None) for q, a in zip(data["questions"], data["answers"], strict=True)]
        with tempfile.TemporaryDirectory() as place, Memory.open(Path(place) / "brain") as memory:
            memory.remember(data["context"], conversation_id="facts")
            began = time.perf_counter()
            row = {"questions": path.stem, "accuracy": round(share_right(memory, questions), 2)}
            row["ms per question"] = round((time.perf_counter() - began) * 1e3 / len(questions), 1)
        if path.stem.startswith("sh"):
            with tempfile.TemporaryDirectory() as place, Memory.open(Path(place) / "brain") as memory:
                with memory.batch():
                    for number, text in _STATEMENT.findall(data["context"]):
                        day = _FIRST_DAY + timedelta(days=int(number))
                        memory.remember(f"{number}. {text}", occurred_at=day.isoformat())
                asked = earlier(data)
                row["questions as of an earlier day"] = len(asked)
                row["accuracy as of an earlier day"] = round(share_right(memory, asked), 2)
        report.add(**row)
    report.finish(options.output)


if __name__ == "__main__":
    main()
