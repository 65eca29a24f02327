"""Import and export over HTTP: a file in the body, a file as the answer; both streamed, both bounded."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.background import BackgroundTask
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, Response

from rlm_mem.server.api.dispatch import encode
from rlm_mem.server.api.endpoint import Ask, Endpoint, Exchange
from rlm_mem.server.api.limits import BodyTooLarge
from rlm_mem.server.api.types import Query
from rlm_mem.server.uploads import FileName, Imported, import_file

__all__ = ["ENDPOINTS", "MOST_UPLOAD_BYTES"]

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


class ImportQuery(Query):
    """What is sent, and what to do with it."""

    name: FileName
    format: Annotated[_Format, Meta(description="By default it is detected.")] | None = None
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False
    replace: Annotated[
        bool, Meta(description="What comes in replaces what is there, also newer revisions.")
    ] = False


class ExportQuery(Query):
    """What to export."""

    format: Annotated[Literal["jsonl", "zip"], Meta(description="JSON lines, or Markdown in a zip.")] = (
        "jsonl"
    )
    archive: Annotated[bool, Meta(description="With what was deleted.")] = True


class MarkdownOut(Struct):
    """A chunk as Markdown with YAML frontmatter."""

    name: str
    markdown: str


async def _import(exchange: Exchange) -> Response:
    query: ImportQuery = exchange.query
    folder = await exchange.state.run_in_worker(lambda: tempfile.mkdtemp(prefix="rlm-mem-import-"))
    try:
        path = Path(folder) / query.name
        await _save(exchange.request, path)
        done: Imported = await exchange.state.work(
            lambda memory: import_file(
                memory, path, format=query.format, dry_run=query.dry_run, replace=query.replace
            )
        )
    finally:
        await exchange.state.run_in_worker(lambda: shutil.rmtree(folder, ignore_errors=True))
    return Response(encode(done), media_type="application/json")


async def _save(request: HttpRequest, path: Path) -> None:
    """The body into a file, never more of it than is allowed."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > MOST_UPLOAD_BYTES:
        raise BodyTooLarge(MOST_UPLOAD_BYTES)
    size = 0
    with path.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > MOST_UPLOAD_BYTES:
                raise BodyTooLarge(MOST_UPLOAD_BYTES)
            file.write(part)


async def _export(exchange: Exchange) -> Response:
    query: ExportQuery = exchange.query
    name = f"memories.{query.format}"
    folder = await exchange.state.run_in_worker(lambda: tempfile.mkdtemp(prefix="rlm-mem-export-"))

    def remove() -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)

    try:
        from rlm_mem.interchange import export_store

        await exchange.state.work(
            lambda memory: export_store(
                memory.store,
                Path(folder) / name,
                format=query.format,
                namespaces=[memory.store.namespace],
                archive=query.archive,
            )
        )
    except BaseException:
        remove()
        raise
    media = "application/zip" if query.format == "zip" else "application/x-ndjson"
    return FileResponse(
        Path(folder) / name, filename=name, media_type=media, background=BackgroundTask(remove)
    )


def _markdown(ask: Ask) -> MarkdownOut:
    from rlm_mem.interchange import export_to_markdown

    chunk_id = ask.path["chunk_id"]
    return MarkdownOut(f"{chunk_id}.md", export_to_markdown(chunk_id, store=ask.memory.store))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/import", "importFile", "Import a file: an export, a chat, notes; each thing once.", _GROUP,
        serve=_import, query=ImportQuery, gives=Imported, writes=True, raw_body=_MEDIA,
        description=f"The body is the file, at most {MOST_UPLOAD_BYTES // 1024 // 1024} MiB. Everything goes into the "
        "namespace of this server.",
    ),
    Endpoint(
        "GET", "/export", "exportMemories", "Every chunk of this namespace as one file.", _GROUP,
        serve=_export, query=ExportQuery, gives=None,
        media={
            "application/x-ndjson": {"type": "string", "format": "binary"},
            "application/zip": {"type": "string", "format": "binary"},
        },
    ),
    Endpoint(
        "GET", "/chunks/{chunk_id}/markdown", "getMarkdown", "A chunk, deleted ones too, as Markdown.", _GROUP,
        run=_markdown, gives=MarkdownOut,
    ),
)  # fmt: skip
