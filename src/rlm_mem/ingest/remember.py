"""REMEMBER: store text of any length as typed, linked chunks in one transaction (docs/spec/operations.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, Unpack

from msgspec import Struct, field

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import (
    Chunk,
    ChunkLinks,
    check_chunk_ids,
    check_confidence,
    check_tags,
    check_text,
    check_time,
    expiry,
    format_time,
)
from rlm_mem.chunk.types import ORIGIN_OF_SOURCE, Ttl, amount, is_untrusted, rank
from rlm_mem.config import Config, SecretAction
from rlm_mem.errors import ConflictError, InvalidChunk, NotFoundError, RlmMemError
from rlm_mem.ingest.chunking import AnalysedText, ChunkResult, analyse
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.record import FrozenRecord
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.succession import check_not_replaced
from rlm_mem.store.core.writer import given_fields
from rlm_mem.telemetry import ObservedOperation, count, observed
from rlm_mem.text.secrets import Screened, SecretsFound, screen_data
from rlm_mem.text.statement import Stated

if TYPE_CHECKING:
    from rlm_mem.ingest.batch_index import BatchIndex

When = str | date | Callable[[int], "str | date | None"]
"""A time, or a function from a character position of the text to its time."""


class LinkFinder(Protocol):
    """Finds the chunks that a new chunk replaces or contradicts, within the transaction that stores it."""

    cases: list[str]  # ids of the review cases that were opened
    replaced: list[str]  # ids of chunks that the text states it replaces

    def begin(self, texts: Sequence[str], index: BatchIndex | None = None) -> None:
        """Start a text with the contents of its chunks, before the transaction unless the caller has opened one.

        Args:
            index: reads earlier chunks during bulk storage; None: the store does.
        """

    def keep(self, text: str, stated: Sequence[Stated]) -> None:
        """Cache the statements of a text, which were extracted in advance."""

    def expect(self, texts: Sequence[str]) -> None:
        """Announce the contents of all chunks of the next transaction of many texts."""

    def enter(self, former: Collection[str]) -> None:
        """Continue the text inside the transaction that stores it.

        Args:
            former: ids of chunks that the caller lists as replaced, which the finder ignores.
        """

    def committed(self) -> None:
        """Called after each transaction that stored texts and was not rolled back."""

    def ask(self, chunk: Chunk) -> None:
        """Prefetch the queries of ``links_for``; their answers may be empty at this point."""

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """Links to add to a chunk that is about to be stored."""

    def states(self, text: str) -> bool:
        """Whether a started text makes a statement that another text may end or contradict."""

    def is_said_otherwise(self, chunk: Chunk, same: Chunk) -> bool:
        """Whether a chunk between an earlier one and a new one of the same words states a different value."""

    def done(self) -> None:
        """Finish the text; called after its last chunk, before the commit."""


class RememberResult(FrozenRecord, frozen=True):
    """The result of storing one text; ``print`` shows it in a line or two.

    Attributes:
        chunk_ids: ids of all chunks of the text, in order, including those that were stored before.
        created: number of new chunks.
        duplicates: ids of the chunks that were not stored again, mostly because the same conversation has the same
            words already; see ``not_stored``.
        tokens: o200k tokens of the new chunks.
        secrets: secrets that were found, and whether they were redacted; false if there are none.
        replaced: ids of chunks that the text replaced, as stated by the caller or the text itself.
        proposed: ids of the opened review cases, about chunks that the text may replace or contradict.
        not_stored: number of ``duplicates`` that were left out because ``ingest.max_similar`` chunks say nearly the
            same, in any conversation.
        quarantined: the ``duplicates`` that are in quarantine, and stay hidden until they are released.
    """

    chunk_ids: list[str]
    created: int
    duplicates: list[str]
    tokens: int
    secrets: SecretsFound = field(default_factory=SecretsFound)
    replaced: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)
    not_stored: int = 0
    quarantined: list[str] = field(default_factory=list)

    @property
    def is_one_new_chunk(self) -> bool:
        """Whether the text is a single chunk, and new: what can be compared with the nearest earlier ones."""
        return self.created == len(self.chunk_ids) == 1

    @property
    def quarantine_note(self) -> str:
        """A sentence about ``quarantined``; empty if there are none."""
        if not self.quarantined:
            return ""
        found = amount(len(self.quarantined), "memory")
        return (
            f"it has the words of {found} in quarantine, hidden until released: {', '.join(self.quarantined)}"
        )

    def __str__(self) -> str:
        ids = ", ".join(self.chunk_ids[:5]) + (", …" if len(self.chunk_ids) > 5 else "")
        line = f"remembered {amount(self.created, 'chunk')}, {amount(self.tokens, 'token')}"
        if self.duplicates:
            line += f"; {amount(len(self.duplicates), 'chunk')} already known"
        if self.not_stored:
            line += f", of which {self.not_stored:,} said as often as ingest.max_similar allows"
        line += f": {ids}"
        if self.quarantined:
            line += f"; {self.quarantine_note}"
        if self.replaced:
            line += f"; replaced {', '.join(self.replaced)}"
        if self.proposed:
            line += f"; to review: {', '.join(self.proposed)}"
        return f"{line}\n{self.secrets}" if self.secrets else line


def _figures(current: ObservedOperation, result: RememberResult) -> None:
    current.set("rlm_mem.chunks", result.created)
    count("rlm_mem.chunks.created", result.created)
    count("rlm_mem.chunks.repeated", len(result.duplicates))


class MoreOptions(TypedDict, total=False):
    """Arguments of :func:`remember` that apply to a single text, besides those of ``TextOptions``.

    Attributes:
        source: its source: interaction (default), import, derived, …
        occurred_at: time of the statement, if that is not now; for a text that spans time, a function from a
            character position to the time there.
        metadata: further fields of every chunk, stored in ``metadata.extra``.
        provenance: further facts about its origin, such as a path.
        secrets: ``redact`` (``[redacted:RULE]`` is stored in place of a key or password), ``keep`` or ``refuse``; None:
            ``config.secrets.action``.
        replaces: ids of chunks that the text replaces (``ChunkStore.supersede``); if it has several chunks, its first
            one replaces them.
        origin: person, agent, tool, import or web; None: derived from ``source``.
        trust: quarantined, untrusted, ordinary or trusted; None: as configured for the origin.
        expires, ttl: time, or duration (seconds, ``30d``), after which reads do not return it; not both.
        again: store the text even if ``ingest.max_similar`` chunks say nearly the same already.
    """

    source: str
    occurred_at: When | None
    metadata: Mapping[str, Any] | None
    provenance: Mapping[str, Any] | None
    secrets: SecretAction | None
    replaces: Sequence[str] | str | None
    origin: str | None
    trust: str | None
    expires: str | date | None
    ttl: Ttl | None
    again: bool


class TextOptions(MoreOptions, total=False):
    """Every argument of :func:`remember` that applies to a single text.

    Attributes:
        conversation_id: the conversation it belongs to; None for none.
        tags: its tags; a single text is one tag.
        confidence: 0-1; default 0.7.
        chunk_type: preference, fact, pattern, decision, note or a registered type; None detects it per chunk.
        sections: whether each section of Markdown is a chunk of its own, however short.
    """

    conversation_id: str | None
    tags: Sequence[str] | str | None
    confidence: float
    chunk_type: str | None
    sections: bool


@observed("remember", _figures)
def remember(
    store: ChunkStore,
    text: str,
    *,
    progress: Progress | None = None,
    finder: LinkFinder | None = None,
    config: Config | None = None,
    **options: Unpack[TextOptions],
) -> RememberResult:
    """Store a text with automatic chunking, typing and linking, in one transaction.

    A chunk that its conversation contains already, word for word, is not stored again: its id is returned and the
    repetition is recorded. Each chunk's ``metadata.provenance`` records its origin: ``span`` (characters
    of the text), ``overlap`` (how many of its first characters repeat the chunk before), ``part`` of ``parts``.

    Args:
        store: the store to write to.
        text: at most ``ingest.max_content_bytes`` bytes of UTF-8.
        progress: called after each chunk with (done, total).
        finder: finds the chunks that the text replaces or contradicts.
        config: settings; None takes the store's.
        options: what applies to this text alone.

    Raises:
        InvalidChunk: the text is empty, an argument is wrong, or the text contains a secret and secrets are
            refused. Nothing was changed.
        InputError: ``secrets`` is not one of the three.
        NotFoundError, ConflictError: a chunk to replace does not exist, or was already replaced; nothing was changed.
        StorageError: the write failed; nothing was changed.
    """
    unknown = next((name for name in options if name not in TextOptions.__annotations__), None)
    if unknown is not None:
        raise TypeError(f"remember() got an unexpected keyword argument {unknown!r}")
    settings = config or store.config
    if progress is not None:
        check_function(progress, "progress")
    sections = check_flag(options.get("sections", False), "sections")
    analysed = analyse(text, settings.ingest, settings.secrets, options.get("secrets"), sections=sections)
    ready = prepare(store, analysed, settings, options)
    if finder is not None:
        finder.begin(list(map(attrgetter("content"), analysed.pieces)))
    with store.batch():
        linker = AutoLinker(store, settings.ingest)
        single = store.backend.is_far and len(ready.pieces) == 1
        drafts = _read_ahead(store, linker, finder, ready) if single else None
        made = store_text(store, linker, ready, finder=finder, progress=progress, drafts=drafts)
    if finder is not None:
        finder.committed()
    if made.duplicates or ready.found.found:
        after_commit(store, ready, made)
    return made


def _read_ahead(
    store: ChunkStore, linker: AutoLinker, finder: LinkFinder | None, text: PreparedText
) -> list[Chunk]:
    """Make the draft of a text of one chunk and send all queries for storing it at once, which saves round trips."""
    ((piece, fields),) = text.pieces
    draft = store.draft(piece.content, fields, text.extra)

    def reading() -> None:
        store.find_same(piece.content, fields.get("conversation_id"))
        linker.links_for(draft)
        if draft.tags:
            linker.newest()  # asked where a tag is on many chunks, which empty answers do not show
        if finder is not None:
            finder.ask(draft)

    store.backend.read_ahead(draft, reading)
    return [draft]


class PreparedText(Struct):
    """A text with validated arguments, ready to be stored.

    Attributes:
        pieces: its chunks, each with its fields.
        extra: written to ``metadata.extra`` of each chunk.
        former: ids of chunks that it replaces.
        again: store it even if ``ingest.max_similar`` chunks say nearly the same already.
        found: the secrets found in it.
    """

    pieces: list[tuple[ChunkResult, dict[str, Any]]]
    extra: dict[str, Any]
    former: list[str]
    again: bool
    found: Screened


def prepare(store: ChunkStore, analysed: AnalysedText, settings: Config, given: TextOptions) -> PreparedText:
    """Validate the arguments of a text, without querying the index.

    Raises:
        InvalidChunk, InputError: an argument is wrong.
    """
    get: Callable[..., Any] = given.get
    metadata, provenance, secrets = get("metadata"), get("provenance"), get("secrets")
    expires, ttl = get("expires"), get("ttl")
    if provenance is not None and not isinstance(provenance, Mapping):
        raise InvalidChunk(f"provenance must be a dict, not {type(provenance).__name__}")
    screened, tags, more = analysed.screened, get("tags"), Screened("")
    if tags is not None:
        tags = check_tags(tags)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidChunk(f"metadata must be a dict, not {type(metadata).__name__}")
    if metadata or provenance or tags:
        (metadata, provenance, tags), more = screen_data(
            (metadata, provenance, tags), settings.secrets, secrets, where="what is stored with the text"
        )
    when = get("occurred_at")
    spoken_at = when if callable(when) else None
    fields, extra = given_fields(
        metadata,
        (
            ("type", get("chunk_type")),
            ("conversation_id", get("conversation_id")),
            ("tags", tags),
            ("confidence", check_confidence(get("confidence", 0.7))),
            ("source", check_text(get("source", "interaction"), "source")),
            ("occurred_at", None if spoken_at else when),
            ("provenance", provenance or None),
            ("origin", get("origin")),
            ("trust", get("trust")),
            ("expires_at", None if expires is ttl is None else expiry(expires, ttl, store.clock())),
        ),
    )
    if "type" in fields:
        store.types.check_chunk(fields["type"], extra)
    replaces, again = get("replaces"), get("again", False)
    if again is not False:
        check_flag(again, "again")
    pieces = []
    for piece, headings in zip(analysed.pieces, analysed.headings, strict=True):
        piece_fields = {"type": piece.type, **fields, "tokens": piece.tokens}
        piece_fields["provenance"] = provenance_of(
            piece, len(analysed.pieces), headings, fields.get("provenance")
        )
        if spoken_at is not None:
            said_at = spoken_at(screened.original(piece.start + piece.overlap))
            piece_fields["occurred_at"] = None if said_at is None else check_time(said_at, "occurred_at")
        pieces.append((piece, piece_fields))
    found = Screened("", [*screened.found, *more.found], screened.hidden or more.hidden)
    return PreparedText(pieces, extra, [] if replaces is None else check_chunk_ids(replaces), again, found)


def store_text(
    store: ChunkStore,
    linker: AutoLinker,
    text: PreparedText,
    *,
    finder: LinkFinder | None = None,
    progress: Progress | None = None,
    drafts: Sequence[Chunk | None] | None = None,
) -> RememberResult:
    """Store a text within the caller's transaction; ``after_commit`` must follow.

    Args:
        drafts: drafts of its chunks, if they were already made.

    Raises:
        InvalidChunk, NotFoundError, ConflictError: a chunk to replace has the same words, does not exist, or was
            replaced already.
    """
    former = text.former
    if finder is not None:
        finder.enter(former)
    chunk_ids: list[str] = []
    new: list[Chunk] = []
    known: list[_Stored] = []
    for place, (piece, fields) in enumerate(text.pieces):
        draft = drafts[place] if drafts is not None else None
        stored, draft, alike = _stored_already(store, linker, text, place, draft, finder)
        if stored is None:
            new.append(
                store_piece(store, linker, piece, fields, text.extra, finder=finder, draft=draft, alike=alike)
            )
            chunk_ids.append(new[-1].id)
        else:
            known.append(stored)
            chunk_ids.append(stored.chunk_id)
            if not stored.quarantined and update_repeated(store, stored.chunk_id, fields):
                linker.changed([stored.chunk_id])
        if progress is not None:
            progress(piece.index + 1, len(text.pieces))
    if former:
        store.supersede_all(list(dict.fromkeys(former)), chunk_ids[0])
        linker.changed(former)
    if finder is not None:
        finder.done()
    return RememberResult(
        chunk_ids=list(dict.fromkeys(chunk_ids)),
        created=len(new),
        duplicates=list(dict.fromkeys(one.chunk_id for one in known)),
        tokens=sum(map(attrgetter("tokens"), new)),
        secrets=text.found.report() if text.found.found else SecretsFound(),
        replaced=list(dict.fromkeys([*former, *(finder.replaced if finder is not None else ())])),
        proposed=finder.cases if finder is not None else [],
        not_stored=sum(one.frequent for one in known),
        quarantined=list(dict.fromkeys(one.chunk_id for one in known if one.quarantined)),
    )


class _Stored(NamedTuple):
    """The chunk that has the words of a piece already; ``frequent``: so many nearly do that no other is stored."""

    chunk_id: str
    quarantined: bool = False
    frequent: bool = False


def _stored_already(
    store: ChunkStore,
    linker: AutoLinker,
    text: PreparedText,
    place: int,
    draft: Chunk | None,
    finder: LinkFinder | None,
) -> tuple[_Stored | None, Chunk | None, list[str] | None]:
    """The chunk that has the words of a piece, if it is not to be stored; its draft and equivalent chunks, if known.

    Raises:
        InvalidChunk, NotFoundError, ConflictError: as :func:`store_text`.
    """
    (piece, fields), former = text.pieces[place], text.former
    alike: list[str] | None = None
    same = linker.index.find_same(piece.content, fields.get("conversation_id"))
    if former and not place:
        _check_former(store, former, same)
    if same is not None and _was_superseded(store, same, former, fields.get("occurred_at")):
        same = None  # the earlier chunk had been superseded by that time, so store a new one
    if same is not None and finder is not None and finder.states(piece.content):
        draft = draft or store.draft(piece.content, fields, text.extra)
        alike = linker.alike(piece.content)
        latest = _latest_same(store, same, alike)
        if latest is not None and finder.is_said_otherwise(draft, latest):
            same = None  # its statement is in force again
    if same is not None:
        return _Stored(same), draft, alike
    alike = linker.alike(piece.content) if alike is None else alike
    hidden = store.quarantined_among(alike) if alike else None
    if hidden is not None:
        if former and not place:
            raise ConflictError(
                f"{hidden} has the same words and is in quarantine, so it can replace nothing",
                hint="a person can release it, as rlm-mem chunk release does; or give other words",
            )
        return _Stored(hidden, quarantined=True), draft, alike
    limit = store.config.ingest.max_similar
    if not text.again and not former and 0 < limit <= len(alike):
        newest = _newest_if_frequent(store, alike, limit)
        return _Stored(newest, frequent=True) if newest is not None else None, draft, alike
    return None, draft, alike


def after_commit(store: ChunkStore, text: PreparedText, made: RememberResult) -> None:
    """Count repetitions and report secrets; must follow the commit, since a failed transaction must change nothing."""
    for chunk_id in made.duplicates:
        store.note_repetition(chunk_id)
    if text.found.found:
        store.on_secret(made.chunk_ids[0], text.found)


def update_repeated(store: ChunkStore, same: str, fields: Mapping[str, Any]) -> bool:
    """Update a chunk whose words were stored again, with the higher trust and the later expiry of the two.

    Of untrusted text, an agent that repeats it, perhaps because the text told it to, raises no trust.

    Returns:
        Whether the chunk was changed.
    """
    (former,) = store.summaries([same])
    how = fields.get("origin") or ORIGIN_OF_SOURCE[fields["source"]]
    level = fields.get("trust") or store.trust_levels[how]
    changed: dict[str, Any] = {}
    is_doubted = is_untrusted(former.trust) and how == "agent" and fields.get("trust") is None
    if rank(level) > rank(former.trust) and not is_doubted:
        changed = {"origin": how, "trust": level}
    until = fields.get("expires_at")
    if former.expires_at is not None and (until is None or until > former.expires_at):
        changed["expires_at"] = until
    if changed:
        store.update_chunk(same, metadata=changed)
    return bool(changed)


def _latest_same(store: ChunkStore, same: str, alike: Sequence[str]) -> Chunk | None:
    """The latest chunk with the words and conversation of ``same``; None if that one is damaged."""
    found = store.get_many([same, *alike])
    if same not in found:
        return None
    within = found[same].metadata.conversation_id
    return max(
        (one for one in found.values() if one.metadata.conversation_id == within),
        key=lambda one: one.metadata.at,
    )


def _newest_if_frequent(store: ChunkStore, alike: Sequence[str], limit: int) -> str | None:
    """The newest of the equivalent chunks if at least ``limit`` of them are current, else None."""
    current_ids = [one.id for one in store.summaries(alike) if one.superseded_by is None]
    return current_ids[0] if len(current_ids) >= limit else None


def _check_former(store: ChunkStore, former: Sequence[str], same: str | None) -> None:
    """Check before anything is written that the chunks to replace exist, and that no present one but ``same`` did.

    The caller may go on with its own transaction after the error.

    Raises:
        NotFoundError, ConflictError: as ``ChunkStore.supersede``.
    """
    found = store.get_many(former)
    successors = [by for one in found.values() if (by := one.metadata.superseded_by)]
    present = store.get_many(successors, track=False) if successors else {}
    for old_id in former:
        if old_id not in found:
            raise NotFoundError(f"there is no chunk {old_id}", hint="search gives the ids")
        if found[old_id].metadata.superseded_by in present:
            check_not_replaced(found[old_id], same)


def _was_superseded(store: ChunkStore, same: str, former: Sequence[str], said_at: str | None) -> bool:
    """Whether the chunk with the words of a new text was already superseded at the time of that text.

    Raises:
        InvalidChunk: the new text shall replace this very chunk.
    """
    if same in former:
        raise InvalidChunk(
            f"{same} has exactly the same text: there is nothing to replace",
            hint="give the new text, or leave out replaces",
        )
    said_at = said_at or format_time(store.backend.time_of_writing(store.namespace, store.clock()))
    return any(
        one.metadata.superseded_by and (former or (one.metadata.valid_to or "") < said_at)
        for one in store.get_many([same]).values()
    )


def provenance_of(
    piece: ChunkResult, parts: int, headings: Sequence[str], provenance: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The provenance of one chunk: that of the text, and the chunk's place in it."""
    place = {**(provenance or {}), "span": [piece.start, piece.end]}
    if piece.overlap:
        place["overlap"] = piece.overlap
    if headings:
        place["headings"] = list(headings)
    if parts > 1:
        place["part"], place["parts"] = piece.index + 1, parts
    return place


def store_piece(
    store: ChunkStore,
    linker: AutoLinker,
    piece: ChunkResult,
    fields: Mapping[str, Any],
    extra: Mapping[str, Any],
    links: Sequence[ChunkLinks] = (),
    finder: LinkFinder | None = None,
    draft: Chunk | None = None,
    alike: Sequence[str] | None = None,
) -> Chunk:
    """Store one chunk of a text with automatic links and ``links``, whose targets exist.

    Args:
        fields: type, tokens, provenance and what ``given_fields`` returns, ``extra`` included.
        draft: the draft of the chunk, if it was already made.
        alike: the result of ``AutoLinker.alike`` for the text, if already known.
    """
    chunk = draft or store.draft(piece.content, fields, extra)
    chunk.links = [*linker.links_for(chunk, chunk.metadata.created_at, alike), *links]
    if finder is not None:
        chunk.links += finder.links_for(chunk)
    store.add(chunk)
    if linker.batch is not None:
        linker.batch.added(chunk)
    return chunk


class RememberOperation:
    """Stores content like :func:`remember`, with the result as a dictionary.

    Args:
        store: the store to write to.
        config: settings; None takes the store's.
        on_progress: called after each chunk, unless a call passes ``progress``.
    """

    def __init__(
        self, store: ChunkStore, config: Config | None = None, on_progress: Progress | None = None
    ) -> None:
        self._store = store
        self._config = config
        self._on_progress = on_progress

    def remember(
        self,
        content: str,
        conversation_id: str | None = None,
        tags: Sequence[str] | str | None = None,
        confidence: float = 0.7,
        chunk_type: str | None = None,
        *,
        progress: Progress | None = None,
        **options: Unpack[MoreOptions],
    ) -> dict[str, Any]:
        """Store content like :func:`remember`, and return results and failures as a dictionary.

        Returns:
            ``{"success": True, "chunk_ids": [str], "total_tokens": int, "chunks_created": int, "duplicates": [str]}``;
            where some are in quarantine ``"quarantined": [str]``, and where secrets were found
            ``"secrets": {rule: int}`` and ``"secrets_hidden": int``; or, when it cannot be stored, ``"success": False``
            with ``"error"``, one sentence, and ``"hint"`` where there is a remedy. Then nothing was changed.
        """
        try:
            made = remember(
                self._store, content, conversation_id=conversation_id, tags=tags, confidence=confidence,
                chunk_type=chunk_type, progress=progress or self._on_progress, config=self._config, **options,
            )  # fmt: skip
        except RlmMemError as error:  # documented: failures are returned as one sentence
            nothing = {"chunk_ids": [], "total_tokens": 0, "chunks_created": 0, "duplicates": []}
            failed = {"success": False, **nothing, "error": error.message}
            return failed | ({"hint": error.hint} if error.hint else {})
        answer: dict[str, Any] = {
            "success": True,
            "chunk_ids": made.chunk_ids,
            "total_tokens": made.tokens,
            "chunks_created": made.created,
            "duplicates": made.duplicates,
        }
        if made.quarantined:
            answer["quarantined"] = made.quarantined
        if made.secrets:
            answer["secrets"] = dict(made.secrets.rules)
            answer["secrets_hidden"] = made.secrets.count if made.secrets.hidden else 0
        return answer
