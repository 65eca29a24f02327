"""Finds the earlier memories that a memory being stored replaces or contradicts.

The index returns the earlier chunks that share the rare words of a statement (the first stage of search); a few are
read and compared by the rules of :mod:`rlm_mem.text.differences`. The cost of a chunk is bounded, whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

from rlm_mem.chunk import SUPERSEDES, ChunkLinks, content_hash, format_time
from rlm_mem.chunk.types import rank
from rlm_mem.store.core.lookup import Held
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.clauses import CHANGES, ENDS, FAMILIES, FIRST, REPLACES
from rlm_mem.text.differences import Conflict, differences
from rlm_mem.text.factuality import is_elsewhere, is_taken_back
from rlm_mem.text.statement import ME, Stated
from rlm_mem.text.statements import statements_in

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.ingest.batch_index import BatchIndex
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.lookup import CandidateSource, HoldingQuestion
    from rlm_mem.text.analysis import Analyser

_LOOKUPS = 3
"""Maximum number of sentences of one chunk that are looked up."""
_CHUNKS = 60
"""Maximum number of chunks of one text that are compared."""
_ASKED, _READ, _SAYING_SO = 10, 5, 1
"""Maxima for each sentence: of the chunks that the index returns, of those that are read, and of those among them that
have the sentence's values already, which mostly state the same."""
_KEPT = 5_000
"""Maximum number of chunks stored since the source was taken that later ones are compared with, and of known terms."""
_KEPT_FILLING = 100_000
"""As ``_KEPT``, while many texts are stored at once: looking for chunks in memory takes half as long as in the index. A
chunk takes some hundred bytes, since only stems of statements are kept."""
_TEXTS = 2_000_000
"""Maximum characters of the texts whose statements are cached."""
_UNKNOWN = -1
"""Stands for the version of a store that is not known."""
_RECENT = 100
"""Maximum number of chunks, the newest of those kept, that are compared for one stem."""
_AHEAD = 32
"""Number of sentences in one query of the index while many texts are stored."""
_LONGEST = 4_000
"""Maximum characters of a chunk, new or earlier, that is compared."""
_WHOLE = 600
"""Maximum characters of an earlier chunk that may be replaced as a whole."""
_TOLD_ELSE = 2
"""Minimum number of content words of an earlier chunk, apart from those of its ended statements and of the new chunk,
that may be another statement."""
_MOST = 5
"""Maximum number of earlier chunks that one chunk replaces or contradicts by rule."""
_WORDS = 24
"""Maximum number of words of a sentence by which the chunks with its topic are ranked."""
_ENOUGH = 8
"""Maximum number of words looked up for a statement that names no topic; an earlier chunk needs one of them."""
_SURE = 0.9
_REASON = 500
_OWN_SOURCES = frozenset(("interaction", "dashboard"))
_OWN_ORIGINS = frozenset(("person", "agent"))
_NOTHING: tuple[list[Stated], Set[str]] = ([], frozenset())
_UNNAMED = FIRST | CHANGES | REPLACES | ENDS
"""Words of sentences that need not name their subject, which earlier texts may have named: "I moved to"."""
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DESCRIBING = re.compile(
    r"(?:(?!\b(?:and|but|because|since|so|while|when|if|until)\b)[^\d;:.!?])*", re.IGNORECASE
)
"""What follows a name in its clause: "with two sisters", ", two streets from the harbour"."""


@dataclass(frozen=True, slots=True)
class Proposal:
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
        self._source: CandidateSource | None = None
        self._shown_at: str | None = None
        self._seen = _UNKNOWN  # version of the store that the source and `_own` show together
        self._is_pending = False  # whether that version is one within a transaction, which may be rolled back
        self._own: dict[
            str, list[tuple[str, frozenset[str]]]
        ] = {}  # chunks stored since the source was taken, by their stems
        self._kept = 0
        self._known_terms: set[str] = set()  # terms known to be in the index
        self._read: dict[str, tuple[list[Stated], Set[str]]] = {}
        self._texts_of: dict[str, str] = {}  # texts of earlier chunks
        self._filling: BatchIndex | None = None  # of the filling under way
        self._is_outdated = False  # whether others have written since the filling looked for terms
        self._next_term = 0  # terms from this number on came after the chunks that are not in `_own`
        self._others = 0
        self._asks = False  # whether `ask` queries the index, within the transaction
        self._source_in_transaction = False  # whether the source uses the connection of a transaction
        self._texts = 0
        self._groups: dict[tuple[str, str], list[Collection[str]]] = {}  # for each text and sentence expected
        self._expected: dict[str, list[Stated]] = {}  # statements of the texts expected that are compared
        self._coming: Iterator[str] = iter(())  # texts whose sentences have not been looked up
        self._answers: dict[tuple[str, str], list[Held]] = {}  # for each text and sentence
        self._proposals: list[Proposal] = []
        self.cases: list[str] = []
        self.replaced: list[str] = []
        self._former: Collection[str] = ()  # ids of the chunks that the text being stored replaces
        self._begun: Sequence[str] = ()  # the chunks of the text
        self._looked_at = _UNKNOWN  # version of the store when they were looked at
        self._looks = False  # whether they state anything
        self._stated: dict[str, Sequence[Stated]] = {}  # statements by text

    def begin(self, texts: Sequence[str], index: BatchIndex | None = None) -> None:
        """Begin a text, given its chunks: before the transaction, unless one has begun already. :meth:`enter` follows.

        A chunk without a word in common with any earlier one costs a single query. The candidate source is taken here,
        once: within a transaction it would be updated for each chunk. Where each query takes a round trip, a text of
        one chunk uses :meth:`ask`.

        Args:
            index: reads earlier chunks while many texts are stored; None: they are read from the store.
        """
        self._proposals, self.cases, self.replaced = [], [], []
        backend = self._store.backend
        if index is not None and index is not self._filling:
            self._others = index.others
            self._outdate()  # others may have written since the filling before
        self._filling = index
        if self._source_in_transaction:
            self._source = None
        if self._is_pending and not backend.in_transaction:
            self._forget()  # what was stored may have been rolled back
        self._asks = backend.is_far and len(texts) == 1 and index is None
        if self._asks and not backend.in_transaction:
            self._own, self._kept = {}, 0
        self._look(texts)
        if not (self._asks or backend.in_transaction) and (self._looks or index is not None):
            self.refresh()

    def _look(self, texts: Sequence[str]) -> None:
        """Find what the chunks of a text state; those without a word in common with others are not analysed."""
        self._begun, self._read, self._looks = texts, {}, False
        self._looked_at = _UNKNOWN if self._filling is not None else self._version()
        if self._analyser.language != "english":
            return
        before: set[str] = set()
        looked = 0
        for text in texts:
            if looked >= _CHUNKS or len(text) > _LONGEST or text in self._read:
                continue
            is_read = (
                text in self._stated or self._asks or not _UNNAMED.isdisjoint(_WORD.findall(text.lower()))
            )
            stems: Set[str] = set() if is_read else set(self._analyser.indexed_terms(text))
            statements: list[Stated] = []
            if is_read or not before.isdisjoint(stems) or self._may_share(stems):
                statements = self._expected.get(text) or _comparable(self._stated_in(text))
                stems = _stems_of(statements)
                looked += bool(statements)
            self._read[text] = statements, stems
            before |= stems
        self._looks = looked > 0

    def enter(self, former: Collection[str]) -> None:
        """Begin to store the text, within the transaction; others may have written since :meth:`begin`.

        Args:
            former: ids of the chunks that the text replaces, which are not compared with it.
        """
        self._former = former
        if self._filling is not None:
            if self._filling.others != self._others:
                self._others = self._filling.others
                self._outdate()
                self._look(self._begun)
        elif not self._store.backend.is_far:
            if self._version() != self._looked_at:
                self._look(self._begun)
            if self._looks:
                self.refresh()

    def keep(self, text: str, stated: Sequence[Stated]) -> None:
        """Cache the statements of a text, such as one that was analysed ahead."""
        if text not in self._stated:
            self._texts += len(text)
            if self._texts > _TEXTS:
                self._stated, self._texts = {}, len(text)
        self._stated[text] = stated

    def expect(self, texts: Sequence[str]) -> None:
        """Announce the chunks that one transaction is going to store, after :meth:`begin` for the first of its texts.

        One query tells which of their words chunks had before the filling: most sentences then have nothing to look
        up, and the source is not taken before one has. Where each query takes a round trip, the index is queried about
        some dozens of the others at once. Its answers cover only chunks from before the transaction; those stored
        meanwhile are compared in memory.
        """
        backend, place = self._store.backend, self._store.namespace
        self._answers, self._groups, self._expected, self._coming = {}, {}, {}, iter(())
        if backend.in_transaction:
            return
        for text in texts:
            if len(text) <= _LONGEST and text in self._stated:
                comparable = self._expected[text] = _comparable(self._stated[text])
                for told in _by_sentence(comparable):
                    self._groups[text, told[0].text] = self._groups_of(told)
        asked = {term for groups in self._groups.values() for group in groups for term in group}
        known = backend.queries.terms_before(place, asked, self._next_term) if asked else set()
        for key, groups in self._groups.items():
            self._groups[key] = [group for group in groups if group and known.issuperset(group)]
        if self._source is None and any(self._groups.values()):
            self._take()
        if backend.is_far:
            self._coming = iter(texts)

    def ask(self, chunk: Chunk) -> None:
        """Make the queries that :meth:`links_for` will need, within the transaction."""
        self._take()
        for told in _by_sentence(self._read.get(chunk.content, _NOTHING)[0]):
            self._naming(told)

    def refresh(self) -> None:
        """Take a new candidate source from the index if anything was written since the present one was taken.

        Call it before the transaction, too: the index keeps what is taken there. While many texts are stored the source
        is taken by :meth:`expect`, if at all.
        """
        if self._filling is not None:
            # Texts of one filling are compared with each other in memory: the index changes with every transaction.
            if self._is_outdated or self._kept >= _KEPT_FILLING:
                self._is_outdated = False
                self._forget()
                self._next_term = self._store.backend.queries.next_term(self._store.namespace)
            return
        version, in_transaction = self._version(), self._store.backend.in_transaction
        is_sure = in_transaction or not self._is_pending
        if self._source is None or version == _UNKNOWN or version != self._seen or not is_sure:
            self._forget()
            self._seen, self._is_pending = version, in_transaction
            self._take()

    def _version(self) -> int:
        """The version of a local store; a far one is not asked: queries of its index see its present state."""
        backend = self._store.backend
        return _UNKNOWN if backend.is_far else backend.version(self._store.namespace)

    def _outdate(self) -> None:
        """Forget what was known of the store; the next look of a filling counts the terms anew."""
        self._is_outdated = True
        self._forget()

    def _forget(self) -> None:
        """Forget the source and what was stored since it was taken, and the answers for texts expected."""
        self._own, self._kept, self._source, self._is_pending = {}, 0, None, False
        self._answers, self._groups, self._expected, self._coming = {}, {}, {}, iter(())

    def _take(self) -> CandidateSource:
        backend = self._store.backend
        self._source = self._store.candidate_source()
        # To the minute, so that the same queries are asked again; later reads leave out what expired since.
        self._shown_at = format_time(self._store.clock().replace(second=0, microsecond=0))
        self._source_in_transaction = backend.is_far and backend.in_transaction
        return self._source

    def _may_share(self, stems: Set[str]) -> bool:
        """Whether earlier chunks may be about the same things: one of them has a word of the text."""
        if not (stems.isdisjoint(self._own) and stems.isdisjoint(self._known_terms)):
            return True
        found = self._store.backend.queries.any_term(self._store.namespace, stems)
        if found is None:
            return False
        if len(self._known_terms) >= _KEPT:
            self._known_terms.clear()
        self._known_terms.add(found)
        return True

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """The links ``supersedes`` and ``contradicts`` of a chunk that is about to be stored.

        Differences that need a reviewer are kept for :meth:`done`.
        """
        statements, stems = self._read.get(chunk.content, _NOTHING)
        if chunk.metadata.trust == "quarantined":
            return []
        earlier = self._earlier(statements, chunk) if statements else []
        if self._kept >= (2 * _KEPT_FILLING if self._filling is not None else _KEPT):
            self._outdate()
        self._kept += 1
        if self._filling is None:
            self._keep_text(chunk)
        own, mine = self._own, (chunk.id, frozenset(stems))
        for stem in stems:
            own.setdefault(stem, []).append(mine)
        if not earlier:
            return []
        found = [
            proposal for old in earlier if (proposal := self._compared(chunk, statements, old)) is not None
        ]
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
        return bool(self._read.get(text, _NOTHING)[0])

    def is_said_otherwise(self, chunk: Chunk, same: Chunk) -> bool:
        """Whether a chunk between an earlier one and a new one with the same words states another value.

        Then the new one is no repetition: what it says holds again. Not for imported texts, which may come again.
        """
        if not is_trusted_as_far(chunk, same):
            return False
        statements, _ = self._read.get(chunk.content, _NOTHING)
        return any(
            one.metadata.at > same.metadata.at and any(differences(statements, self._stated_in(one.content)))
            for one in self._earlier(statements, chunk)
        )

    def done(self) -> None:
        """Open cases in the review queue for the differences that were not applied, within the transaction."""
        if self._proposals and (waiting := [one for one in self._proposals if not one.applied]):
            self.cases = self._queue(waiting)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the store; the index is asked before it."""
        self.refresh()
        with self._store.batch():
            yield
        self.committed()

    def committed(self) -> None:
        """Note that a transaction with texts stored since :meth:`begin` has ended, if it was the outermost one."""
        if not self._store.backend.in_transaction:
            self._is_pending = False

    # --- parts ----------------------------------------------------------------------------------------

    def _stated_in(self, text: str) -> Sequence[Stated]:
        """The statements of a text, cached: the same earlier memories are compared again and again."""
        found = self._stated.get(text)
        if found is None:
            found = statements_in(text, self._analyser)
            self.keep(text, found)
        return found

    def _earlier(self, statements: Sequence[Stated], chunk: Chunk) -> list[Chunk]:
        """Chunks that may state other values for the same things, and have not been replaced."""
        named: dict[str, str | None] = {}
        for told in _by_sentence(statements):
            values = {term for one in told for stem in one.value for term in _terms_of(stem)}
            for kind in (self._named(chunk.content, told), self._just_stored(told)):
                for held in islice(_worth_reading(kind, values), _READ):
                    named.setdefault(held.chunk_id, held.content_hash or None)
        named.pop(chunk.id, None)
        ids = self._unlike(named, statements)
        index = self._filling or self._store
        earlier = index.get_many(ids) if ids else {}
        if self._filling is None:
            for one in earlier.values():
                self._keep_text(one)
        return [
            one
            for one in earlier.values()
            if one.metadata.superseded_by is None
            and one.id not in self._former
            and one.metadata.at <= chunk.metadata.at
            and len(one.content) <= _LONGEST
        ]

    def _unlike(self, ids: Mapping[str, str | None], statements: Sequence[Stated]) -> list[str]:
        """The chunks without those whose text is in memory and does not differ from any of the statements.

        Most chunks from the index do not differ, so one query for their hashes saves reading their files.

        Args:
            ids: the chunks, with the hash of the text if the index has just returned it.
        """
        known = {one: digest for one, digest in ids.items() if one in self._texts_of}
        if self._filling is not None or not known:
            return list(ids)
        if None in known.values():
            states = self._store.backend.queries.states(
                self._store.namespace, limit=len(known), ids=list(known)
            )
            known |= {one.id: one.content_hash for one in states}
        left = dict(ids)
        for one, digest in known.items():
            text = self._texts_of[one]
            if digest == content_hash(text) and not any(differences(statements, self._stated_in(text))):
                del left[one]
        return list(left)

    def _keep_text(self, chunk: Chunk) -> None:
        if len(chunk.content) <= _LONGEST:
            if len(self._texts_of) >= _KEPT:
                self._texts_of.clear()
            self._texts_of[chunk.id] = chunk.content

    def _named(self, text: str, told: Sequence[Stated]) -> list[Held]:
        """Like :meth:`_naming`, but also queries the sentences of the texts that are expected next."""
        key = text, told[0].text
        if self._groups.get(key) == []:
            return []
        questions: dict[tuple[str, str], HoldingQuestion] = {}
        if key not in self._answers:
            for coming in dropwhile(lambda one: one != text, self._coming):
                for sentence in _by_sentence(self._expected.get(coming, ())):
                    if groups := self._groups[coming, sentence[0].text]:
                        questions[coming, sentence[0].text] = groups, self._weights_of(sentence)
                if len(questions) >= _AHEAD:
                    break
        if questions:
            source = self._source or self._take()
            answers = source.holding_each(list(questions.values()), _ASKED, self._shown_at)
            self._answers |= zip(questions, answers, strict=True)
        found = self._answers.get(key)
        return self._naming(told) if found is None else found

    def _naming(self, told: Sequence[Stated]) -> list[Held]:
        """The chunks that the index returns for the statements of a sentence: those with its topic, best first."""
        source = self._source or self._take()
        groups = self._groups_of(told)
        return source.holding(groups, self._weights_of(told), _ASKED, self._shown_at) if groups else []

    def _groups_of(self, told: Sequence[Stated]) -> list[Collection[str]]:
        return [group for one in told for group in _groups(one, told, self._analyser)]

    def _weights_of(self, told: Sequence[Stated]) -> dict[str, float]:
        words = dict.fromkeys(_lookup_words(told, self._analyser), 1.0)
        return {term: 0.0 for one in told for stem in one.value for term in _terms_of(stem)} | words

    def _just_stored(self, statements: Sequence[Stated]) -> Iterator[Held]:
        """Chunks stored since the source was taken that share stems with a sentence, without their hashes.

        They are found by terms of the index: of a text that shared no word with others, the stems are not known. Those
        with a statement of the same attribute come first, then those with the most stems, then the newest.
        """
        found: dict[str, frozenset[str]] = {}
        own = self._own
        for one in statements:
            for some in (*([stem] for stem in (*one.former, *one.gone)), one.topic - {ME} or one.topic):
                terms = {term for stem in some for term in _terms_of(stem)}
                if terms and own.keys() >= terms:  # a chunk with all of them is in the list of each
                    recent = min([own[term] for term in sorted(terms)], key=len)[-_RECENT:]
                    found.update(recent if len(terms) == 1 else [held for held in recent if terms <= held[1]])
        if not found:
            return
        words = {
            stem
            for one in statements
            for stem in (*one.topic, *one.value, *one.context, *one.former, *one.gone)
        } & own.keys()
        attributes = {_sign_of(one) for one in statements}
        behind = len(words) + 1  # more than any number of stems
        newest = list(reversed(found.items()))
        ranks = [len(words & stems) - behind * attributes.isdisjoint(stems) for _, stems in newest]
        for place in sorted(range(len(newest)), key=ranks.__getitem__, reverse=True):
            chunk_id, stems = newest[place]
            yield Held(chunk_id, "", stems)

    def _compared(self, chunk: Chunk, statements: Sequence[Stated], old: Chunk) -> Proposal | None:
        before = self._stated_in(old.content)
        if chunk.metadata.conversation_id or old.metadata.conversation_id:  # a label there is a speaker
            statements, before = ([one for one in some if not one.labelled] for some in (statements, before))
        pairs = list(differences(statements, before)) if before else []
        if not pairs:
            return None
        best, newer, older = max(pairs, key=lambda pair: (pair[0].said, pair[0].confidence))
        ended = [one for found, _, one in pairs if found.said == best.said]
        touched = {(one.start, one.end) for one in ended}
        rest = any(one.standing and (one.start, one.end) not in touched for one in before)
        applies = (best.said and best.confidence >= _SURE) or self._is_allowed(best, older)
        applies = applies and self._may_apply(chunk, old, newer)
        kind = best.kind
        if applies and (rest or len(old.content) > _WHOLE or _tells_else(old, ended, chunk, self._analyser)):
            kind = "contradict"  # what else the earlier chunk states still holds
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


def _worth_reading(found: Iterable[Held], values: Set[str]) -> Iterator[Held]:
    """The chunks in order, without most of those that have all of the values already."""
    left = _SAYING_SO
    for held in found:
        if not (values and values <= held.terms):
            yield held
        elif left:
            left -= 1
            yield held


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
        told |= {one.preposition, *one.topic, *one.value, *analyser.terms(one.shown)}
        told |= _stems(FAMILIES.get(one.attribute, ()))
        if one.kind == "name" and one.shown in one.text:
            after = one.text.partition(one.shown)[2]
            described = _DESCRIBING.match(after)
            if described is not None and not after[described.end() : described.end() + 1].isdigit():
                told.update(analyser.terms(described[0]))
    return len(set(analyser.terms(older.content)) - told) >= _TOLD_ELSE


@cache
def _stems(verbs: tuple[str, ...]) -> frozenset[str]:
    return frozenset(get_analyser("english").stem(verb) for verb in verbs)


@lru_cache(maxsize=4096)
def _terms_of(stem: str) -> tuple[str, ...]:
    """The terms of the index for a stem of a statement: "follow-up" and "14:00" are two terms each."""
    return (stem,) if stem.isalnum() else tuple(get_analyser("english").terms(stem)) or (stem,)


def _stems_of(statements: Sequence[Stated]) -> set[str]:
    stems = {stem for one in statements for stem in (*one.topic, *one.value, *one.context)}
    stems |= {term for stem in stems for term in _terms_of(stem)}
    return stems.union(map(_sign_of, statements))


def _sign_of(statement: Stated) -> str:
    """A key for the attribute of a statement, different from any stem."""
    return f"={statement.attribute}"


def _comparable(statements: Sequence[Stated]) -> list[Stated]:
    """Statements that may end or contradict an earlier one; those that state a change first."""
    sure = [one for one in statements if one.sure and (one.former or one.over or one.standing)]
    return sorted(sure, key=lambda one: not (one.former or one.news))


def _by_sentence(statements: Sequence[Stated]) -> list[list[Stated]]:
    """The statements of the first sentences, grouped by sentence."""
    found: dict[str, list[Stated]] = {}
    for one in statements:
        found.setdefault(one.text, []).append(one)
    return list(found.values())[:_LOOKUPS]


def _groups(statement: Stated, told: Sequence[Stated], analyser: Analyser) -> list[Collection[str]]:
    """Groups of terms; a chunk that differs from a statement has all of one group: the topic or the former value.

    Args:
        told: the statements of the sentence; one of its words is enough for a statement that names no topic.
    """
    groups: list[Collection[str]] = [_terms_of(stem) for stem in statement.former | statement.gone]
    if not (statement.value or statement.over):
        return groups
    topic = statement.topic - {ME}
    if topic:
        return [*groups, [term for stem in topic for term in _terms_of(stem)]]
    verbs: Collection[str] = ()
    if statement.topic:
        verbs = _stems(FAMILIES.get(statement.attribute, ()))
        if statement.kind == "number":  # "five chickens"
            groups += [_terms_of(stem) for stem in statement.value]
    more = () if verbs and statement.attribute != "change" else _lookup_words(told, analyser, _ENOUGH)
    return groups + [(word,) for word in list(dict.fromkeys((*verbs, *more)))[:_ENOUGH]]


def _lookup_words(statements: Sequence[Stated], analyser: Analyser, most: int = _WORDS) -> list[str]:
    """Index terms of an earlier statement about the same thing: those of the sentence except its new values.

    Other numbers are left out too: they belong to another day or order.
    """
    words = dict.fromkeys(term for term in analyser.terms(statements[0].text) if not term[0].isdigit())
    topics = {term for one in statements for stem in one.topic for term in _terms_of(stem)}
    for one in statements:
        kept = topics | one.value if one.kind == "number" and one.topic == {ME} else topics  # "five chickens"
        for term in analyser.terms(one.shown):
            if term not in kept:
                words.pop(term, None)
    for one in statements if len(words) < most else ():
        if one.shown_former:
            words.update(dict.fromkeys(analyser.terms(one.shown_former)))
        words.update(dict.fromkeys(_stems(FAMILIES.get(one.attribute, ()))))
    return list(words)[:most]
