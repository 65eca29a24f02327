"""Remarks below the output of a program on what it read from outside: pages, tools, imports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_mem.chunk.types import is_untrusted

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_MOST_READ = 2_000
"""Most chunks read by one program that are checked for trust."""
_NAMED = 10


@dataclass
class UntrustedRemarks:
    """Says after each program of a session which of the chunks that it read are untrusted, of each chunk once.

    Where everything that was read is, its origins are named once: in an imported memory every program would repeat it.
    """

    store: ChunkStore
    _origins: set[str] = field(default_factory=set)
    _named: set[str] = field(default_factory=set)

    def __call__(self, chunk_ids: Sequence[str]) -> str:
        """The remark on what one program read, empty if there is none."""
        return self.both(chunk_ids)[1]

    def both(self, chunk_ids: Sequence[str]) -> tuple[str, str]:
        """The untrusted chunks with their origins, ``chunk-… (web)`` or ``all 3 (web)``, and the remark on them."""
        read = self.store.summaries(list(chunk_ids)[:_MOST_READ]) if chunk_ids else []
        found = {one.id: str(one.origin) for one in read if is_untrusted(one.trust)}
        if len(found) < len(read):
            new = {one: origin for one, origin in found.items() if one not in self._named}
            self._named.update(list(new)[:_NAMED])
            return _listed(found), _listed(new)
        origins = sorted(set(found.values()))
        alone = next(iter(found)) if len(found) == 1 else f"all {len(found)}"
        named = f"{alone} ({', '.join(origins)})" if found else ""
        known = self._origins.issuperset(origins)
        self._origins.update(origins)
        return named, "" if known else named


def _listed(found: dict[str, str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(f"{one} ({origin})" for one, origin in list(found.items())[:_NAMED]) + more
