"""Files of the memory folder of Claude, except Markdown and plain text, which ``notes`` reads.

Claude's memory tool (``memory_20250818``; platform.claude.com, "Memory tool") writes text files of any name below
``/memories``: its documentation shows ``customer_service_guidelines.xml``.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.formats.notes import read_note

_ROOT = "memories"
_SUFFIXES = {"", ".xml", ".yaml", ".yml", ".toml", ".csv", ".html", ".json", ".log"}


def _sniff(head: FileHead) -> Claim:
    folders = {head.folder, *PurePosixPath(head.name).parts[:-1]}
    if _ROOT not in folders or head.suffix not in _SUFFIXES or head.is_derived:
        return Claim.NO
    if not head.text.strip() or "\0" in head.text or "\ufffd" in head.text[:-3]:
        return Claim.NO
    return Claim.POSSIBLE if head.suffix == ".json" else Claim.LIKELY


FORMAT = Format("memory-folder", _sniff, read_note, "files of Claude's memory tool")
