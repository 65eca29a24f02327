"""Applies the changes of single documents to the store; a dry run only counts what would be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rlm_mem.chunk import SUPERSEDES, Chunk, ChunkLinks, format_time
from rlm_mem.config import stored_path
from rlm_mem.ingest.batch_index import BatchIndex
from rlm_mem.ingest.linking import AutoLinker
from rlm_mem.ingest.remember import store_piece
from rlm_mem.interchange.documents import (
    ChangedDocument,
    DocumentReader,
    DocumentText,
    piece_digest,
)
from rlm_mem.interchange.folder_links import headings_in, references_in
from rlm_mem.interchange.folder_names import FolderName
from rlm_mem.interchange.folder_plan import FileChange, align
from rlm_mem.interchange.folder_record import FileEntry, StoredPiece
from rlm_mem.interchange.formats.notes import day_in_name
from rlm_mem.interchange.reading import clean
from rlm_mem.interchange.records import ImportProblem, conversation_of
from rlm_mem.interchange.report import FolderReport
from rlm_mem.store.core.chunk_store import ChunkStore

MAX_LISTED = 10_000
"""Maximum number of chunk ids in a report."""
_AGAIN = (
    "what was erased of it is remembered again where it is still in the file, which was changed: take it out of the "
    "file, and erase it again"
)
_POSITION_FIELDS = frozenset({"path", "title", "span", "overlap", "headings", "part", "parts"})


class DocumentWriter:
    """Applies the changes of single documents of a folder.

    Args:
        known: its names in the memory.
        reader: reads its files, with the options of the sync.

    Attributes:
        report: counts what is done; the caller starts a new one for each transaction.
        recorded: ids of the chunks in the record of the folder.
        created: ids of the first new chunks.
    """

    def __init__(
        self, store: ChunkStore, known: FolderName, reader: DocumentReader, report: FolderReport
    ) -> None:
        self.report = report
        self.recorded: set[str] = set()
        self.created: list[str] = []
        self._store = store
        self._known, self._reader = known, reader
        self._dry_run = report.dry_run
        self._linker = AutoLinker(store)
        self._index = BatchIndex(store)
        self._quick_linker = AutoLinker(store, batch=self._index)
        self._planned: dict[str, Chunk] = {}  # archived chunks that a dry run would restore
        self._conversations: set[str] | None = None

    def apply(self, document: ChangedDocument) -> FileEntry | None:
        """Apply a change; return the new record of the file."""
        change, former = document.change, document.change.former
        if change.path is None:
            return self._archive_file(former) if former is not None else None
        if document.refused is not None:
            self.report.refused.append(ImportProblem(change.path, document.refused))
            self.report.failed.append(clean(change.path))
            return former if former is None or former.archived else self._archive_file(former)
        if former is not None and former.archived:
            for chunk_id in former.with_it:
                self._restore(chunk_id)
        if document.text is None:
            assert former is not None
            if former.path != change.path:
                for chunk in self._stored([piece.id for piece in (*former.pieces, *former.former)]).values():
                    self._rename_chunk(chunk, change.path)
            self.report.file(change, touched=True)
            return replace(former, path=change.path, archived=False, with_it=())
        known = former or self._adopted(change.path)
        made, touched = self._merged(document.text, change, known, document.drafts)
        self.report.file(change, touched=touched, adopted=former is None and known is not None)
        return made

    @contextmanager
    def linking(self, documents: Sequence[ChangedDocument]) -> Iterator[None]:
        """Link the chunks of a transaction; in memory if it only adds chunks of new files."""
        if any(document.change.former or self._may_have_chunks(document.change) for document in documents):
            yield
            return
        drafts: list[Chunk] = []
        digests: dict[str, str] = {}
        for document in documents:
            document.draft(self._store)
            drafts += document.drafts.values()
            digests |= {key[0]: one.normalised for key, one in document.text.ahead()} if document.text else {}
        with self._index.held(drafts, digests):
            yield

    def _may_have_chunks(self, change: FileChange) -> bool:
        """Return whether the store may have chunks of a file that has no record."""
        known = self._known_conversations()
        return change.path is not None and not known.isdisjoint(self._conversations_of(change.path))

    def _known_conversations(self) -> set[str]:
        """Return the conversations that the store had before this sync."""
        if self._conversations is None:
            found = self._store.backend.queries.conversations(self._store.namespace, None)
            self._conversations = {one.id for one in found}
        return self._conversations

    def _conversations_of(self, path: str) -> Iterable[str]:
        """Return the possible conversations of the chunks of a file without a record."""
        own, here = self._reader.conversation(path), f"{self._known.root}/{path}"
        if self._known.place_is_of_another_machine:
            return [own]  # those named by the place are of the other folder
        places = (str(self._reader.folder.path / path), here, stored_path(here))
        return dict.fromkeys([own, *map(conversation_of, places)])

    def _archive_file(self, entry: FileEntry) -> FileEntry:
        """Archive the chunks of a removed file; return its record."""
        archived = self._archive(piece.id for piece in (*entry.pieces, *entry.former))
        self.report.archived.append(clean(entry.path))
        return replace(entry, archived=True, with_it=archived)

    def _archive(self, chunk_ids: Iterable[str]) -> tuple[str, ...]:
        """Archive the chunks that are stored; return their ids."""
        archived = tuple(one for one in dict.fromkeys(chunk_ids) if self._archive_chunk(one))
        self.report.chunks_archived += len(archived)
        return archived

    def _archive_chunk(self, chunk_id: str) -> bool:
        if self._dry_run:
            return chunk_id in self._planned or self._store.exists(chunk_id)
        return self._store.delete_chunk(chunk_id)

    def _restore(self, chunk_id: str) -> Chunk | None:
        """Restore an archived chunk; None if it is not in the archive."""
        if self._dry_run:
            restored = self._store.get_archived(chunk_id)
            if restored is not None:
                self._planned[chunk_id] = restored
        else:
            restored = self._store.restore_chunk(chunk_id)
        self.report.chunks_restored += restored is not None
        return restored

    def _stored(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Return the chunks that are stored, including those restored by this sync."""
        found = self._store.get_many(chunk_ids) if chunk_ids else {}
        return found | {one: self._planned[one] for one in chunk_ids if one in self._planned}

    def _rename_chunk(self, chunk: Chunk, path: str) -> None:
        about = chunk.metadata
        origin = {**about.provenance, "path": clean(path)}
        wanted = {"provenance": origin, "conversation_id": self._reader.conversation(path)}
        day = day_in_name(path)
        if day is not None and about.occurred_at == day_in_name(str(about.provenance.get("path"))):
            wanted["occurred_at"] = day
        self._update(chunk, wanted, chunk.tags)

    def _update(self, chunk: Chunk, metadata: Mapping[str, Any], tags: Sequence[str]) -> None:
        if not self._dry_run:
            secrets = self._reader.options.secrets
            changed = self._store.update_chunk(chunk.id, metadata=metadata, tags=tags, secrets=secrets)
            if changed is None or changed.revision == chunk.revision:
                return
        self.report.chunks_updated += 1

    def _adopted(self, path: str) -> FileEntry | None:
        """Return a record for a file that was stored without one: its chunks are found by their conversation."""
        as_given = str(self._reader.folder.path / path)
        for conversation in self._conversations_of(path):
            if conversation not in self._known_conversations():
                continue
            pieces: dict[str, StoredPiece] = {}
            for chunk in self._store.iter_chunks(conversation_id=conversation):
                about = chunk.metadata
                recorded_path = about.provenance.get("path")
                is_of_file = recorded_path in (clean(path), as_given, f"{self._known.root}/{path}")
                if chunk.id in self.recorded:
                    continue  # recorded for a file under another name
                if about.source == "import" and about.superseded_by is None and is_of_file:
                    digest = piece_digest(chunk.content)
                    pieces.setdefault(digest, StoredPiece(chunk.id, digest))
            if pieces:
                return FileEntry(path, "", tuple(pieces.values()))
        return None

    def _merged(
        self, text: DocumentText, change: FileChange, former: FileEntry | None, drafts: Mapping[int, Chunk]
    ) -> tuple[FileEntry, bool]:
        """Store a text in place of its former state; return its record, and whether anything was changed."""
        assert change.path is not None
        old = former.pieces if former else ()
        earlier = {piece.digest: piece.id for piece in former.former} if former else {}
        chunks = self._stored([piece.id for piece in old])
        steps = align([piece.digest for piece in old], [digest for digest, _ in text.pieces])
        before = dict(vars(self.report))
        pieces: list[StoredPiece] = []
        superseded: list[StoredPiece] = []
        for place, (digest, number) in enumerate(text.pieces):
            if place in steps.kept:
                piece = old[steps.kept[place]]
                if piece.id in chunks:  # a chunk that was deleted in the memory is not restored
                    self._update_position(chunks[piece.id], text, number, former)
                pieces.append(piece)
                continue
            replaced = [old[one] for one in steps.replaced.get(place, ())]
            replaced_chunks = [chunks[one.id] for one in replaced if one.id in chunks]
            superseded_ids = [chunk.id for chunk in replaced_chunks if chunk.metadata.superseded_by is None]
            if number in drafts:
                chunk_id = self._store_new(text, number, drafts[number])
            else:
                chunk_id = self._store_replacement(text, number, earlier.get(digest), superseded_ids, former)
            pieces.append(StoredPiece(chunk_id, digest))
            superseded += replaced
            self.report.chunks_superseded += len(superseded_ids)
        removed = [old[place] for place in steps.removed]
        self._archive(piece.id for piece in removed)
        superseded += removed
        used = {piece.id for piece in pieces}
        kept = [piece for piece in (*(former.former if former else ()), *superseded) if piece.id not in used]
        self.report.found(text.analysed.text.screened)
        if text.notice:
            self.report.notices.append(ImportProblem(clean(change.path), text.notice))
        if former is not None and former.erased and any(piece not in old for piece in pieces):
            self.report.notices.append(ImportProblem(clean(change.path), _AGAIN))
        texts = [
            (piece.id, text.new_text(number)) for piece, (_, number) in zip(pieces, text.pieces, strict=True)
        ]
        made = FileEntry(
            change.path,
            change.digest,
            tuple(pieces),
            tuple(dict.fromkeys(kept)),
            tags=text.tags,
            title=text.title,
            aliases=text.aliases,
            references=references_in(texts, former.references if former else ()),
            headings=headings_in(texts),
        )
        counted = (name for name in before if name.startswith("chunks_"))
        return made, any(before[name] != getattr(self.report, name) for name in counted)

    def _update_position(
        self, chunk: Chunk, text: DocumentText, number: int, former: FileEntry | None
    ) -> None:
        about = chunk.metadata
        others = {name: value for name, value in about.provenance.items() if name not in _POSITION_FIELDS}
        _, fields = text.ready.pieces[number]
        origin, conversation = {**others, **fields["provenance"]}, fields["conversation_id"]
        extra = dict(text.ready.extra)
        if former is not None and former.title and not text.title:
            extra["title"] = None
        dropped = set(former.tags if former else ()).difference(text.tags)
        tags = list(dict.fromkeys([*(tag for tag in chunk.tags if tag not in dropped), *text.tags]))
        if (about.provenance, about.conversation_id, chunk.tags) != (origin, conversation, tags) or any(
            about.extra.get(name) != value for name, value in extra.items()
        ):
            self._update(chunk, {"provenance": origin, "conversation_id": conversation, **extra}, tags)

    def _store_replacement(
        self,
        text: DocumentText,
        number: int,
        earlier: str | None,
        olds: Sequence[str],
        former: FileEntry | None,
    ) -> str:
        """Store a piece that replaces others; return its chunk id.

        A former chunk with the same text is restored, unless a later one replaced it: those follow each other in time.
        With ``branches`` it holds again, too, so that branches that take turns leave no copies.
        """
        now = format_time(self._store.clock())
        reason = f"{text.ready.pieces[number][1]['provenance']['path']} was changed"
        again = None if earlier is None or former is None else self._again(earlier, former)
        if again is not None:
            self._update_position(again, text, number, former)
            for old in olds if not self._dry_run else ():
                self._store.supersede(old, again.id, reason, force=True)
                self._store.update_chunk(
                    old, metadata={"valid_to": now}
                )  # it held after what is older than it
            return again.id
        return self._store_new(
            text, number, None, [ChunkLinks(old, SUPERSEDES, 1.0, now, reason) for old in olds]
        )

    def _again(self, chunk_id: str, former: FileEntry) -> Chunk | None:
        """Return the chunk of a former state of a file as one that holds; None if it has to be stored again."""
        archived = self._store.get_archived(chunk_id)
        if archived is not None:
            is_free = archived.metadata.superseded_by is None
            return self._restore(chunk_id) or archived if is_free else None
        chunk = self._stored([chunk_id]).get(chunk_id) if self._reader.options.branches else None
        by = None if chunk is None else chunk.metadata.superseded_by
        if by is None:
            return chunk
        if all(by != piece.id for piece in (*former.pieces, *former.former)):
            return None  # a person replaced it
        self.report.chunks_restored += 1
        if self._dry_run:
            return chunk
        self._store.remove_link(by, chunk_id, SUPERSEDES)
        return self._store.get_chunk(chunk_id, track=False)

    def _store_new(
        self, text: DocumentText, number: int, draft: Chunk | None, links: Sequence[ChunkLinks] = ()
    ) -> str:
        """Store a piece as a new chunk, ``draft`` if it exists already; return its id, empty in a dry run."""
        piece, fields = text.ready.pieces[number]
        self.report.chunks_created += 1
        self.report.tokens += piece.tokens
        if self._dry_run:
            return ""
        chunk = store_piece(
            self._store, self._linker if draft is None else self._quick_linker, piece,
            fields, text.ready.extra, links, draft=draft,
        )  # fmt: skip
        if len(self.created) < MAX_LISTED:
            self.created.append(chunk.id)
        return chunk.id
