"""Syncs the memory of a project with the files that it keeps for its coding agents (``formats.instructions``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rlm_mem.chunk.types import check_trust
from rlm_mem.interchange.documents import SyncOptions
from rlm_mem.interchange.folder_names import FolderName
from rlm_mem.interchange.folder_sync import FolderSync
from rlm_mem.interchange.folders import places_of
from rlm_mem.interchange.formats.instructions import kind_of, may_hold
from rlm_mem.interchange.places import Entry, FolderPlace
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.interchange.report import FolderReport
from rlm_mem.interchange.target import WriteTarget
from rlm_mem.results import Progress
from rlm_mem.store.core.chunk_store import ChunkStore

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]")


class ProjectFiles:
    """The files that a project keeps for its agents: those in its folder, and the notes of Claude Code about it.

    Args:
        store: the store of the project's namespace.
        root: the folder of the project; hidden folders are entered only where tools keep rules in them.
        home, environ: of the user, where Claude Code keeps its notes.
        trust: of new memories.
    """

    def __init__(
        self, store: ChunkStore, root: Path, home: Path, environ: Mapping[str, str], trust: str
    ) -> None:
        self._store = store
        self._options = SyncOptions(trust=check_trust(trust), branches=True, unrecorded="ask")
        self._places: list[FolderPlace] = [_ProjectPlace(root.resolve(), apart=places_of(store), whole=True)]
        notes = _notes_of_claude(root, home, environ)
        if notes.is_dir():
            self._places.append(FolderPlace(notes, whole=True))

    def entries(self) -> Iterator[Entry | ImportProblem]:
        """Yield every file, and a problem for each that cannot be read."""
        for place in self._places:
            yield from place.entries()

    def sync(self, *, dry_run: bool = False, progress: Progress | None = None) -> list[FolderReport]:
        """Bring the memory in line with the files; a report for each folder that has any, or had some.

        Raises:
            ConflictError: the files are recorded of another folder, which is not there.
            StorageError: the memory cannot be written; some of the changes may have been applied.
        """
        reports = []
        for place in self._places:
            # The folder of a project on another machine is the same project, since its namespace is; notes are others.
            name = FolderName(self._store, str(place.path))
            same = name.name if isinstance(place, _ProjectPlace) and not name.is_new else None
            options = replace(self._options, known_as=same)
            sync = FolderSync(WriteTarget(self._store, dry_run=dry_run), place, options, progress)
            reports.append(sync.run(place.entries))
        return reports


class _ProjectPlace(FolderPlace):
    def _is_listed(self, path: str) -> bool:
        return kind_of(path) is not None

    def _is_entered(self, path: Path) -> bool:
        if not may_hold(path.relative_to(self.path).as_posix()):
            return False
        # A submodule, or a work tree with another branch, is a project of its own.
        if os.path.lexists(f"{path}/.git"):
            return False
        return not path.is_symlink() if path.name.startswith(".") else super()._is_entered(path)


def _notes_of_claude(root: Path, home: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder in which Claude Code keeps its notes about a project."""
    folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    return folder / "projects" / _NOT_IN_NAMES.sub("-", str(root)) / "memory"
