"""The files of a brain beside its chunks, on their way out and in: tiered memories, trajectories, persona.

In an export they lie where a brain folder has them (``store.brain_files.place_of``), whatever store they come from.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import Asset, ImportProblem, Record
from rlm_mem.interchange.report import ImportReport
from rlm_mem.store.core.brain_files import (
    JOURNAL,
    OF_BRAIN,
    BrainFiles,
    name_at,
    own_lines,
    place_of,
)

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = [
    "EXPORT_MARKER",
    "PASSED_OVER",
    "FileAdopter",
    "exported_files",
    "file_from_line",
    "file_to_line",
    "format_by_place",
    "layout_of",
    "place_in_export",
    "read_brain_file",
]

EXPORT_MARKER = "rlm-mem-export.json"
"""A file that tells an exported folder from any other."""
PASSED_OVER = "none"
"""In place of a format: what belongs to one machine, or is about the export."""
_FOLDER = "files/"
_MACHINE = ("archive", "imports", "index", "log", "trajectories")
_LARGEST = 1 << 28

_UNFIT = ("archive/pending/", "index/", "imports/")
"""What is begun, derived, or of one machine: it stays where it is."""


def exported_files(
    store: ChunkStore, namespaces: Sequence[str], *, archive: bool = True
) -> Iterator[tuple[str, bytes]]:
    """Yield place and content of every file of these namespaces; the journal of all of them last, as one.

    Args:
        archive: with archived memories and the records of transitions.
    """
    seen: set[str] = set()
    steps: list[tuple[str, bytes]] = []
    for namespace in namespaces:
        stored = store.backend.files(namespace)
        for name in stored.names("", recursive=True):
            if name.startswith(_UNFIT) or (name.startswith("archive/") and not archive):
                continue
            data = stored.read(name)
            if data is None:  # removed since it was listed
                continue
            if name == JOURNAL:
                steps += [
                    (_time_of(line), line) for line in own_lines(namespace, data).splitlines(keepends=True)
                ]
                continue
            place = place_of(namespace, name, alone=stored.path(name) is None)
            if place not in seen:  # a brain folder has one persona for all its namespaces
                seen.add(place)
                yield place, data
    if steps:
        yield (
            place_of(namespaces[0], JOURNAL),
            b"".join(step for _, step in sorted(steps, key=lambda timed: timed[0])),
        )


# --- in folders and archives ---------------------------------------------------------------------------


def place_in_export(place: str) -> str:
    """Where an export has the file that lies there in a brain folder."""
    return _FOLDER + place


def layout_of(names: Collection[str]) -> str | None:
    """Whether these are the files of an ``export``, of a whole ``brain`` folder, or (None) of neither."""
    if EXPORT_MARKER in names:
        return "export"
    return "brain" if any(name.startswith("memory/chunks/") for name in names) else None


def format_by_place(name: str, layout: str | None) -> str | None:
    """The format of a file that its place alone tells; None: look at it."""
    if layout == "export":
        ours = name in ("README.md", EXPORT_MARKER)
        if ours or name.startswith(_FOLDER):
            return PASSED_OVER if ours else "brain-file"
        return "history" if name.startswith("history/") else None
    if layout != "brain":
        return None
    if name_at(name):
        return "brain-file"
    parts = name.split("/")
    machine = parts[0] == "memory" and parts[1] in _MACHINE and (parts[1] != "archive" or len(parts) > 3)
    return PASSED_OVER if machine else None


def read_brain_file(file: SourceFile) -> Iterator[Record]:
    """A file that is kept as it is."""
    with file.opened() as handle:
        data = handle.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        yield ImportProblem(file.where, f"larger than {_LARGEST:,} bytes")
        return
    yield Asset(file.entry.name.removeprefix(_FOLDER), data, file.where)


# --- in JSON lines -------------------------------------------------------------------------------------


def file_to_line(place: str, data: bytes) -> dict[str, str]:
    """A file as an object of JSON lines."""
    try:
        return {"brain_file": place, "text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"brain_file": place, "base64": base64.b64encode(data).decode("ascii")}


def file_from_line(entry: Mapping[str, Any], where: str) -> Asset | ImportProblem:
    """The file that ``file_to_line`` wrote."""
    place, text, packed = entry["brain_file"], entry.get("text"), entry.get("base64")
    try:
        if isinstance(place, str) and isinstance(text, str):
            return Asset(place, text.encode("utf-8"), where)
        if isinstance(place, str) and isinstance(packed, str):
            return Asset(place, base64.b64decode(packed, validate=True), where)
    except (UnicodeEncodeError, binascii.Error):
        return ImportProblem(where, "a file whose content is damaged")
    return ImportProblem(where, "a file without content")


class FileAdopter:
    """Brings such files into a store: new ones are written, others stay as they are there.

    Args:
        keep_namespaces: False puts everything into the namespace of the store.
        replace: what comes in replaces what is there; the former text is kept in ``archive/conflicts``.
        dry_run: decide and count, write nothing.
    """

    def __init__(
        self,
        store: ChunkStore,
        report: ImportReport,
        *,
        dry_run: bool,
        keep_namespaces: bool,
        replace: bool,
    ) -> None:
        self._store = store
        self._report = report
        self._dry_run = dry_run
        self._keep = keep_namespaces and not store.confined
        self._replace = replace
        self._known: dict[str, BrainFiles] = {}

    def take(self, asset: Asset) -> None:
        """Write one file, or leave it."""
        named = name_at(asset.place)
        if named is None or named[1].startswith(_UNFIT):
            self._report.problem(asset.where, "a name that no file of the brain can have")
            return
        if self._store.confined:
            # A server's clients reach the chunks of one namespace: a personality would speak in all of them, and a
            # tiered memory would come past the rules and the reviewer of its tier.
            self._report.conflict(
                asset.where, "files beside the memories are imported on the command line only"
            )
            return
        namespace, name = named
        if name == JOURNAL:
            self._journal(asset)
            return
        if name == asset.place and name.startswith(tuple(f"{one}/" for one in OF_BRAIN)):
            namespace = self._store.namespace
        elif namespace is None:
            namespace = str(_decoded(asset.data.split(b"\n", 1)[0]).get("namespace") or self._store.namespace)
        self._put(self._stored(namespace), name, asset)

    def _stored(self, namespace: str) -> BrainFiles:
        wanted = namespace if self._keep else self._store.namespace
        if wanted not in self._known:
            self._known[wanted] = self._store.backend.files(wanted)
        return self._known[wanted]

    def _put(self, stored: BrainFiles, name: str, asset: Asset) -> None:
        there = stored.read(name)
        if there == asset.data:
            return
        if there is not None and not self._replace:
            self._report.conflict(asset.where, f"{name} is there already, and was kept")
            return
        if not self._dry_run:
            if there is not None:
                stored.write(f"archive/conflicts/{secrets.token_hex(4)}-{name.replace('/', '_')}", there)
                stored.write(name, asset.data)
            elif not stored.create(name, asset.data):  # somebody made one at this very moment
                self._report.conflict(asset.where, f"{name} is there already, and was kept")
                return
        if name.startswith(tuple(f"{one}/" for one in OF_BRAIN)):
            self._report.persona_files += 1
        else:
            self._report.brain_files += 1

    def _journal(self, asset: Asset) -> None:
        """Add the steps that the journals of their namespaces do not hold yet."""
        fresh: dict[str, list[bytes]] = {}
        known: dict[str, set[Any]] = {}
        for line in asset.data.splitlines():
            step = _decoded(line)
            if not isinstance(step.get("ns"), str) or "id" not in step:
                continue
            stored = self._stored(step["ns"])
            if stored.namespace not in known:
                lines = own_lines(stored.namespace, stored.read(JOURNAL) or b"").splitlines()
                known[stored.namespace] = {_decoded(one).get("id") for one in lines}
            if step["id"] not in known[stored.namespace]:
                if step["ns"] != stored.namespace:
                    line = msgspec.json.encode({**step, "ns": stored.namespace})
                fresh.setdefault(stored.namespace, []).append(line + b"\n")
        for namespace, lines in fresh.items():
            self._report.brain_files += 1
            if not self._dry_run:
                self._known[namespace].append(JOURNAL, b"".join(lines))


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _time_of(line: bytes) -> str:
    return str(_decoded(line).get("ts") or "")
