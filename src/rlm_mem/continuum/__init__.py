"""The Continuum Memory System: memories that move between tiers according to their recorded uses.

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
