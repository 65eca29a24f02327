"""Checks of a store folder's files, links and index, and the repairs that only apply to files."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, cast

from rlm_mem.chunk import (
    NEWER_VERSION,
    ORDERED_LINK_TYPES,
    Chunk,
    content_hash,
    decode_chunk,
    encode_chunk,
    is_chunk_id,
    new_chunk_id,
)
from rlm_mem.errors import ConflictError, CorruptStore, InvalidChunk, StorageError
from rlm_mem.merging import MERGE_CONFLICT, NOT_FETCHED, sides
from rlm_mem.results import Progress
from rlm_mem.store.core import files
from rlm_mem.store.core.changes import is_logged, state_of
from rlm_mem.store.core.findings import Finding
from rlm_mem.store.core.integrity import (
    Replacements,
    circular_links,
    wrong_links,
    wrong_replacement,
    wrong_values,
)
from rlm_mem.store.core.records import (
    ACTIVE,
    ANY_REVISION,
    ARCHIVED,
    IMPORTED,
    ChunkRow,
    IndexEntry,
    is_mirror,
)
from rlm_mem.store.core.succession import replacing_nothing
from rlm_mem.store.local.backup import abandoned_backups, remove_abandoned_backups
from rlm_mem.store.local.folder import Layout, former_versions, read_chunk_file, status_at
from rlm_mem.store.local.prepare import ChunkFile, read_files
from rlm_mem.store.local.queries import find_row
from rlm_mem.store.local.schema import in_pages, shows_damage
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.local.local_index import LocalIndex
    from rlm_mem.store.local.transaction import Transaction

_NOTES = (".md", ".markdown")
_ARCHIVED_ELSE = ("archive/versions", "archive/continuum", "archive/damaged")
"""Folders of the archive with other files than archived chunks."""


def check_folder(store: ChunkStore, index: LocalIndex, progress: Progress | None) -> list[Finding]:
    """Check every file, every link and the whole index; ``progress`` is called with (files checked, files in all)."""
    try:
        findings = list(_findings(store, index, progress))
    except (sqlite3.DatabaseError, CorruptStore) as error:
        if not shows_damage(error):
            raise
        return [Finding("index-damaged", f"the index cannot be read: {error}")]
    except PermissionError as error:
        raise StorageError(
            f"{error.filename} cannot be read: {error.strerror}",
            hint="check as a user who may read all files",
        ) from error
    # Other processes may have written meanwhile, so findings that a write can explain are checked again.
    leftovers = _orphans(store, index, [finding for finding in findings if finding.code == "leftover-file"])
    misnamed = {finding.chunk_id for finding in findings if finding.code == "misnamed-file"}
    return [
        finding
        for finding in findings
        if (finding in leftovers if finding.code == "leftover-file" else _is_confirmed(index, finding))
        # The target exists, in a file of another name: that is a separate finding.
        and not (finding.code in ("dangling-link", "dangling-superseded") and finding.target_id in misnamed)
    ]


def _orphans(store: ChunkStore, index: LocalIndex, leftovers: list[Finding]) -> list[Finding]:
    """Return the unfinished files that no process is writing: under the write lock, no write is in progress."""
    if not leftovers or index.read_only:
        return leftovers
    with store.backend.transaction(""):
        return [finding for finding in leftovers if index.layout.absolute(finding.file or "").exists()]


def _is_confirmed(index: LocalIndex, finding: Finding) -> bool:
    """Return whether a difference between index and file persists: another process may have written meanwhile."""
    codes = ("index-missing-file", "orphaned-file", "index-outdated", "duplicate-id", "archived-change")
    if finding.code not in codes or finding.file is None:
        return True
    row = find_row(index.connection, finding.chunk_id) if finding.chunk_id else None
    path = index.layout.absolute(finding.file)
    if finding.code == "archived-change":
        return path.exists()
    if finding.code == "duplicate-id":
        # Archived or restored since its file was read, unless both files are there.
        return path.exists() and (row is None or row.path != finding.file)
    if row is None or row.path != finding.file:
        return path.exists() == (finding.code == "orphaned-file")
    try:
        _, sig = read_chunk_file(path)
    except (InvalidChunk, OSError):
        return True
    return sig != row.signature


def _findings(store: ChunkStore, index: LocalIndex, progress: Progress | None) -> Iterator[Finding]:
    connection, layout = index.connection, index.layout
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()
    if damage[0] != "ok":
        yield Finding("index-damaged", f"index.sqlite: {damage[0]}")
        return  # the rest of a damaged index cannot be checked
    versions = layout.archive / "versions"
    total = sum(1 for _ in _listed(layout)) + sum(1 for _ in _version_files(versions))
    of_chunks = read_files(str(layout.base), chain(_listed(layout), _version_files(versions)), "", count=total,
                           processes=store.config.store.processes)  # fmt: skip
    yield from _unnamed(layout)
    for name in layout.outdated_for_git() if (layout.base / ".gitignore").exists() else ():
        yield Finding("outdated-for-git", f"{name} is not as this version writes it", name)
    yield from _overlooked(layout)
    damaged_versions: list[Finding] = []
    unknown: dict[str, str] = {}
    archived: dict[str, list[str]] = {}
    replacements = Replacements()
    for done, found in enumerate(of_chunks, 1):
        if not found.path.startswith("archive/versions/"):
            yield from _file(store, index, found, unknown)
            entry = found.entry
            if entry is not None and found.path.startswith("archive/"):
                archived.setdefault(entry.namespace, []).append(found.id)
            elif entry is not None:
                replacements.note(found.id, entry.superseded_by, entry.valid_to is not None, _ends(entry))
        elif found.problem is not None:
            where = found.path
            damaged_versions.append(
                Finding("unreadable-version", f"{where}: {found.problem}", where, where.split("/")[2])
            )
        if progress is not None and (done % 100 == 0 or done == total):
            progress(done, max(done, total))
    for chunk_id, path in in_pages(connection, "SELECT doc, id, path FROM chunks"):
        if not layout.absolute(path).exists():
            yield Finding("index-missing-file", f"{path} is gone, the index lists {chunk_id}", path, chunk_id)
    for doc_id in connection.execute(
        "SELECT id FROM chunks LEFT JOIN segments USING(doc) WHERE status = ? AND segments.doc IS NULL",
        (ACTIVE,),
    ).fetchall():
        yield Finding("index-terms", f"{doc_id[0]} has no search terms in the index", None, doc_id[0])
    for namespace, ids in archived.items():
        yield from _changed_in_archive(store, index, namespace, set(ids))
    for newer_id, older_id in replacements.doubtful():
        yield from _replacement(store, index, newer_id, older_id)
    yield from _cycles(connection)
    yield from _leftovers(layout)
    yield from damaged_versions


def _replacement(store: ChunkStore, index: LocalIndex, newer_id: str, older_id: str) -> Iterator[Finding]:
    """Compare two chunks again under the write lock: one may have been written between the reads of their files."""
    with contextlib.nullcontext() if index.read_only else store.backend.transaction(""):
        rows = [find_row(index.connection, chunk_id) for chunk_id in (newer_id, older_id)]
        newer, older = (store.backend.read(row) if row and row.status == ACTIVE else None for row in rows)
    yield from wrong_replacement(newer, older, rows[0].path if rows[0] else None)


def _changed_in_archive(
    store: ChunkStore, index: LocalIndex, namespace: str, ids: set[str]
) -> Iterator[Finding]:
    """Report archived chunks that differ from their state when the audit log recorded their deletion."""
    last: dict[str, dict[str, Any]] = {}
    events = store.backend.read_events(namespace=namespace, since=None, op=None, chunk_id=None)
    for event in events:
        chunk_id = event.get("chunk_id")
        if event.get("code") == "unreadable-with-version":  # a repair, of an earlier state in the archive
            for one in event.get("chunk_ids") or ():
                last.pop(one, None)
        is_archived = event.get("op") == "delete" or event.get("archived")
        if not is_archived or chunk_id not in ids or IMPORTED in event or is_mirror(chunk_id):
            continue
        known = last.setdefault(chunk_id, event)  # the lines of two clones may be merged in any order
        last[chunk_id] = event if event["revision"] >= known["revision"] else known
    for chunk_id, event in last.items():
        row = find_row(index.connection, chunk_id)
        chunk = None if row is None or row.status == ACTIVE else store.backend.read(row)
        if row is None or chunk is None or chunk.revision < event["revision"]:
            continue
        is_later = "state" not in event and chunk.revision > event["revision"]  # of an earlier version
        if is_later or not is_logged(chunk, event):
            what = f"{chunk_id} was archived as revision {event['revision']}"
            yield Finding("archived-change", f"{what}, and what is archived was changed", row.path, chunk_id)


def _listed(layout: Layout) -> Iterator[str]:
    """Yield the chunk files, folder by folder, by name."""
    for folder in layout.folders():
        with os.scandir(layout.absolute(folder)) as entries:
            names = sorted(entry.name for entry in entries if files.is_json_file(entry))
        for name in names:
            yield f"{folder}/{name}"


def _unnamed(layout: Layout) -> Iterator[Finding]:
    """Report files and folders among the chunks whose names are not Unicode text: nothing reads them."""
    for folder in (layout.chunks, *map(layout.absolute, layout.folders())):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names alone
            if not name.isascii() and not files.is_unicode(folder / name):
                shown = layout.relative(folder / files.shown_name(name))
                yield Finding("unreadable-file", f"{shown}: the name is not Unicode text: rename it", shown)


def _overlooked(layout: Layout) -> Iterator[Finding]:
    """Report files that nothing reads, though they look like those of chunks: in other folders, or ``.JSON``."""
    names = (
        *files.names_below(layout.chunks, "chunks/"),
        *files.names_below(layout.archive, "archive/", left_out=_ARCHIVED_ELSE),
    )
    for name in sorted(names):
        folder, _, last = name.rpartition("/")
        is_read = last.endswith(".json") and (folder == "archive" or folder.rpartition("/")[0] == "chunks")
        if last.lower().endswith(_NOTES):
            yield Finding("note-among-chunks", f"{name} is not a chunk: nothing reads it", name)
        elif last.lower().endswith(".json") and not is_read:
            yield Finding(
                "misnamed-file",
                f"{name}: chunks are read from chunks/YYYY-MM/ID.json and archive/ID.json",
                name,
                last[:-5],
            )


def _version_files(folder: Path) -> Iterator[str]:
    """Yield the files of former versions, chunk by chunk."""
    for of_chunk in sorted(folder.iterdir()) if folder.is_dir() else []:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(path.name for path in of_chunk.iterdir()):
                if name.endswith(".json") and not name.startswith("."):
                    yield f"archive/versions/{of_chunk.name}/{name}"


def _file(
    store: ChunkStore, index: LocalIndex, found: ChunkFile, unknown: dict[str, str]
) -> Iterator[Finding]:
    path, layout = found.path, index.layout
    if found.problem is not None:
        yield _misnamed(index, found) if found.id else _unreadable(layout, found)
        return
    entry = found.entry
    if entry is None:
        return  # deleted or moved after the folder was listed
    row = find_row(index.connection, found.id)
    twin = unknown.get(found.id) if row is None else row.path
    if twin is not None and twin != path and layout.absolute(twin).exists():
        yield _duplicate_id(layout, found.id, twin, path)
        return
    yield from wrong_values(
        store,
        found.id,
        path,
        type_=entry.type,
        tokens=(entry.tokens, found.counted),
        hash_is_right=found.hash_is_right,
        validity=(entry.valid_from, entry.valid_to),
    )
    if row is None:
        unknown[found.id] = path
        yield Finding("orphaned-file", f"{path} is not in the index", path, found.id)
        return
    status = status_at(path)
    if (row.path, row.status, row.revision) != (path, status, entry.revision) or not _as_recorded(row, found):
        yield Finding("index-outdated", f"{path} is not as the index recorded it", path, found.id)
    elif status == ACTIVE:
        yield from _links(store, index, entry, row)


def _ends(entry: IndexEntry) -> list[tuple[str, str]]:
    """Return the targets and types of a chunk's links."""
    return [(target, kind) for target, kind, *_ in entry.links]


def _as_recorded(row: ChunkRow, found: ChunkFile) -> bool:
    """Return whether a file is the one that was indexed, or a copy of it with another inode."""
    recorded, seen = row.signature, found.signature
    alike = (recorded.size, recorded.mtime_ns) == (seen.size, seen.mtime_ns)
    return recorded == seen or (
        alike and found.entry is not None and row.content_hash == found.entry.content_hash
    )


def _misnamed(index: LocalIndex, found: ChunkFile) -> Finding:
    row = find_row(index.connection, found.id)
    if row is not None:
        return _duplicate_id(index.layout, found.id, row.path, found.path)
    return Finding("misnamed-file", f"{found.path}: {found.problem}", found.path, found.id)


def _duplicate_id(layout: Layout, chunk_id: str, used: str, path: str) -> Finding:
    active, archived = sorted((used, path), key=status_at)
    if status_at(archived) != status_at(active) and PurePath(archived).name == PurePath(active).name:
        with contextlib.suppress(InvalidChunk, OSError):  # which is a separate finding
            revisions = [read_chunk_file(layout.absolute(one))[0].revision for one in (archived, active)]
            if revisions[0] < revisions[1]:
                message = f"{chunk_id} is in {archived} as revision {revisions[0]}, and in {active} as {revisions[1]}"
                return Finding("archived-change", message, path, chunk_id)
    return Finding(
        "duplicate-id",
        f"{chunk_id} is in {used}, which is used, and in {path}, which is not: repair gives its text an id of its own",
        path,
        chunk_id,
    )


def _unreadable(layout: Layout, found: ChunkFile) -> Finding:
    stem, reason = found.path.rpartition("/")[2].removesuffix(".json"), found.problem or ""
    chunk_id, code = stem if is_chunk_id(stem) else None, "unreadable-file"
    if chunk_id is not None and found.invalid:
        if NEWER_VERSION in reason:
            code = "newer-version"
        elif reason == MERGE_CONFLICT and _agreed(layout.absolute(found.path)) is not None:
            code = "conflict-of-counts"
        # An older version must replace neither the sides of a conflict nor what git has not fetched yet.
        elif reason not in (MERGE_CONFLICT, NOT_FETCHED) and former_versions(
            layout, chunk_id, below=ANY_REVISION
        ):
            code = "unreadable-with-version"
    return Finding(code, f"{found.path}: {reason}", found.path, chunk_id)


def _agreed(path: Path) -> Chunk | None:
    """The chunk of a file in conflict whose sides differ in revision, access counts and times of change alone."""
    try:
        text = path.read_bytes().decode()
        ours, theirs = (decode_chunk(half.encode()) for half in sides(text))
    except (InvalidChunk, OSError, UnicodeDecodeError):
        return None
    ours.revision = theirs.revision = max(ours.revision, theirs.revision)
    for name in ("access_count", "accessed_at", "modified_at"):
        latest = max(getattr(ours.metadata, name), getattr(theirs.metadata, name))
        setattr(ours.metadata, name, latest)
        setattr(theirs.metadata, name, latest)
    return ours if ours == theirs else None


def _links(store: ChunkStore, index: LocalIndex, entry: IndexEntry, row: ChunkRow) -> Iterator[Finding]:
    chunk_id, path, links, layout, connection = (
        entry.id,
        row.path,
        _ends(entry),
        index.layout,
        index.connection,
    )
    # The links of the index with the namespaces of their targets, in one query.
    indexed = connection.execute(
        "SELECT l.dst_id, l.type, c.ns FROM links l LEFT JOIN chunks c ON c.id = l.dst_id WHERE l.doc = ?"
        " ORDER BY l.position",
        (row.doc,),
    ).fetchall()
    targets = {one[0]: one[2] for one in indexed}

    def exists(target_id: str) -> bool:
        if target_id not in targets:
            target = find_row(connection, target_id)
            targets[target_id] = None if target is None else target.ns
        # A file that exists but does not validate is a separate finding.
        return targets[target_id] is not None or any(
            (folder / f"{target_id}.json").exists() for folder in map(layout.absolute, layout.folders())
        )

    yield from wrong_links(store, chunk_id, path, links, entry.superseded_by, exists)
    for target_id, kind in links:
        if target_id != chunk_id and targets.get(target_id) not in (None, row.ns):
            message = f"{chunk_id}: {kind} → {target_id}"
            yield Finding("namespace-crossing-link", message, path, chunk_id, target_id, kind)
    # Bidirectional consistency: incoming links exist only in the index, derived from the files' outgoing ones.
    if [one[:2] for one in indexed] != links:
        yield Finding(
            "index-links", f"{chunk_id}: links in the index differ from those in the file", path, chunk_id
        )


def _cycles(connection: sqlite3.Connection) -> Iterator[Finding]:
    marks = ",".join("?" * len(ORDERED_LINK_TYPES))
    # A cycle needs a link to a later chunk. Usually there is none, and no graph has to be built in memory.
    for (kind,) in connection.execute(
        f"SELECT DISTINCT l.type FROM links l JOIN chunks s USING(doc) JOIN chunks d ON d.id = l.dst_id"
        f" WHERE l.type IN ({marks}) AND (d.at, d.doc) >= (s.at, s.doc)",
        ORDERED_LINK_TYPES,
    ).fetchall():
        links = connection.execute(
            "SELECT c.id, l.dst_id FROM links l JOIN chunks c USING(doc) WHERE l.type = ? AND c.status = 0",
            (kind,),
        )
        yield from circular_links(kind, links)


def _leftovers(layout: Layout) -> Iterator[Finding]:
    if layout.unfinished.is_dir():
        for path in sorted(layout.unfinished.iterdir()):
            yield Finding("leftover-file", f".tmp/{path.name} was never finished", f".tmp/{path.name}")
    for path in abandoned_backups(layout.base):
        yield Finding("leftover-backup", f"{path} was left by a killed backup", f"../{path.name}")


# --- repair ---------------------------------------------------------------------------------------------


def mend_folder(store: ChunkStore, index: LocalIndex, finding: Finding) -> bool:
    """Repair a damaged or misnamed file; False if that is not possible."""
    if finding.code == "misnamed-file":
        return _rename(store, index, finding)
    if finding.code == "conflict-of-counts":
        path = index.layout.absolute(finding.file or "")
        chunk = _agreed(path)
        if chunk is not None:
            files.write_atomic(path, encode_chunk(chunk))
            store.sync(full=True)
        return chunk is not None
    if finding.code == "archived-change":
        return _keep_change(store, index, finding)
    if finding.code == "outdated-for-git":
        content = index.layout.outdated_for_git().get(finding.file or "")
        if content is not None:
            files.write_atomic(index.layout.absolute(finding.file or ""), content)
        return content is not None
    if finding.code == "duplicate-id":
        return _keep_both(store, index, finding)
    if finding.code == "leftover-backup":
        remove_abandoned_backups(index.layout.base)
        return True
    return _restore_version(store, index, finding)


def _keep_change(store: ChunkStore, index: LocalIndex, finding: Finding) -> bool:
    """Restore a chunk that was changed in the archive; one that is active as well becomes its former version."""
    layout, row = index.layout, find_row(index.connection, finding.chunk_id or "")
    chunk = store.backend.read(row) if row is not None else None
    if row is None or chunk is None or finding.file is None:
        return False
    if row.path == finding.file:
        return store.confined_to(chunk.namespace, actor=store.actor).restore_chunk(row.id) is not None
    archived = next(one for one in (row.path, finding.file) if status_at(one) == ARCHIVED)
    with store.backend.transaction(chunk.namespace):
        former = read_chunk_file(layout.absolute(archived))[0]
        kept = layout.versions(row.id) / f"{former.revision}.json"
        if kept.exists():
            there = decode_chunk(kept.read_bytes())
            if (there.content, state_of(there)) != (former.content, state_of(former)):
                raise ConflictError(
                    f"{archived} is not the version {former.revision} of the active {row.id}: each side changed it",
                    hint=f"compare it with {layout.relative(kept)}, and remove {archived}",
                )
            files.remove(layout.absolute(archived))
        else:
            files.make_folder(kept.parent)
            files.publish(layout.absolute(archived), kept)
    store.sync(full=True)
    return True


def _changing(store: ChunkStore, namespace: str) -> AbstractContextManager[Transaction]:
    """Open a transaction of the folder, which also removes files."""
    return cast("AbstractContextManager[Transaction]", store.backend.transaction(namespace))


def _keep_both(store: ChunkStore, index: LocalIndex, finding: Finding) -> bool:
    """Store the text of the unused file of a chunk as a new chunk, or set the file aside if its text is known.

    The new chunk is no successor: what the chunk replaces, or is replaced by, stays as it is.
    """
    layout, row = index.layout, find_row(index.connection, finding.chunk_id or "")
    path = layout.absolute(finding.file or "")
    used = store.backend.read(row) if row is not None and row.path != finding.file else None
    if used is None or not path.exists():
        return False
    copy = decode_chunk(files.read_signed(path)[0])
    versions = former_versions(layout, used.id, below=ANY_REVISION)
    known = [used, *(one.chunk for one in versions)]
    if any((one.content, state_of(one)) == (copy.content, state_of(copy)) for one in known):
        # Under the name of the chunk, so that an erasure of it finds the file.
        kept = layout.damaged / f"{used.id}.json.{store.clock():%Y%m%dT%H%M%S%f}"
        files.make_folder(kept.parent)
        files.publish(path, kept)
    elif (own_id := _known_by_name(index, path, copy.id)) is not None:
        _write_id(path, copy, own_id)
    else:
        origin = {**copy.metadata.provenance, "original_id": copy.id}
        own = replacing_nothing(copy)
        own.revision, own.metadata.superseded_by, own.metadata.provenance = 1, None, origin
        own.metadata.content_hash, own.tokens = content_hash(own.content), count_tokens(own.content)
        part = store.confined_to(own.namespace, actor=store.actor)
        with _changing(store, own.namespace) as transaction:
            while own.id == copy.id or store.backend.id_taken(own):
                own.id = new_chunk_id(store.clock())
            part.adopt(own, archived=status_at(finding.file or "") == ARCHIVED)
            transaction.remove_file(path)  # with it: a crash between the two would store it twice
    store.sync(full=True)
    return True


def _known_by_name(index: LocalIndex, path: Path, inside: str) -> str | None:
    """Return the id by which a file is named, if the memory refers to that one rather than to the id inside.

    It refers to an id with former versions, or one that others link to or name as their successor.
    """
    layout, connection = index.layout, index.connection

    def is_known(chunk_id: str) -> bool:
        named = (
            "SELECT 1 FROM links WHERE dst_id = ? UNION SELECT 1 FROM chunks WHERE superseded_by = ? LIMIT 1"
        )
        has_versions = (layout.archive / "versions" / chunk_id).is_dir()
        return has_versions or connection.execute(named, (chunk_id, chunk_id)).fetchone() is not None

    named, row = path.stem, find_row(connection, inside)
    is_other = is_chunk_id(named) and named != inside and find_row(connection, named) is None
    is_free = row is None or layout.absolute(row.path) != path
    return (
        named
        if is_other and is_free and is_known(named) and (row is not None or not is_known(inside))
        else None
    )


def _write_id(path: Path, chunk: Chunk, chunk_id: str) -> None:
    """Give a chunk whose id was edited by hand the one that it had."""
    chunk.id = chunk_id
    files.write_atomic(path, encode_chunk(chunk))


def _id_in(path: Path) -> str | None:
    """Return the id of the chunk in a file; None if that cannot be read."""
    with contextlib.suppress(InvalidChunk, OSError):
        return decode_chunk(files.read_signed(path)[0]).id
    return None


def _rename(store: ChunkStore, index: LocalIndex, finding: Finding) -> bool:
    path: Path | None = index.layout.absolute(finding.file or "")
    is_first = True
    while path is not None:
        path = _put_in_place(store, index, path, may_be_edited=is_first)
        is_first = False
    store.sync(full=True)
    return True


def _put_in_place(store: ChunkStore, index: LocalIndex, path: Path, *, may_be_edited: bool) -> Path | None:
    """Give a file the name of the chunk in it; return the file that had the name but holds another chunk, renamed.

    ``may_be_edited``: the id inside may have been edited by hand, unless such another file shows an exchange.
    """
    layout = index.layout
    chunk = decode_chunk(files.read_signed(path)[0])
    target = path.with_name(f"{chunk.id}.json")
    if layout.relative(path.parent) not in layout.folders():
        target = layout.absolute(layout.path_of(chunk, status_at(layout.relative(path))))
    row = find_row(index.connection, chunk.id)
    others = [target, *([layout.absolute(row.path)] if row is not None else [])]
    others = [one for one in others if one.exists() and not one.samefile(path)]
    taken = [one for one in others if _id_in(one) in (None, chunk.id)]
    own_id = _known_by_name(index, path, chunk.id) if may_be_edited and (taken or not others) else None
    if own_id is not None:
        _write_id(path, chunk, own_id)
        return None
    if taken:
        raise ConflictError(
            f"{layout.relative(taken[0])} holds the chunk {chunk.id} already",
            hint=f"compare the two files, and remove {layout.relative(path)} or that one",
        )
    displaced = None
    if target in others:
        displaced = target.with_name(f"{target.stem}.{store.clock():%Y%m%dT%H%M%S%f}.json")
        files.publish(target, displaced)
    files.publish(path, target)
    return displaced


def _restore_version(store: ChunkStore, index: LocalIndex, finding: Finding) -> bool:
    """Set a damaged file aside (it is kept) and replace it by its newest valid former version."""
    layout = index.layout
    versions = former_versions(layout, finding.chunk_id or "", below=ANY_REVISION)
    path = layout.absolute(finding.file or "")
    if not versions or not path.exists():
        return False
    kept = layout.damaged / f"{path.name}.{store.clock():%Y%m%dT%H%M%S%f}"
    files.make_folder(kept.parent)
    chunk = versions[-1].chunk
    chunk.revision += 1
    # Copied, then replaced: a crash in between must not leave the chunk without a file.
    files.link_or_copy(path, kept)
    with _changing(store, store.namespace) as transaction:
        transaction.put(chunk, status=status_at(finding.file or ""), keep_version=False)
        if not path.samefile(layout.absolute(layout.path_of(chunk, status_at(finding.file or "")))):
            transaction.remove_file(path)
    store.sync(full=True)
    return True
