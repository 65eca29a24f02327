"""Results of the functions as numbered lines of text: what ``print_rows`` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.line_functions import count
from rlm_mem.text.blocks import one_line

__all__ = ["rows_text"]

MAX_ROWS = 2_000
_LEAST_CHARS, _MOST_CHARS = 20, 4_000
_MOST_POINTS, _POINT_CHARS = 40, 80
_TEXTS = ("text", "snippet", "content", "answer")
_HEAD_OF_MATCH = 3
"""If a line is too long to show its match from the start on, one in this many of the characters shown are its first."""
_BEFORE_MATCH = 3
"""One in this many of the other characters comes before the match of ``grep``, ``turns`` or a denial."""
_GAP = 20
"""Fewest characters that are left out between the two."""
_USUAL_CHARS, _WHOLE_CHARS = 160, 300
_MANY_ROWS = 20


def rows_text(rows: Any, chars: Any = None) -> str:
    """Return one line for each result, with its index; dates appear where they change, equal lines once.

    Args:
        rows: the result of a function: a list of dicts or texts, or one of them.
        chars: characters of the text of a row, 20 to 4,000; longer texts are cut. None: texts of more than 300
            characters are cut after 160, so that a sentence or two come whole; of more than 20 rows all longer ones.

    Raises:
        HostCallFailed: ``rows`` is something else, or has more than 2,000 rows.
    """
    listed = [rows] if isinstance(rows, str | Mapping) else rows
    if not isinstance(listed, list | tuple):
        raise HostCallFailed(
            "TypeError", "print_rows takes what a function returned: a list of dicts or texts"
        )
    if len(listed) > MAX_ROWS:
        raise HostCallFailed("ValueError", f"print_rows takes {MAX_ROWS:,} rows at most; pass a part of them")
    usual = _USUAL_CHARS if len(listed) > _MANY_ROWS else None
    most = usual if chars is None else count("chars", chars, _LEAST_CHARS, _MOST_CHARS)
    speakers = {_speaker(row) for row in listed if isinstance(row, Mapping)}
    marks = {row.get("untrusted") for row in listed if isinstance(row, Mapping)}
    shown: dict[tuple[str, str], list[int]] = {}
    said: dict[str, int] = {}
    for index, row in enumerate(listed):
        line = _pair(row, most or _USUAL_CHARS, said, index) or _line(row, most)
        if isinstance(row, Mapping) and isinstance(row.get("points"), list | tuple):
            line += "".join(f" | {one_line(str(one), _POINT_CHARS)}" for one in row["points"][:_MOST_POINTS])
        if isinstance(row, Mapping):
            if len(speakers) > 1 and _speaker(row) and not line.startswith(f"{_speaker(row)}:"):
                line = f"{_speaker(row)}: {line}"
            if len(marks) > 1 and row.get("untrusted"):
                line = f"[untrusted: {row['untrusted']}] {line}"
        shown.setdefault((_date(row), line), []).append(index)
    lines: list[str] = []
    before = ""
    for (date, line), indexes in shown.items():
        if date != before:
            lines.append(date or "(no date)")
            before = date
        times = f" ({len(indexes)} times)" if len(indexes) > 1 else ""
        lines.append(f"[{indexes[0]}] {line}{times}")
    return "\n".join(lines) or "(no rows)"


def _pair(row: Any, chars: int, said: dict[str, int], index: int) -> str:
    """The two statements of a pair on one line, each in full once; empty for another row."""
    if not isinstance(row, Mapping):
        return ""
    older, newer = row.get("older"), row.get("newer")
    if not isinstance(newer, Mapping) or not isinstance(older, Mapping):
        return ""
    shown = []
    for one in (older, newer):
        text = _line(one, chars)
        first = said.setdefault(f"{_date(one)} {one.get('text', text)}", index)
        shown.append(text if first == index else f"(see [{first}])")
    return f"{shown[0]} -> {_date(newer)} {shown[1]}"


def _line(row: Any, chars: int | None) -> str:
    """The text of a row on one line."""
    if not isinstance(row, Mapping):
        return one_line(str(row), _room(str(row), chars))
    text = next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), None)
    if text is None:
        text = json.dumps(dict(row), ensure_ascii=False, default=str)
    most = _room(text, chars)
    match = str(row.get("match") or "")
    place = text.find(match) if match else -1
    head = most // _HEAD_OF_MATCH
    first = place - max(0, most - head - len(match)) // _BEFORE_MATCH
    if place >= 0 and len(text) > most and (first > head + _GAP or place + len(match) > most):
        # The line from its start, then what is around the match.
        first = max(first, head)
        space = text.find(" ", first, place)
        text = (
            f"{text[:head].rpartition(' ')[0] or text[:head]} … {text[first if space < 0 else space + 1 :]}"
        )
    replaced = " (out of date)" if row.get("superseded_by") else ""
    return one_line(text, most) + replaced


def _room(text: str, chars: int | None) -> int:
    """How many characters of a text are shown."""
    if chars is not None:
        return chars
    return _WHOLE_CHARS if len(text) <= _WHOLE_CHARS else _USUAL_CHARS


def _date(row: Any) -> str:
    if not isinstance(row, Mapping):
        return ""
    if isinstance(row.get("older"), Mapping):
        return _date(row["older"])
    return next(
        (str(row[name])[:10] for name in ("date", "at", "occurred_at", "created_at") if row.get(name)), ""
    )


def _speaker(row: Mapping[str, Any]) -> str:
    speaker = row.get("speaker")
    return speaker if isinstance(speaker, str) else ""
