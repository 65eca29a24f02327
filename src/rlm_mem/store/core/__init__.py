"""Code shared by every backend: ``ChunkStore``, the ``Backend`` protocol, and the plain data passed between them.

``chunk_store`` is the interface; its reads are in ``reader`` (``listing``, ``visible``, ``joined_store``), its writes
in ``writer`` (``succession``). ``backend`` and ``lookup`` are the protocols that a backend implements, for storage and
for search; ``backends`` chooses one by its place. ``records`` has the data passed between them, ``encoding`` that of
search, ``selection`` its arithmetic. ``changes`` and ``undoing`` record and undo, ``integrity`` checks, ``copying``,
``backup_archive`` and ``erasing`` (with ``erasure_plan``, ``erasure_report``, ``erasure_marks``, ``erasure_checks`` and
``redacting``) work on whole namespaces.

Modules that only writes and views of the past need are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.store.core.revising import (
        check_complete as check_complete,
        revise_chunk as revise_chunk,
        screened_chunk as screened_chunk,
    )
    from rlm_mem.store.core.succession import (
        as_it_was as as_it_was,
        check_replaceable as check_replaceable,
        held as held,
    )
    from rlm_mem.store.core.writer import (
        Writer as Writer,
        check_links as check_links,
        given_fields as given_fields,
        tokens_of as tokens_of,
    )

__getattr__, __all__ = loader(
    __name__,
    {
        "revising": "check_complete revise_chunk screened_chunk",
        "succession": "as_it_was check_replaceable held",
        "writer": "Writer check_links given_fields tokens_of",
    },
)
