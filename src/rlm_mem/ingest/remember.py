"""REMEMBER: text of any length becomes typed, linked chunks in one commit (docs/spec/operations.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import (
    Chunk,
    check_confidence,
    check_content,
    check_tags,
    check_text,
    check_time,
    format_time,
)
from rlm_mem.config import Config, SecretAction
from rlm_mem.errors import InvalidChunk, RlmMemError
from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.telemetry import ObservedOperation, count, observed
from rlm_mem.text.secrets import Screened, SecretsFound, screen, screen_data

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["Progress", "RememberOperation", "RememberResult", "When", "remember"]

Progress = Callable[[int, int], None]
"""Called with (chunks done, chunks in all)."""

When = str | datetime | Callable[[int], "str | datetime | None"]
"""A time, or a function from a character position of the text to the time when that was said."""


@dataclass(frozen=True)
class RememberResult:
    """What one ``remember`` stored; ``print`` shows it in a line or two.

    Attributes:
        chunk_ids: every chunk that holds the text, in its order; those that were there already are among them.
        created: how many of them are new.
        duplicates: ids of those that were there already, word for word, in the same conversation.
        tokens: o200k tokens of the new ones.
        secrets: what looks like a key or password, and whether it was hidden; false when there is none.
    """

    chunk_ids: list[str]
    created: int
    duplicates: list[str]
    tokens: int
    secrets: SecretsFound = field(default_factory=SecretsFound)

    def __str__(self) -> str:
        ids = ", ".join(self.chunk_ids[:5]) + (", …" if len(self.chunk_ids) > 5 else "")
        said = f"remembered {_amount(self.created, 'chunk')}, {_amount(self.tokens, 'token')}"
        if self.duplicates:
            said += f"; {_amount(len(self.duplicates), 'chunk')} already known"
        said += f": {ids}"
        return f"{said}\n{self.secrets}" if self.secrets else said


def _amount(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass
class _Said:
    """What one call brought, checked."""

    conversation_id: str | None
    tags: list[str]
    confidence: float
    chunk_type: str | None
    source: str
    occurred_at: When | None
    metadata: Mapping[str, Any] | None
    provenance: dict[str, Any]


@dataclass
class _Outcome:
    chunk_ids: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    created: int = 0
    tokens: int = 0


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
    config: Config | None = None,
) -> RememberResult:
    """Store a text with automatic chunking, typing and linking, all or nothing.

    A chunk that its conversation holds already, word for word, is not stored again: its id is returned and the
    repetition is recorded. Each chunk's ``metadata.provenance`` tells where it comes from: ``span`` (characters
    of the text), ``overlap`` (how many of its first characters repeat the chunk before), ``part`` of ``parts``.

    Args:
        store: where to.
        text: at most ``ingest.max_content_bytes`` bytes of UTF-8.
        conversation_id: the conversation it belongs to; None for none.
        tags: words to find it by; a single text is one tag.
        confidence: 0-1.
        chunk_type: preference, fact, pattern, decision, note or a registered type; None detects it per chunk.
        source: how it came to be: interaction, import, derived, …
        occurred_at: when it was said, if that is not now; for a text that spans time, a function from a
            character position to the time there.
        metadata: further fields for every chunk, kept in ``metadata.extra``.
        provenance: further facts about the origin, such as a path.
        secrets: ``redact`` (``[redacted:RULE]`` is stored in place of a key or password), ``keep`` or ``refuse``; None:
            ``config.secrets.action``.
        progress: called after each chunk with (done, total).
        config: settings; None takes the store's.

    Raises:
        InvalidChunk: there is nothing to remember, or an argument is wrong, or there is a secret and secrets are
            refused. Nothing was changed.
        InputError: ``secrets`` is none of the three.
        StorageError: it could not be written; nothing was changed.
    """
    return _Remembering(store, config or store.config, secrets).remember(
        _checked_text(text, (config or store.config).ingest.max_content_bytes),
        _checked(
            store, conversation_id, tags, confidence, chunk_type, source, occurred_at, metadata, provenance
        ),
        progress,
    )


def _checked_text(text: object, limit: int) -> str:
    if isinstance(text, bytes | bytearray):
        raise InvalidChunk(
            f"the text to remember must be str, not {type(text).__name__}",
            hint="decode it first: data.decode('utf-8')",
        )
    if not isinstance(text, str):
        raise InvalidChunk(f"the text to remember must be str, not {type(text).__name__}")
    if not text.strip():
        raise InvalidChunk("there is nothing to remember: the text is empty")
    # Counting characters first: a text of many gigabytes is refused without encoding it.
    if len(text) > limit or len(check_content(text).encode()) > limit:
        raise InvalidChunk(
            f"content of {len(text):,} characters is larger than the {limit:,} bytes that one remember takes",
            hint="split it, or raise ingest.max_content_bytes",
        )
    return text


def _checked(
    store: ChunkStore,
    conversation_id: object,
    tags: object,
    confidence: object,
    chunk_type: str | None,
    source: object,
    occurred_at: Any,
    metadata: Any,
    provenance: Any,
) -> _Said:
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidChunk(f"metadata must be a dict, not {type(metadata).__name__}")
    if provenance is not None and not isinstance(provenance, Mapping):
        raise InvalidChunk(f"provenance must be a dict, not {type(provenance).__name__}")
    if occurred_at is not None and not callable(occurred_at):
        occurred_at = check_time(occurred_at, "occurred_at")
    if chunk_type is not None:
        store.types.check_chunk(chunk_type, metadata or {})
    return _Said(
        conversation_id=None if conversation_id is None else check_text(conversation_id, "conversation_id"),
        tags=check_tags(tags),
        confidence=check_confidence(confidence),
        chunk_type=chunk_type,
        source=check_text(source, "source"),
        occurred_at=occurred_at,
        metadata=metadata,
        provenance=dict(provenance or {}),
    )


class _Remembering:
    """One call."""

    def __init__(self, store: ChunkStore, config: Config, secrets: SecretAction | None) -> None:
        self._store = store
        self._config = config.ingest
        self._screening = config.secrets
        self._action = secrets
        self._linker = AutoLinker(store, self._config)

    def remember(self, text: str, said: _Said, progress: Progress | None) -> RememberResult:
        # The whole text at once, since a private key may be cut in two.
        screened = screen(text, self._screening, self._action)
        fields = (said.metadata, said.provenance, said.tags)
        (said.metadata, said.provenance, said.tags), more = screen_data(
            fields, self._screening, self._action, where="what is stored with the text"
        )
        if screened.hidden and callable(said.occurred_at):
            moment = said.occurred_at
            said.occurred_at = lambda position: moment(screened.original(position))
        outcome = self._store_all(self._pieces(screened.text, said), said, progress)
        found = Screened("", [*screened.found, *more.found], screened.hidden or more.hidden)
        if found.found:
            self._store.on_secret(outcome.chunk_ids[0], found)
        return RememberResult(
            chunk_ids=list(dict.fromkeys(outcome.chunk_ids)),
            created=outcome.created,
            duplicates=list(dict.fromkeys(outcome.duplicates)),
            tokens=outcome.tokens,
            secrets=found.report(),
        )

    def _pieces(self, text: str, said: _Said) -> list[ChunkResult]:
        engine = ChunkingEngine(
            self._config.min_tokens,
            self._config.max_tokens,
            target_tokens=self._config.target_tokens,
            overlap_tokens=self._config.overlap_tokens,
        )
        return engine.chunk(text, said.conversation_id, said.tags)

    def _store_all(self, pieces: list[ChunkResult], said: _Said, progress: Progress | None) -> _Outcome:
        outcome = _Outcome()
        with self._store.batch():
            for piece in pieces:
                known = self._store.find_same(piece.content, said.conversation_id)
                if known is None:
                    chunk = self._create(piece, len(pieces), said)
                    outcome.chunk_ids.append(chunk.id)
                    outcome.created += 1
                    outcome.tokens += chunk.tokens
                else:
                    outcome.chunk_ids.append(known)
                    outcome.duplicates.append(known)
                if progress is not None:
                    progress(piece.index + 1, len(pieces))
        for chunk_id in outcome.duplicates:  # after the commit: a failed batch must leave no trace
            self._store.note_repetition(chunk_id)
        return outcome

    def _create(self, piece: ChunkResult, parts: int, said: _Said) -> Chunk:
        own_start = piece.start + piece.overlap
        moment = said.occurred_at(own_start) if callable(said.occurred_at) else said.occurred_at
        occurred_at = None if moment is None else check_time(moment, "occurred_at")
        provenance: dict[str, Any] = {**said.provenance, "span": [piece.start, piece.end]}
        if piece.overlap:
            provenance["overlap"] = piece.overlap
        if parts > 1:
            provenance["part"], provenance["parts"] = piece.index + 1, parts
        links = self._linker.links_for(
            content=piece.content,
            at=occurred_at or format_time(self._store.clock()),
            conversation_id=said.conversation_id,
            tags=said.tags,
        )
        return self._store.create_chunk(
            piece.content,
            said.chunk_type or piece.type,
            metadata=said.metadata,
            links=links,
            tags=said.tags,
            confidence=said.confidence,
            conversation_id=said.conversation_id,
            tokens=piece.tokens,
            source=said.source,
            occurred_at=occurred_at,
            provenance=provenance,
            screened=True,  # the whole text was
            check_targets=False,  # every target was read from the index within this very transaction
        )


class RememberOperation:
    """Stores content as memory, chunked and linked: :func:`remember` with its answer as a dictionary.

    Args:
        store: where to.
        config: settings; None takes the store's.
        on_progress: called after each chunk, unless a call brings its own.
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
                config=self._config,
            )
        except RlmMemError as error:  # the documented contract: a sentence, no traceback
            return _failure(error)
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


def _failure(error: RlmMemError) -> dict[str, Any]:
    result: dict[str, Any] = {
        "success": False,
        "chunk_ids": [],
        "total_tokens": 0,
        "chunks_created": 0,
        "duplicates": [],
        "error": error.message,
    }
    if error.hint:
        result["hint"] = error.hint
    return result
