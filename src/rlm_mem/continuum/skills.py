"""Writes memories of stable tiers as skill folders for coding agents (`NAME/SKILL.md`).

The format is that of https://agentskills.io/specification: front matter with `name` and `description`, then Markdown.
Fields of this package are under `metadata`. A later run recognises its files by them, raises the version if the memory
has changed, and withdraws the skill if the memory was demoted or removed. Files edited by hand or written by others are
never changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.chunk.types import is_untrusted
from rlm_mem.errors import InputError, InvalidMemory, StorageError

if TYPE_CHECKING:
    from rlm_mem.continuum.files import MemoryFiles, TieredMemory
    from rlm_mem.store.core.chunk_store import ChunkStore

#: Tiers from which skills are written.
SKILL_TIERS = ("low", "ultra-low")

_TRANSCRIPT = "transcript"
"""``metadata.source`` of what was captured from a session, which has to be reviewed first."""
_FILE = "SKILL.md"
_MAX_BYTES = 1_000_000
_MAX_NAME = 64
_MAX_DESCRIPTION = 1_000  # characters; the format allows 1,024
_MAX_DEPTH = 8  # levels of sources that are followed
_UNFIT = re.compile(r"[^a-z0-9]+")
_FRONT = re.compile(r"---\n(.{0,20000}?)\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WrittenSkill:
    """The result for one skill.

    Attributes:
        state: ``written``, ``updated``, ``unchanged``, ``withdrawn``, ``edited`` (by hand; not changed), or
            not written because of its evidence: ``untrusted``, ``out of date``.
        key: the memory.
        evidence: chunks that it was made from.
    """

    name: str
    state: str
    key: str
    version: int = 0
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill made from a memory, not yet written to a folder.

    Attributes:
        text: content of its ``SKILL.md``, always version 1: versions are counted per folder.
        evidence: chunks that it was made from.
    """

    name: str
    key: str
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ExistingSkill:
    """A skill that an earlier run wrote to the folder."""

    path: Path
    name: str
    key: str
    version: int
    edited: bool
    text: str


def write_skills(
    store: ChunkStore, memories: MemoryFiles, folder: Path, *, tiers: Collection[str] = SKILL_TIERS
) -> list[WrittenSkill]:
    """Synchronise the skills in a folder with the memories of a namespace.

    Args:
        folder: where agents look for skills, such as ``.claude/skills``; made if it is missing.
        tiers: tiers of the memories that skills are made from.

    Returns:
        One entry for each skill that is present, was withdrawn, or was not written.

    Raises:
        StorageError: a file cannot be read or written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder", hint="name the folder in which agents look for skills")
    try:
        return list(_sync_skills(store, memories, folder, tiers))
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be written: {error.strerror}") from None


def skills_of(
    store: ChunkStore, memories: MemoryFiles, *, tiers: Collection[str] = SKILL_TIERS
) -> list[Skill]:
    """The skills that ``write_skills`` would write into an empty folder.

    Args:
        tiers: tiers of the memories that skills are made from.
    """
    found: list[Skill] = []
    taken: set[str] = set()
    for entry in _memories_of_tiers(memories, tiers):
        evidence, unfit = _evidence(store, memories, entry)
        if not unfit:
            name = _unused_name(_skill_name(entry.title), taken)
            taken.add(name)
            found.append(
                Skill(name, entry.key, _skill_text(store.namespace, entry, name, 1, evidence), evidence)
            )
    return found


def _memories_of_tiers(memories: MemoryFiles, tiers: Collection[str]) -> Iterator[TieredMemory]:
    for entry in memories.entries():
        if entry.meta.tier in tiers and not entry.meta.component_of and entry.kind != "profile":
            yield entry


def _sync_skills(
    store: ChunkStore, memories: MemoryFiles, folder: Path, tiers: Collection[str]
) -> Iterator[WrittenSkill]:
    present = {one.key: one for one in _existing_skills(folder, store.namespace)}
    taken = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for entry in _memories_of_tiers(memories, tiers):
        evidence, unfit = _evidence(store, memories, entry)
        former = present.get(entry.key)
        if unfit:
            # Left in `present`, so an earlier version of the skill is withdrawn below.
            name = former.name if former else _skill_name(entry.title)
            yield WrittenSkill(name, unfit, entry.key, 0, evidence)
            continue
        present.pop(entry.key, None)
        if former is not None and former.edited:
            yield WrittenSkill(former.name, "edited", entry.key, former.version, evidence)
            continue
        name = former.name if former else _unused_name(_skill_name(entry.title), taken)
        version = former.version if former else 1
        text = _skill_text(store.namespace, entry, name, version, evidence)
        state = "written" if former is None else "unchanged"
        if former is not None and former.text != text:
            version, state = version + 1, "updated"
            text = _skill_text(store.namespace, entry, name, version, evidence)
        if state != "unchanged":
            taken.add(name)
            path = folder / name / _FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{_FILE}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        yield WrittenSkill(name, state, entry.key, version, evidence)
    for orphan in present.values():
        if not orphan.edited:
            orphan.path.unlink()
            if not any(orphan.path.parent.iterdir()):
                orphan.path.parent.rmdir()
        yield WrittenSkill(
            orphan.name, "edited" if orphan.edited else "withdrawn", orphan.key, orphan.version
        )


def _evidence(store: ChunkStore, memories: MemoryFiles, entry: TieredMemory) -> tuple[tuple[str, ...], str]:
    """The chunk of a memory and those it was made from, and why no skill may rest on them; empty if it may."""
    found: dict[str, None] = {}
    waiting, trusted, seen = [(entry, 0)], True, {entry.key}
    valid = True
    hidden = store.quarantined_ids()
    while waiting:
        one, depth = waiting.pop()
        found[one.chunk_id] = None
        trusted = trusted and hidden.isdisjoint((one.chunk_id, *one.meta.sources))
        for source in one.meta.sources:
            if source in seen:
                continue
            seen.add(source)
            chunk = store.get_chunk(source, track=False) if source.startswith("chunk-") else None
            if chunk is not None:
                found[source] = None
                valid = valid and not store.out_of_date(chunk.metadata)
                trusted = trusted and not (
                    is_untrusted(chunk.metadata.trust)
                    or (chunk.metadata.source == _TRANSCRIPT and not chunk.metadata.extra.get("reviewed_by"))
                )
                continue
            try:
                made_from = memories.get(source) if depth < _MAX_DEPTH else None
            except InvalidMemory:  # a memory that cannot be read cannot be trusted
                trusted = False
                continue
            if made_from is not None:
                waiting.append((made_from, depth + 1))
    return tuple(found), "untrusted" if not trusted else "" if valid else "out of date"


def _skill_text(
    namespace: str, entry: TieredMemory, name: str, version: int, evidence: tuple[str, ...]
) -> str:
    paragraph = entry.body.strip().partition("\n\n")[2].partition("\n\n")[0]
    title, first = (" ".join(one.split()) for one in (entry.title, paragraph))
    subject = first if first.startswith(title) else title  # the title of a long text is only its beginning
    rate = (
        ""
        if entry.meta.rate is None
        else f" {entry.meta.rate:.0%} of {entry.meta.usage_count} uses went well."
    )
    description = f"{subject[:800].rstrip('.')}.{rate}"
    listed = "\n".join(f"- {one}" for one in evidence)
    body = f"{entry.body.strip()}\n\n## Evidence\n\n{listed}\n"
    fields = {
        "rlm-mem-namespace": namespace,
        "rlm-mem-key": entry.key,
        "rlm-mem-tier": entry.meta.tier,
        "rlm-mem-digest": _digest(body),
        "version": str(version),
    }
    # Every JSON string is a valid YAML string.
    lines = [f"name: {name}", f"description: {json.dumps(description[:_MAX_DESCRIPTION])}", "metadata:"]
    lines += [f"  {field}: {json.dumps(value)}" for field, value in fields.items()]
    return "---\n" + "\n".join(lines) + "\n---\n\n" + body


def _existing_skills(folder: Path, namespace: str) -> Iterator[_ExistingSkill]:
    """The skills in a folder that an earlier run wrote for this namespace."""
    for path in sorted(folder.glob(f"*/{_FILE}")):
        if path.is_symlink() or path.stat().st_size > _MAX_BYTES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        front = _FRONT.match(text)
        if front is None:
            continue
        fields = dict(_fields(front.group(1)))
        key, version = fields.get("rlm-mem-key", ""), fields.get("version", "")
        if fields.get("rlm-mem-namespace") != namespace or not key or not version.isdecimal():
            continue
        edited = fields.get("rlm-mem-digest") != _digest(text[front.end() :].removeprefix("\n"))
        yield _ExistingSkill(path, path.parent.name, key, int(version[:9]), edited, text)


def _fields(front: str) -> Iterator[tuple[str, str]]:
    """The fields that this package writes into the front matter, with their values."""
    for line in front.splitlines():
        name, _, value = line.strip().partition(": ")
        if not name.startswith("rlm-mem-") and name != "version":
            continue
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            continue
        if isinstance(read, str):
            yield name, read


def _skill_name(title: str) -> str:
    """A skill name from a title: lower-case letters, digits and single hyphens, as the format requires."""
    return _UNFIT.sub("-", title.lower())[:_MAX_NAME].strip("-") or "skill"


def _unused_name(name: str, taken: Collection[str]) -> str:
    names = (name if number == 1 else f"{name[: _MAX_NAME - 5]}-{number}" for number in range(1, 10_000))
    return next(one for one in names if one not in taken)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
