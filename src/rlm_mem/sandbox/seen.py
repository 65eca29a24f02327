"""The chunks that a session's programs, or the model that writes them, have seen: those that an answer may cite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rlm_mem.errors import InputError
from rlm_mem.sandbox.arguments import full_chunk_id
from rlm_mem.sandbox.values import Final, preview

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore


class SeenChunks:
    """Ids of chunks.

    Attributes:
        ids: the chunks that were seen.
        listed: those that an opening listed, or whose text a function returned; a replay knows these before each
            program.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.listed: set[str] = set()
        self._limits_citations = False

    def add(self, chunk_ids: Iterable[str]) -> None:
        """Record chunks that a program has seen."""
        self.ids.update(chunk_ids)

    def read(self, chunk_id: str) -> None:
        """Record a chunk whose text a program has read."""
        self.ids.add(chunk_id)
        self.listed.add(chunk_id)

    def show(self, chunk_ids: Iterable[str], listed: Iterable[str]) -> None:
        """Record chunks that the model was shown, some of them listed; from now on, answers cite only what was seen."""
        self.ids.update(chunk_ids)
        self.listed.update(listed)
        self._limits_citations = True

    def clear(self) -> None:
        """Forget everything; answers may cite any chunk again."""
        self.ids.clear()
        self.listed.clear()
        self._limits_citations = False

    def cited(self, final: Final, store: ChunkStore) -> Final:
        """Return an answer with the full ids of its chunks.

        Raises:
            InputError: it cites a chunk that does not exist, or that nobody has seen.
        """
        if not self.ids.issuperset(final.chunk_ids):  # some are given by their last part, or unknown
            named = dict.fromkeys(full_chunk_id(one, self.ids) for one in final.chunk_ids)
            final = replace(final, chunk_ids=list(named))
        existing = store.existing(final.chunk_ids)
        if unknown := [one for one in final.chunk_ids if one not in existing]:
            raise InputError(
                f"there is no chunk {_listed(unknown)}",
                hint="use ids that search or read_chunk returned, or leave chunk_ids out",
            )
        if self._limits_citations and (unread := [one for one in final.chunk_ids if one not in self.ids]):
            raise InputError(
                f"this session has not shown or read the chunk {_listed(unread)}",
                hint="read it in a program first, for example print(read_chunk(chunk_id)), or name what was shown",
            )
        return final


def _listed(chunk_ids: list[str]) -> str:
    return ", ".join(preview(one, 60) for one in chunk_ids[:3]) + (", …" if len(chunk_ids) > 3 else "")
