"""The import of files that a browser sends: what would be stored is shown first, then stored, and can be undone."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlm_mem.dashboard.requests import MAX_FILES, PageRequest
from rlm_mem.dashboard.words import address
from rlm_mem.errors import InputError, NotFoundError, StorageError
from rlm_mem.operations.moving import MAX_UPLOAD_BYTES, ImportQuery, import_file

if TYPE_CHECKING:
    from starlette.datastructures import UploadFile
    from starlette.responses import Response

    from rlm_mem.operations.moving import Imported

_KEPT_SECONDS = 30 * 60
_MOST_KEPT, _MOST_BYTES = 16, 2 * MAX_UPLOAD_BYTES
_LISTED = 50  # entries of each list on the page
_MOST_OF_NAME = 20  # folders of one name that are told apart
_NAME_CHARS = 120  # in UTF-8
_EARLIEST, _LATEST = (
    datetime(1980, 1, 1, tzinfo=UTC).timestamp(),
    datetime(2107, 12, 31, tzinfo=UTC).timestamp(),
)


@dataclass
class Upload:
    """Files that a browser sent, as one file or archive, until they are imported or discarded.

    Attributes:
        key: its name in addresses, which cannot be guessed.
        owner: the namespace and the client to which it belongs.
        path: the file; its folder is removed with the upload.
        label: the name of the source in memories that are imported from it.
        shown: its name for people.
        files: number of files. ``is_folder``: whether they are one folder, whose name is the label.
        size: size in bytes.
        planned: what an import would do. ``done``: what the import did.
        is_again: whether it counts as a folder that was sent before, whose changed documents it replaces.
        other: the label if that is wrong, where it makes a difference.
    """

    key: str
    owner: tuple[str, str]
    path: Path
    label: str | None
    shown: str
    files: int
    size: int
    is_folder: bool = False
    planned: Imported | None = None
    done: Imported | None = None
    is_again: bool = False
    other: str | None = None
    guard: threading.Lock = field(default_factory=threading.Lock)

    def remove_file(self) -> None:
        """Remove the file from the disk; what is known about it stays."""
        self.size = 0
        shutil.rmtree(self.path.parent, ignore_errors=True)


class Uploads:
    """The uploads of a server that wait for a decision or show their result; thread-safe.

    A client has one at a time. The oldest are dropped if there are too many, and each after half an hour.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Upload] = {}
        self._guard = threading.Lock()
        # Removed with its content when the server ends.
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def folder(self) -> Path:
        """A new folder for the file of an upload."""
        with self._guard:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="rlm-mem-upload-")
            return Path(tempfile.mkdtemp(dir=self._folder.name))

    def add(self, upload: Upload) -> None:
        """Keep an upload, in place of an earlier one of the client."""
        with self._guard:
            self._drop(lambda one: one.owner == upload.owner)
            self._kept[upload.key] = upload
            while len(self._kept) > _MOST_KEPT or sum(one.size for one in self._kept.values()) > _MOST_BYTES:
                oldest = next(iter(self._kept.values()))
                self._drop(lambda one: one is oldest)  # noqa: B023 - called at once
        timer = threading.Timer(_KEPT_SECONDS, self.drop, [upload])
        timer.daemon = True
        timer.start()

    def get(self, key: str, owner: tuple[str, str]) -> Upload:
        """The upload of a client; raises NotFoundError."""
        with self._guard:
            found = self._kept.get(key)
        if found is None or found.owner != owner:
            raise NotFoundError(
                "these files are no longer kept", hint="send them again: they are kept for half an hour"
            )
        return found

    def drop(self, upload: Upload) -> None:
        """Forget an upload."""
        with self._guard:
            self._drop(lambda one: one is upload)

    def _drop(self, unwanted: Callable[[Upload], bool]) -> None:
        for one in [one for one in self._kept.values() if unwanted(one)]:
            del self._kept[one.key]
            # One that is being imported is removed after that.
            if one.guard.acquire(blocking=False):
                one.remove_file()
                one.guard.release()


def import_page(request: PageRequest, *, problem: str = "") -> Response:
    """The form for files."""
    return request.page(
        "import.html",
        status=400 if problem else 200,
        problem=problem,
        upload=None,
        most_bytes=MAX_UPLOAD_BYTES,
        most_files=MAX_FILES,
    )


def receive(request: PageRequest) -> Response:
    """Keep the files of the form, and show what an import of them would store."""
    uploads = request.state.shared(Uploads)
    files = [file for file in request.files if file.filename]
    if not files:
        return import_page(request, problem="No file is chosen.")
    folder = uploads.folder()
    try:
        upload = _kept(request, files, folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(
            f"the files cannot be kept for the preview: {error.strerror or error}",
            hint="the folder for temporary files of the server needs room",
        ) from error
    try:
        _plan(request, upload)
    except InputError as error:  # a damaged archive
        shutil.rmtree(folder, ignore_errors=True)
        return import_page(request, problem=error.sentence.replace(f"{folder}/", ""))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    uploads.add(upload)
    return request.go(address("/memories/import", upload.key))


def upload_page(request: PageRequest) -> Response:
    """What the import of an upload would do, or did."""
    from rlm_mem.interchange.detection import format_named

    upload = request.state.shared(Uploads).get(request.part("upload"), _owner(request))
    report = upload.done or upload.planned
    assert report is not None
    return request.page(
        "import.html",
        problem="",
        upload=upload,
        report=report,
        rows=_figures(report),
        formats=[(format_named(name).description or name, number) for name, number in report.formats.items()],
        changes_something=bool(report.created or report.updated or report.archived or report.restored),
        listed=_LISTED,
    )


def decide(request: PageRequest) -> Response:
    """Import an upload, or discard it."""
    uploads = request.state.shared(Uploads)
    upload = uploads.get(request.part("upload"), _owner(request))
    what = request.action("discard", "import", *(["other"] if upload.other is not None else []))
    if what == "discard":
        uploads.drop(upload)
        return request.go("/memories", "discarded")
    here = address("/memories/import", upload.key)
    with upload.guard:  # a form that is sent twice imports once
        if upload.done is not None:
            return request.go(here)
        if what == "other":
            upload.label = upload.other
        upload.done = _import(request, upload, dry_run=False)
        upload.remove_file()
    return request.go(here, "imported" if upload.done.change else "nothing-imported")


def _plan(request: PageRequest, upload: Upload) -> None:
    """Plan the import of an upload; decide which of the folders of its name, that were sent before, it is, if any.

    It is the one that has most of its documents unchanged, if these are at least as many as those that would be
    archived. Otherwise it is a folder of its own: nobody said that it replaces another one.
    """
    name = upload.label
    upload.planned = _import(request, upload, dry_run=True)
    if name is None or not upload.is_folder:
        return
    before: list[tuple[str, Imported]] = []
    while (plan := upload.planned).known or plan.archived:
        before.append((str(upload.label), plan))
        if len(before) == _MOST_OF_NAME:
            break
        upload.label = f"{name} ({len(before) + 1})"
        upload.planned = _import(request, upload, dry_run=True)
    alike = [one for one in before if one[1].known >= max(1, one[1].archived)]
    if alike:
        own = upload.label
        upload.label, upload.planned = max(alike, key=lambda one: one[1].known)
        upload.is_again, upload.other = True, own if upload.planned.archived else None
    elif before:
        upload.other = before[0][0]


def _owner(request: PageRequest) -> tuple[str, str]:
    return request.memory.store.namespace, request.memory.store.actor or ""


def _import(request: PageRequest, upload: Upload, *, dry_run: bool) -> Imported:
    query = ImportQuery(name=upload.path.name, dry_run=dry_run)
    return import_file(request.memory, upload.path, query, label=upload.label)


def _figures(report: Imported) -> list[tuple[str, int]]:
    rows = [
        ("new", report.created),
        ("changed", report.updated),
        ("already stored", report.known),
        ("different here, and kept", report.kept),
        ("moved to the archive, since their text changed", report.archived),
        ("restored from the archive", report.restored),
    ]
    return [(name, number) for name, number in rows if number]


# --- files ------------------------------------------------------------------------------------------------


def _kept(request: PageRequest, files: Sequence[UploadFile], folder: Path) -> Upload:
    """Write the files into the folder: one as it is, several as an archive, which is never unpacked."""
    times = request.texts("modified")
    modified = [_time(one) for one in times] if len(times) == len(files) else [time.time()] * len(files)
    names = [_parts(file.filename or "") for file in files]
    label, within = None, False
    if len(files) == 1 and len(names[0]) == 1:
        path = folder / names[0][0]
        with path.open("xb") as target:
            shutil.copyfileobj(files[0].file, target)
        os.utime(path, (modified[0], modified[0]))
        shown = names[0][0]
    else:
        roots = {parts[0] for parts in names if len(parts) > 1}
        within = len(roots) == 1 and all(len(parts) > 1 for parts in names)
        # The same folder is recognised by its name when it is sent again, other files by name and content.
        shown = roots.pop() if within else f"{len(files):,} files"
        label = shown if within else "files"
        path = folder / "files.zip"
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            for file, parts, at in zip(files, names, modified, strict=True):
                name = "/".join(parts[1:]) if within else _marked("/".join(parts), file)
                info = zipfile.ZipInfo(name, time.gmtime(at)[:6])
                info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, "w", force_zip64=True) as packed:
                    shutil.copyfileobj(file.file, packed)
    size = path.stat().st_size
    return Upload(secrets.token_urlsafe(16), _owner(request), path, label, shown, len(files), size, within)


def _parts(name: str) -> list[str]:
    """The parts of a path as a browser sends it, each a name that a file may have."""
    parts = [re.sub(r"[\x00-\x1f\x7f]", "", part) for part in re.split(r"[\\/]", name[:4_000])]
    kept = [_shortened(part) for part in parts if part.strip(". ")]
    return kept or ["file"]


def _shortened(name: str) -> str:
    """A name without surrogates and of bounded length, with its ending; a shortened one has a digest of the whole."""
    data = name.encode("utf-8", "replace")
    if len(data) <= _NAME_CHARS:
        return data.decode()
    stem, dot, ending = data.decode().rpartition(".")
    if not dot or len(ending) > 10:
        stem, dot, ending = data.decode(), "", ""
    kept = stem.encode()[:_NAME_CHARS].decode("utf-8", "ignore")
    return f"{kept}~{hashlib.sha256(data).hexdigest()[:12]}{dot}{ending}"


def _marked(name: str, file: UploadFile) -> str:
    """The name with a part of the digest of the content: another file with this name replaces nothing."""
    digest = hashlib.file_digest(file.file, "sha256").hexdigest()[:12]  # type: ignore[arg-type]  # a file
    file.file.seek(0)
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}~{digest}{path.suffix}"))


def _time(text: str) -> float:
    """The time of a file's last change in seconds, from the milliseconds that a script sent; else the present."""
    try:
        seconds = int(text[:20]) / 1000
    except ValueError:
        return time.time()
    return seconds if _EARLIEST <= seconds <= _LATEST else time.time()
