"""Integrity checks and repairs shared by every backend; no repair removes content.

How files or rows are read is up to the backend (``Backend.check``, ``Backend.mend``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import SUPERSEDES, Chunk, content_hash
from rlm_mem.errors import RlmMemError
from rlm_mem.lazy import logger
from rlm_mem.record import FrozenRecord
from rlm_mem.results import Progress
from rlm_mem.store.core.brain_files import name_at
from rlm_mem.store.core.erasing import finish_erasure, settle_damaged
from rlm_mem.store.core.erasure_marks import unfinished
from rlm_mem.store.core.findings import CODES, Finding
from rlm_mem.store.core.succession import MAX_CYCLE_DEPTH, successions
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_logger = logger("rlm_mem.store")

_ROUNDS = 5
_MANUAL = {code for code, (_, remedy) in CODES.items() if remedy.startswith("left")}
_REINDEX = {"index-missing-file", "orphaned-file", "index-outdated", "leftover-file"}
#: Repaired after the index, which must contain both chunks.
_ONE_SIDED = "one-sided-replacement"
_REBUILD = {"index-links", "index-terms", "index-damaged", "index-row", "index-counts"}


@observed("check")
def check(store: ChunkStore, *, progress: Progress | None = None) -> list[Finding]:
    """Check every chunk, every link and the whole index.

    Args:
        progress: called with (chunks checked, chunks in all).

    Returns:
        Findings in the order of chunks; none for a sound store. A confined store reports on its namespace only.
    """
    findings = store.backend.check(store, check_function(progress, "progress"))
    spaces = [store.namespace]
    if store.confined:
        findings = [
            one for one in findings if one.chunk_id and store.backend.find(store.namespace, one.chunk_id)
        ]
    else:
        spaces += [one for one in store.files.namespaces() if one != store.namespace]
    return [*findings, *(one for name in spaces for one in unfinished(store, name))]


class Repair(FrozenRecord, frozen=True):
    """A repair of one finding, done or planned.

    Attributes:
        action: a description of the repair.
        done: whether it was done; False in a dry run, and if only a person can decide.
        manual: whether only a person can decide.
        error: why it could not be done.
    """

    finding: Finding
    action: str
    done: bool = False
    manual: bool = False
    error: str | None = None


def repair(store: ChunkStore, *, dry_run: bool = True, progress: Progress | None = None) -> list[Repair]:
    """Repair the findings that can be repaired; every changed chunk keeps its former version.

    Args:
        dry_run: only report what would be done (the default).
    """
    check_flag(dry_run, "dry_run")
    results, seen = list[Repair](), set[Finding]()
    for _ in range(_ROUNDS):  # a former version that was brought back may have faults of its own
        findings = [one for one in check(store, progress=progress) if one not in seen]
        planned = [Repair(item, item.remedy, manual=item.code in _MANUAL) for item in findings]
        if dry_run:
            return planned
        made = _made(store, planned)
        results += made
        seen.update(findings)
        if not any(step.done for step in made):
            break
    return results


def _made(store: ChunkStore, planned: list[Repair]) -> list[Repair]:
    """Make the repairs that are planned; those of the index, and what needs it, come last."""
    later = _REINDEX | _REBUILD | {_ONE_SIDED}
    results = [step if step.manual or step.finding.code in later else _apply(store, step) for step in planned]
    codes = {step.finding.code for step in planned}
    if codes & _REBUILD:
        store.rebuild_index()
    elif codes & _REINDEX:
        store.sync(full=True)
    for place, step in enumerate(results):
        if step.finding.code == _ONE_SIDED:
            results[place] = _apply(store, step)
        elif step.finding.code in later:
            results[place] = Repair(step.finding, step.action, done=True)
    return results


def _apply(store: ChunkStore, step: Repair) -> Repair:
    finding = step.finding
    try:
        if finding.code in ("content-hash", "token-count"):
            done = _refresh(store, finding)
        elif finding.code in ("dangling-link", "self-link", "namespace-crossing-link"):
            done = _drop_link(store, finding)
        elif finding.code == _ONE_SIDED:
            done = _agree(store, finding)
        elif finding.code in ("erasure-cut-off", "unreadable-erasure"):
            done = _finish(store, finding)
        else:
            done = store.backend.mend(store, finding)
    except (RlmMemError, OSError) as error:
        _logger.error("repair of %s failed: %s", finding.file, error)
        return Repair(finding, step.action, error=str(error))
    store.record_event("repair", [finding.chunk_id] if finding.chunk_id else [], code=finding.code)
    return Repair(finding, step.action, done=done)


def _rewrite(store: ChunkStore, finding: Finding, change: Callable[[Chunk], bool]) -> bool:
    """Apply ``change`` to the chunk of a finding as a new revision; False if there is nothing left to change."""
    with store.backend.transaction(store.namespace) as transaction:
        row = store.backend.locate(store.namespace, finding.chunk_id or "")
        chunk = store.backend.read(row) if row else None
        if row is None or chunk is None or not change(chunk):
            return False
        chunk.revision += 1
        transaction.put(chunk, status=row.status)
    return True


def _refresh(store: ChunkStore, finding: Finding) -> bool:
    from rlm_mem.text.tokens import count_tokens

    def change(chunk: Chunk) -> bool:
        tokens, digest = count_tokens(chunk.content), content_hash(chunk.content)
        if (chunk.tokens, chunk.metadata.content_hash) == (tokens, digest):
            return False
        chunk.tokens, chunk.metadata.content_hash = tokens, digest
        return True

    return _rewrite(store, finding, change)


def _drop_link(store: ChunkStore, finding: Finding) -> bool:
    def change(chunk: Chunk) -> bool:
        kept = [
            link
            for link in chunk.links
            if (link.target_id, link.type) != (finding.target_id, finding.link_type)
        ]
        changed = len(kept) < len(chunk.links)
        chunk.links = kept
        if finding.target_id == chunk.metadata.superseded_by == chunk.id:
            chunk.metadata.superseded_by, changed = None, True
        return changed

    return _rewrite(store, finding, change)


def _agree(store: ChunkStore, finding: Finding) -> bool:
    row = store.backend.locate(store.namespace, finding.chunk_id or "")
    newer = store.backend.read(row) if row else None
    return newer is not None and store.agree(newer.namespace, newer.id, finding.target_id or "")


def _finish(store: ChunkStore, finding: Finding) -> bool:
    namespace, name = name_at(finding.file or "") or (None, "")
    if namespace is None:
        return False
    part = store.confined_to(namespace, actor=store.actor)
    reaching = part if store.confined else part.released()
    if finding.code == "unreadable-erasure":
        settle_damaged(reaching, name)
    else:
        finish_erasure(reaching)
    return not part.files.exists(name)


class Replacements:
    """Collects, chunk by chunk, which active chunks replace each other, and finds pairs that may be inconsistent."""

    def __init__(self) -> None:
        self._newer: dict[str, str] = {}
        self._ended: set[str] = set()
        self._links: set[tuple[str, str]] = set()

    def note(
        self, chunk_id: str, superseded_by: str | None, has_end: bool, links: Iterable[tuple[str, str]]
    ) -> None:
        """Add the data of one chunk.

        Args:
            has_end: whether it has ``valid_to``, as every replaced chunk should.
            links: its links as (target, type).
        """
        if superseded_by is not None and superseded_by != chunk_id:
            self._newer[chunk_id] = superseded_by
            if has_end:
                self._ended.add(chunk_id)
        self._links.update(
            (chunk_id, target) for target, kind in links if kind == SUPERSEDES and target != chunk_id
        )

    def doubtful(self) -> Iterator[tuple[str, str]]:
        """Yield pairs (newer, older) that may disagree, to be read again: they may have changed, or one is archived."""
        for older, newer in self._newer.items():
            if older not in self._ended or (newer, older) not in self._links:
                yield newer, older
        for newer, older in self._links:
            if self._newer.get(older) != newer:
                yield newer, older


def wrong_replacement(newer: Chunk | None, older: Chunk | None, path: str | None) -> Iterator[Finding]:
    """Report a disagreement of two active chunks (None: missing) on whether one replaces the other.

    Args:
        path: the file of the newer one, if it has one.
    """
    if newer is None or older is None or newer.namespace != older.namespace:
        return
    by, is_linked = older.metadata.superseded_by, older.id in successions(newer)
    where = (path, newer.id, older.id, SUPERSEDES)
    if by == newer.id and not is_linked:
        yield Finding(_ONE_SIDED, f"{older.id} is superseded by {newer.id}, which has no link to it", *where)
    elif by == newer.id and older.metadata.valid_to is None:
        yield Finding(_ONE_SIDED, f"{older.id} is superseded by {newer.id} and has no valid_to", *where)
    elif is_linked and by is None:
        yield Finding(_ONE_SIDED, f"{newer.id} supersedes {older.id}, which does not name it", *where)
    elif is_linked and by != newer.id:
        yield Finding("replaced-twice", f"{newer.id} supersedes {older.id}, which names {by}", *where)


def wrong_links(
    store: ChunkStore,
    chunk_id: str,
    path: str | None,
    links: Iterable[tuple[str, str]],
    superseded_by: str | None,
    exists: Callable[[str], bool],
) -> Iterator[Finding]:
    """Report wrong links of one chunk, and a wrong replacement.

    Args:
        links: targets and types.
        exists: returns whether a chunk of this id exists.
    """
    for target_id, kind in links:
        where = (path, chunk_id, target_id, kind)
        if kind not in store.types.link_types:
            yield Finding("unknown-link-type", f"{chunk_id}: link type {kind!r:.60}", *where)
        if target_id == chunk_id:
            yield Finding("self-link", f"{chunk_id} links to itself ({kind})", *where)
        elif not exists(target_id):
            yield Finding("dangling-link", f"{chunk_id}: {kind} → {target_id}, which is not there", *where)
    if superseded_by == chunk_id:
        message = f"{chunk_id} is superseded by itself"
        yield Finding("self-link", message, path, chunk_id, chunk_id, SUPERSEDES)
    elif superseded_by is not None and not exists(superseded_by):
        message = f"{chunk_id}: superseded by {superseded_by}"
        yield Finding("dangling-superseded", message, path, chunk_id, superseded_by)


def circular_links(kind: str, links: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Report a cycle of links of one type, given as sources and targets."""
    graph = TopologicalSorter[str]()
    for source, target in links:
        graph.add(source, target)
    try:
        graph.prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]  # each links to the next, the last is the first again
        if len(cycle) - 1 <= MAX_CYCLE_DEPTH:
            message = f"{kind} forms a cycle: {' → '.join(cycle)}"
            yield Finding("circular-links", message, None, cycle[0], cycle[-2], kind)


def wrong_values(
    store: ChunkStore,
    chunk_id: str,
    path: str | None,
    *,
    type_: str,
    tokens: tuple[int, int],
    hash_is_right: bool,
    validity: tuple[str | None, str | None],
) -> Iterator[Finding]:
    """Report wrong values of a chunk, given its stored and its recomputed values.

    Args:
        tokens: as stored, and as counted.
        validity: its ``valid_from`` and ``valid_to``.
    """
    if not hash_is_right:
        yield Finding(
            "content-hash",
            f"{chunk_id}: the content is not the one its hash was made of: it was edited by hand, or damaged",
            path,
            chunk_id,
        )
    stored, counted = tokens
    if counted != stored and hash_is_right:  # else the repair of the hash counts the tokens, too
        yield Finding("token-count", f"{chunk_id}: {stored} tokens stored, {counted} counted", path, chunk_id)
    if type_ not in store.types.chunk_types:
        yield Finding("unknown-type", f"{chunk_id}: type {type_!r:.60}", path, chunk_id)
    start, end = validity
    if start is not None and end is not None and start > end:
        message = f"{chunk_id}: valid_from {start} is after valid_to {end}"
        yield Finding("ends-before-start", message, path, chunk_id)
