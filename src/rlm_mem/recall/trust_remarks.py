"""Remarks below the output of a program on untrusted chunks that it read: from web pages, tools, imports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_mem.chunk.types import is_untrusted

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_MAX_READ = 2_000
"""Most chunks of one program that are checked for trust."""
_MAX_NAMED = 10


@dataclass
class UntrustedRemarks:
    """After each program of a session, names the untrusted chunks that it read, each chunk once.

    If all that was read is untrusted, its origins are named once: in an imported memory every program would repeat
    them.
    """

    store: ChunkStore
    _origins: set[str] = field(default_factory=set)
    _remarked: set[str] = field(default_factory=set)

    def __call__(self, chunk_ids: Sequence[str]) -> str:
        """The remark on what one program read, or an empty text."""
        return self.both(chunk_ids)[1]

    def both(self, chunk_ids: Sequence[str]) -> tuple[str, str]:
        """The untrusted chunks with their origins, ``chunk-… (web)`` or ``all 3 (web)``, and the model's remark."""
        read = self.store.summaries(list(chunk_ids)[:_MAX_READ]) if chunk_ids else []
        found = {one.id: str(one.origin) for one in read if is_untrusted(one.trust)}
        if len(found) < len(read):
            new = {one: origin for one, origin in found.items() if one not in self._remarked}
            self._remarked.update(list(new)[:_MAX_NAMED])
            return _listed(found), _listed(new)
        origins = sorted(set(found.values()))
        subject = next(iter(found)) if len(found) == 1 else f"all {len(found)}"
        phrase = f"{subject} ({', '.join(origins)})" if found else ""
        known = self._origins.issuperset(origins)
        self._origins.update(origins)
        return phrase, "" if known else phrase


def _listed(found: dict[str, str]) -> str:
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return ", ".join(f"{one} ({origin})" for one, origin in list(found.items())[:_MAX_NAMED]) + more
