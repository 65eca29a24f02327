"""Differences between two versions of a memory: words of the content, fields and links."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from rlm_mem.chunk import Chunk
from rlm_mem.dashboard.words import first_line, visible, way, when
from rlm_mem.text.sequences import comparable, opcodes

_PIECES = re.compile(r"(?:\w++|[^\w\s])\s*+|\s++")
_MAX_WORD_DIFF = 12_000
"""Maximum characters of both texts for a diff by words; others are compared by lines."""
_COMPARED = 100_000
"""Number of characters of each version that are compared and shown."""
_AROUND = 240


def word_diff(before: str, after: str) -> Markup:
    """The later text with deletions (``del``) and insertions (``ins``) marked; long unchanged parts are shortened.

    For very long texts, only the beginnings are compared, and a note at the end says so.
    """
    if before == after:
        return Markup("")
    longest = max(len(before), len(after))
    before, after = before[:_COMPARED], after[:_COMPARED]
    old, new = _PIECES.findall(before[:_MAX_WORD_DIFF]), _PIECES.findall(after[:_MAX_WORD_DIFF])
    if len(before) + len(after) > _MAX_WORD_DIFF or not comparable(old, new):
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    made: list[Markup] = []
    steps = opcodes(old, new)
    for number, (kind, a, b, c, d) in enumerate(steps):
        if kind == "equal":
            text = visible("".join(old[a:b]))
            made.append(escape(_cut(text, first=number == 0, last=number == len(steps) - 1)))
            continue
        if b > a:
            made.append(Markup("<del>{}</del>").format(visible("".join(old[a:b]))))
        if d > c:
            made.append(Markup("<ins>{}</ins>").format(visible("".join(new[c:d]))))
    if longest > _COMPARED:
        made.append(
            Markup(' <span class="quiet">[only the first {} of {} characters are compared]</span>').format(
                f"{_COMPARED:,}", f"{longest:,}"
            )
        )
    return Markup("").join(made)


def changed_fields(before: Chunk, after: Chunk) -> list[tuple[str, Markup, Markup]]:
    """Name, former value and present value of fields that differ."""
    fields = (
        ("type", before.type, after.type),
        ("tags", ", ".join(before.tags), ", ".join(after.tags)),
        ("confidence", before.metadata.confidence, after.metadata.confidence),
        ("conversation", before.metadata.conversation_id, after.metadata.conversation_id),
        ("happened", when(before.metadata.occurred_at), when(after.metadata.occurred_at)),
        ("holds from", when(before.metadata.valid_from), when(after.metadata.valid_from)),
        ("holds to", when(before.metadata.valid_to), when(after.metadata.valid_to)),
        ("replaced by", before.metadata.superseded_by, after.metadata.superseded_by),
        ("trust", before.metadata.trust, after.metadata.trust),
    )
    return [(name, _format_value(old), _format_value(new)) for name, old, new in fields if old != new]


def changed_links(before: Chunk, after: Chunk) -> list[tuple[str, str, str]]:
    """Links that were added, removed or changed: the kind of change, the link type in words, the other id."""
    old, new = (
        {(link.target_id, link.type): (link.strength, link.reasoning) for link in chunk.links}
        for chunk in (before, after)
    )
    found = []
    for what, keys in (
        ("link added", new.keys() - old.keys()),
        ("link removed", old.keys() - new.keys()),
        ("link changed", {key for key in new.keys() & old.keys() if new[key] != old[key]}),
    ):
        found += [(what, way(kind, "out"), target) for target, kind in sorted(keys)]
    return found


def _cut(text: str, *, first: bool, last: bool) -> str:
    if len(text) <= 2 * _AROUND + 20:
        return text
    head = "" if first else text[:_AROUND]
    tail = "" if last else text[-_AROUND:]
    return f"{head} … {tail}"


def _format_value(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return escape("–" if value in (None, "") else visible(first_line(str(value), 120)))
