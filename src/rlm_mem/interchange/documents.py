"""Reads and analyses the text files of a folder for a sync; does not access the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from rlm_mem.chunk import Chunk, check_tags, content_hash
from rlm_mem.config import Config, IngestConfig, SecretAction, SecretsConfig
from rlm_mem.errors import InputError
from rlm_mem.ingest.chunking import AnalysedText, analyse
from rlm_mem.ingest.remember import provenance_of
from rlm_mem.interchange.drawings import BROKEN, is_drawing, text_of_drawing
from rlm_mem.interchange.folder_plan import FileChange
from rlm_mem.interchange.folder_record import digest_of
from rlm_mem.interchange.formats.instructions import kind_of, read_agent_file
from rlm_mem.interchange.formats.notes import read_note
from rlm_mem.interchange.places import Entry, FolderPlace, Unreadable
from rlm_mem.interchange.reading import SourceFile, clean
from rlm_mem.interchange.records import ImportProblem, Note, conversation_of
from rlm_mem.merging import MERGE_CONFLICT, is_unmerged
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.preencoding import LocalTerms, local_terms
from rlm_mem.store.core.records import surroundings
from rlm_mem.store.core.writer import given_fields
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


@dataclass
class DocumentText:
    """The text of a file, ready to be stored.

    Attributes:
        pieces: digest and number of each piece; only the first of equal pieces.
        fields, extra: of its chunks, from ``given_fields``.
        tags, title, aliases: of its front matter. ``notice``: the problem with the front matter.
    """

    analysed: AnalysedText
    pieces: list[tuple[str, int]]
    fields: dict[str, Any]
    extra: dict[str, Any]
    tags: tuple[str, ...]
    title: str
    aliases: tuple[str, ...]
    notice: str = ""

    def key(self, number: int) -> tuple[str, int, str]:
        """Return the values that determine a piece's segments: content, length of the repeated prefix, surroundings."""
        piece = self.analysed.pieces[number]
        skipped = piece.overlap if piece.overlap < len(piece.content) else 0
        return piece.content, skipped, surroundings(self.origin(number))

    def new_text(self, number: int) -> str:
        """Return a piece without what it repeats of the one before."""
        piece = self.analysed.pieces[number]
        return piece.content[piece.overlap :]

    def piece_fields(self, number: int) -> dict[str, Any]:
        """Return the fields of a piece."""
        piece = self.analysed.pieces[number]
        more = {"tokens": piece.tokens, "provenance": self.origin(number)}
        return {"type": piece.type, **self.fields, **more}

    def origin(self, number: int) -> dict[str, Any]:
        """Return the provenance of a piece."""
        analysed, origin = self.analysed, self.fields["provenance"]
        headings = analysed.headings[number]
        if self.title and self.title not in headings:
            origin = {**origin, "title": self.title}  # so that it can be found by its title
        return provenance_of(analysed.pieces[number], len(analysed.pieces), headings, origin)


@dataclass
class ChangedDocument:
    """A file change with the new text of the file; ``text`` is None if the content is unchanged."""

    change: FileChange
    entry: Entry | None = None
    text: DocumentText | None = None
    refused: str | None = None
    segments: list[LocalTerms] = field(default_factory=list)
    drafts: dict[int, Chunk] = field(default_factory=dict)

    def draft(self, store: ChunkStore) -> None:
        """Draft the chunks of all pieces; raises InputError."""
        if self.text is None:
            return
        pieces, extra = self.text.analysed.pieces, self.text.extra
        self.drafts = {
            number: store.draft(pieces[number].content, self.text.piece_fields(number), extra)
            for _, number in self.text.pieces
        }

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
    """The result of reading a file: its text, why it is refused, or neither if its digest has changed.

    ``segments`` are the terms of each piece, for the index of a brain folder.
    """

    text: DocumentText | None = None
    refused: str | None = None
    segments: list[LocalTerms] = []


class _Task(msgspec.Struct):
    """Parameters shared by all files of a sync."""

    path: str
    root: str
    options: SyncOptions
    ingest: IngestConfig
    secrets: SecretsConfig
    language: str | None


def analysed_documents(
    folder: FolderPlace,
    root: str,
    options: SyncOptions,
    config: Config,
    files: Sequence[tuple[Entry, str]],
    *,
    language: str | None,
) -> Iterator[AnalysedDocument]:
    """Read and analyse files, given with their digests, in this order; in several processes if that is faster.

    Args:
        language: of the analyser for segments; None: no segments.
    """  # fmt: skip
    task = _Task(str(folder.path), root, options, config.ingest, config.secrets, language)
    given = json.dumps(msgspec.to_builtins(task))  # ASCII: a name may not be valid Unicode
    items = [json.dumps([msgspec.to_builtins(entry), digest]) for entry, digest in files]
    worth = _MIN_FOR_FORKS if can_fork() else _MIN_FOR_PROCESSES
    few = len(items) if sum(entry.size for entry, _ in files) >= worth else len(items) + 1
    return called(
        f"{__name__}:analyse_documents", given, items, list[AnalysedDocument],
        count=len(items), lot=_LOT, processes=config.store.processes, few=few,
    )  # fmt: skip


def analyse_documents(task_json: str, items: Sequence[str]) -> list[AnalysedDocument]:
    """Do the work of ``analysed_documents`` for some files, in this or another process."""
    # msgspec's decoder refuses names that are not valid Unicode
    task = msgspec.convert(json.loads(task_json), type=_Task)
    config = Config(ingest=task.ingest, secrets=task.secrets)
    reader = DocumentReader(FolderPlace(Path(task.path)), task.root, task.options, config)
    found = []
    for item in items:
        entry, digest = msgspec.convert(json.loads(item), type=tuple[Entry, str])
        made = AnalysedDocument()
        try:
            made.text = text = reader.text(entry, digest)
            if text is not None and task.language is not None:
                made.segments = [local_terms(*text.key(number), task.language) for _, number in text.pieces]
        except (Unreadable, InputError) as error:
            made.refused = str(error)
        found.append(made)
    return found


class DocumentReader:
    """Reads the files of a folder.

    Args:
        root: the name under which the folder is recorded.
        options: how they are stored.
        config: settings of the store.
    """

    def __init__(self, folder: FolderPlace, root: str, options: SyncOptions, config: Config) -> None:
        self.folder = folder
        self.root = root
        self.options = options
        self._config = config
        self._max_size = config.ingest.max_content_bytes

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
        if entry.size > self._max_size:
            raise NotText(f"larger than {self._max_size:,} bytes")
        with self.folder.open(entry) as handle:
            data = handle.read(self._max_size + 1)
        if len(data) > self._max_size:
            raise NotText(f"larger than {self._max_size:,} bytes")
        return data

    def text(self, entry: Entry, digest: str) -> DocumentText | None:
        """Return the text of a file, ready to be stored; None if its digest has changed.

        Raises:
            Unreadable, InputError: it has no content that can be remembered.
        """
        data = self._data(entry)
        return self._text(*self._note(entry, data)) if digest_of(data) == digest else None

    def _note(self, entry: Entry, data: bytes) -> tuple[Note, str]:
        source = SourceFile(
            self.folder, entry, self.conversation(entry.name), max_text=self._max_size, data=data
        )
        problem = ""
        kind = kind_of(f"{self.folder.path.name}/{entry.name}")
        for found in read_note(source) if kind is None else read_agent_file(source, kind):
            if isinstance(found, Note):
                return found, problem
            if isinstance(found, ImportProblem):
                problem = found.reason
        raise Unreadable(problem or "nothing to remember in it")

    def _text(self, note: Note, notice: str) -> DocumentText:
        """Analyse a note; raises InputError."""
        options, config = self.options, self._config
        analysed = analyse(note.text, config.ingest, config.secrets, options.secrets, sections=note.sections)
        tags = check_tags([*options.tags, *note.tags])
        origin = {"path": clean(note.where)}
        (more, origin, tags, aliases), _ = screen_data(
            (note.extra, origin, tags, note.aliases),
            config.secrets,
            options.secrets,
            where="what is stored with the text",
        )
        fields, extra = given_fields(
            more,
            (
                ("type", options.chunk_type),
                ("conversation_id", note.conversation_id),
                ("tags", tags),
                ("confidence", options.confidence),
                ("source", "import"),
                ("trust", options.trust),
                ("occurred_at", options.occurred_at or note.at),
                ("provenance", origin),
            ),
        )
        seen: dict[str, int] = {}
        for piece in analysed.pieces:
            seen.setdefault(piece_digest(piece.content), piece.index)
        title = str(extra.get("title", ""))
        return DocumentText(
            analysed, list(seen.items()), fields, extra, tuple(tags), title, tuple(aliases), notice
        )
