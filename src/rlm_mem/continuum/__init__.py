"""The Continuum Memory System: memories that move between tiers according to their recorded uses.

``system`` opens the parts below for one namespace. ``schema`` and ``rules`` define tiers and promotion; ``places``,
``frontmatter``, ``runs`` and ``files`` read and write the files, ``changes`` makes each change one transaction, and
``mirror`` keeps its chunk. ``traces`` and ``workspace`` record work, ``query`` finds memories, ``consolidate`` and
``prune`` move them, ``review`` has the cases for people, ``undoing`` takes changes of the whole brain back.

Plain files are the source of truth: ``workspace/state``, ``memory/short_term``, ``memory/long_term`` and ``system`` in
the brain folder. Each memory is mirrored as a chunk, so search and RECALL find it. User interfaces are in ``cli``,
``operations`` and ``dashboard``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.continuum.system import Continuum as Continuum

__getattr__, __all__ = loader(__name__, {"system": "Continuum"})
