"""Markdown and text files: exported chunks, MERIDIAN memories and candidate lists, persona files, any other notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.interchange.drawings import BROKEN, is_drawing, text_of_drawing
from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.frontmatter import read_frontmatter, split_frontmatter
from rlm_mem.interchange.markdown import chunk_from_markdown, is_chunk_markdown
from rlm_mem.interchange.reading import SourceFile, clean, moment, plain_tags, read_text, text_lines
from rlm_mem.interchange.records import (
    Asset,
    ImportedChunk,
    ImportProblem,
    Note,
    Record,
    derived_chunks,
    mapped_id,
)

_QUARANTINED = "the export of a memory in quarantine, which is no note: rlm-mem import keeps it there"
_FIELD = re.compile(r"\*\*(Created|Category|Tags):\*\*[ \t]*(.*)")
_TITLE = re.compile(r"#[ \t]+(.+)")
_DEPRECATED = re.compile(
    r"\s*\**DEPRECATED:?\**:?\s*See\s+[\[`*\"']*([\w./ -]+?)(?:\.md)?[\]`*\"']*(?:[.,;\s]|\Z)", re.IGNORECASE
)
_CANDIDATE = re.compile(
    r"^[ \t]*\d{1,4}\.[ \t]+[`*]*([\w.-]+?)(?:\.md)?[`*]*[ \t]+[—–-]+[ \t]+category:[ \t]*(\w+)"
    r"[ \t]+[—–-]+[ \t]+tags:[ \t]*(\[[^\]\n]*\])?[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
# Fields with another use, or about the file itself.
_FILE_FIELDS = frozenset(
    ("title", "tags", "tag", "date", "created", "created_at", "updated", "updated_at", "modified", "modified_at",
     "lastmod", "id", "uid", "uuid", "permalink", "slug", "layout")
)  # fmt: skip
_MAX_SUBJECT_CHARS = 2000
_BARE_WORD = re.compile(r"[a-z_/.:#-]*")
# A day in the name of a note: 2026-03-07, 2026_03_07, 2026.03.07; at the start also 20260307 and 202603071230.
_DAY_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d\d)([-_.])(\d\d)\2(\d\d)(?!\d)|\A((?:19|20)\d\d)(\d\d)(\d\d)(?:\d{4}|\d{6})?(?!\d)"
)
_PERSONA_FOLDERS = {"sliders": "sliders", "personalities": "personalities", "gauges": "gauges"}


def read_chunk_markdown(file: SourceFile) -> Iterator[Record]:
    """Read a chunk exported as Markdown."""
    with file.opened() as handle:
        text = read_text(handle, 8 * file.max_text)
    try:
        chunk, archived = chunk_from_markdown(text, default_time=file.modified_at)
    except InputError as error:
        yield ImportProblem(file.where, str(error))
        return
    yield ImportedChunk(chunk, file.where, archived)


def read_meridian(file: SourceFile) -> Iterator[Record]:
    """Read a MERIDIAN memory: title, Created, Category and Tags above a rule, the text below it."""
    with file.opened() as handle:
        text = clean(read_text(handle, file.max_text)).replace("\r\n", "\n")
    head, rule, body = text.partition("\n---")
    body = body.partition("\n")[2] if rule else ""
    fields = {match[1].lower(): match[2].strip() for match in _FIELD.finditer(head)}
    title = _TITLE.search(head)
    name = PurePosixPath(file.entry.name).stem
    title_text = text_lines(title[1]) if title else name
    created = moment(fields.get("created"))
    extra: dict[str, Any] = {
        "title": title_text,
        "name": name,
        "category": text_lines(fields.get("category")),
    }
    if fields.get("created") and created is None:
        extra["original_created_at"] = fields["created"][:200]
    if not body.strip():
        yield ImportProblem(file.where, "a memory without text below its rule")
        return
    found = _DEPRECATED.match(body)
    later = PurePosixPath(found[1].strip()).stem if found else ""
    successor = mapped_id(later, "meridian") if later not in ("", name) else None
    yield from _memories(
        file,
        name,
        body.strip(),
        plain_tags(fields.get("tags")),
        created_at=created or file.modified_at,
        superseded_by=successor,
        extra=extra,
    )


def read_candidates(file: SourceFile) -> Iterator[Record]:
    """Read the list ``[MEMORY_CANDIDATES]``: for each memory a numbered line, then a rule and its text."""
    with file.opened() as handle:
        text = clean(read_text(handle, file.max_text)).replace("\r\n", "\n")
    listed = text.partition("[MEMORY_CANDIDATES]")[2]
    heads = list(_CANDIDATE.finditer(listed))
    if not heads:
        yield ImportProblem(
            file.where, "a list of candidates without entries `1. name.md — category: x — tags: [..]`"
        )
    for position, head in enumerate(heads):
        end = heads[position + 1].start() if position + 1 < len(heads) else len(listed)
        body = re.sub(r"\A\s*---[ \t]*\n", "", listed[head.end() : end]).strip()
        body = re.sub(r"\n---[ \t]*\Z", "", body).split("\n[/MEMORY_CANDIDATES]")[0].strip()
        if not body or body == "---":
            yield ImportProblem(f"{file.where}, {head[1]}", "a candidate without text")
            continue
        extra = {"title": head[1], "name": head[1], "category": head[2].lower()}
        tags = plain_tags(head[3])
        yield from _memories(file, head[1], body, tags, created_at=file.modified_at, extra=extra)


def _memories(
    file: SourceFile, name: str, text: str, tags: list[str], **metadata: Any
) -> Iterator[ImportedChunk | ImportProblem]:
    """Yield one memory as one or more chunks; the id of the first is derived from its name."""
    conversation = f"meridian:{name}"
    return derived_chunks(
        "meridian", name, text, file.where, metadata=metadata, tags=tags, conversation=conversation
    )


def read_asset(file: SourceFile) -> Iterator[Record]:
    """Read a personality, slider or gauge, in either documented form; it is stored unchanged."""
    with file.opened() as handle:
        text = read_text(handle, 1_000_000)
    name = PurePosixPath(file.entry.name).name
    folder = _PERSONA_FOLDERS.get(PurePosixPath(file.entry.name).parent.name.lower()) or (
        "personalities"
        if re.search(r"^> Activated when:|^## Slider Adjustments", text, re.MULTILINE)
        else "sliders"
    )
    if not re.fullmatch(r"[\w.-]{1,100}\.md", name):
        yield ImportProblem(file.where, "not a valid name of a brain file")
        return
    yield Asset(f"{folder}/{name}", text.encode("utf-8"), file.where)


def read_note(file: SourceFile) -> Iterator[Record]:
    """Read any other text: tags, title and time are taken from its front matter, whose other fields begin the text.

    Without a time there, it is the only day in the file name (a daily note), else the time of the file.
    """
    with file.opened() as handle:
        text = clean(read_text(handle, file.max_text))
    if "\0" in text[:4096]:
        yield ImportProblem(file.where, "binary, not text")
        return
    if is_drawing(file.entry.name):
        drawn = text_of_drawing(text)
        if drawn is None:
            yield ImportProblem(file.where, BROKEN)
            return
        text = drawn
    fields: dict[str, Any] = {}
    header, body = split_frontmatter(text)
    if header is not None:
        try:
            fields = read_frontmatter(header)
        except InvalidChunk as error:
            yield ImportProblem(file.where, f"{error}; the note is imported with it as text")
            body = text
    if is_chunk_markdown(fields) and fields.get("trust") == "quarantined":
        yield ImportProblem(file.where, _QUARANTINED)
        return
    subject = _subject_lines(fields)
    if not body.strip() and not subject:
        yield ImportProblem(file.where, "empty")
        return
    date = next((fields[key] for key in ("date", "created", "created_at") if moment(fields.get(key))), None)
    title = text_lines(fields.get("title"))
    yield Note(
        key="",
        conversation_id=file.conversation,
        text=f"{subject}\n\n{body}" if subject else body,
        where=file.where,
        at=moment(date) or day_in_name(file.entry.name) or file.modified_at,
        tags=plain_tags(fields.get("tags") or fields.get("tag")),
        extra={"title": title} if title else {},
        aliases=plain_tags(fields.get("aliases") or fields.get("alias")),
    )


def _subject_lines(fields: dict[str, Any]) -> str:
    """Format the front matter about the subject of a note ("birthday: 1964-05-14"), one field per line.

    Switches, small numbers and bare words (``draft: true``, ``template: wide``) are about the file and left out.
    """
    lines = []
    for name, value in fields.items():
        values = [
            str(one) for one in (value if isinstance(value, list) else [value]) if _describes_subject(one)
        ]
        if values and name.lower() not in _FILE_FIELDS:
            lines.append(f"- {text_lines(name)}: {text_lines(', '.join(values))}")
    text = "\n".join(lines)
    return text if len(text) <= _MAX_SUBJECT_CHARS else ""


def _describes_subject(value: Any) -> bool:
    if isinstance(value, str):
        return _BARE_WORD.fullmatch(value.strip()) is None
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 10


def day_in_name(name: str) -> str | None:
    """Return the only day in the name of a file, as a time; None if it has none, or several."""
    days = {
        f"{match[1] or match[5]}-{match[3] or match[6]}-{match[4] or match[7]}"
        for match in _DAY_IN_NAME.finditer(PurePosixPath(name).stem[:200])
    }
    return moment(days.pop()) if len(days) == 1 else None


# --- detection -------------------------------------------------------------------------------------

_MERIDIAN_LINE = re.compile(r"^\*\*(?:Created|Category):\*\*", re.MULTILINE)
_PERSONA_LINE = re.compile(
    r"^> (?:Slider Range|Activated when):|^## (?:Slider Adjustments|Calibration Levels)"
    r"|\A# [^\n]{1,80} (?:Slider|Mode)[ \t]*\n+## (?:Range|Configuration)",
    re.MULTILINE,
)
_CHUNK_ID_LINE = re.compile(r"^id: *[\"']?chunk-", re.MULTILINE)
_LONG_FRONT_MATTER = re.compile(r"---\r?\nid: *chunk-[\w-]+\r?\n")


def _sniff_chunk_markdown(head: FileHead) -> Claim:
    if not head.is_text:
        return Claim.NO
    if head.front_matter is None:  # or longer than the head
        return Claim.SURE if _LONG_FRONT_MATTER.match(head.text) else Claim.NO
    try:
        is_claimed = is_chunk_markdown(read_frontmatter(head.front_matter))
    except InputError:
        # Malformed YAML with a chunk id is reported as an invalid chunk, not remembered as a note.
        is_claimed = bool(_CHUNK_ID_LINE.search(head.front_matter))
    return Claim.SURE if is_claimed else Claim.NO


def _sniff_candidates(head: FileHead) -> Claim:
    return Claim.SURE if head.is_text and "[MEMORY_CANDIDATES]" in head.text else Claim.NO


def _sniff_persona(head: FileHead) -> Claim:
    if not head.is_text or head.front_matter is not None:
        return Claim.NO
    gauge = head.path.name == "LIVEHUD.md" and head.path.parent.name == "gauges"
    return Claim.SURE if gauge or _PERSONA_LINE.search(head.text[:8192]) else Claim.NO


def _sniff_meridian(head: FileHead) -> Claim:
    is_claimed = head.is_text and head.front_matter is None and _MERIDIAN_LINE.search(head.text[:4096])
    return Claim.LIKELY if is_claimed else Claim.NO


def _sniff_note(head: FileHead) -> Claim:
    return Claim.POSSIBLE if head.is_text else Claim.NO


# Claude's memory tool (``memory_20250818``; platform.claude.com, "Memory tool") writes text files of any name below
# ``/memories``: its documentation shows ``customer_service_guidelines.xml``.
_MEMORY_SUFFIXES = {"", ".xml", ".yaml", ".yml", ".toml", ".csv", ".html", ".json", ".log"}


def _sniff_memory_folder(head: FileHead) -> Claim:
    """Claim the files of that folder, except Markdown and plain text, which are notes."""
    folders = {head.folder, *PurePosixPath(head.name).parts[:-1]}
    if "memories" not in folders or head.suffix not in _MEMORY_SUFFIXES or head.is_derived:
        return Claim.NO
    if not head.text.strip() or "\0" in head.text or "\ufffd" in head.text[:-3]:
        return Claim.NO
    return Claim.POSSIBLE if head.suffix == ".json" else Claim.LIKELY


CANDIDATES = Format("candidates", _sniff_candidates, read_candidates, "a list of memory candidates")
CHUNK_MARKDOWN = Format(
    "chunk-markdown", _sniff_chunk_markdown, read_chunk_markdown, "chunks exported as Markdown"
)
MEMORY_FOLDER = Format("memory-folder", _sniff_memory_folder, read_note, "files of Claude's memory tool")
MERIDIAN = Format("meridian", _sniff_meridian, read_meridian, "MERIDIAN memories")
NOTES = Format("notes", _sniff_note, read_note, "notes: Markdown and plain text")
PERSONA = Format("persona", _sniff_persona, read_asset, "personalities, sliders and gauges")
