"""Language analysis without I/O, used by store, ingest and search alike.

``tokens`` counts, ``layout``, ``blocks`` and ``sentences`` parse the structure of a text, ``segments`` splits it into
what search ranks, and ``analysis`` those into terms (``stopwords``, ``irregular``, ``languages``, ``cues``).
``dates`` finds dates, ``secrets`` keys and passwords (``secret_rules``), ``shortening`` cuts texts for lists. The
rules that compare notes begin with sentences and clauses (``wording``, ``clauses``, ``factuality``; words of other
languages in ``by_language``): ``statements`` extracts what is stated, ``stated_changes`` what changed, and
``differences`` compares them when a text is remembered; ``later`` decides which notes change others when a question is
asked (``present``, ``distinct``, ``update_score``).

Nothing here reads files, handles chunks or ranks. The names below are loaded on first use, since opening and most
searches do not need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.text.differences import surest as surest
    from rlm_mem.text.secrets import (
        Screened as Screened,
        log_secrets as log_secrets,
        screen as screen,
        screen_data as screen_data,
    )
    from rlm_mem.text.statements import statements_in as statements_in
    from rlm_mem.text.tokens import texts_within as texts_within

ANALYSIS_VERSION = 7
"""Incremented whenever terms or flags change meaning; an index of another version must be rebuilt."""

__getattr__, __all__ = loader(
    __name__,
    {
        "differences": "surest",
        "secrets": "Screened log_secrets screen screen_data",
        "statements": "statements_in",
        "tokens": "texts_within",
    },
)
__all__ += ["ANALYSIS_VERSION"]
