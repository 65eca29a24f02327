"""Import and export of memories: Markdown, JSON lines, zip archives, older layouts, chats, folders of notes.

``markdown`` and ``export`` write; ``places`` opens a source, ``detection`` detects the format of each file, a
module of ``formats`` reads it into ``records``, and ``importing`` writes these to a store. A source is never
changed.

A format of another package is a ``Format`` found by entry point (docs/extending.md, An importer); this module exports
the names that such a package needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.interchange.export import ExportReport, export_store, export_to_markdown
    from rlm_mem.interchange.folders import sync_folder, watch_folder
    from rlm_mem.interchange.format import Claim, FileHead, Format
    from rlm_mem.interchange.importing import import_from_markdown, import_source
    from rlm_mem.interchange.places import Unreadable
    from rlm_mem.interchange.reading import (
        SourceFile,
        clean,
        json_entries,
        json_lines,
        moment,
        plain_tags,
        read_text,
        text_lines,
    )
    from rlm_mem.interchange.records import (
        ChatMessage,
        Dialogue,
        ImportedChunk,
        ImportProblem,
        Note,
        mapped_id,
    )
    from rlm_mem.interchange.report import FolderReport, ImportReport

__all__ = [
    "Claim",
    "Dialogue",
    "ExportReport",
    "FileHead",
    "FolderReport",
    "Format",
    "ImportReport",
    "ImportedChunk",
    "ChatMessage",
    "Note",
    "ImportProblem",
    "SourceFile",
    "Unreadable",
    "clean",
    "export_store",
    "export_to_markdown",
    "import_from_markdown",
    "import_source",
    "json_entries",
    "json_lines",
    "mapped_id",
    "moment",
    "plain_tags",
    "read_text",
    "sync_folder",
    "text_lines",
    "watch_folder",
]

__getattr__ = loader(
    __name__,
    {
        "format": ("Claim", "FileHead", "Format"),
        "records": ("Dialogue", "ImportedChunk", "ChatMessage", "Note", "ImportProblem", "mapped_id"),
        "export": ("ExportReport", "export_store", "export_to_markdown"),
        "report": ("FolderReport", "ImportReport"),
        "folders": ("sync_folder", "watch_folder"),
        "reading": (
            "SourceFile",
            "clean",
            "json_entries",
            "json_lines",
            "moment",
            "plain_tags",
            "read_text",
            "text_lines",
        ),
        "places": ("Unreadable",),
        "importing": ("import_from_markdown", "import_source"),
    },
)
