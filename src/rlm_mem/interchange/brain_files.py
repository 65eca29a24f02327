"""Export and import of the brain files that are not chunks: tiered memories, trajectories, persona.

In an export they have the paths of a brain folder (``store.brain_files.place_of``), even if they come from a
database.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import check_namespace
from rlm_mem.errors import InputError
from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import Asset, ImportProblem, Record, rename_references
from rlm_mem.interchange.report import BY_COMMAND
from rlm_mem.store.core.brain_files import (
    JOURNAL,
    OF_BRAIN,
    OF_STORE,
    BrainFiles,
    case_id_of,
    folder_of,
    name_at,
    named_ids,
    namespace_in,
    parse_event,
    place_of,
    with_new_ids,
)
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter

if TYPE_CHECKING:
    from rlm_mem.interchange.target import ImportTarget
    from rlm_mem.store.core.chunk_store import ChunkStore

EXPORT_MARKER = "rlm-mem-export.json"
"""The file that marks a folder as an export."""
PASSED_OVER = "none"
"""Used in place of a format for a file that is skipped: it belongs to one machine, or describes the export."""
_FOLDER = "files/"
_MAX_SIZE = 1 << 28


def exported_files(
    store: ChunkStore,
    namespaces: Sequence[str],
    shown: frozenset[str] | None = None,
    hidden: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of these namespaces; their journals come last, as one file.

    Args:
        shown: leave out archived memories, the records of transitions, and review cases that quote other chunks than
            these, or that cannot be read.
        hidden: leave out recorded runs that name one of these chunks, whose text they may have.
    """
    seen: set[str] = set()
    steps: list[tuple[str, bytes]] = []
    runs = store.files.runs()
    for namespace in namespaces:
        reader = NamespaceReader(store, namespace)
        for name in reader.file_names(runs):
            if not folder_of(name).portable or (name.startswith("archive/") and shown is not None):
                continue
            data = reader.file(name)
            if data is None:  # removed after it was listed
                continue
            if shown is not None and name.startswith("system/review/") and not _quotes_only(data, shown):
                continue
            if hidden and name.startswith("trajectories/") and named_ids(data, hidden):
                continue
            if name == JOURNAL:
                steps += [(_time_of(line), line) for line in data.splitlines(keepends=True)]
                continue
            place = place_of(namespace, name, alone=reader.stored.path(name) is None)
            if place not in seen:  # a brain folder has one persona for all its namespaces
                seen.add(place)
                yield place, data
    if steps:
        yield (
            place_of(namespaces[0], JOURNAL),
            b"".join(step for _, step in sorted(steps, key=lambda timed: timed[0])),
        )


def _quotes_only(data: bytes, shown: frozenset[str]) -> bool:
    """Return whether a review case has the text of none but these chunks; nobody knows what a damaged one has."""
    case = parse_event(data)
    chunk_ids = [] if case is None else case.get("chunk_ids", [])
    return (
        case is not None
        and isinstance(chunk_ids, list)
        and all(isinstance(one, str) and one in shown for one in chunk_ids)
    )


# --- in folders and archives ---------------------------------------------------------------------------


def place_in_export(place: str) -> str:
    """Return the path in an export for a file at this path in a brain folder."""
    return _FOLDER + place


def layout_of(names: Collection[str]) -> str | None:
    """Return whether these files are an ``export``, a whole ``brain`` folder, or (None) neither."""
    if EXPORT_MARKER in names:
        return "export"
    return "brain" if any(name.startswith("memory/chunks/") for name in names) else None


def format_by_place(name: str, layout: str | None) -> str | None:
    """Return the format of a file if its path determines it, else None."""
    if layout == "export":
        about_export = name in ("README.md", EXPORT_MARKER)
        if about_export or name.startswith(_FOLDER):
            return PASSED_OVER if about_export else "brain-file"
        return "history" if name.startswith("history/") else None
    if layout != "brain":
        return None
    if name_at(name):
        return "brain-file"
    parts = name.split("/")
    machine = parts[0] == "memory" and parts[1] in OF_STORE and (parts[1] != "archive" or len(parts) > 3)
    return PASSED_OVER if machine else None


def read_brain_file(file: SourceFile) -> Iterator[Record]:
    """Read a file that is stored unchanged."""
    with file.opened() as handle:
        data = handle.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        yield ImportProblem(file.where, f"larger than {_MAX_SIZE:,} bytes")
        return
    yield Asset(file.entry.name.removeprefix(_FOLDER), data, file.where)


# --- in JSON lines -------------------------------------------------------------------------------------


def file_to_line(place: str, data: bytes) -> dict[str, str]:
    """Return a file as an object of JSON lines."""
    try:
        return {"brain_file": place, "text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"brain_file": place, "base64": base64.b64encode(data).decode("ascii")}


def file_from_line(entry: Mapping[str, Any], where: str) -> Asset | ImportProblem:
    """Return the file that ``file_to_line`` wrote."""
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
    """Writes brain files to a store: new ones only, unless ``replace`` is set.

    Only ``dry_run``, ``keep_namespaces`` and ``replace`` of the options apply; with ``replace`` the stored content is
    kept in ``archive/conflicts``. The chunks that they name were written before.
    """

    def __init__(self, target: ImportTarget) -> None:
        self._store, self._report, self._options = target.store, target.report, target.options
        self._renamed = target.renamed
        self._writer = cache(partial(NamespaceWriter, target.store))

    def adopt(self, asset: Asset) -> None:
        """Write one file, or skip it."""
        try:
            self._adopt(asset)
        except InputError as error:
            self._report.problem(asset.where, str(error))

    def _adopt(self, asset: Asset) -> None:
        named = name_at(asset.place)
        if named is None or not folder_of(named[1]).portable:
            self._report.problem(asset.where, "not a valid name of a brain file")
            return
        if not self._options.takes_tiers(self._store):
            self._report.conflict(asset.where, BY_COMMAND)
            return
        namespace, name = named
        if name == JOURNAL:
            self._journal(asset)
            return
        if name == asset.place and name.startswith(tuple(f"{one}/" for one in OF_BRAIN)):
            namespace = self._store.namespace
        elif namespace is None:
            namespace = namespace_in(asset.data.split(b"\n", 1)[0], "namespace") or self._store.namespace
        rename_references(asset, self._renamed.get(namespace, {}))
        self._put(self._target(namespace).stored, _name_by_content(name, asset), asset)

    def _target(self, namespace: str) -> NamespaceWriter:
        return self._writer(
            check_namespace(namespace) if self._options.keep_namespaces else self._store.namespace
        )

    def _put(self, stored: BrainFiles, name: str, asset: Asset) -> None:
        present = stored.read(name)
        if present == asset.data:
            return
        if present is not None and not self._options.replace:
            self._report.conflict(asset.where, f"{name} exists already, and was kept")
            return
        if not self._options.dry_run:
            if present is not None:
                stored.write(f"archive/conflicts/{secrets.token_hex(4)}-{name.replace('/', '_')}", present)
                stored.write(name, asset.data)
            elif not stored.create(name, asset.data):  # another process created it meanwhile
                self._report.conflict(asset.where, f"{name} exists already, and was kept")
                return
        if name.startswith(tuple(f"{one}/" for one in OF_BRAIN)):
            self._report.persona_files += 1
        else:
            self._report.brain_files += 1

    def _journal(self, asset: Asset) -> None:
        """Append the missing steps to the journals of their namespaces."""
        steps: dict[str, list[bytes]] = {}
        for line in asset.data.splitlines():
            step = parse_event(line) or {}
            namespace_name = step.get("ns")
            if not isinstance(namespace_name, str) or "id" not in step:
                continue
            try:
                namespace = self._target(namespace_name).namespace
            except InputError as error:
                self._report.problem(asset.where, str(error))
                continue
            line = with_new_ids(line, self._renamed.get(namespace_name, {}))
            if namespace_name != namespace:
                step = parse_event(line) or {}
                line = msgspec.json.encode({**step, "ns": namespace})
            steps.setdefault(namespace, []).append(line)
        for namespace, lines in steps.items():
            target = self._target(namespace)
            missing = target.missing_steps(b"\n".join(lines))
            if missing:
                self._report.brain_files += 1
                if not self._options.dry_run:
                    target.stored.append(JOURNAL, missing)


def _name_by_content(name: str, asset: Asset) -> str:
    """Return the name of a file; that of the review case of a proposal is made of the ids of its two chunks."""
    case = (parse_event(asset.data) or {}) if name.startswith("system/review/") else {}
    kind, chunk_ids, former_id = case.get("kind"), case.get("chunk_ids"), case.get("id")
    if (
        kind not in ("replace", "contradict")
        or not isinstance(chunk_ids, list)
        or not isinstance(former_id, str)
        or not former_id
    ):
        return name
    case_id = case_id_of(kind, " ".join(map(str, chunk_ids)))
    asset.data = asset.data.replace(former_id.encode(), case_id.encode())
    return name.replace(former_id, case_id)


def _time_of(line: bytes) -> str:
    return str((parse_event(line) or {}).get("ts") or "")
