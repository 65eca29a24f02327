"""Links between the documents of a folder: ``[[wiki links]]`` and Markdown links to other files of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from urllib.parse import unquote

from rlm_mem.chunk import ChunkLinks, format_time, name_key
from rlm_mem.chunk.types import REFERS_TO
from rlm_mem.interchange.folder_record import FileEntry, FolderRecord, Heading, Reference
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.blocks import CODE, blocks

_WIKI = re.compile(r"\[\[([^\[\]\n|]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]")
_MARKDOWN = re.compile(r"\]\([ \t]{0,3}(?:<([^<>\n]{1,300})>|((?:[^\s()<>]|\([^\s()<>]{0,100}\)){1,300}))")
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.{0,200})", re.MULTILINE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOT = 50
"""Documents whose chunks are looked up together."""
MAX_LOCK_SECONDS = 1.0
"""Seconds after which a transaction ends and leaves the rest to the next one, so that other writers can proceed."""
_REASON = "a link in its text"
"""The reasoning of the links made here; links of this type with another one were made by hand."""


def references_in(
    texts: Sequence[tuple[str, str]], former: Sequence[Reference] = ()
) -> tuple[Reference, ...]:
    """Return the links of a document to other files.

    Args:
        texts: id and text of each chunk.
        former: the references of its former state; those that remain lead where they led until all are compared.
    """
    known = {one[:3]: one for one in former}
    found = (
        Reference(chunk_id, target, heading)
        for chunk_id, text in texts
        for target, heading in _targets_in(text)
    )
    return tuple(known.get(one[:3], one) for one in found)


def _targets_in(text: str) -> list[tuple[str, str]]:
    """Return the targets of the links of a text, each with the heading that it names, if any.

    The target of a wiki link begins with ``[[``, since it is looked up by its name; that of a Markdown link is a path.
    """
    found: dict[tuple[str, str], None] = {}
    code: list[tuple[int, int]] | None = None
    for match in (*_WIKI.finditer(text), *_MARKDOWN.finditer(text)):
        if code is None:
            code = [(one.start, one.end) for one in blocks(text) if one.kind == CODE]
        if any(start <= match.start() < end for start, end in code):
            continue
        wiki = match[0].startswith("[[")
        written = match[1].rstrip("\\") if wiki else unquote(match[1] or match[2])
        target, _, heading = written.partition("#")
        if target.strip() and "\0" not in target and not _SCHEME.match(target):
            prefix = "[[" if wiki else ""
            found[prefix + target.strip(), _plain(heading.rpartition("#")[2])] = None
    return list(found)


def headings_in(texts: Sequence[tuple[str, str]]) -> tuple[Heading, ...]:
    """Return the headings of a document with the chunks that they are in, from the second chunk on.

    Args:
        texts: id and text of each chunk; a heading that names no other chunk leads to the first one.
    """
    found: dict[str, Heading] = {}
    for place, (chunk_id, text) in enumerate(texts):
        for match in _HEADING.finditer(text):
            name = _plain(match[1])
            if name:
                found.setdefault(name, Heading(name, chunk_id if place else ""))
    return tuple(one for one in found.values() if one.source)


def _plain(heading: str) -> str:
    """Return the letters and digits of a heading, so that ``#The Keys`` and ``#the-keys`` are the same."""
    return "".join(char for char in name_key(heading) if char.isalnum())


def relinked(live: Mapping[str, FileEntry]) -> list[tuple[FileEntry, FileEntry]]:
    """Return each entry of which a reference leads to another chunk than recorded, with the entry as it should be."""
    if not any(entry.references for entry in live.values()):
        return []
    names = _Names(live)
    changed = []
    for path in sorted(live):
        entry = live[path]
        chunks = [names.chunk(path, one) for one in entry.references]
        if chunks != [one.chunk for one in entry.references]:
            present = [one._replace(chunk=chunk) for one, chunk in zip(entry.references, chunks, strict=True)]
            changed.append((entry, replace(entry, references=tuple(present))))
    return changed


class _Names:
    """Looks up the documents of a folder by the names that links use."""

    def __init__(self, live: Mapping[str, FileEntry]) -> None:
        self._live = live
        self._found: dict[tuple[str, str], str | None] = {}
        self._paths: dict[str, str] = {}
        self._ends: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        for path in sorted(live, key=lambda path: (path.count("/"), path)):
            folded = name_key(path)
            for name in dict.fromkeys((folded, posixpath.splitext(folded)[0])):
                self._paths.setdefault(name, path)
                parts = name.split("/")
                for place in range(len(parts)):
                    self._ends.setdefault("/".join(parts[place:]), path)
            for alias in live[path].aliases:
                self._aliases.setdefault(name_key(alias), path)

    def chunk(self, source: str, reference: Reference) -> str:
        """Return the chunk that a link in the document ``source`` leads to, or an empty string."""
        target, heading = reference.target, reference.heading
        key = posixpath.dirname(source), target
        if key not in self._found:
            wiki = target.startswith("[[")
            self._found[key] = self._document(key[0], name_key(target.removeprefix("[[").strip()), wiki=wiki)
        path = self._found[key]
        entry = self._live[path] if path is not None and path != source else None
        if entry is None or not entry.pieces:
            return ""
        if not heading:
            return entry.pieces[0].id
        return next((one.source for one in entry.headings if one.name == heading), entry.pieces[0].id)

    def _document(self, folder: str, target: str, *, wiki: bool) -> str | None:
        """Return the path of the document: by its path from ``folder`` or the root, else the nearest to the root.

        A wiki link that names no file leads to the document with this alias.
        """
        near = posixpath.normpath(posixpath.join(name_key(folder), target.lstrip("/")))
        root = posixpath.normpath(target.lstrip("/"))
        paths = (root, near) if wiki or target.startswith("/") else (near, root)
        found = next((self._paths[path] for path in paths if path in self._paths), None)
        if found is None and (wiki or "/" not in root):
            found = self._ends.get(root)
        return self._aliases.get(target) if found is None and wiki else found


def link_some(
    store: ChunkStore, record: FolderRecord, changed: Sequence[tuple[FileEntry, FileEntry]]
) -> tuple[int, int]:
    """Link the chunks of the first of these documents, inside a transaction; it takes about a second at most.

    Returns:
        the number of documents done, and of chunks changed. What another process changed meanwhile is left alone.
    """
    record.refresh(former.path for former, _ in changed)
    done, count, parts = 0, 0, set()
    until = monotonic() + MAX_LOCK_SECONDS
    while done < len(changed) and not (done and monotonic() > until):
        lot = [one for one in changed[done : done + _LOT] if record.has_entry(one[0])]
        count += _link(store, lot)
        for former, present in lot:
            record.remove(former)
            parts.add(record.put(present))
        done += _LOT
    record.write(parts)
    return min(done, len(changed)), count


def _link(store: ChunkStore, lot: Sequence[tuple[FileEntry, FileEntry]]) -> int:
    """Give the chunks of some documents the links of their references; return the number changed."""
    wanted: dict[str, list[str]] = {}
    for former, present in lot:
        before = _targets(former)
        wanted |= {one: ids for one, ids in _targets(present).items() if ids != before.get(one)}
    chunks = store.get_many(list(wanted))  # without those that were deleted in the memory
    existing = store.existing({target for targets in wanted.values() for target in targets})
    made_at = format_time(store.clock())
    count = 0
    for chunk_id, chunk in chunks.items():
        links = list(_links(chunk.links, [one for one in wanted[chunk_id] if one in existing], made_at))
        if links != chunk.links:
            count += store.update_chunk(chunk_id, links=links) is not None
    return count


def _targets(entry: FileEntry) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {one.source: {} for one in entry.references}
    for one in entry.references:
        if one.chunk:
            found[one.source][one.chunk] = None
    return {source: list(targets) for source, targets in found.items()}


def _links(links: Sequence[ChunkLinks], targets: Collection[str], made_at: str) -> Iterator[ChunkLinks]:
    """Yield the links of a chunk, those of references replaced by links to ``targets``."""
    present = set()
    for link in links:
        if link.type == REFERS_TO:
            if link.reasoning == _REASON and link.target_id not in targets:
                continue
            present.add(link.target_id)
        yield link
    for target in targets:
        if target not in present:
            yield ChunkLinks(target, REFERS_TO, 1.0, made_at, _REASON)
