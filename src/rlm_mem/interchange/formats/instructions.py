"""Instructions for coding agents: ``CLAUDE.md``, ``AGENTS.md`` and the like.

The names are those that Claude Code (code.claude.com, "How Claude remembers your project", 2026), agents.md,
Codex and Gemini CLI document. As in Claude Code, comments (``<!-- … -->``) outside of code are left out. Lines that
import another file (``@style.md``) are kept unchanged: no file is read because another one names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.formats.notes import read_note
from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import ImportProblem, Note, Record

_NAMES = {"claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md"}
_TAG = "instructions"


def holds_instructions(name: str) -> bool:
    """Return whether a file of this path contains instructions, by its name alone."""
    return name.rpartition("/")[2].lower() in _NAMES


def read_instructions(file: SourceFile) -> Iterator[Record]:
    """Read a file of instructions as a note with the tag ``instructions``."""
    for record in read_note(file):
        if not isinstance(record, Note):
            yield record
            continue
        text = _without_comments(record.text)
        if text.strip():
            yield replace(record, text=text, tags=list(dict.fromkeys([*record.tags, _TAG])))
        else:
            yield ImportProblem(file.where, "empty but for comments")


def _without_comments(text: str) -> str:
    kept: list[str] = []
    fence = ""
    inside = False
    for line in text.splitlines(keepends=True):
        start = line.lstrip()
        if inside:
            inside = "-->" not in line
            continue
        if fence:
            if start.startswith(fence):
                fence = ""
        elif start.startswith(("```", "~~~")):
            fence = start[:3]
        elif start.startswith("<!--"):
            _, end, after = line.partition("-->")
            inside = not end
            if after.strip():
                kept.append(after.lstrip())
            continue
        kept.append(line)
    return "".join(kept)


def _sniff(head: FileHead) -> Claim:
    return Claim.LIKELY if holds_instructions(head.name) and head.text.strip() else Claim.NO


FORMAT = Format("instructions", _sniff, read_instructions, "instructions for coding agents")
