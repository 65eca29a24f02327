"""Template filters for times, amounts, highlighted matches, links and log entries; and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any
from unicodedata import bidirectional
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from rlm_mem.chunk import LINK_TYPES
from rlm_mem.chunk.types import amount
from rlm_mem.text.analysis import get_analyser

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LINE_MARK = re.compile(r"^(?:#{1,6}|[ \t]{0,8}[-+*])[ \t]+(?=\S)", re.MULTILINE)
_STRONG = re.compile(r"(?<![\w*])\*\*(?=\S)(.{1,200}?)(?<=\S)\*\*(?![\w*])")
WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\\?\|([^\[\]|\n]{1,200}))?\]\]")
"""A link as Obsidian writes it: the note, and the words shown for it, if others."""
_MIDNIGHT = time()
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def address(path: str, /, *parts: str, **query: Any) -> str:
    """Build an address from a path, further parts and a query, percent-encoded; empty values are omitted."""
    whole = path + "".join("/" + quote(part, safe="") for part in parts)
    non_empty = {name: value for name, value in query.items() if value not in (None, "", False, [], ())}
    return f"{whole}?{urlencode(non_empty, doseq=True)}" if non_empty else whole


def day(value: object) -> str:
    """A time in any supported form as `2026-02-10` (UTC); empty for other values."""
    found = _moment(value)
    return "" if found is None else found.isoformat()[:10]


def when(value: object, precision: str = "minute") -> Markup:
    """A time as `2026-02-10 14:05` (UTC), with the exact one as a tooltip.

    Args:
        precision: ``minute``, or ``day`` for the day alone, as at midnight, which means an unknown time of day.
    """
    found = _moment(value)
    if found is None:
        return Markup("–")
    length = 10 if precision == "day" or found.time() == _MIDNIGHT else 16
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        found.isoformat(), found.isoformat(" ", "seconds")[:19], found.isoformat(" ", "minutes")[:length]
    )


def count(value: object) -> str:
    """A number as `12,345`; a dash for other values."""
    return f"{value:,}" if isinstance(value, int | float) else "–"


def money(value: Decimal | float | None) -> str:
    """An amount of US dollars; `unpriced` if None."""
    if value is None:
        return "unpriced"
    return f"${value:,.2f}" if value >= Decimal("0.01") or not value else f"${value:.4f}"


def seconds(value: float) -> str:
    """A duration as `0.24 s`, `75 ms` or `2 min 5 s`."""
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 60 else f"{int(value) // 60} min {int(value) % 60} s"


def share(value: float | None) -> str:
    """A share from 0 to 1 as `87 %`."""
    return "–" if value is None else f"{value * 100:.0f} %"


def first_line(text: str, longest: int = 160) -> str:
    """The beginning of a text as one line."""
    line = " ".join(text[: longest * 4].split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def title(text: str, longest: int = 80) -> str:
    """The first line that contains a letter or digit, without Markdown marks."""
    for line in text[: longest * 50].splitlines():
        content = without_marks(line).strip()
        if any(sign.isalnum() for sign in content):
            return first_line(content, longest)
    return first_line(text, longest) or "…"


def without_marks(text: str) -> str:
    """The text without the marks of Markdown headings, list items, strong emphasis and links between notes."""
    return WIKI_LINK.sub(lambda link: link[2] or link[1], _STRONG.sub(r"\1", _LINE_MARK.sub("", text)))


def conversation(name: str) -> str:
    """The id of a conversation; of a file's, its last folder and its name."""
    return "/".join(name.rsplit("/", 2)[-2:]) if name.startswith("file:/") else name


def visible(text: str) -> str:
    """The text with control and bidirectional characters replaced by visible ones."""
    return _UNPRINTABLE.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def marked(text: str, stems: Iterable[str], language: str = "english") -> Markup:
    """The text, escaped, with words highlighted whose stem is in ``stems``."""
    wanted_stems = frozenset(stems)
    shown = visible(text)
    if not wanted_stems:
        return escape(shown)
    made, at = [], 0
    for match in _WORD.finditer(shown):
        if stems_of(match[0], language) & wanted_stems:
            made += [escape(shown[at : match.start()]), Markup("<mark>"), escape(match[0]), Markup("</mark>")]
            at = match.end()
    return Markup("").join([*made, escape(shown[at:])])


@lru_cache(maxsize=20_000)
def stems_of(word: str, language: str) -> frozenset[str]:
    """The stems of a word, as used by the index."""
    return frozenset(get_analyser(language).terms(word))


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (OverflowError, ValueError, OSError):  # not a time, or out of range
        return None


_LONG_FIELD = 20_000  # characters


def direction(text: str) -> str:
    """The attribute `dir` for a field with this text: `auto`, or the direction of the first letter if the text is long.

    With `auto`, browsers determine the direction at each key press, which takes seconds for 1 MB.
    """
    if len(text) <= _LONG_FIELD:
        return "auto"
    first = next((kind for kind in map(bidirectional, text) if kind in ("L", "R", "AL")), "L")
    return "ltr" if first == "L" else "rtl"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "day": day,
    "when": when,
    "title": title,
    "count": count,
    "some": amount,
    "money": money,
    "seconds": seconds,
    "share": share,
    "first_line": first_line,
    "conversation": conversation,
    "without_marks": without_marks,
    "visible": visible,
    "direction": direction,
}

_WAYS = {kind.name: (kind.outgoing, kind.incoming) for kind in LINK_TYPES}
"""Built-in link types in words, for the page's memory as the source and as the target."""

_DEEDS = {
    "create": "remembered",
    "import": "imported",
    "update": "edited",
    "edit": "edited",
    "link": "linked",
    "unlink": "link removed",
    "delete": "archived",
    "restore": "restored from the archive",
    "erase": "removed for good",
    "repeat": "said again",
    "move": "moved to another namespace",
    "supersede": "replaced by another memory",
    "quarantine": "quarantined",
    "release": "released from quarantine",
    "repair": "repaired",
}


def way(kind: str, direction: str) -> str:
    """How the page's memory relates to a linked one, for example `supports it` or `is supported by it`.

    Args:
        direction: ``out`` if the link starts from the page's memory, else ``in``.
    """
    name = kind.replace("_", " ")
    source, target = _WAYS.get(kind, (f"{name}: this to that", f"{name}: that to this"))
    return source if direction == "out" else target


def operation_done(op: str) -> str:
    """An operation of the audit log in words."""
    return _DEEDS.get(op, op.replace("_", " "))


def deed(event: Mapping[str, Any]) -> str:
    """An entry of the audit log in words, without the other memory of a link."""
    op = str(event.get("op"))
    if op == "link":
        return f"link added: this one {way(str(event.get('type', '')), 'out')}"
    if op == "supersede" and not event.get("by"):
        return "no longer replaced"
    if op == "undo":
        return f"revision {event['to']} restored" if event.get("to") else "a former revision restored"
    return operation_done(op)


def origin(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The provenance of a memory in words; unknown fields are unchanged."""
    fields = {name: value for name, value in provenance.items() if value not in (None, "")}
    made = []
    span = fields.pop("span", None)
    if isinstance(span, list | tuple) and len(span) == 2:
        made.append(("Place", f"characters {span[0]} to {span[1]} of the original text"))
    elif span is not None:
        fields["span"] = span
    if "part" in fields and "parts" in fields:
        made.append(("Part", f"{fields.pop('part')} of {fields.pop('parts')}"))
    if "overlap" in fields:
        made.append(("Overlap", f"its first {fields.pop('overlap')} characters also end the part before"))
    return made + plain_fields(fields)


def plain_fields(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of non-empty fields, each on one line."""
    return [
        (str(name), first_line(str(value), 400)) for name, value in fields.items() if value not in (None, "")
    ]
