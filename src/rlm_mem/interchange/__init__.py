"""Memories in and out: Markdown, JSON lines and zip archives, older layouts, chat exports and folders of notes.

``markdown`` and ``export`` write; ``places`` opens a source, ``detection`` finds the format of each file, a module of
``formats`` reads it into ``records``, and ``importing`` writes these to a store. Nothing here changes a source.

A format of another package is a ``Format`` found by entry point (docs/extending.md, An importer); the names that such
a package needs are exported here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.interchange.export import ExportReport, export_store, export_to_markdown
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
    from rlm_mem.interchange.report import ImportReport

__all__ = [
    "Claim",
    "Dialogue",
    "ExportReport",
    "FileHead",
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
    "text_lines",
]

_MODULES = {
    "Claim": "format",
    "Dialogue": "records",
    "ExportReport": "export",
    "FileHead": "format",
    "Format": "format",
    "ImportReport": "report",
    "ImportedChunk": "records",
    "ChatMessage": "records",
    "Note": "records",
    "ImportProblem": "records",
    "SourceFile": "reading",
    "Unreadable": "places",
    "clean": "reading",
    "export_store": "export",
    "export_to_markdown": "export",
    "import_from_markdown": "importing",
    "import_source": "importing",
    "json_entries": "reading",
    "json_lines": "reading",
    "mapped_id": "records",
    "moment": "reading",
    "plain_tags": "reading",
    "read_text": "reading",
    "text_lines": "reading",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
