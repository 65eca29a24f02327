"""Looks up the earlier chunks that may state other values for the same things as a text that is being stored.

The index returns the chunks that share the rare words of a statement (the first stage of search); a few are read. What
the index does not know yet, since it was stored after the index was asked, is compared in memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

from msgspec import field

from rlm_mem.chunk import content_hash, format_time
from rlm_mem.proposals.recent import RecentChunks
from rlm_mem.proposals.statements import (
    StatementCache,
    by_sentence,
    comparable,
    groups,
    lookup_words,
    stems_of,
    terms_of,
)
from rlm_mem.record import MutableRecord
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.clauses import CHANGES, ENDS, FIRST, REPLACES
from rlm_mem.text.differences import differences
from rlm_mem.text.statement import Stated

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.ingest.batch_index import BatchIndex
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.lookup import CandidateSource, Held, HoldingQuestion

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
_UNKNOWN = -1
"""Stands for the version of a store that is not known."""
_AHEAD = 32
"""Number of sentences in one query of the index while many texts are stored."""
LONGEST = 4_000
"""Maximum characters of a chunk, new or earlier, that is compared."""
_NOTHING: tuple[list[Stated], Set[str]] = ([], frozenset())
_UNNAMED = FIRST | CHANGES | REPLACES | ENDS
"""Words of sentences that need not name their subject, which earlier texts may have named: "I moved to"."""
_WORD = re.compile(r"\w+")

Sentence = tuple[str, str]
"""A text and one of its sentences."""


class _Expected(MutableRecord):
    """The texts that one transaction is going to store, and what the index said about their sentences.

    Attributes:
        statements: those of each text that are compared.
        groups: the groups of terms of each sentence; see :func:`~rlm_mem.proposals.statements.groups`.
        answers: the chunks found for each sentence.
        coming: the texts whose sentences have not been looked up.
    """

    statements: dict[str, list[Stated]] = field(default_factory=dict)
    groups: dict[Sentence, list[Collection[str]]] = field(default_factory=dict)
    answers: dict[Sentence, list[Held]] = field(default_factory=dict)
    coming: Iterator[str] = field(default_factory=lambda: iter(()))


class EarlierChunks:
    """The earlier chunks of a store; :meth:`begin` starts a text. Use one per thread."""

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        self._analyser = get_analyser(store.config.search.language)
        self.statements = StatementCache(self._analyser)
        self._source: CandidateSource | None = None
        self._source_in_transaction = False  # whether the source uses the connection of a transaction
        self._shown_at: str | None = None
        self._seen = _UNKNOWN  # version of the store that the source and `_recent` show together
        self._is_pending = False  # whether that version is one within a transaction, which may be rolled back
        self._recent = RecentChunks()  # stored since the source was taken
        self._texts_of: dict[str, str] = {}  # texts of earlier chunks
        self._known_terms: set[str] = set()  # terms known to be in the index
        self._expected = _Expected()
        # The filling under way:
        self._filling: BatchIndex | None = None
        self._others = 0  # its count of what others have written
        self._is_outdated = False  # whether others have written since the filling looked for terms
        self._next_term = 0  # terms from this number on came after the chunks that are not in `_recent`
        # The text begun:
        self._asks = False  # whether `ask` queries the index, within the transaction
        self._begun: Sequence[str] = ()  # its chunks
        self._read: dict[str, tuple[list[Stated], Set[str]]] = {}  # what they state, and the stems of it
        self._looked_at = _UNKNOWN  # version of the store when they were looked at
        self._states_any = False  # whether they state anything
        self._former: Collection[str] = ()  # ids of the chunks that the text replaces

    def begin(self, texts: Sequence[str], index: BatchIndex | None = None) -> None:
        """Begin a text, given its chunks: before the transaction, unless one has begun already. :meth:`enter` follows.

        A chunk without a word in common with any earlier one costs a single query. The candidate source is taken here,
        once: within a transaction it would be updated for each chunk. Where each query takes a round trip, a text of
        one chunk uses :meth:`ask`.

        Args:
            index: reads earlier chunks while many texts are stored; None: they are read from the store.
        """
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
            self._recent = RecentChunks()
        self._look(texts)
        if not (self._asks or backend.in_transaction) and (self._states_any or index is not None):
            self.refresh()

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
            if self._states_any:
                self.refresh()

    def expect(self, texts: Sequence[str]) -> None:
        """Announce the chunks that one transaction is going to store, after :meth:`begin` for the first of its texts.

        One query finds which of their words chunks had before the filling: most sentences then have nothing to look
        up, and the source is not taken before one has. Where each query takes a round trip, the index is queried about
        some dozens of the others at once. Its answers cover only chunks from before the transaction; those stored
        meanwhile are compared in memory.
        """
        backend, place = self._store.backend, self._store.namespace
        self._expected = expected = _Expected()
        if backend.in_transaction:
            return
        for text in texts:
            if len(text) <= LONGEST and text in self.statements:
                expected.statements[text] = comparable(self.statements.of(text))
                for told in by_sentence(expected.statements[text]):
                    expected.groups[text, told[0].text] = self._groups_of(told)
        asked = {term for some in expected.groups.values() for group in some for term in group}
        known = backend.queries.terms_before(place, asked, self._next_term) if asked else set()
        for key, some in expected.groups.items():
            expected.groups[key] = [group for group in some if group and known.issuperset(group)]
        if self._source is None and any(expected.groups.values()):
            self._take()
        if backend.is_far:
            expected.coming = iter(texts)

    def ask(self, chunk: Chunk) -> None:
        """Make the queries that :meth:`of` will need, within the transaction."""
        self._take()
        for told in by_sentence(self.stated_in(chunk.content)):
            self._naming(told)

    def refresh(self) -> None:
        """Take a new candidate source from the index if anything was written since the present one was taken.

        Call it before the transaction, too: the index keeps what is taken there. While many texts are stored the source
        is taken by :meth:`expect`, if at all.
        """
        if self._filling is not None:
            # Texts of one filling are compared with each other in memory: the index changes with every transaction.
            if self._is_outdated or len(self._recent) >= _KEPT_FILLING:
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

    def committed(self) -> None:
        """Note that a transaction with texts stored since :meth:`begin` has ended, if it was the outermost one."""
        if not self._store.backend.in_transaction:
            self._is_pending = False

    def stated_in(self, text: str) -> list[Stated]:
        """The statements of a chunk of the text begun that are compared."""
        return self._read.get(text, _NOTHING)[0]

    def of(self, chunk: Chunk) -> list[Chunk]:
        """Chunks that may state other values for the same things as one of the text, and have not been replaced."""
        statements = self.stated_in(chunk.content)
        named: dict[str, str | None] = {}
        for told in by_sentence(statements):
            values = {term for one in told for stem in one.value for term in terms_of(stem)}
            for kind in (self._named(chunk.content, told), self._recent.sharing(told)):
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
            and len(one.content) <= LONGEST
        ]

    def add(self, chunk: Chunk) -> None:
        """Add a chunk that is about to be stored to the earlier ones of those that follow it."""
        if len(self._recent) >= (2 * _KEPT_FILLING if self._filling is not None else _KEPT):
            self._outdate()
        if self._filling is None:
            self._keep_text(chunk)
        self._recent.add(chunk.id, self._read.get(chunk.content, _NOTHING)[1])

    # --- parts ----------------------------------------------------------------------------------------

    def _look(self, texts: Sequence[str]) -> None:
        """Find what the chunks of a text state; those without a word in common with others are not analysed."""
        self._begun, self._read, self._states_any = texts, {}, False
        self._looked_at = _UNKNOWN if self._filling is not None else self._version()
        if self._analyser.language != "english":
            return
        before: set[str] = set()
        looked = 0
        for text in texts:
            if looked >= _CHUNKS or len(text) > LONGEST or text in self._read:
                continue
            is_read = (
                text in self.statements or self._asks or not _UNNAMED.isdisjoint(_WORD.findall(text.lower()))
            )
            stems: Set[str] = set() if is_read else set(self._analyser.indexed_terms(text))
            statements: list[Stated] = []
            if is_read or not before.isdisjoint(stems) or self._may_share(stems):
                statements = self._expected.statements.get(text) or comparable(self.statements.of(text))
                stems = stems_of(statements)
                looked += bool(statements)
            self._read[text] = statements, stems
            before |= stems
        self._states_any = looked > 0

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
        self._recent, self._source, self._is_pending = RecentChunks(), None, False
        self._expected = _Expected()

    def _take(self) -> CandidateSource:
        backend = self._store.backend
        self._source = self._store.candidate_source()
        # To the minute, so that the same queries are asked again; later reads leave out what expired since.
        self._shown_at = format_time(self._store.clock().replace(second=0, microsecond=0))
        self._source_in_transaction = backend.is_far and backend.in_transaction
        return self._source

    def _may_share(self, stems: Set[str]) -> bool:
        """Whether earlier chunks may be about the same things: one of them has a word of the text."""
        if self._recent.has_any(stems) or not stems.isdisjoint(self._known_terms):
            return True
        found = self._store.backend.queries.any_term(self._store.namespace, stems)
        if found is None:
            return False
        if len(self._known_terms) >= _KEPT:
            self._known_terms.clear()
        self._known_terms.add(found)
        return True

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
            if digest == content_hash(text) and not any(differences(statements, self.statements.of(text))):
                del left[one]
        return list(left)

    def _keep_text(self, chunk: Chunk) -> None:
        if len(chunk.content) <= LONGEST:
            if len(self._texts_of) >= _KEPT:
                self._texts_of.clear()
            self._texts_of[chunk.id] = chunk.content

    def _named(self, text: str, told: Sequence[Stated]) -> list[Held]:
        """Like :meth:`_naming`, but also queries the sentences of the texts that are expected next."""
        expected, key = self._expected, (text, told[0].text)
        if expected.groups.get(key) == []:
            return []
        questions: dict[Sentence, HoldingQuestion] = {}
        if key not in expected.answers:
            for coming in dropwhile(lambda one: one != text, expected.coming):
                for sentence in by_sentence(expected.statements.get(coming, ())):
                    if some := expected.groups[coming, sentence[0].text]:
                        questions[coming, sentence[0].text] = some, self._weights_of(sentence)
                if len(questions) >= _AHEAD:
                    break
        if questions:
            source = self._source or self._take()
            answers = source.holding_each(list(questions.values()), _ASKED, self._shown_at)
            expected.answers |= zip(questions, answers, strict=True)
        found = expected.answers.get(key)
        return self._naming(told) if found is None else found

    def _naming(self, told: Sequence[Stated]) -> list[Held]:
        """The chunks that the index returns for the statements of a sentence: those with its topic, best first."""
        source = self._source or self._take()
        some = self._groups_of(told)
        question = some, self._weights_of(told)
        return source.holding_each([question], _ASKED, self._shown_at)[0] if some else []

    def _groups_of(self, told: Sequence[Stated]) -> list[Collection[str]]:
        return [group for one in told for group in groups(one, told, self._analyser)]

    def _weights_of(self, told: Sequence[Stated]) -> dict[str, float]:
        words = dict.fromkeys(lookup_words(told, self._analyser), 1.0)
        return {term: 0.0 for one in told for stem in one.value for term in terms_of(stem)} | words


def _worth_reading(found: Iterable[Held], values: Set[str]) -> Iterator[Held]:
    """The chunks in order, without most of those that have all of the values already."""
    left = _SAYING_SO
    for held in found:
        if not (values and values <= held.terms):
            yield held
        elif left:
            left -= 1
            yield held
