"""The report of an erasure, and how what it names is recognised in any bytes: by name, or by fingerprints."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
import numpy as np

from rlm_mem.chunk import normalise_unicode
from rlm_mem.chunk.types import ALL_LINK_TYPES, CHUNK_TYPES, ORIGIN_OF_SOURCE, ORIGINS, TRUST_LEVELS, amount
from rlm_mem.config import stored_path
from rlm_mem.text.analysis import SPACELESS

_FILES = "imported files themselves: they are read again when they are imported again"
_REMAINING = (
    "backups and exports that were made before, or meanwhile",
    "copies and clones of the memory, version control included",
    "receipts and bundles that were written to files",
    "settings and names of tokens, in config.toml and tokens.json",
    _FILES,
    "what models, logs of servers and other programs were given",
    "recent texts in the working memory of programs that have the memory open, until they end",
)
_SHOWN_FILES = 10
_WINDOW = 32
_STEP = 64
#: Runs of content that JSON writes unchanged: no quote, backslash or control character.
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]{%d,}' % _WINDOW)
_MATCHES_NOTHING = "(?!)"
_VALUE = r"""(?m:(?:(?<=["'(,])|(?<=: )){}(?=["'](?!\s*:)|[),]|\s*$))"""
"""A single word as a whole value, in JSON, a row or front matter: not in a sentence."""
_CONVERSATION_OR_SOURCE = r"""(?m:(?:conversation|source)\w{{0,20}}["']?\s*[:=(]\s*(?:["']{0}["']|{0}\s*$))"""
"""A word as the value of a key, argument or call that names a conversation or a source."""
_OWN_WORDS = {*ORIGIN_OF_SOURCE, *ORIGINS, *TRUST_LEVELS, *CHUNK_TYPES, *ALL_LINK_TYPES}
"""Words that are also values of other fields of the format: of these, the key decides what a value means."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\\\"'/bfnrt]))")
_PLAINLY = {"\\": "\\", '"': '"', "'": "'", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = 3
"""How often a string may be escaped: an answer in the output of a program in a line of JSON."""


class Fingerprint(msgspec.Struct, frozen=True, array_like=True):
    """Fingerprint of 32 bytes of erased content: sums to find candidates, a salted BLAKE2b hash to confirm them."""

    sums: int
    hash: str


class ErasureReport(msgspec.Struct, kw_only=True):
    """The result of an erasure or dry run, with the data needed to verify it; contains the erased name.

    Attributes:
        person, source, namespace: what was erased; the others are None, and all of them if chunks were named.
        dry_run: whether nothing was changed.
        chunk_ids: chunks that were deleted with their versions and links.
        files: brain files that were removed or rewritten, each after its namespace.
        events: number of lines of the audit log that were emptied.
        unread: number of chunk files that cannot be read, and may name anybody.
        remaining: locations out of reach that may still contain erased content.
        salt, fingerprints: salt of the hashes, and fingerprints of the content of the chunks.
    """

    person: str | None = None
    source: str | None = None
    namespace: str | None = None
    at: str = ""
    dry_run: bool = True
    chunk_ids: list[str] = []
    files: list[str] = []
    events: int = 0
    unread: int = 0
    remaining: list[str] = msgspec.field(default_factory=lambda: list(_REMAINING))
    salt: str = ""
    fingerprints: list[Fingerprint] = []

    @property
    def is_by_id(self) -> bool:
        """Whether the chunks were named by their ids."""
        return self.person is None and self.source is None and self.namespace is None

    def came_from(self, files: Collection[str]) -> None:
        """Name the files that chunks were imported from among what remains."""
        if files and _FILES in self.remaining:
            shown = ", ".join(sorted(files)[:_SHOWN_FILES]) + (", …" if len(files) > _SHOWN_FILES else "")
            number = amount(len(files), "imported file")
            named = f"{number}, which a sync reads again when it is changed: {shown}"
            self.remaining[self.remaining.index(_FILES)] = named

    def __str__(self) -> str:
        chunks, files, lines = len(self.chunk_ids), len(self.files), self.events
        what = f"{amount(chunks, 'chunk')}, {amount(files, 'file')}, {amount(lines, 'line')} of the audit log"
        return f"would erase {what}" if self.dry_run else f"erased {what}"


class Matcher:
    """Searches text and bytes for the erased name (not that of a namespace) and for erased content."""

    def __init__(self, report: ErasureReport) -> None:
        self.report = report
        if report.person is not None:
            self.pattern = re.compile(_of_person(report.person), re.IGNORECASE)
        elif report.source is not None:
            forms = dict.fromkeys((report.source, stored_path(report.source)))
            self.pattern = re.compile("|".join(map(_of_source, forms)))
        else:
            self.pattern = re.compile(_MATCHES_NOTHING)
        self._known: dict[int, set[str]] = {}
        for one in report.fingerprints:
            self._known.setdefault(one.sums, set()).add(one.hash)
        self._sums = np.array(sorted(self._known), np.int64)

    def names(self, data: bytes) -> bool:
        """Return whether the person or the source is named, in plain UTF-8 or within the strings of JSON.

        There a line break is "\\n", whose letter would hide the beginning of a name; recorded output of programs is
        often escaped once more.
        """
        if self.pattern.pattern == _MATCHES_NOTHING:
            return False
        text = data.decode("utf-8", "replace")
        for _ in range(_ESCAPED):
            if self.pattern.search(normalise_unicode("NFC", text)):
                return True
            if "\\" not in text:
                return False
            text = _unescaped(text)
        return self.pattern.search(normalise_unicode("NFC", text)) is not None

    def places(self, data: bytes) -> Iterator[Fingerprint]:
        """Yield the fingerprints of erased content found anywhere in some bytes."""
        if len(data) < _WINDOW or not len(self._sums):
            return
        sums = _sums(data)
        nearest = np.minimum(np.searchsorted(self._sums, sums), len(self._sums) - 1)
        for place in np.flatnonzero(self._sums[nearest] == sums).tolist():
            found = Fingerprint(int(sums[place]), _hash(self.report.salt, data[place : place + _WINDOW]))
            if found.hash in self._known[found.sums]:
                yield found

    def found(self, data: bytes) -> bool:
        """Return whether these bytes contain the name or erased content."""
        return self.names(data) or next(self.places(data), None) is not None


def of_namespace(name: str) -> re.Pattern[bytes]:
    """Return a pattern that finds a namespace in the JSON of a chunk or of a line of the audit log."""
    return re.compile(rb'"(?:ns|namespace)": ?' + re.escape(msgspec.json.encode(name)))


def _of_person(name: str) -> str:
    """Return a pattern for a name as whole words, with any space between them; it must ignore case."""
    name = normalise_unicode("NFC", name)
    cases = {one for one in (name.upper(), name.casefold()) if len(one) != len(name)}  # ß and SS
    forms = (re.escape(one).replace(r"\ ", r"\s+") for one in (name, *sorted(cases)))
    return _as_words(name, f"(?:{'|'.join(forms)})")


def _of_source(name: str) -> str:
    """Return a pattern for a source in texts about others, where the same word may mean something else."""
    name = normalise_unicode("NFC", name)
    escaped = re.escape(name)
    if name in _OWN_WORDS:
        return _CONVERSATION_OR_SOURCE.format(escaped)
    return _VALUE.format(escaped) if re.fullmatch(r"\w+", name) else _as_words(name, escaped)


def _as_words(text: str, pattern: str) -> str:
    """Return the pattern of a text that must not be part of a longer word, except in scripts without spaces.

    There every neighbour may begin another word, or be a particle.
    """
    spaceless = SPACELESS.pattern.removesuffix("+")
    # Looked ahead for first: neighbours are then examined at few places.
    before = "" if SPACELESS.match(text[0]) else rf"(?={pattern})(?<!(?!{spaceless})\w)"
    behind = "" if SPACELESS.match(text[-1]) else rf"(?!(?!{spaceless})\w)"
    return before + pattern + behind


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _PLAINLY[found[2]], text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _sums(data: bytes) -> np.ndarray[Any, np.dtype[np.int64]]:
    total = np.concatenate([[0], np.cumsum(np.frombuffer(data, np.uint8).astype(np.int64))])
    over = np.concatenate([[0], np.cumsum(total)])
    first = total[_WINDOW:] - total[:-_WINDOW]
    second = over[_WINDOW + 1 :] - over[1:-_WINDOW] - _WINDOW * total[:-_WINDOW]
    found: np.ndarray[Any, np.dtype[np.int64]] = (first << 20) | second
    return found


def _hash(salt: str, window: bytes) -> str:
    return hashlib.blake2b(window, digest_size=12, key=salt.encode()).hexdigest()


def fingerprints_of(salt: str, content: str) -> list[Fingerprint]:
    """Return the fingerprints of a text, one for every 64 bytes that JSON writes unchanged."""
    data = content.encode("utf-8")
    windows = {
        data[start : start + _WINDOW]: start
        for run in _PLAIN.finditer(data)
        for start in range(run.start(), run.end() - _WINDOW + 1, _STEP)
    }
    sums = _sums(data) if windows else ()
    return [Fingerprint(int(sums[start]), _hash(salt, window)) for window, start in windows.items()]
