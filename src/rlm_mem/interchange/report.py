"""Options and reports of imports and folder syncs, and the ledger of earlier imports."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import check_chunk_id
from rlm_mem.chunk.types import TRUST_LEVELS, amount
from rlm_mem.config import SecretAction
from rlm_mem.errors import InputError
from rlm_mem.interchange.folder_plan import FileChange
from rlm_mem.interchange.reading import clean
from rlm_mem.interchange.records import ImportNotice, ImportProblem, ImportSample
from rlm_mem.store.core.brain_files import LEDGER, BrainFiles
from rlm_mem.text.secrets import Screened, SecretsFound

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_LISTED = 10_000
_SAMPLES, _SAMPLE_CHARS = 20, 400


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import, documented by ``importing.import_source``."""

    dry_run: bool = False
    keep_namespaces: bool = True
    replace: bool = False
    again: bool = False
    history: bool = False
    duplicates: bool = False
    secrets: SecretAction | None = None
    trust: str | None = None

    def takes_tiers(self, store: ChunkStore) -> bool:
        """Return whether tiered memories and personalities are imported, which can instruct an agent.

        A client of a server can access the chunks of one namespace only, and a personality would apply to all of them.
        Of a source that is not trusted, a tiered memory would bypass the rules and the reviewer of its tier.
        """
        return not store.confined and self.trust in (None, TRUST_LEVELS[-1])


BY_COMMAND = "such files are imported by the command only, without --trust"


class _Report:
    secrets: dict[str, int]
    secrets_hidden: int

    def found(self, screened: Screened | SecretsFound) -> None:
        """Add secrets by rule, and whether they were hidden."""
        found = screened.report() if isinstance(screened, Screened) else screened
        self.add_secrets(found.rules, found.count if found.hidden else 0)

    def add_secrets(self, rules: Mapping[str, int], hidden: int) -> None:
        """Add counts of secrets by rule, ``hidden`` of which were hidden."""
        for rule, count in rules.items():
            self.secrets[rule] = self.secrets.get(rule, 0) + count
        self.secrets_hidden += hidden

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]  # the classes below are dataclasses


@dataclass
class FolderReport(_Report):
    """The result of a folder sync, or of its dry run.

    Paths are relative to the folder, with ``/``. A file is in one of the lists, but a renamed or restored one that was
    edited as well is also in ``changed``.

    Attributes:
        folder: its absolute path.
        change: the id by which ``undo`` reverts the sync; None if nothing was changed.
        added: new files. ``changed``: files whose former text is superseded by the present one.
        renamed: former and present path of files that keep their chunks.
        archived: removed files, whose chunks were archived.
        restored: files that exist again, whose chunks were restored.
        unchanged: number of unchanged files.
        refused: files that are not remembered, with reasons. ``failed``: the text files among them, and
            ``.``, the folder itself, if none of its files exists any more and all are kept.
        moved_from: the name of the moved folder that was continued.
        notices: files that are only partly remembered, with reasons.
        files: number of the examined files that are remembered now.
        chunks_created, chunks_updated, chunks_superseded, chunks_archived, chunks_restored: their numbers.
        ``updated`` ones have the same text at another position in the file, or under another name.
        chunks_linked: chunks whose links to other files of the folder were changed.
        tokens: of the new chunks.
        chunk_ids: the chunks of the present files, in the order of paths and texts, the first 10,000.
        secrets: number of apparent keys and passwords in the text, by rule; ``secrets_hidden`` of them were stored
            as ``[redacted:RULE]``.
    """

    folder: str
    dry_run: bool = False
    moved_from: str | None = None
    change: str | None = None
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    unchanged: int = 0
    refused: list[ImportProblem] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    notices: list[ImportProblem] = field(default_factory=list)
    files: int = 0
    chunks_created: int = 0
    chunks_updated: int = 0
    chunks_superseded: int = 0
    chunks_archived: int = 0
    chunks_restored: int = 0
    chunks_linked: int = 0
    tokens: int = 0
    chunk_ids: list[str] = field(default_factory=list)
    secrets: dict[str, int] = field(default_factory=dict)
    secrets_hidden: int = 0

    @property
    def touched(self) -> bool:
        """Whether anything was changed, or would be."""
        return bool(self.added or self.changed or self.renamed or self.archived or self.restored)

    @property
    def arrived(self) -> set[str]:
        """The files whose present text was not remembered under their name before."""
        return {*self.added, *self.changed, *self.restored, *(path for _, path in self.renamed)}

    def add(self, other: FolderReport) -> None:
        """Add the counts and lists of a part of the work."""
        for name in ("added", "changed", "renamed", "archived", "restored", "failed", "notices"):
            getattr(self, name).extend(getattr(other, name))
        for name in ("created", "updated", "superseded", "archived", "restored", "linked"):
            key = f"chunks_{name}"
            setattr(self, key, getattr(self, key) + getattr(other, key))
        self.unchanged += other.unchanged
        self.tokens += other.tokens
        self.add_secrets(other.secrets, other.secrets_hidden)

    def file(self, change: FileChange, *, touched: bool, adopted: bool = False) -> None:
        """Add a file that is remembered now.

        Args:
            touched: whether its chunks were changed, or would be.
            adopted: whether its chunks were stored before it was recorded.
        """
        assert change.path is not None
        path, former, kind = clean(change.path), change.former, change.kind
        edited = former is not None and former.digest != change.digest
        if adopted or kind == "changed":
            if touched:
                self.changed.append(path)
            else:
                self.unchanged += 1
            return
        if kind == "added":
            self.added.append(path)
        elif kind == "restored":
            self.restored.append(path)
        else:
            assert former is not None
            self.renamed.append((clean(former.path), path))
        if edited:
            self.changed.append(path)

    def __str__(self) -> str:
        counts = [
            (len(self.added), "added"), (len(self.changed), "changed"), (len(self.renamed), "renamed"),
            (len(self.restored), "restored"), (len(self.archived), "archived"), (self.unchanged, "unchanged"),
            (len(self.refused), "refused"),
        ]  # fmt: skip
        shown = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "no files"
        linked = f"; {amount(self.chunks_linked, 'chunk')} linked anew" if self.chunks_linked else ""
        return f"{self.folder}: {shown}{linked}"


@dataclass
class ImportReport(_Report):
    """The result of an import; counts are of chunks unless stated otherwise, lists have the first 10,000 entries.

    ``created`` are new, ``updated`` replaced stored ones, ``known`` were already stored, ``kept`` differ from the
    stored ones, which were kept (``conflicts`` has the reasons), ``archived`` are no longer in their source. Notes
    of a folder are synced: ``superseded`` are those whose text changed, ``restored`` were archived before, and
    ``documents`` has the result for each file. ``persona_files`` and ``brain_files`` (tiered memories and records)
    are files that were written unchanged, ``versions`` are former versions of chunks, ``events`` lines of the
    audit log. ``secrets`` counts by rule what looks like a key or password; ``secrets_hidden`` of them were, or
    would be, stored as ``[redacted:RULE]``, the others in clear. ``notices`` are remarks on what was read. ``samples``
    are the beginnings of the first 20 chunks that a dry run would create. ``change`` is the id by which ``undo``
    reverts the import, None if no chunk was changed.
    """

    source: str
    dry_run: bool = False
    formats: dict[str, int] = field(default_factory=dict)
    files: int = 0
    unchanged_files: int = 0
    passed_over: int = 0
    messages: int = 0
    created: int = 0
    updated: int = 0
    known: int = 0
    kept: int = 0
    archived: int = 0
    superseded: int = 0
    restored: int = 0
    persona_files: int = 0
    brain_files: int = 0
    versions: int = 0
    events: int = 0
    tokens: int = 0
    namespaces: dict[str, int] = field(default_factory=dict)
    secrets: dict[str, int] = field(default_factory=dict)
    secrets_hidden: int = 0
    chunk_ids: list[str] = field(default_factory=list)
    mapped: dict[str, str] = field(default_factory=dict)
    conflicts: list[ImportProblem] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    problem_count: int = 0
    notices: list[ImportNotice] = field(default_factory=list)
    samples: list[ImportSample] = field(default_factory=list)
    change: str | None = None
    documents: FolderReport | None = None
    finished: bool = False

    @property
    def touched(self) -> bool:
        """Whether any chunk was changed, or would be."""
        return bool(self.created or self.updated or self.archived or self.restored)

    @property
    def read_anything(self) -> bool:
        """Whether any item of the source was usable, in this or an earlier import."""
        chunks = self.touched or self.known or self.kept
        files = self.persona_files or self.brain_files or self.unchanged_files
        return bool(chunks or files or self.versions or self.events)

    def problem(self, where: str, reason: str) -> None:
        """Add an item that could not be read or stored."""
        self.problem_count += 1
        if len(self.problems) < _LISTED:
            self.problems.append(ImportProblem(where, reason))

    def conflict(self, where: str, reason: str) -> None:
        """Add a chunk that was not imported because the stored one was kept."""
        self.kept += 1
        if len(self.conflicts) < _LISTED:
            self.conflicts.append(ImportProblem(where, reason))

    def chunks(self, namespace: str, count: int, ids: Sequence[str] = ()) -> None:
        """Add chunks that were written, with their ids, or would be."""
        if count:
            self.namespaces[namespace] = self.namespaces.get(namespace, 0) + count
        self.chunk_ids += ids[: _LISTED - len(self.chunk_ids)]

    def sample(self, where: str, text: str) -> None:
        """Add a chunk that would be created."""
        if len(self.samples) < _SAMPLES:
            self.samples.append(ImportSample(where, text[:_SAMPLE_CHARS]))

    def renamed(self, original: str, chunk_id: str) -> None:
        """Add an id that could not be kept."""
        if len(self.mapped) < _LISTED:
            self.mapped[original] = chunk_id


_DIGEST = re.compile(r"[0-9a-f]{32}")


def _key(unit: str) -> str:
    """Return the unit as recorded: with a digest in place of the path of a file, and of what follows it."""
    kind, _, rest = unit.partition(":")
    is_path = kind in ("file", "document") or rest.startswith("file:")
    if not is_path or _DIGEST.fullmatch(rest):
        return unit
    return f"{kind}:{hashlib.sha256(rest.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


class Ledger:
    """The record of earlier imports: for each unit (a file, note or dialogue) its mark and chunk ids.

    A brain may be shared under git, so that of a path on this machine it has only the digest. What an earlier version
    wrote with the path itself is read, and replaced by the next write.

    Args:
        stored: the brain files of the namespace.
        write: False: read-only (dry run).

    Raises:
        StorageError: it cannot be read.
    """

    def __init__(self, stored: BrainFiles, *, write: bool = True) -> None:
        self._stored = stored
        self._write = write
        self._known: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._fresh: list[str] = []
        self._lines = 0
        self._has_paths = False
        self._load()

    def mark(self, unit: str) -> str | None:
        """Return the mark of the unit at its last import, or None."""
        found = self._known.get(_key(unit))
        return found[0] if found else None

    def ids(self, unit: str) -> tuple[str, ...]:
        """Return the ids of the chunks that were imported from the unit."""
        found = self._known.get(_key(unit))
        return found[1] if found else ()

    def note(self, unit: str, mark: str, ids: Sequence[str] = ()) -> None:
        """Record a unit; written at the next flush, which follows the commit of its chunks."""
        key = _key(unit)
        if self._write and self._known.get(key) != (mark, tuple(ids)):
            self._known[key] = (mark, tuple(ids))
            self._fresh.append(json.dumps([key, mark, list(ids)]) + "\n")

    def flush(self) -> None:
        """Append the new records; raises StorageError."""
        if not self._fresh:
            return
        self._lines += len(self._fresh)
        if self._has_paths or self._lines > 1000 + 2 * len(self._known):
            lines = (json.dumps([unit, mark, list(ids)]) + "\n" for unit, (mark, ids) in self._known.items())
            self._stored.write(LEDGER, "".join(lines).encode(), durable=False)
            self._lines, self._has_paths = len(self._known), False
        else:
            self._stored.append(LEDGER, "".join(self._fresh).encode())
        self._fresh.clear()

    def _load(self) -> None:
        data = self._stored.read(LEDGER) or b""
        if self._write and data and not data.endswith(b"\n"):
            self._fresh.append("\n")  # the last line was truncated: start the next one on a new line
        for line in data.decode("utf-8", "replace").splitlines():
            self._lines += 1
            try:
                unit, mark, ids = json.loads(line)
                key = _key(str(unit))
                self._known[key] = (str(mark), tuple(check_chunk_id(item) for item in ids))
                self._has_paths |= key != unit
            except (ValueError, TypeError, RecursionError, InputError):
                continue  # a line truncated by a crash: its unit is imported again, and its chunks are known
