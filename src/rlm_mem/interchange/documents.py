"""Reads and analyses the text files of a folder for a sync, without the store; then makes them ready for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from rlm_mem.chunk import Chunk, content_hash
from rlm_mem.config import SecretAction
from rlm_mem.errors import InputError
from rlm_mem.ingest.filling import Analysed, AnalysisTask, analyse_text
from rlm_mem.ingest.remember import PreparedText, TextOptions, prepare
from rlm_mem.interchange.drawings import BROKEN, is_drawing, text_of_drawing
from rlm_mem.interchange.folder_plan import FileChange
from rlm_mem.interchange.folder_record import digest_of
from rlm_mem.interchange.formats.instructions import kind_in, read_agent_file
from rlm_mem.interchange.formats.notes import read_note
from rlm_mem.interchange.places import Entry, FolderPlace, Unreadable
from rlm_mem.interchange.reading import SourceFile, clean
from rlm_mem.interchange.records import ImportProblem, Note, conversation_of
from rlm_mem.merging import MERGE_CONFLICT, is_unmerged
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.preencoding import LocalTerms
from rlm_mem.store.core.records import surroundings
from rlm_mem.store.local.workers import called, can_fork
from rlm_mem.text.secrets import screen_data

_HEAD = 4096
_LOT = 8  # files per request to another process
_MIN_FOR_PROCESSES = 2_500_000  # bytes of text above which other processes pay off, although they load tables
_MIN_FOR_FORKS = 300_000  # the same for forks of this process, which have nothing to load


class FolderOptions(TypedDict, total=False):
    """Selects the files of a folder to sync, and how they are stored; see ``folders.sync_folder``."""

    patterns: Sequence[str] | str
    conversation_id: str | None
    tags: Sequence[str] | str | None
    confidence: float
    chunk_type: str | None
    occurred_at: str | None
    secrets: SecretAction | None
    trust: str | None
    again: bool
    known_as: str | None
    archive_all: bool
    dry_run: bool


@dataclass(frozen=True)
class SyncOptions:
    """How the text of files is stored, documented by ``folders.sync_folder``; the values apply to new chunks only.

    ``branches``: a text that comes back does so with another branch of a repository, rather than as a change in time.
    ``unrecorded``: what is done with a folder that has no record: ``ask`` refuses it if its documents are recorded of
    another folder that is not there, ``follow`` continues the record of one that was moved here.
    """

    conversation_id: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float = 0.7
    chunk_type: str | None = None
    occurred_at: str | None = None
    secrets: SecretAction | None = None
    trust: str | None = None
    again: bool = False
    branches: bool = False
    known_as: str | None = None
    unrecorded: Literal["new", "ask", "follow"] = "new"
    archive_all: bool = False


class DocumentText:
    """The text of a file, ready to be stored.

    Attributes:
        ready: its pieces with their fields.
        analysed: the same, with the segments of each piece.
        pieces: digest and number of each piece; only the first of equal pieces.
        tags, title, aliases: of its front matter. ``notice``: the problem with the front matter.
    """

    def __init__(self, ready: PreparedText, analysed: Analysed, aliases: Sequence[str], notice: str) -> None:
        self.ready, self.analysed, self.notice = ready, analysed, notice
        numbers: dict[str, int] = {}
        for piece, fields in ready.pieces:
            numbers.setdefault(piece_digest(piece.content), piece.index)
            origin = fields["provenance"]
            if origin.get("title") in origin.get("headings", ()):
                del origin["title"]  # the piece is found by its heading
        self.pieces = list(numbers.items())
        self.tags: tuple[str, ...] = tuple(ready.pieces[0][1]["tags"])
        self.title, self.aliases = str(ready.extra.get("title", "")), tuple(aliases)

    def ahead(self) -> Iterator[tuple[tuple[str, int, str], LocalTerms]]:
        """Yield the segments of each piece, with the values that determine them (``records.index_key``)."""
        for (piece, fields), segments in zip(self.ready.pieces, self.analysed.segments, strict=True):
            skipped = piece.overlap if piece.overlap < len(piece.content) else 0
            yield (piece.content, skipped, surroundings(fields["provenance"])), segments

    def new_text(self, number: int) -> str:
        """Return a piece without what it repeats of the one before."""
        piece, _ = self.ready.pieces[number]
        return piece.content[piece.overlap :]


@dataclass
class ChangedDocument:
    """A file change with the new text of the file; ``text`` is None if the content is unchanged."""

    change: FileChange
    entry: Entry | None = None
    text: DocumentText | None = None
    refused: str | None = None
    drafts: dict[int, Chunk] = field(default_factory=dict)

    def draft(self, store: ChunkStore) -> None:
        """Draft the chunks of all pieces; raises InputError."""
        if self.text is None:
            return
        for _, number in self.text.pieces:
            piece, fields = self.text.ready.pieces[number]
            self.drafts[number] = store.draft(piece.content, fields, self.text.ready.extra)

    @property
    def weight(self) -> int:
        """Maximum number of chunks that it writes."""
        former = self.change.former
        return max(len(self.text.pieces) if self.text else 0, len(former.pieces) if former else 0) + 1


class NotText(Unreadable):
    """A file has no content that can be remembered."""


def piece_digest(content: str) -> str:
    """Return a digest that identifies the text of a piece."""
    return content_hash(content)[:16]


class AnalysedDocument(msgspec.Struct, array_like=True):
    """The result of reading a file: its note, analysed, or why it is refused, or neither if its digest has changed.

    ``note`` is without its text. ``notice`` is the problem with its front matter.
    """

    note: Note | None = None
    analysed: Analysed | None = None
    notice: str = ""
    refused: str | None = None


def analyse_documents(given: str, items: Sequence[str]) -> list[AnalysedDocument]:
    """Do the work of ``DocumentReader.texts`` for some files, in this or another process."""
    # msgspec's decoder refuses names that are not valid Unicode
    reader = msgspec.convert(json.loads(given), type=DocumentReader)
    found = []
    for item in items:
        entry, digest = msgspec.convert(json.loads(item), type=tuple[Entry, str])
        try:
            found.append(reader.text(entry, digest))
        except (Unreadable, InputError) as error:
            found.append(AnalysedDocument(refused=str(error)))
    return found


class DocumentReader(msgspec.Struct, dict=True):
    """Reads the files of a folder.

    Attributes:
        path: of the folder. ``root``: the name under which it is recorded.
        options: how its files are stored. ``analysis``: how they are analysed.
    """

    path: str
    root: str
    options: SyncOptions
    analysis: AnalysisTask

    @cached_property
    def folder(self) -> FolderPlace:
        """The folder."""
        return FolderPlace(Path(self.path))

    def conversation(self, name: str) -> str:
        """Return the conversation of a file's chunks."""
        return self.options.conversation_id or conversation_of(f"{self.root}/{name}")

    def digests(self, entries: Iterable[Entry]) -> dict[str, str]:
        """Return the digests of the files that can be read as text, by name."""
        found: dict[str, str] = {}
        for entry in entries:
            with suppress(Unreadable):
                found[entry.name] = self.digest(entry)
        return found

    def digest(self, entry: Entry) -> str:
        """Return the digest of a text file; raises Unreadable."""
        data = self._data(entry)
        if b"\0" in data[:_HEAD] and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            raise NotText("not text in UTF-8")
        if not data.strip():
            raise NotText("empty")
        if data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            try:
                data.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise NotText("not text in UTF-8") from None
        if is_drawing(entry.name) and not (text := text_of_drawing(data)):
            if text is None:
                raise Unreadable(BROKEN)
            raise NotText("a drawing without text")
        if is_unmerged(data):
            raise Unreadable(f"{MERGE_CONFLICT}; until then its memories are kept unchanged")
        return digest_of(data)

    def _data(self, entry: Entry) -> bytes:
        most, data = self.analysis.ingest.max_content_bytes, b""
        if entry.size <= most:
            with self.folder.open(entry) as handle:
                data = handle.read(most + 1)
        if max(entry.size, len(data)) > most:
            raise NotText(f"larger than {most:,} bytes")
        return data

    def texts(self, files: Sequence[tuple[Entry, str]], processes: int) -> Iterator[AnalysedDocument]:
        """Read and analyse files, given with their digests, in this order; in several processes if that is faster."""
        given = json.dumps(msgspec.to_builtins(self))  # ASCII: a name may not be valid Unicode
        items = [json.dumps([msgspec.to_builtins(entry), digest]) for entry, digest in files]
        worth = _MIN_FOR_FORKS if can_fork() else _MIN_FOR_PROCESSES
        few = len(items) if sum(entry.size for entry, _ in files) >= worth else len(items) + 1
        return called(
            f"{__name__}:analyse_documents", given, items, list[AnalysedDocument],
            count=len(items), lot=_LOT, processes=processes, few=few,
        )  # fmt: skip

    def text(self, entry: Entry, digest: str) -> AnalysedDocument:
        """Return the note in a file, analysed; nothing if its digest has changed.

        Raises:
            Unreadable, InputError: it has no content that can be remembered.
        """
        data = self._data(entry)
        if digest_of(data) != digest:
            return AnalysedDocument()
        note, notice = self._note(entry, data)
        title = note.extra.get("title")

        def origin(headings: Sequence[str]) -> dict[str, Any]:
            return {"path": clean(note.where), **({} if title in headings else {"title": title})}

        analysed = analyse_text(
            self.analysis, note.text, self.options.secrets, origin, sections=note.sections
        )
        note.text = ""  # the pieces have it
        return AnalysedDocument(note, analysed, notice)

    def _note(self, entry: Entry, data: bytes) -> tuple[Note, str]:
        source = SourceFile(
            self.folder, entry, self.conversation(entry.name),
            max_text=self.analysis.ingest.max_content_bytes, data=data,
        )  # fmt: skip
        problem = ""
        kind = kind_in(source)
        for found in read_note(source) if kind is None else read_agent_file(source, kind):
            if isinstance(found, Note):
                return found, problem
            if isinstance(found, ImportProblem):
                problem = found.reason
        raise Unreadable(problem or "nothing to remember in it")


def ready_text(store: ChunkStore, found: AnalysedDocument, options: SyncOptions) -> DocumentText | None:
    """Return the text of a file that was read, ready to be stored; None if there is none. Raises InputError."""
    note, analysed = found.note, found.analysed
    if note is None or analysed is None:
        return None
    title = note.extra.get("title")
    given: TextOptions = {
        "chunk_type": options.chunk_type,
        "conversation_id": note.conversation_id,
        "tags": [*options.tags, *note.tags],
        "confidence": options.confidence,
        "source": "import",
        "trust": options.trust,
        "occurred_at": options.occurred_at or note.at,
        "metadata": note.extra,
        # With its title, so that each piece is found by it.
        "provenance": {"path": clean(note.where), **({"title": title} if title else {})},
        "secrets": options.secrets,
    }
    ready = prepare(store, analysed.text, store.config, given)
    where = "what is stored with the text"
    aliases, _ = screen_data(note.aliases, store.config.secrets, options.secrets, where=where)
    return DocumentText(ready, analysed, aliases, found.notice)
