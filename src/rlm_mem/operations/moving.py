"""Import of a file from the request body, and export as a file; both are streamed and bounded."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Struct

from rlm_mem import interchange
from rlm_mem.errors import InputError
from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.types import Content, Line, Request, Tags, about, matching

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

#: A bare file name without a path; its suffix hints at the format.
FileName = Annotated[
    str,
    matching(
        "[A-Za-z0-9_][A-Za-z0-9 ._-]{0,150}",
        "File name with its ending, such as notes.md, chat.json, export.jsonl or export.zip.",
    ),
]
_MAX_LISTED = 200


class UploadNotice(Struct):
    """An entry that was left unchanged, or could not be read, and why."""

    where: str
    reason: str


class UploadSample(Struct):
    """Source and beginning of a chunk that would be created."""

    where: str
    text: str


class Imported(MayBeCut):
    """What an import did, or with ``dry_run`` would do; counts are of chunks, lists contain the first 200 entries.

    ``created`` are new, ``updated`` replaced existing chunks, ``known`` existed already, ``restored`` were archived;
    ``passed_over`` are files without memories, such as pictures; ``kept`` differ from existing chunks, which were kept
    (``conflicts`` has the reasons). ``undo`` undoes ``change``. ``samples`` are the beginnings of the first 20 chunks
    that a dry run would create.
    """

    dry_run: bool
    change: str | None
    formats: dict[str, int]
    created: int
    updated: int
    known: int
    kept: int
    archived: int
    restored: int
    passed_over: int
    messages: int
    tokens: int
    secrets: dict[str, int]
    secrets_hidden: int
    chunk_ids: list[str]
    samples: list[UploadSample]
    conflicts: list[UploadNotice]
    problems: list[UploadNotice]
    problem_count: int


def import_file(
    memory: Memory,
    path: Path,
    wanted: ImportQuery | ImportArguments,
    progress: Callable[[int, int], None] | None = None,
    *,
    label: str | None = None,
) -> Imported:
    """Import a file that a client sent, into the namespace of the memory even if the file names others.

    Nothing in the file is trusted more than the settings allow for imports.

    Args:
        label: name of the source; None: name and content of the file, so that the same file is recognised, and a
            different one with that name replaces nothing.

    Raises:
        InputError: the file is not a valid archive, or its format is unknown.
    """
    report = interchange.import_source(
        memory.store,
        path,
        format=wanted.format,
        dry_run=wanted.dry_run,
        keep_namespaces=False,
        replace=isinstance(wanted, ImportQuery) and wanted.replace,
        duplicates=isinstance(wanted, ImportQuery) and wanted.duplicates,
        again=True,
        label=label or f"{path.name}~{_digest(path)}",
        trust=memory.store.trust_levels["import"],
        progress=progress,
    )
    given = report.as_dict()
    for name in ("chunk_ids", "conflicts", "problems"):
        given[name] = given[name][:_MAX_LISTED]
    return msgspec.convert(given, Imported)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


_GROUP = "import and export"
#: Maximum bytes of a file that is imported in one request.
MAX_UPLOAD_BYTES = 256 * 1024 * 1024

_MEDIA = (
    "application/octet-stream", "application/json", "application/x-ndjson", "application/zip", "text/markdown",
    "text/plain",
)  # fmt: skip
#: The name of a format, built in or of an installed package.
FormatName = Annotated[
    str,
    about(
        "Such as chatgpt or mem0; by default it is detected.",
        min_length=1,
        max_length=100,
        extra_json_schema={"x-names": "import-formats"},
    ),
]


class ImportQuery(Request):
    """Name and format of the file, and how to import it."""

    name: FileName
    format: FormatName | None = None
    dry_run: Annotated[bool, about("Only report what would happen.")] = False
    replace: Annotated[bool, about("Replace existing chunks, even newer revisions.")] = False
    duplicates: Annotated[bool, about("Also store chunks that exist under another id.")] = False


class ExportQuery(Request):
    """What to export."""

    format: Annotated[Literal["jsonl", "zip"], about("JSON lines, or Markdown in a zip.")] = "jsonl"
    archive: Annotated[bool, about("Include deleted chunks, and those in quarantine.")] = True


class MarkdownOut(MayBeCut):
    """A chunk as Markdown with YAML front matter."""

    name: str
    markdown: str


class ImportArguments(Bounded, kw_only=True):
    """The tool's arguments."""

    content: Annotated[Content, about("The content of the file, as text.")]
    name: FileName = "notes.md"
    format: FormatName | None = None
    dry_run: Annotated[bool, about("Only report what would happen.")] = False


class SyncFolderRequest(Bounded, kw_only=True):
    """Which folder to keep in sync."""

    path: Annotated[Line, about("A folder on the server that it may read.")]
    patterns: Annotated[
        list[Line],
        about("Shell patterns for file names, such as *.md. By default every text file.", max_length=50),
    ] = msgspec.field(default_factory=list)
    tags: Annotated[Tags, about("Tags of every chunk.")] = msgspec.field(default_factory=list)
    known_as: Annotated[
        Line | None,
        about("The name of this folder in the memory, such as its former path. By default recognised."),
    ] = None
    archive_all: Annotated[bool, about("Archive its documents even if none exists any more.")] = False
    dry_run: Annotated[bool, about("Only report what would happen.")] = False


class FolderSynced(MayBeCut):
    """What happened to the files; lists contain the first 200 entries, ``counts`` has their full lengths.

    ``changed`` supersede their former text, ``archived`` were deleted, ``renamed`` (former and new name) keep their
    chunks, ``restored`` exist again. ``undo`` undoes ``change``.
    """

    folder: str
    dry_run: bool
    change: str | None
    added: list[str]
    changed: list[str]
    renamed: list[tuple[str, str]]
    archived: list[str]
    restored: list[str]
    unchanged: int
    refused: list[UploadNotice]
    counts: dict[str, int]
    chunks_created: int
    chunks_updated: int
    chunks_superseded: int
    chunks_archived: int
    chunks_restored: int
    chunks_linked: int
    tokens: int
    secrets: dict[str, int]
    secrets_hidden: int


_LIST_FIELDS = ("added", "changed", "renamed", "archived", "restored", "refused")


def _sync_folder(context: Context, request: SyncFolderRequest) -> FolderSynced:
    try:
        allowed = [Path(one).resolve() for one in context.memory.config.ingest.folders]
        path = Path(request.path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # too long a path, a loop of symbolic links
        raise InputError(f"{request.path!r:.200} is not the path of a folder: {error}") from None
    if not any(path.is_relative_to(one) for one in allowed):
        raise InputError(
            f"{request.path} is not in a folder that this server may read",
            hint="start it with RLM_MEM_INGEST_FOLDERS=/the/folder (separate several by commas)",
        )
    report = context.memory.sync_folder(
        path,
        patterns=request.patterns,
        tags=request.tags,
        known_as=request.known_as,
        archive_all=request.archive_all,
        dry_run=request.dry_run,
        progress=lambda done, total: context.progress(done, total, f"stored {done} of {total} files"),
    )
    given = report.as_dict()
    counts = {name: len(given[name]) for name in _LIST_FIELDS}
    return msgspec.convert(
        {**given, **{name: given[name][:_MAX_LISTED] for name in _LIST_FIELDS}, "counts": counts},
        FolderSynced,
    )


def export_file(memory: Memory, query: ExportQuery) -> Path:
    """Export the namespace to a file in a new temporary folder, which the caller removes."""
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-export-"))
    file = folder / f"memories.{query.format}"
    namespaces = [memory.store.namespace]
    try:
        interchange.export_store(
            memory.store, file, format=query.format, namespaces=namespaces, archive=query.archive
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return file


def _markdown(context: Context, _: Bounded) -> MarkdownOut:
    chunk_id = context.path["chunk_id"]
    return MarkdownOut(f"{chunk_id}.md", interchange.export_to_markdown(chunk_id, store=context.memory.store))


def _import_text(context: Context, request: ImportArguments) -> Imported:
    with tempfile.TemporaryDirectory(prefix="rlm-mem-import-") as folder:
        path = Path(folder) / request.name
        path.write_bytes(request.content.encode("utf-8", "replace"))
        return import_file(
            context.memory,
            path,
            request,
            lambda done, total: context.progress(done, total, f"read {done} of {total} bytes"),
        )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/import", "importFile", "Import a file: an export, a chat, notes; repeatable.", _GROUP,
        request=ImportQuery, response=Imported, writes=True, raw_body=_MEDIA,
        description=f"The body is the file, at most {MAX_UPLOAD_BYTES // 1024 // 1024} MiB. Everything goes into the "
        "namespace of this server.",
        tool=Tool(
            name="import",
            title="Import memories",
            description="Import the content of a file: notes in Markdown, a chat export, messages in JSON, an "
            "export of this memory. Importing it again stores nothing twice. For a single fact "
            "use `remember`.",
            run=_import_text,
            aliases={
                **dict.fromkeys(("text", "data", "file", "document"), "content"),
                **dict.fromkeys(("filename", "file_name", "title"), "name"),
                **dict.fromkeys(("preview", "dryRun"), "dry_run"),
            },
            default=False,
        ),
    ),
    Operation(
        "POST", "/folders/sync", "syncFolder", "Keep the memory in sync with a folder of text files.", _GROUP,
        permission="admin", everywhere=True, run=_sync_folder, writes=True,
        description="The folder is on the machine of the server, in a folder of its setting `ingest.folders`. One sync "
        "is one change, which can be undone.",
        tool=Tool(
            name="sync_folder",
            title="Keep a folder in sync",
            description="Remember the text files of a folder on this machine, or sync the memory with them: "
            "changed files replace their former text, deleted ones are archived, renamed ones "
            "keep their history.",
            destructive=True,
            aliases={**dict.fromkeys(("folder", "directory"), "path"), "glob": "patterns", "dryRun": "dry_run"},
            default=False,
        ),
    ),
    Operation(
        "GET", "/export", "exportMemories", "Every chunk of this namespace as one file.", _GROUP, request=ExportQuery,
        media={
            "application/x-ndjson": {"type": "string", "format": "binary"},
            "application/zip": {"type": "string", "format": "binary"},
        },
    ),
    Operation(
        "GET", "/chunks/{chunk_id}/markdown", "getMarkdown", "A chunk, even a deleted one, as Markdown.", _GROUP,
        run=_markdown,
    ),
)  # fmt: skip
