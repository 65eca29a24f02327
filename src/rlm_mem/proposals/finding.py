"""Finds the earlier memories that a memory being stored replaces or contradicts.

Earlier chunks that may differ (:mod:`rlm_mem.proposals.earlier`) are compared by the rules of
:mod:`rlm_mem.text.differences`. The cost of a chunk is bounded, whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlm_mem.chunk import SUPERSEDES, ChunkLinks
from rlm_mem.chunk.types import rank
from rlm_mem.proposals.earlier import EarlierChunks
from rlm_mem.proposals.statements import stems
from rlm_mem.record import FrozenRecord
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.clauses import FAMILIES
from rlm_mem.text.differences import Conflict, differences
from rlm_mem.text.factuality import is_elsewhere, is_taken_back
from rlm_mem.text.statement import Stated

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.ingest.batch_index import BatchIndex
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.text.analysis import Analyser

_WHOLE = 600
"""Maximum characters of an earlier chunk that may be replaced as a whole."""
_TOLD_ELSE = 2
"""Minimum number of content words of an earlier chunk, apart from those of its ended statements and of the new chunk,
that may be another statement."""
_MOST = 5
"""Maximum number of earlier chunks that one chunk replaces or contradicts by rule."""
_SURE = 0.9
_REASON = 500
_OWN_SOURCES = frozenset(("interaction", "dashboard"))
_OWN_ORIGINS = frozenset(("person", "agent"))
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DESCRIBING = re.compile(
    r"(?:(?!\b(?:and|but|because|since|so|while|when|if|until)\b)[^\d;:.!?])*", re.IGNORECASE
)
"""What follows a name in its clause: "with two sisters", ", two streets from the harbour"."""


class Proposal(FrozenRecord, frozen=True):
    """A new chunk and an earlier one that do not both hold.

    Attributes:
        kind: ``replace`` or ``contradict``.
        newer_id, older_id: the chunks.
        newer, older: their sentences that differ.
        confidence: 0-1.
        reason: why, in words.
        applied: whether the link is made; if not, a reviewer decides.
    """

    kind: str
    newer_id: str
    older_id: str
    newer: str
    older: str
    confidence: float
    reason: str
    applied: bool


class Finder:
    """Finds the earlier chunks that a text replaces or contradicts. Use one per thread; :meth:`begin` starts a text.

    Args:
        store: the store to write to.
        queue: called with the proposals that wait for a reviewer, within the transaction that stores the chunks;
            returns the ids of their cases.
    """

    def __init__(self, store: ChunkStore, queue: Callable[[Sequence[Proposal]], list[str]]) -> None:
        self._store = store
        self._queue = queue
        self._settings = store.config.updates
        self._analyser = get_analyser(store.config.search.language)
        self._earlier = EarlierChunks(store)
        self._proposals: list[Proposal] = []
        self.cases: list[str] = []
        self.replaced: list[str] = []
        # Its steps in storing a text, beside those of this class:
        self.keep = self._earlier.statements.keep
        self.expect = self._earlier.expect
        self.enter = self._earlier.enter
        self.ask = self._earlier.ask
        self.committed = self._earlier.committed

    def begin(self, texts: Sequence[str], index: BatchIndex | None = None) -> None:
        """Begin a text, given its chunks; see :meth:`EarlierChunks.begin`."""
        self._proposals, self.cases, self.replaced = [], [], []
        self._earlier.begin(texts, index)

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """The links ``supersedes`` and ``contradicts`` of a chunk that is about to be stored.

        Differences that need a reviewer are kept for :meth:`done`.
        """
        if chunk.metadata.trust == "quarantined":
            return []
        earlier = self._earlier.of(chunk)
        self._earlier.add(chunk)
        found = [proposal for old in earlier if (proposal := self._compared(chunk, old)) is not None]
        best = sorted(found, key=lambda one: (one.applied, one.confidence), reverse=True)[:_MOST]
        self._proposals += best
        self.replaced += [one.older_id for one in best if one.applied and one.kind == "replace"]
        return [
            ChunkLinks(
                one.older_id, SUPERSEDES if one.kind == "replace" else "contradicts", one.confidence,
                chunk.metadata.created_at, one.reason[:_REASON],
            )
            for one in best if one.applied
        ]  # fmt: skip

    def states(self, text: str) -> bool:
        """Whether a chunk of the text begun states anything that is compared."""
        return bool(self._earlier.stated_in(text))

    def is_said_otherwise(self, chunk: Chunk, same: Chunk) -> bool:
        """Whether a chunk between an earlier one and a new one with the same words states another value.

        Then the new one is no repetition: what it says is valid again. Not for imported texts, which may come again.
        """
        if not is_trusted_as_far(chunk, same):
            return False
        stated, earlier = self._earlier.stated_in(chunk.content), self._earlier.statements
        return any(
            one.metadata.at > same.metadata.at and any(differences(stated, earlier.of(one.content)))
            for one in self._earlier.of(chunk)
        )

    def done(self) -> None:
        """Open cases in the review queue for the differences that were not applied, within the transaction."""
        if self._proposals and (waiting := [one for one in self._proposals if not one.applied]):
            self.cases = self._queue(waiting)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the store; the index is asked before it."""
        self._earlier.refresh()
        with self._store.batch():
            yield
        self.committed()

    # --- parts ----------------------------------------------------------------------------------------

    def _compared(self, chunk: Chunk, old: Chunk) -> Proposal | None:
        statements: Sequence[Stated] = self._earlier.stated_in(chunk.content)
        before = self._earlier.statements.of(old.content)
        if chunk.metadata.conversation_id or old.metadata.conversation_id:  # a label there is a speaker
            statements, before = ([one for one in some if not one.labelled] for some in (statements, before))
        pairs = list(differences(statements, before)) if before else []
        if not pairs:
            return None
        best, newer, older = max(pairs, key=lambda pair: (pair[0].said, pair[0].confidence))
        ended = [one for found, _, one in pairs if found.said == best.said]
        touched = {(one.start, one.end, one.attribute) for one in ended}
        rest = any(one.standing and (one.start, one.end, one.attribute) not in touched for one in before)
        applies = (best.said and (best.confidence >= _SURE or newer.unclear)) or self._is_allowed(best, older)
        applies = applies and self._may_apply(chunk, old, newer)
        kind = best.kind
        is_part = rest or len(old.content) > _WHOLE or newer.unclear
        if applies and (is_part or _tells_else(old, ended, chunk, self._analyser)):
            kind = "contradict"  # what else the earlier chunk states, or all that is of another person, is still valid
        return Proposal(kind, chunk.id, old.id, newer.text, older.text, best.confidence, best.reason, applies)

    def _is_allowed(self, found: Conflict, older: Stated) -> bool:
        """Whether a rule in the settings lets later values of this attribute replace earlier ones."""
        words = older.topic | {older.attribute}
        rules = [set(self._analyser.terms(rule)) for rule in self._settings.replace]
        return found.kind == "replace" and any(rule and rule <= words for rule in rules)

    def _may_apply(self, chunk: Chunk, old: Chunk, newer: Stated) -> bool:
        """Whether a chunk may replace an earlier one without a reviewer.

        It may not if it did not come from a person or an agent, if it is trusted less than the earlier chunk, if it
        names an earlier year than that chunk's, if it says that the change was undone, or if it is about a trial or a
        story.
        """
        if self._settings.find != "apply" or not is_trusted_as_far(chunk, old):
            return False
        if is_taken_back(chunk.content[newer.start :]) or is_elsewhere(newer.text, old.content):
            return False
        year = int(old.metadata.at[:4])
        return not any(int(one) < year for one in _YEAR.findall(newer.text))


def is_own(chunk: Chunk) -> bool:
    """Whether a chunk came from a person or an agent, not from a file: no other one replaces anything by itself."""
    return chunk.metadata.origin in _OWN_ORIGINS and "path" not in chunk.metadata.provenance


def is_trusted_as_far(newer: Chunk, older: Chunk) -> bool:
    """Whether a chunk is a person's or an agent's own, and trusted at least as far as another.

    What was captured from a session is trusted so far only beside what was captured, too; what a reviewer confirmed,
    only less than what a person says.
    """
    about = newer.metadata
    if older.metadata.extra.get("reviewed_by") and about.origin != "person":
        return False  # a reviewer confirmed it
    own = about.source in _OWN_SOURCES or about.source == older.metadata.source
    return own and is_own(newer) and rank(about.trust) >= rank(older.metadata.trust)


def _tells_else(older: Chunk, ended: Sequence[Stated], newer: Chunk, analyser: Analyser) -> bool:
    """Whether an earlier chunk has several content words that neither its ended statements nor the new chunk have.

    What describes a named value, without a number of its own, ends with it: "in Duddon with two sisters".
    """
    told = set(analyser.terms(newer.content))
    for one in ended:
        change = f"{one.news} {one.shown_former} {one.shown}"  # "moved to", from 10:00 to 10:30
        told |= {one.preposition, *one.topic, *one.value, *analyser.terms(change)}
        told |= stems(FAMILIES.get(one.attribute, ()))
        if one.kind == "name" and one.shown in one.text:
            after = one.text.partition(one.shown)[2]
            described = _DESCRIBING.match(after)
            if described is not None and not after[described.end() : described.end() + 1].isdigit():
                told.update(analyser.terms(described[0]))
    return len(set(analyser.terms(older.content)) - told) >= _TOLD_ELSE
