"""Marks of erasures that are being carried out, so that one that was cut off is finished by the next opening.

An erasure of chunks by their ids has a mark of its own, with what is needed to finish it: the ids, fingerprints of the
texts, and which process is at work on it. The mark of another erasure says only that the index must be cleaned.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.chunk import check_chunk_ids, check_namespace
from rlm_mem.errors import InputError
from rlm_mem.store.core.brain_files import ERASING
from rlm_mem.store.core.erasure_report import ErasureReport

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

MARK = f"{ERASING}.json"
_SALT = re.compile(r"[A-Za-z0-9]{1,64}")
_RUN = secrets.token_hex(8)
_LONGEST_SECONDS = 900
"""After this time a process counts as killed, whose number another one may have now."""

Ends = dict[str, dict[str, str | None]]
"""Of each erased chunk the chunks that it replaced, with the end of their validity before."""


class Mark(msgspec.Struct, kw_only=True):
    """The mark of an erasure of chunks by their ids.

    Attributes:
        namespace: of the chunks.
        report: with their ids and the fingerprints of their texts.
        ends: what former versions of other chunks get back.
        dropped: ids of the chunks that are gone already; an adapter may have used one of them anew.
        node, process, run, since: the computer, process and start of the program at work, and when it began, in
            seconds since 1970; empty: none is.
    """

    namespace: str
    report: ErasureReport
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
    for name in store.files.names(ERASING):
        try:
            found = msgspec.json.decode(store.files.read(name) or b"{}", type=Mark)
            check_namespace(found.namespace)
            check_chunk_ids(found.report.chunk_ids)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError):
            continue  # damaged: it must not keep the memory from being opened
        is_sound = name == found.name and _SALT.fullmatch(found.report.salt) is not None
        is_own = not store.confined or found.namespace == store.namespace
        if is_sound and is_own and not found.is_at_work:
            yield found
