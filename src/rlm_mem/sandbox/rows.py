"""Formatting of results as numbered lines of text, for ``print_rows``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rlm_mem.sandbox.arguments import count
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.matching import around, bounded, places
from rlm_mem.text.blocks import one_line

MAX_ROWS = 2_000
_MIN_CHARS, _MAX_CHARS = 20, 4_000
_MAX_POINTS, _POINT_CHARS = 40, 180
_TEXTS = ("text", "snippet", "content", "answer")
_HEAD_OF_MATCH = 3
"""Of a line whose match is far from its start, one in this many of the characters shown is from its start."""
_MIN_WITH_HEAD = 200
"""Minimum characters of a row that also shows its start if the match is far from it."""
_LIST_CHARS = 2_400
"""Characters of all texts of a list, if the program does not set those of each; what short ones leave is for others."""
_MIN_OF_ROW, _MAX_OF_ROW = 100, 300
_HEADED_CHARS, _OUTLINED_CHARS = 160, 400
"""Minimum characters of a row with headings, and of one of an outline."""
_PAIR_CHARS = 160
_MAX_TEXT = 20_000
"""Maximum characters of the text of a row that are searched for matches."""


def rows_text(rows: Any, chars: Any = None) -> str:
    """Return one line for each result, with its index; dates are shown when they change, equal lines once.

    Args:
        rows: the result of a function: a list of dicts or texts, or one of them.
        chars: characters of the text of a row, 20 to 4,000; longer texts are cut. None: 100 to 300, so that all have
            2,400 if possible; at least 160 for a row with headings, 400 for one of an outline, and 160 for each text
            of a pair; whole turns and their replies (``turns(whole=True)``) are not cut.

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
    max_chars = _usual_chars(listed) if chars is None else count("chars", chars, _MIN_CHARS, _MAX_CHARS)
    speakers = {_speaker(row) for row in listed if isinstance(row, Mapping)}
    marks = {str(row.get("untrusted")) for row in listed if isinstance(row, Mapping)}
    shown: dict[tuple[str, str], list[int]] = {}
    printed: dict[str, int] = {}
    for index, row in enumerate(listed):
        headed = isinstance(row, Mapping) and isinstance(row.get("points"), list | tuple)
        min_chars = _OUTLINED_CHARS if headed and "score" in row else _HEADED_CHARS if headed else 0
        room = max(max_chars, min_chars) if chars is None else max_chars
        with_head = chars is not None or max_chars >= _MIN_WITH_HEAD
        if isinstance(row, Mapping) and row.get("whole") and chars is None:
            line = "\n".join(filter(None, (str(row.get("text", "")), str(row.get("reply", "")))))
        else:
            line = _pair(row, _PAIR_CHARS if chars is None else max_chars, printed, index) or _line(
                row, room, with_head
            )
        if headed:
            told = zip_longest(row["points"][:_MAX_POINTS], row.get("below") or (), fillvalue="")
            points = (": ".join(filter(None, map(str, one))) for one in told)
            line += "".join(f" | {one_line(one, _POINT_CHARS)}" for one in points if one)
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


def _usual_chars(rows: Sequence[Any]) -> int:
    """Return the characters that each row gets if all have ``_LIST_CHARS`` together."""
    room = _LIST_CHARS
    sizes = sorted(min(len(_text(row)), _MAX_OF_ROW) for row in rows)
    for place, size in enumerate(sizes):
        share = room // (len(sizes) - place)
        if size > share:
            return max(_MIN_OF_ROW, share)
        room -= size
    return _MAX_OF_ROW


def _text(row: Any) -> str:
    """Return the text of a row."""
    if not isinstance(row, Mapping):
        return str(row)
    text = next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), None)
    return json.dumps(dict(row), ensure_ascii=False, default=str) if text is None else text


def _pair(row: Any, chars: int, printed: dict[str, int], index: int) -> str:
    """Return the two statements of a pair on one line, each in full only once; empty for another row."""
    if not isinstance(row, Mapping):
        return ""
    older, newer = row.get("older"), row.get("newer")
    if not isinstance(newer, Mapping) or not isinstance(older, Mapping):
        return ""
    shown = []
    for one in (older, newer):
        text = _line(one, chars)
        first = printed.setdefault(f"{_date(one)} {one.get('text', text)}", index)
        shown.append(text if first == index else f"(see [{first}])")
    return f"{shown[0]} -> {_date(newer)} {shown[1]}"


def _line(row: Any, max_chars: int, with_head: bool = True) -> str:
    """Return the text of a row on one line.

    Args:
        max_chars: maximum characters.
        with_head: whether to show the start of a line before a match far from it.
    """
    text = one_line(_text(row), _MAX_TEXT)
    if not isinstance(row, Mapping):
        return bounded(text, max_chars)
    matches = row.get("matches") or [row.get("match")]
    spans = places(text, (one_line(str(one), _MAX_TEXT) for one in matches if one))
    if spans and len(text) > max_chars:
        text = around(text, spans, max_chars, max_chars // _HEAD_OF_MATCH if with_head else 0)
    else:
        text = bounded(text, max_chars)
    replaced = " (out of date)" if row.get("superseded_by") or row.get("ended_at") else ""
    return text + replaced


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
