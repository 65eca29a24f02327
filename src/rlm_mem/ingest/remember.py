"""REMEMBER: text of any length becomes typed, linked chunks in one transaction (docs/spec/operations.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from operator import attrgetter
from typing import Any, Protocol, TypedDict

from msgspec import Struct

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
from rlm_mem.chunk.types import ORIGIN_OF_SOURCE, Ttl, amount, rank
from rlm_mem.config import Config, SecretAction
from rlm_mem.errors import InvalidChunk, RlmMemError
from rlm_mem.ingest.chunking import AnalysedText, ChunkResult, analyse
from rlm_mem.ingest.linking import AutoLinker, KeptIndex
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.writer import given_fields
from rlm_mem.telemetry import ObservedOperation, count, observed
from rlm_mem.text.secrets import Screened, SecretsFound, screen_data
from rlm_mem.text.stated import Stated

When = str | date | Callable[[int], "str | date | None"]
"""A time, or a function from a character position of the text to the time when that was said."""


class LinkFinder(Protocol):
    """Finds the chunks that a new chunk replaces or contradicts, within the transaction that stores it."""

    cases: list[str]  # ids of the cases that were opened in the review queue
    stated: dict[str, Sequence[Stated]]  # statements of each text, for the texts that were read ahead

    replaced: list[str]  # ids of the chunks that a text says it replaces

    def begin(self, texts: Sequence[str], index: KeptIndex | None = None) -> None:
        """Called with the contents of the chunks of a text, before the transaction begins unless the caller began one.

        Args:
            index: reads earlier chunks while many texts are stored; None: they are read from the store.
        """
        ...

    def expect(self, texts: Sequence[str]) -> None:
        """Called with the contents of all chunks of one transaction of many texts, before it."""
        ...

    def enter(self, former: Collection[str]) -> None:
        """Called when the text begun is about to be stored, within the transaction.

        Args:
            former: ids of the chunks that the caller says the text replaces, which are ignored.
        """
        ...

    def committed(self) -> None:
        """Called after each transaction that stored texts, unless it was rolled back."""
        ...

    def ask(self, chunk: Chunk) -> None:
        """Make the queries that ``links_for`` will need; their answers may be empty at this point."""
        ...

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """Further links of a chunk that is about to be stored."""
        ...

    def states(self, text: str) -> bool:
        """Whether a text that was begun states anything that another text may end or contradict."""
        ...

    def is_said_otherwise(self, chunk: Chunk, same: Chunk) -> bool:
        """Whether a chunk between an earlier one and a new one with the same words states another value."""
        ...

    def done(self) -> None:
        """Called after the last chunk, before the commit."""
        ...


@dataclass(frozen=True)
class RememberResult:
    """What one ``remember`` stored; ``print`` shows it in a line or two.

    Attributes:
        chunk_ids: ids of all chunks of the text, in order, including those that were stored before.
        created: number of new chunks.
        duplicates: ids of the chunks that were not stored again, mostly because the same conversation has the same
            words already; see ``not_stored``.
        tokens: o200k tokens of the new chunks.
        secrets: what looks like a key or password, and whether it was hidden; false when there is none.
        replaced: ids of the chunks that the text replaced, because the caller or the text itself says so.
        proposed: ids of the cases opened in the review queue: chunks that the text may replace or contradict.
        not_stored: number of ``duplicates`` that were left out because ``ingest.max_similar`` chunks say nearly the
            same, in any conversation.
    """

    chunk_ids: list[str]
    created: int
    duplicates: list[str]
    tokens: int
    secrets: SecretsFound = field(default_factory=SecretsFound)
    replaced: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)
    not_stored: int = 0

    def __str__(self) -> str:
        ids = ", ".join(self.chunk_ids[:5]) + (", …" if len(self.chunk_ids) > 5 else "")
        line = f"remembered {amount(self.created, 'chunk')}, {amount(self.tokens, 'token')}"
        if self.duplicates:
            line += f"; {amount(len(self.duplicates), 'chunk')} already known"
        if self.not_stored:
            line += f", of which {self.not_stored:,} said as often as ingest.max_similar allows"
        line += f": {ids}"
        if self.replaced:
            line += f"; replaced {', '.join(self.replaced)}"
        if self.proposed:
            line += f"; to review: {', '.join(self.proposed)}"
        return f"{line}\n{self.secrets}" if self.secrets else line


def _figures(current: ObservedOperation, result: RememberResult) -> None:
    current.set("rlm_mem.chunks", result.created)
    count("rlm_mem.chunks.created", result.created)
    count("rlm_mem.chunks.repeated", len(result.duplicates))


@observed("remember", _figures)
def remember(
    store: ChunkStore,
    text: str,
    *,
    conversation_id: str | None = None,
    tags: Sequence[str] | str | None = None,
    confidence: float = 0.7,
    chunk_type: str | None = None,
    source: str = "interaction",
    occurred_at: When | None = None,
    metadata: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    secrets: SecretAction | None = None,
    progress: Progress | None = None,
    replaces: Sequence[str] | str | None = None,
    origin: str | None = None,
    trust: str | None = None,
    expires: str | date | None = None,
    ttl: Ttl | None = None,
    again: bool = False,
    finder: LinkFinder | None = None,
    config: Config | None = None,
) -> RememberResult:
    """Store a text with automatic chunking, typing and linking, all or nothing.

    A chunk that its conversation contains already, word for word, is not stored again: its id is returned and the
    repetition is recorded. Each chunk's ``metadata.provenance`` records its origin: ``span`` (characters
    of the text), ``overlap`` (how many of its first characters repeat the chunk before), ``part`` of ``parts``.

    Args:
        store: the store to write to.
        text: at most ``ingest.max_content_bytes`` bytes of UTF-8.
        conversation_id: the conversation it belongs to; None for none.
        tags: words to find it by; a single text is one tag.
        confidence: 0-1.
        chunk_type: preference, fact, pattern, decision, note or a registered type; None detects it per chunk.
        source: a word for its source: interaction, import, derived, …
        occurred_at: when it was said, if that is not now; for a text that spans time, a function from a
            character position to the time there.
        metadata: further fields for every chunk, kept in ``metadata.extra``.
        provenance: further facts about the origin, such as a path.
        secrets: ``redact`` (``[redacted:RULE]`` is stored in place of a key or password), ``keep`` or ``refuse``; None:
            ``config.secrets.action``.
        progress: called after each chunk with (done, total).
        replaces: ids of chunks that the text replaces (``ChunkStore.supersede``); if it has several chunks, its first
            one replaces them.
        origin: how it came: person, agent, tool, import or web; None: derived from ``source``.
        trust: quarantined, untrusted, ordinary or trusted; None: as configured for the origin.
        expires, ttl: when reads stop returning it: a time, or a duration (seconds, ``30d``); not both.
        again: store the text even if ``ingest.max_similar`` chunks say nearly the same already.
        finder: finds the chunks that the text replaces or contradicts.
        config: settings; None takes the store's.

    Raises:
        InvalidChunk: there is nothing to remember, or an argument is wrong, or there is a secret and secrets are
            refused. Nothing was changed.
        InputError: ``secrets`` is not one of the three.
        NotFoundError, ConflictError: a chunk to replace does not exist, or was replaced already; nothing was changed.
        StorageError: it could not be written; nothing was changed.
    """
    settings = config or store.config
    if progress is not None:
        check_function(progress, "progress")
    analysed = analyse(text, settings.ingest, settings.secrets, secrets)
    ready = prepare(
        store,
        analysed,
        settings,
        {
            "conversation_id": conversation_id, "tags": tags, "confidence": confidence, "chunk_type": chunk_type,
            "source": source, "occurred_at": occurred_at, "metadata": metadata, "provenance": provenance,
            "secrets": secrets, "replaces": replaces, "origin": origin, "trust": trust, "expires": expires,
            "ttl": ttl, "again": again,
        },
    )  # fmt: skip
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
    """Make the chunk of a text of one piece, and send all queries needed to store it at once, to save round trips."""
    ((piece, fields),) = text.pieces
    draft = store.draft(piece.content, fields, text.extra)

    def reading() -> None:
        store.find_same(piece.content, fields.get("conversation_id"))
        linker.links_for(draft)
        if finder is not None:
            finder.ask(draft)

    store.backend.read_ahead(draft, reading)
    return [draft]


class TextOptions(TypedDict, total=False):
    """The arguments of :func:`remember` that say how a text is stored."""

    conversation_id: str | None
    tags: Sequence[str] | str | None
    confidence: float
    chunk_type: str | None
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


class PreparedText(Struct):
    """A text whose arguments are checked, ready to be stored.

    Attributes:
        pieces: its chunks, each with its fields.
        extra: written to ``metadata.extra`` of each chunk.
        former: ids of the chunks that it replaces.
        again: store it even if ``ingest.max_similar`` chunks say nearly the same already.
        found: the secrets found in it.
    """

    pieces: list[tuple[ChunkResult, dict[str, Any]]]
    extra: dict[str, Any]
    former: list[str]
    again: bool
    found: Screened


def prepare(store: ChunkStore, analysed: AnalysedText, settings: Config, given: TextOptions) -> PreparedText:
    """Check the arguments given with a text, without querying the index.

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
        own = {"type": piece.type, **fields, "tokens": piece.tokens}
        own["provenance"] = provenance_of(piece, len(analysed.pieces), headings, fields.get("provenance"))
        if spoken_at is not None:
            said_at = spoken_at(screened.original(piece.start + piece.overlap))
            own["occurred_at"] = None if said_at is None else check_time(said_at, "occurred_at")
        pieces.append((piece, own))
    found = Screened("", [*screened.found, *more.found], screened.hidden or more.hidden)
    return PreparedText(pieces, extra, check_chunk_ids(replaces) if replaces else [], again, found)


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
        linker: the linker of the store.
        drafts: the chunks of its pieces, if the caller has made them.

    Raises:
        InvalidChunk, NotFoundError, ConflictError: a chunk to replace has the same words, does not exist, or was
            replaced already.
    """
    index, former, limit = linker.index, text.former, store.config.ingest.max_similar
    if finder is not None:
        finder.enter(former)
    chunk_ids: list[str] = []
    new: list[Chunk] = []
    known: list[str] = []
    often = 0
    for place, (piece, fields) in enumerate(text.pieces):
        alike: list[str] | None = None
        draft = drafts[place] if drafts is not None else None
        same = index.find_same(piece.content, fields.get("conversation_id"))
        if same is not None and _out_of_date(store, same, former, fields.get("occurred_at")):
            same = None  # the earlier chunk had been superseded by then: store a new one
        if same is not None and finder is not None and finder.states(piece.content):
            draft = draft or store.draft(piece.content, fields, text.extra)
            alike = linker.alike(piece.content)
            latest = _latest_same(store, same, alike)
            if latest is not None and finder.is_said_otherwise(draft, latest):
                same = None  # what it says holds again
        if same is None and not text.again and not former:
            alike = linker.alike(piece.content) if alike is None else alike
            same = _said_often(store, alike, limit) if 0 < limit <= len(alike) else None
            often += same is not None
        if same is None:
            new.append(
                store_piece(store, linker, piece, fields, text.extra, finder=finder, draft=draft, alike=alike)
            )
            chunk_ids.append(new[-1].id)
        else:
            known.append(same)
            chunk_ids.append(same)
            if _said_again(store, same, fields) and linker.batch is not None:
                linker.batch.changed(same)
        if progress is not None:
            progress(piece.index + 1, len(text.pieces))
    for old_id in dict.fromkeys(former):
        store.supersede(old_id, chunk_ids[0])
        if linker.batch is not None:
            linker.batch.changed(old_id)
    if finder is not None:
        finder.done()
    return RememberResult(
        chunk_ids=list(dict.fromkeys(chunk_ids)),
        created=len(new),
        duplicates=list(dict.fromkeys(known)),
        tokens=sum(map(attrgetter("tokens"), new)),
        secrets=text.found.report() if text.found.found else SecretsFound(),
        replaced=list(dict.fromkeys([*former, *(finder.replaced if finder is not None else ())])),
        proposed=finder.cases if finder is not None else [],
        not_stored=often,
    )


def after_commit(store: ChunkStore, text: PreparedText, made: RememberResult) -> None:
    """Count repetitions and report secrets. Called after the commit, since a failed batch must change nothing."""
    for chunk_id in made.duplicates:
        store.note_repetition(chunk_id)
    if text.found.found:
        store.on_secret(made.chunk_ids[0], text.found)


def _said_again(store: ChunkStore, same: str, fields: Mapping[str, Any]) -> bool:
    """Update a chunk whose words were given again: the higher trust and the later expiry of the two apply.

    Returns:
        Whether the chunk was changed.
    """
    (former,) = store.summaries([same])
    how = fields.get("origin") or ORIGIN_OF_SOURCE[fields["source"]]
    level = fields.get("trust") or store.trust_levels[how]
    changed: dict[str, Any] = {}
    if rank(level) > rank(former.trust):
        changed = {"origin": how, "trust": level}
    until = fields.get("expires_at")
    if former.expires_at is not None and (until is None or until > former.expires_at):
        changed["expires_at"] = until
    if changed:
        store.update_chunk(same, metadata=changed)
    return bool(changed)


def _latest_same(store: ChunkStore, same: str, alike: Sequence[str]) -> Chunk | None:
    """The latest of the chunks with the words and the conversation of one of them; None if that one is damaged."""
    found = store.get_many([same, *alike])
    if same not in found:
        return None
    within = found[same].metadata.conversation_id
    return max(
        (one for one in found.values() if one.metadata.conversation_id == within),
        key=lambda one: one.metadata.at,
    )


def _said_often(store: ChunkStore, alike: Sequence[str], limit: int) -> str | None:
    """The newest of the chunks that say the same if at least ``limit`` of them are current."""
    holding = [one.id for one in store.summaries(alike) if one.superseded_by is None]
    return holding[0] if len(holding) >= limit else None


def _out_of_date(store: ChunkStore, same: str, former: Sequence[str], said_at: str | None) -> bool:
    """Whether a chunk with the words of a new text had been superseded by the time of that text.

    Raises:
        InvalidChunk: the new text is to replace this chunk.
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
    """The provenance of one chunk of a text: that of the whole text, and the place of the chunk in it."""
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
    """Store one piece of a text with its automatic links and ``links``, which lead to chunks that exist.

    Args:
        fields: type, tokens, provenance and what ``given_fields`` returns, ``extra`` included.
        draft: the chunk, if the caller has made it.
        alike: the result of ``AutoLinker.alike`` for the text, if the caller has it.
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
    """Stores content as memory, chunked and linked: :func:`remember` with its answer as a dictionary.

    Args:
        store: the store to write to.
        config: settings; None takes the store's.
        on_progress: called after each chunk, unless a call has its own ``progress``.
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
        source: str = "interaction",
        occurred_at: When | None = None,
        metadata: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        secrets: SecretAction | None = None,
        progress: Progress | None = None,
        replaces: Sequence[str] | str | None = None,
        origin: str | None = None,
        trust: str | None = None,
        expires: str | date | None = None,
        ttl: Ttl | None = None,
    ) -> dict[str, Any]:
        """Like :func:`remember`, but returns answers and failures as a dictionary.

        Returns:
            ``{"success": True, "chunk_ids": [str], "total_tokens": int, "chunks_created": int, "duplicates": [str]}``,
            and where secrets were found ``"secrets": {rule: int}`` and ``"secrets_hidden": int``; or, when it cannot be
            stored, ``"success": False`` with ``"error"``, one sentence, and ``"hint"`` where there is a remedy. Then
            nothing was changed.
        """
        try:
            made = remember(
                self._store,
                content,
                conversation_id=conversation_id,
                tags=tags,
                confidence=confidence,
                chunk_type=chunk_type,
                source=source,
                occurred_at=occurred_at,
                metadata=metadata,
                provenance=provenance,
                secrets=secrets,
                progress=progress or self._on_progress,
                replaces=replaces,
                origin=origin,
                trust=trust,
                expires=expires,
                ttl=ttl,
                config=self._config,
            )
        except RlmMemError as error:  # documented: one sentence, no traceback
            failed = {
                "success": False,
                "chunk_ids": [],
                "total_tokens": 0,
                "chunks_created": 0,
                "duplicates": [],
            }
            return failed | {"error": error.message} | ({"hint": error.hint} if error.hint else {})
        answer: dict[str, Any] = {
            "success": True,
            "chunk_ids": made.chunk_ids,
            "total_tokens": made.tokens,
            "chunks_created": made.created,
            "duplicates": made.duplicates,
        }
        if made.secrets:
            answer["secrets"] = dict(made.secrets.rules)
            answer["secrets_hidden"] = made.secrets.count if made.secrets.hidden else 0
        return answer
