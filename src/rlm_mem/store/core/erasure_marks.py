"""Marks of erasures that are being carried out, so that none that was cut off is forgotten.

The mark of an erasure of chunks by their ids has what is needed to finish it: the ids, fingerprints of the texts, and
which process is at work on it; the next opening finishes it. The mark of a person, source or namespace has a digest of
the name, by which the repeated erasure knows it, and the ids that are gone already: no mark has a text or a name.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.chunk import check_chunk_ids, check_namespace, is_chunk_id
from rlm_mem.chunk.types import amount
from rlm_mem.errors import InputError
from rlm_mem.store.core.brain_files import ERASING, BrainFiles, place_of
from rlm_mem.store.core.erasure_report import ErasureReport
from rlm_mem.store.core.findings import Finding

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

FORMER_MARK = f"{ERASING}.json"
"""Of an erasure of a person, source or namespace by version 1.0."""
_SALT = re.compile(r"[A-Za-z0-9]{1,64}")
_ID = re.compile(rb"chunk-[A-Za-z0-9_-]{1,120}")
_MAX_IDS = 10  # that are named of a damaged mark
_RUN = secrets.token_hex(8)
_LONGEST_SECONDS = 900
"""After this time a process counts as killed, whose number another one may have now."""

Ends = dict[str, dict[str, str | None]]
"""Of each erased chunk the chunks that it replaced, with the end of their validity before."""


class Mark(msgspec.Struct, kw_only=True):
    """The mark of one erasure.

    Attributes:
        namespace: of the chunks.
        named: digest of the person, source or namespace; empty: it is of chunks by their ids.
        report: with their ids and the fingerprints of their texts.
        ends: what former versions of other chunks get back.
        dropped: ids of the chunks that are gone already; an adapter may have used one of them anew. Of a name, those of
            all namespaces, which the repeated erasure takes out of what stays.
        node, process, run, since: the computer, process and start of the program at work, and when it began, in
            seconds since 1970; empty: none is.
    """

    namespace: str
    report: ErasureReport
    named: str = ""
    ends: Ends = {}
    dropped: list[str] = []
    node: str = ""
    process: int = 0
    run: str = ""
    since: float = 0.0

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{ERASING}/{self.report.salt}.json"

    def write(self, store: ChunkStore, *, at_work: bool = True) -> None:
        """Write it, in the open transaction if there is one; ``at_work``: this process carries the erasure out."""
        self.node, self.process, self.run, self.since = "", 0, "", 0.0
        if at_work:
            self.node, self.process, self.run, self.since = platform.node(), os.getpid(), _RUN, time.time()
        store.files.write(self.name, msgspec.json.encode(self))

    @property
    def is_at_work(self) -> bool:
        """Whether a process may be carrying it out now."""
        if not self.run or abs(time.time() - self.since) > _LONGEST_SECONDS:
            return False
        if self.node != platform.node() or os.name == "nt":
            return True  # no signal can ask whether the process lives
        if self.process == os.getpid():
            return self.run == _RUN
        try:
            os.kill(self.process, 0)
        except (ProcessLookupError, OverflowError):  # no process has a number that long
            return False
        except OSError:  # that of another user
            return True
        return True


def marks(store: ChunkStore) -> Iterator[Mark]:
    """Yield the marks of erasures by ids that the store may finish, and that no process is at work on."""
    for _, found in _decoded(store.files):
        is_own = found is not None and (not store.confined or found.namespace == store.namespace)
        if found is not None and is_own and not found.named and not found.is_at_work:
            yield found


def mark_of_name(store: ChunkStore, report: ErasureReport, ends: Ends) -> Mark:
    """Return the mark of an erasure of a person, a source or a namespace."""
    shown = ErasureReport(at=report.at, salt=report.salt, dry_run=False)
    return Mark(namespace=store.namespace, report=shown, named=_digest(report, report.salt), ends=ends)


def former_marks(store: ChunkStore, mark: Mark, report: ErasureReport) -> tuple[dict[str, Mark | None], bool]:
    """Return the marks of earlier erasures of the same name, and whether there are any, or of other names.

    None stands for one of version 1.0, which says nothing else.

    Args:
        mark: of the erasure that is carried out now.
    """
    found = [
        (name, one) for name, one in _decoded(store.files) if name != mark.name and (not one or one.named)
    ]
    same: dict[str, Mark | None] = {
        name: one for name, one in found if one and one.named == _digest(report, one.report.salt)
    }
    if store.files.exists(FORMER_MARK):
        same[FORMER_MARK] = None
    return same, bool(found or same)


def _digest(report: ErasureReport, salt: str) -> str:
    named = repr((salt, report.person, report.source, report.namespace))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


def unfinished(store: ChunkStore, namespace: str) -> Iterator[Finding]:
    """Report erasures of a namespace that were cut off: they are to be finished, or to be repeated."""
    files = store.backend.files(namespace)
    if files.exists(FORMER_MARK):
        place = place_of(namespace, FORMER_MARK)
        yield Finding("erasure-to-repeat", f"{place}: an erasure by a name was cut off", place)
    for name, mark in _decoded(files):
        place = place_of(namespace, name)
        if mark is None:
            ids = ids_in(files.read(name) or b"")[:_MAX_IDS]
            named = f"; it names {', '.join(ids)}" if ids else ""
            message = f"{place}: the mark of an erasure that was cut off cannot be read{named}"
            yield Finding("unreadable-erasure", message, place)
        elif mark.is_at_work:
            continue
        elif mark.named:
            message = f"{place}: an erasure by a name, begun at {mark.report.at}, was cut off"
            yield Finding("erasure-to-repeat", message, place)
        else:
            message = f"{place}: an erasure of {amount(len(mark.report.chunk_ids), 'chunk')} was cut off"
            yield Finding("erasure-cut-off", message, place)


def ids_in(data: bytes) -> list[str]:
    """Return the ids of the chunks that a damaged mark is about; those of ``ends`` are not to be erased."""
    found = _ID.findall(data.partition(b'"ends":')[0])
    return sorted({one.decode() for one in found if is_chunk_id(one.decode())})


def _decoded(files: BrainFiles) -> Iterator[tuple[str, Mark | None]]:
    """Yield the names of the marks, each with what it says; None: it is damaged, and keeps nobody from opening."""
    for name, data in files.contents(files.names(ERASING)):
        try:
            found = msgspec.json.decode(data, type=Mark)
            check_namespace(found.namespace)
            check_chunk_ids(found.report.chunk_ids)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError):
            yield name, None
            continue
        is_sound = name == found.name and _SALT.fullmatch(found.report.salt)
        yield name, found if is_sound else None
