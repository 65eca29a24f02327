"""Memories in and out: Markdown, JSON lines and zip archives, older layouts, chat exports and folders of notes.

``markdown`` and ``export`` write; ``places`` opens what is to be read, ``detection`` tells what it is, one module a
format reads it into ``records``, and ``importing`` brings these into a store. Nothing here changes a source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_mem.interchange.export import ExportReport, export_store, export_to_markdown
    from rlm_mem.interchange.importing import import_from_markdown, import_source
    from rlm_mem.interchange.records import Problem
    from rlm_mem.interchange.report import ImportReport

__all__ = [
    "ExportReport",
    "ImportReport",
    "Problem",
    "export_store",
    "export_to_markdown",
    "import_from_markdown",
    "import_source",
]

_WHERE = {
    "ExportReport": "export",
    "ImportReport": "report",
    "Problem": "records",
    "export_store": "export",
    "export_to_markdown": "export",
    "import_from_markdown": "importing",
    "import_source": "importing",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
