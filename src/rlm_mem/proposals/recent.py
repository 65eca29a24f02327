"""Chunks that were stored after the index was asked, compared in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set

from rlm_mem.proposals.statements import sign_of, terms_of
from rlm_mem.store.core.lookup import Held
from rlm_mem.text.statement import ME, Stated

_RECENT = 100
"""Maximum number of chunks, the newest of those kept, that are compared for one stem."""


class RecentChunks:
    """Ids of chunks, by the stems of their statements."""

    def __init__(self) -> None:
        self._by_stem: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, chunk_id: str, stems: Collection[str]) -> None:
        """Add a chunk."""
        self._number += 1
        entry = chunk_id, frozenset(stems)
        for stem in stems:
            self._by_stem.setdefault(stem, []).append(entry)

    def has_any(self, stems: Set[str]) -> bool:
        """Whether one of the chunks has one of the stems."""
        return not stems.isdisjoint(self._by_stem)

    def sharing(self, statements: Sequence[Stated]) -> Iterator[Held]:
        """The chunks that share stems with a sentence, without their hashes.

        They are found by terms of the index: of a text that shared no word with others, the stems are not known. Those
        with a statement of the same attribute come first, then those with the most stems, then the newest.
        """
        found: dict[str, frozenset[str]] = {}
        by_stem = self._by_stem
        for one in statements:
            for some in (*([stem] for stem in (*one.former, *one.gone)), one.topic - {ME} or one.topic):
                terms = {term for stem in some for term in terms_of(stem)}
                if terms and by_stem.keys() >= terms:  # a chunk with all of them is in the list of each
                    recent = min([by_stem[term] for term in sorted(terms)], key=len)[-_RECENT:]
                    found.update(recent if len(terms) == 1 else [held for held in recent if terms <= held[1]])
        if not found:
            return
        words = {
            stem
            for one in statements
            for stem in (*one.topic, *one.value, *one.context, *one.former, *one.gone)
        } & by_stem.keys()
        attributes = {sign_of(one) for one in statements}
        behind = len(words) + 1  # more than any number of stems
        newest = list(reversed(found.items()))
        ranks = [len(words & stems) - behind * attributes.isdisjoint(stems) for _, stems in newest]
        for place in sorted(range(len(newest)), key=ranks.__getitem__, reverse=True):
            chunk_id, stems = newest[place]
            yield Held(chunk_id, "", stems)
