"""REMEMBER: text of any length becomes typed, linked chunks in one transaction (docs/spec/operations.md).

Every rule for automatic links makes a bounded query of the index, so linking costs the same in a store of a hundred
chunks and of a million.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from rlm_mem.chunk import (
    SIMILAR_TO,
    Chunk,
    ChunkLinks,
    ChunkMetadata,
    check_chunk_ids,
    check_confidence,
    check_content,
    check_tags,
    check_text,
    check_time,
    expiry,
    format_time,
    parse_time,
)
from rlm_mem.chunk.types import Ttl, default_origin, rank
from rlm_mem.config import Config, IngestConfig, SecretAction, SecretsConfig
from rlm_mem.errors import InvalidChunk, RlmMemError
from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.records import Summary
from rlm_mem.store.core.writer import given_fields
from rlm_mem.telemetry import ObservedOperation, count, observed
from rlm_mem.text.analysis import headings_at
from rlm_mem.text.secrets import Screened, SecretsFound, screen, screen_data

__all__ = [
    "AnalysedText",
    "AutoLinker",
    "Progress",
    "RememberOperation",
    "RememberResult",
    "When",
    "add_manual_link",
    "analyse",
    "provenance_of",
    "remember",
    "store_piece",
]


_STEP = 0.9  # strength of the next nearest chunk, relative to the one before
_TAGS_ASKED = 16  # tags of a new chunk that are looked up
_TAGGED = 32  # newest chunks of each tag that are compared
_ID, _ID_AND_TIME = itemgetter(0), itemgetter(0, 1)  # of a place of ``list_between``
_engine = lru_cache(maxsize=16)(ChunkingEngine)  # sizes are checked once


class AutoLinker:
    """Links a new chunk to those before it (docs/spec/links.md, Automatic rules).

    ``context_of``: the same conversation, nearest first. ``follows``: at most five minutes earlier in the same
    conversation or by the same author, the nearer the stronger; what was imported without times of its own follows
    only what stands before it in the same text. ``related_to``: shared tags, strength = Jaccard of the tag sets.
    ``similar_to``: the same words except for case, space and punctuation. Of each type at most
    ``ingest.max_links_per_type`` links are stored, strongest first, then newest.

    Args:
        chunk_store: an open store; ``chunk_store.config.ingest`` sets the bounds.
        config: other bounds.
    """

    def __init__(self, chunk_store: ChunkStore, config: IngestConfig | None = None) -> None:
        self._store = chunk_store
        self._config = config or chunk_store.config.ingest

    def link_on_create(self, chunk: Chunk) -> Chunk:
        """Add automatic links to a new chunk; its existing links are kept.

        Returns:
            The chunk with its links. One that is stored is updated there; one that is not is left to the caller.
        """
        found = self.links_for(chunk)
        present = {(link.target_id, link.type) for link in chunk.links}
        added = [link for link in found if (link.target_id, link.type) not in present]
        if not added:
            return chunk
        links = [*chunk.links, *added]
        stored = self._store.update_chunk(chunk.id, links=links) if self._store.exists(chunk.id) else None
        return stored or replace(chunk, links=links)

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """The automatic links of a chunk, which need not be stored yet; those that it has are not looked at."""
        limit = self._config.max_links_per_type
        if limit == 0:
            return []
        made_at = format_time(self._store.clock())
        moment = parse_time(chunk.metadata.at or made_at)
        said_before: dict[str, float] = {}
        if chunk.metadata.conversation_id is not None:  # so far, newest first, as far as any rule looks back
            said_before = self._before(chunk, None, moment, limit + 1)
        links = [
            *self._context(chunk, moment, said_before, limit),
            *self._follows(chunk, moment, said_before, limit),
            *(self._related(chunk.tags, chunk.id, limit) if chunk.tags else ()),
            *self._similar(chunk.content, chunk.id, limit),
        ]
        for link in links:
            link.created_at = made_at
        return links

    def add_manual_link(
        self,
        source_id: str,
        target_id: str,
        link_type: str,
        strength: float = 0.5,
        reasoning: str | None = None,
    ) -> bool:
        """Link two chunks on purpose, by any built-in or registered type.

        Args:
            strength: 0-1.
            reasoning: why, in words.

        Returns:
            True; linking again changes strength and reasoning of the existing link.

        Raises:
            InvalidLink: unknown type, strength outside 0-1, a missing chunk, or a chunk linked to itself.
            InvalidChunkId: an id that cannot be one.
        """
        return self._store.add_link(source_id, target_id, link_type, strength, reasoning)

    def _before(self, chunk: Chunk, since: datetime | None, moment: datetime, limit: int) -> dict[str, float]:
        """Other chunks of its conversation, or of all where it has none, with their times, newest first."""
        found = self._store.list_between(
            since, moment, limit, conversation_id=chunk.metadata.conversation_id, newest_first=True
        )
        places = dict(map(_ID_AND_TIME, found))
        places.pop(chunk.id, None)
        return places

    def _context(
        self, chunk: Chunk, moment: datetime, said_before: dict[str, float], limit: int
    ) -> list[ChunkLinks]:
        conversation_id = chunk.metadata.conversation_id
        if conversation_id is None:
            return []
        near = list(said_before)
        if len(near) < limit:  # said before chunks that are stored already, as in an import out of order
            later = self._store.list_between(moment, None, limit + 1, conversation_id=conversation_id)
            near += map(_ID, later)
        links: list[ChunkLinks] = []
        for chunk_id in dict.fromkeys(near):
            if chunk_id != chunk.id and len(links) < limit:
                links.append(ChunkLinks(chunk_id, "context_of", round(_STEP ** len(links), 4)))
        return links

    def _follows(
        self, chunk: Chunk, moment: datetime, said_before: dict[str, float], limit: int
    ) -> list[ChunkLinks]:
        window = self._config.follows_seconds
        alone = chunk.metadata.conversation_id is None
        places = self._by_the_same(chunk, moment, limit) if alone else said_before
        near: list[tuple[str, float]] = []
        for chunk_id, at in places.items():
            if len(near) < limit and moment.timestamp() - at <= window:
                near.append((chunk_id, at))
        if near and (alone or not has_own_time(chunk.metadata)):
            bodies = self._store.get_many([chunk_id for chunk_id, _ in near])
            near = [
                (chunk_id, at)
                for chunk_id, at in near
                if chunk_id in bodies and of_one_stream(chunk.metadata, bodies[chunk_id].metadata)
            ]
        links: list[ChunkLinks] = []
        for chunk_id, at in near:
            gap = max(0.0, moment.timestamp() - at)
            strength = (1.0 - gap / window if window else 1.0) * _STEP ** len(links)
            if (rounded := round(strength, 4)) > 0.0:
                links.append(ChunkLinks(chunk_id, "follows", rounded))
        return links

    def _by_the_same(self, chunk: Chunk, moment: datetime, limit: int) -> dict[str, float]:
        """The latest chunks before this one that have no conversation either, and the same origin and source."""
        about = chunk.metadata
        try:
            since = moment - timedelta(seconds=self._config.follows_seconds)
        except OverflowError:  # the first minutes of the year 1
            since = moment
        recent = self._before(chunk, since, moment, 2 * limit + 1)
        alike = {
            other.id
            for other in self._store.summaries(list(recent))
            if other.conversation_id is None and (other.origin, other.source) == (about.origin, about.source)
        }
        return {chunk_id: at for chunk_id, at in recent.items() if chunk_id in alike}

    def _related(self, tags: Sequence[str], own_id: str | None, limit: int) -> list[ChunkLinks]:
        own = set(tags)
        tagged: dict[str, Summary] = {}
        for tag in list(dict.fromkeys(tags))[:_TAGS_ASKED]:
            for summary in self._store.latest(max(limit + 1, _TAGGED), tag=tag):
                tagged[summary.id] = summary
        scored: list[tuple[float, float, str]] = []
        for summary in tagged.values():
            shared = own.intersection(summary.tags)
            if summary.id != own_id and len(shared) >= self._config.min_shared_tags:
                scored.append((len(shared) / len(own.union(summary.tags)), summary.at, summary.id))
        scored.sort(reverse=True)
        return [
            ChunkLinks(target, "related_to", round(strength, 4)) for strength, _, target in scored[:limit]
        ]

    def _similar(self, content: str, own_id: str | None, limit: int) -> list[ChunkLinks]:
        links: list[ChunkLinks] = []
        for target in self._store.find_normalised(content, limit + 1):
            if target != own_id and len(links) < limit:
                links.append(ChunkLinks(target, SIMILAR_TO, 1.0))
        return links


def add_manual_link(
    chunk_store: ChunkStore,
    source_id: str,
    target_id: str,
    link_type: str,
    strength: float = 0.5,
    reasoning: str | None = None,
) -> bool:
    """Link two chunks on purpose; see ``AutoLinker.add_manual_link``."""
    return chunk_store.add_link(source_id, target_id, link_type, strength, reasoning)


def has_own_time(about: ChunkMetadata) -> bool:
    """Whether the time of a chunk is its own; that of an import without ``occurred_at`` is the time of the import."""
    return about.occurred_at is not None or about.origin not in ("import", "web")


def of_one_stream(later: ChunkMetadata, earlier: ChunkMetadata) -> bool:
    """Whether two chunks near in time may follow each other: one conversation, or one author outside of any.

    What was imported without times of its own follows only what came from the same file or address.
    """
    if later.conversation_id != earlier.conversation_id:
        return False
    if not (has_own_time(later) and has_own_time(earlier)):
        path = later.provenance.get("path")
        return path is not None and path == earlier.provenance.get("path")
    return later.conversation_id is not None or _author(later) == _author(earlier)


def _author(about: ChunkMetadata) -> tuple[object, ...]:
    return (about.origin, about.source, about.extra.get("author"), about.extra.get("speaker"))


When = str | datetime | Callable[[int], "str | datetime | None"]
"""A time, or a function from a character position of the text to the time when that was said."""


class LinkFinder(Protocol):
    """Looks for what a chunk replaces or contradicts, within the transaction that stores it."""

    cases: list[str]  # of the review queue, that were opened
    replaced: list[str]  # because the text says so

    def begin(self, texts: Sequence[str]) -> None:
        """Called with the contents of the chunks, before the transaction."""
        ...

    def links_for(self, chunk: Chunk) -> list[ChunkLinks]:
        """Further links of a chunk that is about to be stored."""
        ...

    def done(self) -> None:
        """Called after the last chunk, before the commit."""
        ...


@dataclass(frozen=True)
class RememberResult:
    """What one ``remember`` stored; ``print`` shows it in a line or two.

    Attributes:
        chunk_ids: every chunk of the text, in order, those stored before included.
        created: how many of them are new.
        duplicates: ids of those stored before, word for word, in the same conversation.
        tokens: o200k tokens of the new ones.
        secrets: what looks like a key or password, and whether it was hidden; false when there is none.
        replaced: ids of those that the text replaced, as asked or because it says so.
        proposed: cases of the review queue that it opened: what it may replace or contradict.
        not_stored: how many of ``duplicates`` are stored as often as ``ingest.max_similar`` allows, in other words or
            conversations too.
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
        said = f"remembered {_amount(self.created, 'chunk')}, {_amount(self.tokens, 'token')}"
        if self.duplicates:
            said += f"; {_amount(len(self.duplicates), 'chunk')} already known"
        if self.not_stored:
            said += f", of which {self.not_stored:,} said as often as ingest.max_similar allows"
        said += f": {ids}"
        if self.replaced:
            said += f"; replaced {', '.join(self.replaced)}"
        if self.proposed:
            said += f"; to review: {', '.join(self.proposed)}"
        return f"{said}\n{self.secrets}" if self.secrets else said


@dataclass(frozen=True)
class AnalysedText:
    """A text ready to be stored: what is stored of it, its chunks, and the headings that each of them stands below."""

    screened: Screened
    pieces: list[ChunkResult]
    headings: list[list[str]]


def analyse(
    text: str, sizes: IngestConfig, secrets: SecretsConfig, action: SecretAction | None = None
) -> AnalysedText:
    """Screen a text for secrets and cut it into chunks; asks no store.

    Args:
        text: not empty, and within ``sizes.max_content_bytes``.
        sizes: of the chunks.
        secrets, action: how to handle secrets; ``action`` None: as configured.

    Raises:
        InvalidChunk: there is nothing to remember, it is too long, or there is a secret and secrets are refused.
    """
    text = _checked_text(text, sizes.max_content_bytes)
    # The whole text at once, since cutting could split a private key.
    screened = screen(text, secrets, action)
    engine = _engine(
        sizes.min_tokens,
        sizes.max_tokens,
        target_tokens=sizes.target_tokens,
        overlap_tokens=sizes.overlap_tokens,
    )
    pieces = engine.chunk(screened.text)
    above: list[list[str]] = [[]]
    if len(pieces) > 1:
        above = headings_at(screened.text, [piece.start + piece.overlap for piece in pieces])
    return AnalysedText(screened, pieces, above)


def _amount(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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
    expires: str | datetime | None = None,
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
        store: where to.
        text: at most ``ingest.max_content_bytes`` bytes of UTF-8.
        conversation_id: the conversation it belongs to; None for none.
        tags: words to find it by; a single text is one tag.
        confidence: 0-1.
        chunk_type: preference, fact, pattern, decision, note or a registered type; None detects it per chunk.
        source: its origin: interaction, import, derived, …
        occurred_at: when it was said, if that is not now; for a text that spans time, a function from a
            character position to the time there.
        metadata: further fields for every chunk, kept in ``metadata.extra``.
        provenance: further facts about the origin, such as a path.
        secrets: ``redact`` (``[redacted:RULE]`` is stored in place of a key or password), ``keep`` or ``refuse``; None:
            ``config.secrets.action``.
        progress: called after each chunk with (done, total).
        replaces: ids of chunks that the text replaces (``ChunkStore.supersede``): of a text of several chunks, the
            first one does.
        origin: how it came: person, agent, tool, import or web; None: what ``source`` stands for.
        trust: quarantined, untrusted, ordinary or trusted; None: as configured for the origin.
        expires, ttl: from when on it is gone for everything that reads: a time, or how long it is kept (seconds,
            ``30d``); not both.
        again: store a text however often it is stored already in nearly the same words (``ingest.max_similar``).
        finder: looks for what the text replaces or contradicts.
        config: settings; None takes the store's.

    Raises:
        InvalidChunk: there is nothing to remember, or an argument is wrong, or there is a secret and secrets are
            refused. Nothing was changed.
        InputError: ``secrets`` is not one of the three.
        NotFoundError, ConflictError: a chunk to replace is not there, or was replaced already; nothing was changed.
        StorageError: it could not be written; nothing was changed.
    """
    settings = config or store.config
    if provenance is not None and not isinstance(provenance, Mapping):
        raise InvalidChunk(f"provenance must be a dict, not {type(provenance).__name__}")
    analysed = analyse(text, settings.ingest, settings.secrets, secrets)
    screened, pieces = analysed.screened, analysed.pieces
    tags, more = check_tags(tags), Screened("")
    if metadata or provenance or tags:
        (metadata, provenance, tags), more = screen_data(
            (metadata, provenance, tags), settings.secrets, secrets, where="what is stored with the text"
        )
    spoken_at = occurred_at if callable(occurred_at) else None
    fields, extra = given_fields(
        metadata,
        (
            ("type", chunk_type),
            ("conversation_id", conversation_id),
            ("tags", tags),
            ("confidence", check_confidence(confidence)),
            ("source", check_text(source, "source")),
            ("occurred_at", None if spoken_at else occurred_at),
            ("provenance", provenance or None),
            ("origin", origin),
            ("trust", trust),
            ("expires_at", expiry(expires, ttl, store.clock())),
        ),
    )
    if "type" in fields:
        store.types.check_chunk(fields["type"], extra)
    former = check_chunk_ids(replaces) if replaces else []
    linker = AutoLinker(store, settings.ingest)
    chunk_ids: list[str] = []
    new: list[Chunk] = []
    known: list[str] = []
    often = 0
    if finder is not None:
        finder.begin(list(map(attrgetter("content"), pieces)))
    with store.batch():
        for piece, headings in zip(pieces, analysed.headings, strict=True):
            if spoken_at is not None:
                said_at = spoken_at(screened.original(piece.start + piece.overlap))
                fields["occurred_at"] = None if said_at is None else check_time(said_at, "occurred_at")
            same = store.find_same(piece.content, fields.get("conversation_id"))
            if same is not None and _out_of_date(store, same, former, fields.get("occurred_at")):
                same = None  # it holds again, or is stated anew: a statement of its own
            if same is None and not again and not former:
                same = _said_often(store, piece.content, settings.ingest.max_similar)
                often += same is not None
            if same is None:
                place = provenance_of(piece, len(pieces), headings, fields.get("provenance"))
                new.append(store_piece(store, linker, piece, place, fields, extra, finder=finder))
                chunk_ids.append(new[-1].id)
            else:
                known.append(same)
                chunk_ids.append(same)
                _said_again(store, same, fields)
            if progress is not None:
                progress(piece.index + 1, len(pieces))
        for old_id in dict.fromkeys(former):
            store.supersede(old_id, chunk_ids[0])
        if finder is not None:
            finder.done()
    for chunk_id in known:  # after the commit: a failed batch must change nothing
        store.note_repetition(chunk_id)
    report = SecretsFound()
    if screened.found or more.found:
        found = Screened("", [*screened.found, *more.found], screened.hidden or more.hidden)
        store.on_secret(chunk_ids[0], found)
        report = found.report()
    return RememberResult(
        chunk_ids=list(dict.fromkeys(chunk_ids)),
        created=len(new),
        duplicates=list(dict.fromkeys(known)),
        tokens=sum(map(attrgetter("tokens"), new)),
        secrets=report,
        replaced=list(dict.fromkeys([*former, *(finder.replaced if finder is not None else ())])),
        proposed=finder.cases if finder is not None else [],
        not_stored=often,
    )


def _said_again(store: ChunkStore, same: str, fields: Mapping[str, Any]) -> None:
    """Let what was said again be trusted as far, and kept as long, as the better of the two ways in would have it."""
    (former,) = store.summaries([same])
    how = fields.get("origin") or default_origin(fields["source"])
    level = fields.get("trust") or store.trust_levels[how]
    changed: dict[str, Any] = {}
    if rank(level) > rank(former.trust):
        changed = {"origin": how, "trust": level}
    until = fields.get("expires_at")
    if former.expires_at is not None and (until is None or until > former.expires_at):
        changed["expires_at"] = until
    if changed:
        store.update_chunk(same, metadata=changed)


def _said_often(store: ChunkStore, content: str, limit: int) -> str | None:
    """The newest chunk that says the same but for case, space and punctuation, where ``limit`` of them hold."""
    if not limit:
        return None
    alike = store.find_normalised(content, limit + 1)
    if len(alike) < limit:
        return None
    holding = [one.id for one in store.summaries(alike) if one.superseded_by is None]
    return holding[0] if len(holding) >= limit else None


def _out_of_date(store: ChunkStore, same: str, former: Sequence[str], said: str | None) -> bool:
    """Whether a chunk with the words of a new statement was out of date when that was said.

    Raises:
        InvalidChunk: the statement is to replace this chunk.
    """
    if same in former:
        raise InvalidChunk(
            f"{same} says the same already, word for word: there is nothing to replace",
            hint="give the new text, or leave out replaces",
        )
    said = said or format_time(store.clock())
    return any(
        one.metadata.superseded_by and (former or (one.metadata.valid_to or "") < said)
        for one in store.get_many([same]).values()
    )


def _checked_text(text: object, limit: int) -> str:
    if not isinstance(text, str):
        remedy = "decode it first: data.decode('utf-8')" if isinstance(text, bytes | bytearray) else None
        raise InvalidChunk(f"the text to remember must be str, not {type(text).__name__}", hint=remedy)
    if not text.strip():
        raise InvalidChunk("there is nothing to remember: the text is empty")
    # Counting characters first: a text of many gigabytes is refused without encoding it.
    if len(text) > limit or len(check_content(text).encode()) > limit:
        raise InvalidChunk(
            f"content of {len(text):,} characters is larger than the {limit:,} bytes that one remember takes",
            hint="split it, or raise ingest.max_content_bytes",
        )
    return text


def provenance_of(
    piece: ChunkResult, parts: int, headings: Sequence[str], provenance: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The provenance of one chunk of a text: its place there, beside what is said of the whole text."""
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
    provenance: Mapping[str, Any],
    fields: Mapping[str, Any],
    extra: Mapping[str, Any],
    links: Sequence[ChunkLinks] = (),
    finder: LinkFinder | None = None,
) -> Chunk:
    """Store one piece of a text with its automatic links, and further ones to chunks that exist.

    Args:
        provenance: from ``provenance_of``.
        fields, extra: from ``given_fields``.
    """
    own = {"type": piece.type, **fields, "tokens": piece.tokens, "provenance": dict(provenance)}
    now = store.clock()
    chunk = store.draft(piece.content, own, extra, now)
    chunk.links = [*linker.links_for(chunk), *links]
    if finder is not None:
        chunk.links += finder.links_for(chunk)
    return store.add(chunk)


class RememberOperation:
    """Stores content as memory, chunked and linked: :func:`remember` with its answer as a dictionary.

    Args:
        store: where to.
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
        expires: str | datetime | None = None,
        ttl: Ttl | None = None,
    ) -> dict[str, Any]:
        """As :func:`remember`, with the answer and the failures as a dictionary.

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
