"""Import and export of memories: Markdown, JSON lines, zip archives, older layouts, chats, folders of notes.

``markdown`` and ``export`` write. What comes in takes one path: ``places`` lists the files of a source, and each is
read into ``records``, which are written to one ``target``, a store with the ledger of imports, in transactions that
are one change. A source is never changed.

``importing`` detects the format of each file (``detection``), which a module of ``formats`` reads: chunks are written
by ``adopting``, brain files by ``brain_files``, history by ``history``, chats and single notes by ``import_texts``.
The notes of a folder are its documents, as are all text files for ``folders.sync_folder`` and those for agents for
``agent_files``: ``folder_sync`` plans (``folder_plan``) and applies (``folder_writing``) what differs in them
(``documents``) from the ``folder_record``.

A format of another package is a ``Format`` found by entry point (docs/extending.md, An importer); this module exports
the names that such a package needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.interchange.export import (
        ExportReport as ExportReport,
        export_store as export_store,
        export_to_markdown as export_to_markdown,
    )
    from rlm_mem.interchange.folders import sync_folder as sync_folder, watch_folder as watch_folder
    from rlm_mem.interchange.format import Claim as Claim, FileHead as FileHead, Format as Format
    from rlm_mem.interchange.importing import (
        import_from_markdown as import_from_markdown,
        import_source as import_source,
    )
    from rlm_mem.interchange.places import Unreadable as Unreadable
    from rlm_mem.interchange.reading import (
        SourceFile as SourceFile,
        clean as clean,
        json_entries as json_entries,
        json_lines as json_lines,
        moment as moment,
        plain_tags as plain_tags,
        read_text as read_text,
        text_lines as text_lines,
    )
    from rlm_mem.interchange.records import (
        ChatMessage as ChatMessage,
        Dialogue as Dialogue,
        ImportedChunk as ImportedChunk,
        ImportProblem as ImportProblem,
        Note as Note,
        mapped_id as mapped_id,
    )
    from rlm_mem.interchange.report import FolderReport as FolderReport, ImportReport as ImportReport

__getattr__, __all__ = loader(
    __name__,
    {
        "format": "Claim FileHead Format",
        "records": "Dialogue ImportedChunk ChatMessage Note ImportProblem mapped_id",
        "export": "ExportReport export_store export_to_markdown",
        "report": "FolderReport ImportReport",
        "folders": "sync_folder watch_folder",
        "reading": "SourceFile clean json_entries json_lines moment plain_tags read_text text_lines",
        "places": "Unreadable",
        "importing": "import_from_markdown import_source",
    },
)
