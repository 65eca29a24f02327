"""Import and export over HTTP: a file in the body, a file as the answer; both streamed, both bounded."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rlm_mem.operations import tool_types
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.types import Request
from rlm_mem.operations.uploads import FileName, Imported, import_bytes

__all__ = ["OPERATIONS", "MOST_UPLOAD_BYTES", "ExportQuery", "ImportQuery"]

_GROUP = "import and export"
#: Most bytes of a file that is imported in one request.
MOST_UPLOAD_BYTES = 256 * 1024 * 1024

_MEDIA = (
    "application/octet-stream", "application/json", "application/x-ndjson", "application/zip", "text/markdown",
    "text/plain",
)  # fmt: skip
_Format = Literal[
    "chunk-markdown", "chunk-jsonl", "chunk-json", "layered-jsonl", "meridian", "candidates", "chatgpt",
    "claude", "claude-code", "messages-json", "messages-jsonl", "notes",
]  # fmt: skip


class ImportQuery(Request):
    """What is sent, and what to do with it."""

    name: FileName
    format: Annotated[_Format, Meta(description="By default it is detected.")] | None = None
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False
    replace: Annotated[
        bool, Meta(description="What comes in replaces what is there, also newer revisions.")
    ] = False


class ExportQuery(Request):
    """What to export."""

    format: Annotated[Literal["jsonl", "zip"], Meta(description="JSON lines, or Markdown in a zip.")] = (
        "jsonl"
    )
    archive: Annotated[bool, Meta(description="With what was deleted.")] = True


class MarkdownOut(Struct):
    """A chunk as Markdown with YAML frontmatter."""

    name: str
    markdown: str


class ImportArguments(Request):
    """As an agent gives it."""

    content: Annotated[tool_types.Text, Meta(description="The content of the file, as text.")]
    name: FileName = "notes.md"
    format: Annotated[
        _Format | None,
        Meta(description="What it is; else it is detected."),
    ] = None
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False


def _markdown(context: Context, _: object) -> MarkdownOut:
    from rlm_mem.interchange import export_to_markdown

    chunk_id = context.path["chunk_id"]
    return MarkdownOut(f"{chunk_id}.md", export_to_markdown(chunk_id, store=context.memory.store))


def _import_text(context: Context, request: ImportArguments) -> Imported:
    return import_bytes(
        context.memory,
        request.name,
        request.content.encode("utf-8", "replace"),
        format=request.format,
        dry_run=request.dry_run,
        progress=lambda done, total: context.progress(done, total, f"read {done} of {total} bytes"),
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/import", "importFile", "Import a file: an export, a chat, notes; each thing once.", _GROUP,
        request=ImportQuery, response=Imported, writes=True, raw_body=_MEDIA,
        description=f"The body is the file, at most {MOST_UPLOAD_BYTES // 1024 // 1024} MiB. Everything goes into the "
        "namespace of this server.",
        tool=Tool(
            name="import",
            title="Import memories",
            description="Store what a file holds: notes in Markdown, a chat export, messages in JSON, an export of "
            "this memory. Each thing is stored once, however often it is imported. For a single fact use `remember`.",
            request=ImportArguments,
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
        "GET", "/export", "exportMemories", "Every chunk of this namespace as one file.", _GROUP,
        request=ExportQuery, response=None,
        media={
            "application/x-ndjson": {"type": "string", "format": "binary"},
            "application/zip": {"type": "string", "format": "binary"},
        },
    ),
    Operation(
        "GET", "/chunks/{chunk_id}/markdown", "getMarkdown", "A chunk, deleted ones too, as Markdown.", _GROUP,
        run=_markdown, response=MarkdownOut,
    ),
)  # fmt: skip
