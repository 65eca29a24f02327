"""Bulk storage of texts: analysis ahead of time, in worker processes if that is faster, and large transactions."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from time import monotonic
from typing import Any, cast

import msgspec

from rlm_mem.arguments import check_flag, check_function, check_items
from rlm_mem.chunk import Chunk, normalised_hash
from rlm_mem.config import Config, IngestConfig, SecretAction, SecretsConfig
from rlm_mem.errors import ConflictError, InputError, InvalidChunk, NotFoundError, RlmMemError
from rlm_mem.ingest.batch_index import BatchIndex
from rlm_mem.ingest.chunking import AnalysedText, analyse
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.ingest.remember import (
    LinkFinder,
    PreparedText,
    RememberResult,
    TextOptions,
    after_commit,
    prepare,
    provenance_of,
    store_text,
)
from rlm_mem.lazy import rare_collections
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.preencoding import LocalTerms, local_terms, preencoded_segments
from rlm_mem.store.core.records import index_key, surroundings
from rlm_mem.store.local.workers import called, can_fork
from rlm_mem.telemetry import observed
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.secrets import screen_data
from rlm_mem.text.statement import Stated
from rlm_mem.text.statements import statements_in

BATCH = 500
"""Default maximum of texts per transaction."""
_MAX_CHARACTERS = 1_000_000
"""Approximate maximum of characters per transaction."""
_LONGEST_LOCK = 1.0
"""Seconds after which a transaction ends early, so that others can write; the rest is left for the next one."""
_WORTH_PROCESSES = 600_000
"""Minimum of characters for which starting worker processes is faster than analysing in this process."""
_WORTH_FORKS = 100_000
"""The same for processes forked from this one, which need not load modules."""
_PER_TEXT = 100
"""Fixed cost of analysing a text, in characters that take as long."""
_LOT, _LOT_CHARACTERS = 25, 16_000
"""Approximate maximum of texts, and of their characters, per call of the analysis."""
_WORTH_STORING, _WORTH_STORING_IDLE = 120, 25
"""Minimum number of waiting chunks that this process stores while it waits for an analysis; with fewer, it analyses
texts itself. The second number applies when no text is left to analyse: the chunks that wait at the end are stored
while the other processes are idle, so there should be few."""
_OPTIONS = TextOptions.__annotations__.keys()
_NOTHING = '["", null, null, false]'


# --- analysis, which needs no store ----------------------------------------------------------------------------------


class AnalysisTask(msgspec.Struct):
    """Settings that apply to all texts of a run."""

    ingest: IngestConfig
    secrets: SecretsConfig
    language: str
    statements: bool = False


class _Refused(msgspec.Struct, array_like=True, tag=True):
    """The reason why a text cannot be stored."""

    message: str
    hint: str | None = None


class Analysed(msgspec.Struct, array_like=True, tag=True):
    """An analysed text: its chunks, their encoded segments and, if requested, their statements."""

    text: AnalysedText
    segments: list[LocalTerms]
    statements: list[list[Stated]]


class _Text(msgspec.Struct):
    """A text to remember, with its arguments."""

    text: str
    options: TextOptions


def analyse_text(
    task: AnalysisTask,
    text: str,
    action: SecretAction | None,
    origin: Callable[[Sequence[str]], Mapping[str, Any] | None],
    *,
    sections: bool,
) -> Analysed:
    """Split a text, and encode its chunks for the index; raises InputError as ``chunking.analyse``.

    Args:
        origin: returns the provenance of a chunk below these headings.
    """
    found = analyse(text, task.ingest, task.secrets, action, sections=sections)
    segments, statements = [], []
    for piece, headings in zip(found.pieces, found.headings, strict=True):
        if task.statements:
            statements.append(statements_in(piece.content, get_analyser(task.language)))
        # The index keeps every term of the segments, also where those are not used because a secret was hidden.
        named, _ = screen_data(origin(headings), task.secrets, action, where="what is stored with the text")
        around = surroundings(provenance_of(piece, len(found.pieces), headings, named))
        segments.append(local_terms(piece.content, piece.overlap, around, task.language))
        segments[-1].normalised = normalised_hash(piece.content)
    return Analysed(found, segments, statements)


def analyse_texts(given: str, items: Sequence[str]) -> list[Analysed | _Refused]:
    """Analyse texts, in this or a worker process.

    Args:
        given: JSON of the settings (``AnalysisTask``).
        items: JSON of each text: the text, what to do with secrets, its provenance, and whether sections are chunks.
    """
    task = msgspec.json.decode(given, type=AnalysisTask)
    return [_analyse_item(task, *json.loads(item)) for item in items]


def _analyse_item(
    task: AnalysisTask, text: str, action: Any, provenance: Mapping[str, Any] | None, sections: bool
) -> Analysed | _Refused:
    try:
        return analyse_text(
            task, text, action, lambda _: provenance, sections=check_flag(sections, "sections")
        )
    except InputError as error:
        return _Refused(error.message, error.hint)


def _parse_item(item: object) -> _Text | _Refused:
    """Parse an item into a text with its arguments, or the reason for refusing it."""
    if isinstance(item, str):
        return _Text(str.__str__(item), {})  # msgspec cannot encode subclasses
    if isinstance(item, InputError):
        return _Refused(item.message, item.hint)
    if not isinstance(item, Mapping):
        return _Refused(f"it must be str or a mapping with the key text, not {type(item).__name__}")
    options = dict(item)
    text = options.pop("text", None)
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        return _Refused(f"remember does not take {unknown!r:.60}", f"keys are text, {', '.join(_OPTIONS)}")
    if not isinstance(text, str):
        remedy = "decode it first: data.decode('utf-8')" if isinstance(text, bytes | bytearray) else None
        return _Refused(f"the text to remember must be str, not {type(text).__name__}", remedy)
    return _Text(str.__str__(text), cast("TextOptions", options))


def _encode_item(item: _Text) -> str:
    """Encode a text with what its analysis depends on as JSON (ASCII, since it may have surrogates)."""
    origin = item.options.get("provenance")
    named = {
        key: value
        for key, value in (origin.items() if isinstance(origin, Mapping) else ())
        if key in ("title", "path") and isinstance(value, str)
    }
    sections = item.options.get("sections", False)
    arguments = [item.text, item.options.get("secrets"), named or None, sections]
    if arguments[1] is None and sections is False and item.text.isascii() and not named:
        return msgspec.json.encode(arguments).decode()  # five times faster than json.dumps
    return json.dumps(arguments, default=repr)


def _analyse_ahead(
    items: Iterable[object],
    settings: Config,
    ahead: int,
    otherwise: Callable[[bool], bool],
    *,
    statements: bool,
) -> Iterator[tuple[_Text, Analysed | _Refused]]:
    """Yield the texts with their analysis, in order; about ``ahead`` texts are analysed in advance.

    Args:
        otherwise: called while waiting for an analysis, with whether no text is left to analyse in this process.
    """
    rest = map(_parse_item, items)
    first: list[_Text | _Refused] = []
    size, worth = 0, _WORTH_FORKS if can_fork() else _WORTH_PROCESSES
    while size < worth and (following := next(rest, None)) is not None:
        first.append(following)
        size += _PER_TEXT + (len(following.text) if isinstance(following, _Text) else 0)
    few = len(first) + (size < worth)
    lot = max(1, min(_LOT, _LOT_CHARACTERS * len(first) // max(1, size)))
    submitted: deque[_Text | _Refused] = deque()

    def encoded_items() -> Iterator[str]:
        for one in chain(first, rest):
            submitted.append(one)
            yield _NOTHING if isinstance(one, _Refused) else _encode_item(one)

    task = AnalysisTask(settings.ingest, settings.secrets, settings.search.language, statements)
    analyses: Iterator[Analysed | _Refused] = called(
        f"{__name__}:analyse_texts", json.dumps(msgspec.to_builtins(task)), encoded_items(),
        list[Analysed | _Refused], lot=lot, processes=settings.store.processes, few=few,
        count=len(first), ahead=ahead // lot, otherwise=otherwise,
    )  # fmt: skip
    for analysis in analyses:
        one = submitted.popleft()
        yield (_Text("", {}), one) if isinstance(one, _Refused) else (one, analysis)


# --- storing ---------------------------------------------------------------------------------------------------------


class _Ready(msgspec.Struct):
    """A checked and analysed text with its drafts; ``number`` counts from 0."""

    number: int
    text: PreparedText
    drafts: list[Chunk]

    @property
    def contents(self) -> list[str]:
        return [draft.content for draft in self.drafts]


class _Refusal(Exception):
    """Raised inside a transaction when a text of it cannot be stored.

    Args:
        made: the results of the texts before it.
        error: why it cannot be stored.
        partly: whether something was written before that was known.
    """

    def __init__(
        self, made: list[RememberResult], error: InputError | NotFoundError | ConflictError, *, partly: bool
    ) -> None:
        super().__init__(len(made))
        self.made, self.error, self.partly = made, error, partly


@observed("remember_many")
def remember_many(
    store: ChunkStore,
    items: Iterable[str | Mapping[str, Any] | InputError],
    *,
    batch: int = BATCH,
    finder: LinkFinder | None = None,
    progress: Progress | None = None,
    refused: Callable[[int, RlmMemError], None] | None = None,
    stored: Callable[[int, RememberResult], None] | None = None,
    config: Config | None = None,
    change: str | None = None,
) -> list[RememberResult]:
    """Store many texts in large transactions, with the same result as storing them one by one.

    Texts are analysed outside of the write lock, and by worker processes if there are many (``store.processes``).
    A transaction also ends after about a second, so that other writers get their turn. What a finished transaction
    stored is durable: a process that is killed loses only its current batch.

    Args:
        store: the store to write to.
        items: texts, or mappings with the key ``text`` and the arguments of ``remember``; read one after the other. An
            error in place of a text that could not be read is refused in its turn.
        batch: maximum texts per transaction.
        finder: finds the chunks that the texts replace or contradict.
        progress: called after each transaction with the number of texts stored, and of those read so far.
        refused: called with the number (from 0) of a text that cannot be stored, and the error; the others are stored,
            unless it raises an error. None: the error is raised, as it also is within ``store.batch()`` if a
            part of the text has been written.
        stored: called with the number (from 0) of a text and its result once that is durable; before ``progress``.
        config: settings; None: those of the store.
        change: the new id of the one change of which all transactions are parts; None: each is a change. Within
            ``store.batch()``, the texts belong to the change of that.

    Returns:
        The result of each text that was stored, in order.

    Raises:
        InvalidChunk, NotFoundError, ConflictError: a text cannot be stored; the message says which. Those before it are
            stored, those after it are not; within ``store.batch()`` nothing is.
        StorageError: it could not be written; earlier transactions are stored.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InputError(f"batch must be a whole number from 1 up, not {batch!r:.40}")
    if isinstance(items, str | bytes | Mapping):
        raise InvalidChunk(
            f"items must be several texts, not {type(items).__name__}", hint="put it into a list"
        )
    check_items(items, "items")
    for call, what in ((progress, "progress"), (refused, "refused")):
        check_function(call, what)
    filling = _Filling(store, config or store.config, finder, progress, refused, stored, change)
    with rare_collections:
        for number, (item, found) in enumerate(
            _analyse_ahead(
                items, filling.settings, 2 * batch, filling.store_if_worthwhile, statements=finder is not None
            )
        ):
            try:
                if isinstance(found, _Refused):
                    raise InvalidChunk(found.message, hint=found.hint)
                filling.add(number, item, found)
            except InputError as error:
                filling.flush()
                filling.refuse(number, error)
            if len(filling.waiting) >= batch or filling.characters >= _MAX_CHARACTERS:
                filling.flush()
        filling.flush()
    return filling.results


class _Filling:
    """The texts that wait for the next transaction, and the results of stored texts."""

    def __init__(
        self,
        store: ChunkStore,
        settings: Config,
        finder: LinkFinder | None,
        progress: Progress | None,
        refused: Callable[[int, RlmMemError], None] | None,
        stored: Callable[[int, RememberResult], None] | None,
        change: str | None,
    ) -> None:
        self.settings = settings
        self.results: list[RememberResult] = []
        self.waiting: list[_Ready] = []
        self.characters = self.chunks = 0
        self._store = store
        self._finder = finder
        self._progress = progress
        self._refused = refused
        self._stored = stored
        self._change = change
        self._ahead: dict[tuple[str, int, str], LocalTerms] = {}
        self._digests: dict[str, str] = {}  # normalised hash by content
        self._clock_off: timedelta | None = None  # what the store adds to the clock
        self._now = store.clock()
        self._index = BatchIndex(store)
        self._linker = AutoLinker(store, settings.ingest, batch=self._index)

    def add(self, number: int, item: _Text, found: Analysed) -> None:
        """Validate the arguments of a text and queue it with its drafts; raises InputError."""
        store = self._store
        text = prepare(store, found.text, self.settings, item.options)
        drafts = [
            store.draft(piece.content, fields, text.extra, now=self._time_of_writing())
            for piece, fields in text.pieces
        ]
        for draft, segments in zip(drafts, found.segments, strict=True):
            self._ahead[index_key(draft)] = segments
            self._digests[draft.content] = segments.normalised
        for draft, stated in zip(drafts, found.statements, strict=False):
            if self._finder is not None:
                self._finder.keep(draft.content, stated)
        self.waiting.append(_Ready(number, text, drafts))
        self.characters += len(item.text)
        self.chunks += len(drafts)

    def _time_of_writing(self) -> datetime:
        """As ``Backend.time_of_writing``, but the store is asked once per transaction."""
        now = max(self._store.clock(), self._now + timedelta(microseconds=1))  # no two texts have one time
        if self._clock_off is None:
            self._clock_off = self._store.backend.time_of_writing(self._store.namespace, now) - now
        self._now = now
        return now + self._clock_off

    def refuse(self, number: int, error: RlmMemError) -> None:
        """Report a text that cannot be stored: call ``refused``, or raise the error."""
        if self._refused is None:
            error.message = f"text {number}: {error.message}"
            raise error
        self._refused(number, error)

    def flush(self) -> None:
        """Store all waiting texts."""
        self._store_first(len(self.waiting))
        self._ahead.clear()
        self._digests.clear()
        self._clock_off = None
        self.characters = self.chunks = 0

    def store_if_worthwhile(self, idle: bool) -> bool:
        """Store the waiting texts if they are enough for a transaction; returns whether they were.

        Args:
            idle: nothing else can be done while waiting.
        """
        if self.chunks < (_WORTH_STORING_IDLE if idle else _WORTH_STORING):
            return False
        self.flush()
        return True

    def _store_first(self, count: int) -> None:
        """Store so many waiting texts, in one transaction or more; those that cannot be stored are refused."""
        while count:
            try:
                count -= self._store_some(count)
            except _Refusal as refusal:
                if self._store.backend.in_transaction:  # the caller's: nothing of it was rolled back
                    self._note_stored(refusal.made)
                    if refusal.partly:  # only the error takes back what was written of the text
                        self._refused = None
                else:
                    self._store_first(len(refusal.made))  # by now, one of them may have to be refused, too
                count -= len(refusal.made) + 1
                self.refuse(self.waiting.pop(0).number, refusal.error)

    def _store_some(self, most: int) -> int:
        """Store up to ``most`` waiting texts in one transaction; returns their number."""
        made = self._transaction(self.waiting[:most])
        self._note_stored(made)
        return len(made)

    def _note_stored(self, made: list[RememberResult]) -> None:
        """Report the results of the first waiting texts, and remove these."""
        for one, result in zip(self.waiting, made, strict=False):
            after_commit(self._store, one.text, result)
            if self._stored is not None:
                self._stored(one.number, result)
        del self.waiting[: len(made)]
        self.results += made
        if self._progress is not None:
            self._progress(len(self.results), len(self.results) + len(self.waiting))

    def _transaction(self, texts: Sequence[_Ready]) -> list[RememberResult]:
        store, finder = self._store, self._finder
        made: list[RememberResult] = []
        alone = not store.backend.in_transaction
        if finder is not None:
            finder.begin(texts[0].contents, self._index)
        drafts = [draft for one in texts for draft in one.drafts]
        if finder is not None:
            finder.expect([draft.content for draft in drafts])
        with preencoded_segments(self._ahead), self._index.held(drafts, self._digests):
            until = monotonic() + _LONGEST_LOCK
            with store.backend.transaction(store.namespace) as transaction:
                events = transaction.events
                if alone and self._change is not None:
                    transaction.change.id = self._change
            for place, one in enumerate(texts):
                written = len(events)
                if place and alone and monotonic() > until:
                    break
                if place and finder is not None:
                    finder.begin(one.contents, self._index)
                try:
                    made.append(store_text(store, self._linker, one.text, finder=finder, drafts=one.drafts))
                except (InputError, NotFoundError, ConflictError) as error:
                    raise _Refusal(made, error, partly=len(events) > written) from error
        return made
