"""Brain files of JSON that git, a crash or an editor damaged: found by a check, and mended without losing content."""

from __future__ import annotations

import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator

from rlm_mem.continuum.files import InvalidEntry, free_name
from rlm_mem.merging import in_conflict, is_pointer, json_fault, sides, without_conflict_lines
from rlm_mem.store.core.brain_files import RECORDS, BrainFiles

ENCODING, LINES, FOLDER = "other-encoding", "conflict-of-lines", "folder-conflict"
_ASIDE = "archive/damaged/"
#: Codes of records that nothing can read, which are moved aside, by the folders of the records.
_UNREADABLE = {
    "system/folders/": "unreadable-folder",
    "system/capture/": "unreadable-state",
    "persona/": "unreadable-state",
    "workspace/": "unreadable-state",
    **dict.fromkeys(RECORDS, "unreadable-change"),
}
_CHECKED_ELSEWHERE = ("archive/damaged/", "archive/conflicts/", "index/")
CODES = (ENCODING, LINES, *dict.fromkeys(_UNREADABLE.values()))
"""The codes that :func:`mend` repairs."""


def damaged_files(files: BrainFiles) -> Iterator[InvalidEntry]:
    """Yield the records and logs of a namespace that cannot be read as they are; of review cases only the encoding."""
    torn = files.runs().get(None, ())  # runs whose first line, with the namespace, cannot be read
    names = dict.fromkeys([*files.names("", recursive=True), *torn, *files.names("log")])
    checked = [
        one for one in names if one.endswith((".json", ".jsonl")) and not one.startswith(_CHECKED_ELSEWHERE)
    ]
    for name, data in files.contents(checked):
        found = _fault(name, data)
        if found is not None:
            code, why = found
            yield InvalidEntry(name, f"{files.where(name)}: {why}", code)


def _fault(name: str, data: bytes) -> tuple[str, str] | None:
    """Return the code of a damaged file, and why it cannot be read."""
    if _as_utf8(data) is not None:
        return ENCODING, "begins with a byte order mark, or is UTF-16"
    if name.endswith(".jsonl"):
        if is_pointer(data):
            return "unreadable-lines", json_fault(data, ValueError())
        if in_conflict(data):
            return LINES, "git left lines in conflict"
        why = "has bytes of no text, as a power cut leaves them"
        return None if _is_text(data) else ("unreadable-lines", why)
    code = next((code for folder, code in _UNREADABLE.items() if name.startswith(folder)), None)
    if code is None or _is_json(data):
        return None
    if is_pointer(data):  # moved aside, it would not be fetched to its place
        return "not-fetched", json_fault(data, ValueError())
    in_folders = code == _UNREADABLE["system/folders/"]
    if in_folders and in_conflict(data) and all(map(_is_json, sides(data.decode("utf-8", "replace")))):
        return FOLDER, "git left it in conflict"
    return code, json_fault(data, ValueError("it is cut off"))


def _is_text(data: bytes) -> bool:
    """Whether a log is text, but for a last line that is cut off."""
    try:
        data[: data.rfind(b"\n") + 1].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _as_utf8(data: bytes) -> bytes | None:
    """Return a file with a byte order mark as UTF-8 without one; None for any other."""
    try:
        if data.startswith(BOM_UTF8):
            return data[len(BOM_UTF8) :]
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return data.decode("utf-16").encode()
    except UnicodeDecodeError:
        pass  # bytes of no text, which happen to begin like a mark
    return None


def _is_json(data: bytes | str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def mend(files: BrainFiles, code: str, names: Iterable[str]) -> None:
    """Mend files with faults of one code, in a transaction: none of their content is lost."""
    change: Callable[[bytes], bytes | None] = without_conflict_lines if code == LINES else _as_utf8
    for name in names:
        data = files.read(name)
        if data is None:
            continue
        if code in (LINES, ENCODING):
            mended = change(data)
            if mended is not None:
                files.write(name, mended)
            continue
        files.write(free_name(files, _ASIDE + name.replace("/", "_")), data)
        files.remove(name)
