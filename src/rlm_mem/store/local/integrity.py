"""Checks of a store's files, links and index (seed 003, Data Integrity Checks); nothing here changes anything."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk, content_hash, is_chunk_id
from rlm_mem.errors import CorruptStore, InvalidChunk
from rlm_mem.store.local.healing import shows_damage
from rlm_mem.store.local.rows import ACTIVE, ARCHIVED, find_row
from rlm_mem.store.local.sync import read_chunk_file
from rlm_mem.store.local.workers import examined
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.local.layout import Layout
    from rlm_mem.store.local.local_backend import LocalBackend
    from rlm_mem.store.local.prepare import Examined

__all__ = ["CODES", "Finding", "check", "find_cycle", "wrong_fields"]

#: Link types that express an order in time or origin: going round in a circle contradicts them. The others
#: (shared tags, same conversation, similarity) hold both ways by nature.
ORDERED_LINKS = ("follows", "derived_from")
MAX_CYCLE_DEPTH = 64

#: Every code, what it means, and what `repair` does about it.
CODES: dict[str, tuple[str, str]] = {
    "unreadable-file": (
        "not valid JSON, or a required field is missing or malformed",
        "left in place for a person",
    ),
    "unreadable-with-version": (
        "the file does not validate, but a former version of it does",
        "moves the damaged file to archive/damaged/ and brings the newest former version back",
    ),
    "misnamed-file": ("the file name and the id inside differ", "renames the file, if that name is free"),
    "duplicate-id": ("two files hold the same id", "left in place for a person"),
    "content-hash": (
        "the content was edited: its stored hash is another",
        "writes the right hash as a new revision",
    ),
    "token-count": (
        "the stored token count is not that of the content",
        "writes the right count as a new revision",
    ),
    "unknown-type": (
        "the chunk type is neither built in nor registered",
        "left: register the type or change it",
    ),
    "unknown-link-type": (
        "the link type is neither built in nor registered",
        "left: register the type or change it",
    ),
    "dangling-link": ("the link's target does not exist", "removes the link (the former version is kept)"),
    "dangling-superseded": ("superseded_by names a chunk that does not exist", "left for a person"),
    "self-link": ("the chunk links to itself", "removes the link (the former version is kept)"),
    "circular-links": ("links of an ordered type go round in a circle", "left for a person"),
    "namespace-crossing-link": (
        "the link leads into another namespace",
        "removes the link (the former version is kept)",
    ),
    "index-missing-file": ("the index lists a chunk whose file is gone", "drops the index entry"),
    "orphaned-file": ("a chunk file that the index does not know", "adds it to the index"),
    "index-outdated": (
        "the index holds another state of the chunk than its file",
        "reads the file into the index",
    ),
    "index-links": (
        "incoming or outgoing links in the index are not those of the file",
        "rebuilds the index",
    ),
    "index-terms": ("search terms of the chunk are missing from the index", "rebuilds the index"),
    "index-damaged": ("SQLite reports damage in the index", "rebuilds the index"),
    "leftover-file": ("an unfinished file of a killed process", "removes it (it was never acknowledged)"),
    "unreadable-row": ("the text of a chunk in the database does not validate", "left in place for a person"),
    "unreadable-row-with-version": (
        "the text of a chunk in the database does not validate, but a former version of it does",
        "keeps the damaged text as a file archive/damaged/…, and brings the newest former version back",
    ),
    "index-row": ("columns of the chunk's row are not those of its text", "rebuilds the index"),
    "index-counts": ("a count kept in the database is not the one counted anew", "rebuilds the index"),
    "orphaned-row": ("rows of a table that belong to no chunk", "removes them"),
    "tiered-memory": ("a tiered memory breaks a rule of its schema", "left in place for a person"),
    "tiered-undated": (
        "a tiered memory has no created_at: the time of its file stands in",
        "left: write one into its frontmatter",
    ),
    "damaged-file": (
        "parts of a file of the brain are missing in the database, or too many",
        "left: bring it back from a backup or an export",
    ),
    "change-interrupted": ("a change of tiered memories was begun and not finished", "finishes the change"),
    "unreadable-version": ("a kept former version does not validate", "left in place for a person"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        code: one of CODES.
        message: one sentence with the particulars.
        file: path relative to the store (of a tiered memory: to the brain), or None for the index.
        chunk_id: the chunk concerned, if it is known.
        target_id: the other end, for links.
        link_type: the link's type, for links.
    """

    code: str
    message: str
    file: str | None = None
    chunk_id: str | None = None
    target_id: str | None = None
    link_type: str | None = None

    @property
    def meaning(self) -> str:
        """What the code stands for."""
        return CODES[self.code][0]

    @property
    def remedy(self) -> str:
        """What `repair` does about it."""
        return CODES[self.code][1]


@observed("check")
def check(store: ChunkStore, *, progress: Callable[[int, int], None] | None = None) -> list[Finding]:
    """Look at every file, every link and the whole index.

    Args:
        progress: called with (files looked at, files in all).

    Returns:
        Findings in the order of files; none for a sound store. A confined store reports on its namespace only.
    """
    from rlm_mem.store.local.local_backend import LocalBackend

    backend = store.backend
    if not isinstance(backend, LocalBackend):
        from rlm_mem.store.postgres.integrity import check_database

        return check_database(store, progress)
    connection = backend.connection
    # One snapshot of the index for the whole check, so that writers at work are no findings.
    own_read = not connection.in_transaction
    if own_read:
        connection.execute("BEGIN")
    try:
        findings = list(_findings(store, backend, connection, progress))
    except (sqlite3.DatabaseError, CorruptStore) as error:
        if not shows_damage(error):
            raise
        return [Finding("index-damaged", f"the index cannot be read: {error}")]
    finally:
        if own_read and connection.in_transaction:
            connection.execute("COMMIT")
    leftovers = _orphans(backend, [finding for finding in findings if finding.code == "leftover-file"])
    confirmed = [
        finding
        for finding in findings
        if (finding in leftovers if finding.code == "leftover-file" else _still_there(backend, finding))
    ]
    if store.confined:
        return [finding for finding in confirmed if _concerns(store, finding)]
    return confirmed


def _concerns(store: ChunkStore, finding: Finding) -> bool:
    return bool(finding.chunk_id and store.backend.find(store.namespace, finding.chunk_id))


def _orphans(backend: LocalBackend, leftovers: list[Finding]) -> list[Finding]:
    """Unfinished files that nobody is writing: under the write lock there is no work in progress."""
    if not leftovers or backend.read_only:
        return leftovers
    with backend.transaction(""):
        return [finding for finding in leftovers if backend.layout.absolute(finding.file or "").exists()]


def _still_there(backend: LocalBackend, finding: Finding) -> bool:
    """Whether a finding about index against file holds at a second look (somebody may have written meanwhile)."""
    if finding.code not in ("index-missing-file", "orphaned-file", "index-outdated") or finding.file is None:
        return True
    row = find_row(backend.connection, finding.chunk_id) if finding.chunk_id else None
    path = backend.layout.absolute(finding.file)
    if row is None or row.path != finding.file:
        return path.exists() == (finding.code == "orphaned-file")
    try:
        _, sig = read_chunk_file(path)
    except (InvalidChunk, OSError):
        return True
    return sig != row.signature


def _findings(
    store: ChunkStore,
    backend: LocalBackend,
    connection: sqlite3.Connection,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Finding]:
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()
    if damage[0] != "ok":
        yield Finding("index-damaged", f"index.sqlite: {damage[0]}")
        return  # whatever else it says means nothing
    layout = backend.layout
    versions = layout.archive / "versions"
    total = sum(1 for _ in _listed(layout)) + sum(1 for _ in _version_files(versions))
    of_chunks = examined(str(layout.base), chain(_listed(layout), _version_files(versions)), total,
                         processes=store.config.store.processes)  # fmt: skip
    damaged_versions: list[Finding] = []
    unknown: dict[str, str] = {}
    for done, found in enumerate(of_chunks, 1):
        if not found.path.startswith("archive/versions/"):
            yield from _file(store, layout, connection, found, unknown)
        elif found.problem is not None:
            where = found.path
            damaged_versions.append(
                Finding("unreadable-version", f"{where}: {found.problem}", where, where.split("/")[2])
            )
        if progress is not None and (done % 100 == 0 or done == total):
            progress(done, max(done, total))
    for chunk_id, path in connection.execute("SELECT id, path FROM chunks"):
        if not layout.absolute(path).exists():
            yield Finding("index-missing-file", f"{path} is gone, the index lists {chunk_id}", path, chunk_id)
    for doc_id in connection.execute(
        "SELECT id FROM chunks LEFT JOIN segments USING(doc) WHERE status = ? AND segments.doc IS NULL",
        (ACTIVE,),
    ):
        yield Finding("index-terms", f"{doc_id[0]} has no search terms in the index", None, doc_id[0])
    yield from _cycles(connection)
    yield from _leftovers(layout.unfinished)
    yield from damaged_versions


def _listed(layout: Layout) -> Iterator[str]:
    """The files of chunks, folder by folder, by name."""
    for folder in layout.folders():
        with os.scandir(layout.absolute(folder)) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.is_file()
            )
        for name in names:
            yield f"{folder}/{name}"


def _version_files(folder: Path) -> Iterator[str]:
    """The files of former versions, chunk by chunk."""
    for of_chunk in sorted(folder.iterdir()) if folder.is_dir() else []:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(path.name for path in of_chunk.iterdir()):
                if name.endswith(".json") and not name.startswith("."):
                    yield f"archive/versions/{of_chunk.name}/{name}"


def _file(
    store: ChunkStore,
    layout: Layout,
    connection: sqlite3.Connection,
    found: Examined,
    unknown: dict[str, str],
) -> Iterator[Finding]:
    path = found.path
    if found.problem is not None:
        stem = path.rpartition("/")[2].removesuffix(".json")
        if found.invalid:
            yield _unreadable(layout, path, stem, found.problem)
        else:
            known = stem if is_chunk_id(stem) else None
            yield Finding("unreadable-file", f"{path}: {found.problem}", path, known)
        return
    if not found.id:
        return  # deleted or moved since the folder was listed
    row = find_row(connection, found.id)
    twin = unknown.get(found.id) if row is None else row.path
    if twin is not None and twin != path and layout.absolute(twin).exists():
        yield Finding("duplicate-id", f"{found.id} is in {twin} and in {path}", path, found.id)
        return
    yield from _wrong(
        store,
        found.id,
        path,
        type_=found.type,
        tokens=(found.tokens, found.counted),
        hash_is_right=found.hash_is_right,
    )
    if row is None:
        unknown[found.id] = path
        yield Finding("orphaned-file", f"{path} is not in the index", path, found.id)
        return
    status = ARCHIVED if path.startswith("archive/") else ACTIVE
    if (row.path, row.signature, row.status, row.revision) != (path, found.signature, status, found.revision):
        yield Finding("index-outdated", f"{path} is not as the index recorded it", path, found.id)
    elif status == ACTIVE:
        yield from _links(store, connection, found, row.doc, row.ns)


def _unreadable(layout: Layout, path: str, stem: str, reason: str) -> Finding:
    from rlm_mem.store.local.history import former_versions

    if not is_chunk_id(stem):
        return Finding("unreadable-file", f"{path}: {reason}", path)
    if "file name and id must agree" in reason:
        return Finding("misnamed-file", f"{path}: {reason}", path, stem)
    if former_versions(layout, stem, below=2**62):
        return Finding("unreadable-with-version", f"{path}: {reason}", path, stem)
    return Finding("unreadable-file", f"{path}: {reason}", path, stem)


def wrong_fields(store: ChunkStore, chunk: Chunk, path: str | None) -> Iterator[Finding]:
    """What is wrong with a chunk by itself: its hash, its count of tokens, its type."""
    from rlm_mem.text.tokens import count_tokens

    return _wrong(
        store,
        chunk.id,
        path,
        type_=chunk.type,
        tokens=(chunk.tokens, count_tokens(chunk.content)),
        hash_is_right=content_hash(chunk.content) == chunk.metadata.content_hash,
    )


def _wrong(
    store: ChunkStore,
    chunk_id: str,
    path: str | None,
    *,
    type_: str,
    tokens: tuple[int, int],
    hash_is_right: bool,
) -> Iterator[Finding]:
    if not hash_is_right:
        yield Finding(
            "content-hash", f"{chunk_id}: the content is not the one its hash was made of", path, chunk_id
        )
    stored, counted = tokens
    if counted != stored:
        yield Finding("token-count", f"{chunk_id}: {stored} tokens stored, {counted} counted", path, chunk_id)
    if type_ not in store.types.chunk_types:
        yield Finding("unknown-type", f"{chunk_id}: type {type_!r:.60}", path, chunk_id)


def _links(
    store: ChunkStore, connection: sqlite3.Connection, found: Examined, doc: int, ns: int
) -> Iterator[Finding]:
    path, chunk_id = found.path, found.id
    # The links of the index with the namespaces of their targets, in one question.
    indexed = connection.execute(
        "SELECT l.dst_id, l.type, c.ns FROM links l LEFT JOIN chunks c ON c.id = l.dst_id WHERE l.doc = ?"
        " ORDER BY l.position",
        (doc,),
    ).fetchall()
    targets = {row[0]: row[2] for row in indexed}
    for target_id, kind in found.links:
        where = (path, chunk_id, target_id, kind)
        if kind not in store.types.link_types:
            yield Finding("unknown-link-type", f"{chunk_id}: link type {kind!r:.60}", *where)
        if target_id == chunk_id:
            yield Finding("self-link", f"{chunk_id} links to itself ({kind})", *where)
            continue
        if target_id not in targets:
            target = find_row(connection, target_id)
            targets[target_id] = None if target is None else target.ns
        if targets[target_id] is None:
            yield Finding("dangling-link", f"{chunk_id}: {kind} → {target_id}, which is not there", *where)
        elif targets[target_id] != ns:
            yield Finding("namespace-crossing-link", f"{chunk_id}: {kind} → {target_id}", *where)
    successor = found.superseded_by
    if successor is not None and find_row(connection, successor) is None:
        yield Finding(
            "dangling-superseded", f"{chunk_id}: superseded by {successor}", path, chunk_id, successor
        )
    # Bidirectional consistency: incoming links exist only in the index, made from the files' outgoing ones.
    if [row[:2] for row in indexed] != found.links:
        yield Finding(
            "index-links", f"{chunk_id}: links in the index differ from those in the file", path, chunk_id
        )


def _cycles(connection: sqlite3.Connection) -> Iterator[Finding]:
    marks = ",".join("?" * len(ORDERED_LINKS))
    # A circle needs a link to what came later. Usually there is none, and no graph has to be held in memory.
    for (kind,) in connection.execute(
        f"SELECT DISTINCT l.type FROM links l JOIN chunks s USING(doc) JOIN chunks d ON d.id = l.dst_id"
        f" WHERE l.type IN ({marks}) AND (d.at, d.doc) >= (s.at, s.doc)",
        ORDERED_LINKS,
    ).fetchall():
        graph: dict[str, list[str]] = {}
        for source, target in connection.execute(
            "SELECT c.id, l.dst_id FROM links l JOIN chunks c USING(doc) WHERE l.type = ? AND c.status = 0",
            (kind,),
        ):
            graph.setdefault(source, []).append(target)
        circle = find_cycle(graph)
        if circle and len(circle) <= MAX_CYCLE_DEPTH:
            shown = " → ".join([*circle, circle[0]])
            yield Finding(
                "circular-links", f"{kind} goes in a circle: {shown}", None, circle[0], circle[-1], kind
            )


def find_cycle(graph: dict[str, list[str]]) -> list[str] | None:
    """One circle of a directed graph, or None; linear in nodes and edges, no recursion."""
    done: set[str] = set()
    for start in graph:
        if start in done:
            continue
        trail: list[str] = [start]
        on_trail = {start}
        stack = [iter(graph[start])]
        while stack:
            for target in stack[-1]:
                if target in on_trail:
                    return trail[trail.index(target) :]
                if target not in done and target in graph:
                    trail.append(target)
                    on_trail.add(target)
                    stack.append(iter(graph[target]))
                    break
            else:
                stack.pop()
                finished = trail.pop()
                on_trail.discard(finished)
                done.add(finished)
    return None


def _leftovers(folder: Path) -> Iterator[Finding]:
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            yield Finding("leftover-file", f".tmp/{path.name} was never finished", f".tmp/{path.name}")
