"""RememberOperation: text becomes typed, linked chunks in one commit (docs/spec/operations.md, REMEMBER)."""

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
from rlm_mem.config import Config
from rlm_mem.errors import InvalidChunk, RlmMemError
from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.telemetry import Operation, count, observed
from rlm_mem.text.secrets import Screened, screen

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["Progress", "RememberOperation", "When"]

Progress = Callable[[int, int], None]
"""Called with (chunks done, chunks in all)."""

When = str | datetime | Callable[[int], "str | datetime | None"]
"""A time, or a function from a character position of the text to the time when that was said."""


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
    screened: bool = False  # the whole text was, and holds no secret


@dataclass
class _Outcome:
    chunk_ids: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    created: int = 0
    tokens: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "success": True,
            "chunk_ids": list(dict.fromkeys(self.chunk_ids)),
            "total_tokens": self.tokens,
            "chunks_created": self.created,
            "duplicates": list(dict.fromkeys(self.duplicates)),
        }


def _figures(current: Operation, result: dict[str, Any]) -> None:
    if not result["success"]:
        current.failed("refused")
        return
    current.set("rlm_mem.chunks", result["chunks_created"])
    count("rlm_mem.chunks.created", result["chunks_created"])
    count("rlm_mem.chunks.repeated", len(result["duplicates"]))


class RememberOperation:
    """Stores content as memory, chunked and linked.

    Args:
        store: where to.
        config: settings; None takes the store's.
        on_progress: called after each chunk, unless a call brings its own.
    """

    def __init__(
        self, store: ChunkStore, config: Config | None = None, on_progress: Progress | None = None
    ) -> None:
        self._store = store
        self._config = (config or store.config).ingest
        self._secrets = (config or store.config).secrets
        self._on_progress = on_progress
        self._linker = AutoLinker(store, self._config)

    @observed("remember", _figures)
    def remember(
        self,
        content: str,
        conversation_id: str | None = None,
        tags: Sequence[str] | None = None,
        confidence: float = 0.7,
        chunk_type: str | None = None,
        *,
        source: str = "interaction",
        occurred_at: When | None = None,
        metadata: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Store content as memory with automatic chunking, typing and linking, all or nothing.

        A chunk that its conversation holds already, word for word, is not stored again: its id is returned and the
        repetition is recorded. Each chunk's ``metadata.provenance`` tells where it comes from: ``span`` (characters
        of ``content``), ``overlap`` (how many of its first characters repeat the chunk before), ``part`` of ``parts``.

        Args:
            content: text, at most ``ingest.max_content_bytes`` bytes of UTF-8.
            conversation_id: the conversation it belongs to; None for none.
            tags: words to find it by.
            confidence: 0-1.
            chunk_type: preference, fact, pattern, decision, note or a registered type; None detects it per chunk.
            source: how it came to be: interaction, import, derived, …
            occurred_at: when it was said, if that is not now; for a text that spans time, a function from a
                character position to the time there.
            metadata: further fields for every chunk, kept in ``metadata.extra``.
            provenance: further facts about the origin, such as a path.
            progress: called after each chunk with (done, total).

        Returns:
            ``{"success": True, "chunk_ids": [str], "total_tokens": int, "chunks_created": int, "duplicates": [str]}``,
            the tokens being those of the chunks created, and ``"secrets": {rule: int}`` where ``config.secrets`` found
            any; or, when it cannot be stored, ``"success": False`` with
            ``"error"``, one sentence, and ``"hint"`` where there is a remedy. Then nothing was changed.
        """
        try:
            said = self._checked(
                conversation_id, tags, confidence, chunk_type, source, occurred_at, metadata, provenance
            )
            screened = self._screened(content)
            if screened.hidden and callable(said.occurred_at):
                moment = said.occurred_at
                said.occurred_at = lambda position: moment(screened.original(position))
            pieces = self._pieces(screened.text, said)
            said.screened = not screened.found
            outcome = self._store_all(pieces, said, progress or self._on_progress)
        except RlmMemError as error:  # the documented contract: a sentence, no traceback
            return _failure(error)
        result = outcome.as_dict()
        if screened.found:
            result["secrets"] = screened.counts()
        return result

    def _screened(self, content: object) -> Screened:
        """The whole text is screened, since a private key may be cut in two; a text refused later passes as it is."""
        if not isinstance(content, str) or len(content) > self._config.max_content_bytes:
            return Screened(content)  # type: ignore[arg-type]  # _pieces says what is wrong with it
        return screen(content, self._secrets)

    def _checked(
        self,
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
            self._store.types.check_chunk(chunk_type, metadata or {})
        return _Said(
            conversation_id=None
            if conversation_id is None
            else check_text(conversation_id, "conversation_id"),
            tags=check_tags(tags),
            confidence=check_confidence(confidence),
            chunk_type=chunk_type,
            source=check_text(source, "source"),
            occurred_at=occurred_at,
            metadata=metadata,
            provenance=dict(provenance or {}),
        )

    def _pieces(self, content: str, said: _Said) -> list[ChunkResult]:
        limit = self._config.max_content_bytes
        # Counting characters first: a text of many gigabytes is refused without encoding it.
        if isinstance(content, str) and (
            len(content) > limit or len(check_content(content).encode()) > limit
        ):
            raise InvalidChunk(
                f"content of {len(content):,} characters is larger than the {limit:,} bytes that one remember takes",
                hint="split it, or raise ingest.max_content_bytes",
            )
        engine = ChunkingEngine(
            self._config.min_tokens,
            self._config.max_tokens,
            target_tokens=self._config.target_tokens,
            overlap_tokens=self._config.overlap_tokens,
        )
        return engine.chunk(check_content(content), said.conversation_id, said.tags)

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
            screened=said.screened,
            check_targets=False,  # every target was read from the index within this very transaction
        )


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
