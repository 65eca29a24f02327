"""Which projects of this machine are kept in step with the files that they keep for agents.

``rlm-mem project import`` notes it in a file of the project's namespace; hooks then sync at the start of a session.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from rlm_mem.interchange.agent_files import ProjectFiles
from rlm_mem.interchange.records import ImportProblem
from rlm_mem.memory import Memory

_KEPT = "system/capture/project.json"


class _Kept(msgspec.Struct):
    """The trust of new memories by the folder of the project: work trees and clones may be on other branches."""

    folders: dict[str, str] = {}


def project_files(memory: Memory, root: Path, trust: str) -> ProjectFiles:
    """Return the files for agents of the project at ``root``; raises InputError for an unknown trust."""
    return ProjectFiles(memory.store, root, Path.home(), os.environ, trust)


def keep_in_step(memory: Memory, root: Path, trust: str) -> None:
    """Note that hooks keep the memory of a project in step with its files in this folder."""
    files = memory.store.backend.files(memory.store.namespace)
    with files.transaction():
        kept = _kept(memory)
        if kept.folders.get(str(root)) != trust:
            kept.folders[str(root)] = trust
            files.write(_KEPT, msgspec.json.encode(kept))


def bring_in_step(memory: Memory, root: Path) -> list[ImportProblem]:
    """Sync the memory with the files of a project, if it is kept in step with them; return what is to be told of them.

    Raises:
        ConflictError: the files are recorded of another folder. StorageError: the memory cannot be written.
    """
    trust = _kept(memory).folders.get(str(root))
    if trust is None or memory.store.backend.read_only:
        return []
    return [notice for report in project_files(memory, root, trust).sync() for notice in report.notices]


def _kept(memory: Memory) -> _Kept:
    """Return what is noted; nothing if the file is damaged: the next ``project import`` writes it again."""
    data = memory.store.backend.files(memory.store.namespace).read(_KEPT)
    try:
        return msgspec.json.decode(data, type=_Kept) if data else _Kept()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Kept()
