"""Opens the backend of a place: a built-in one by its scheme, or one of another package by its entry point.

Backends, and ``erasing``, which opening and deleting also need, are named by dotted path, so that each is imported only
when needed, and ``core`` does not depend on a backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlm_mem.dsn import scheme_of, shown_dsn
from rlm_mem.errors import NamespaceError, RlmMemError, StorageError, StoreReadOnly
from rlm_mem.extensions import BACKENDS, described, extension, extensions
from rlm_mem.lazy import logger
from rlm_mem.store.core.brain_files import ERASING

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.core.backend import Backend
    from rlm_mem.store.core.brain_files import BrainFiles

_logger = logger("rlm_mem.store")
_FOLDER = "rlm_mem.store.local.local_backend:LocalBackend"
_ERASING = "rlm_mem.store.core.erasing"
"""Works on an open store, and loads numpy."""
_BUILT_IN = dict.fromkeys(("postgresql", "postgres"), "rlm_mem.store.postgres.backend:PostgresBackend")


class _OpenStore(Protocol):
    """What is asked of a ``ChunkReader``."""

    backend: Backend

    @property
    def files(self) -> BrainFiles: ...


def open_backend(place: Path | str, config: Config, read_only: bool) -> Backend:
    """Open the backend of a folder, or of a DSN ``scheme://…``.

    Raises:
        StorageError: an extra is not installed, no package serves the scheme, or the place cannot be used.
    """
    if isinstance(place, Path):
        made = _loaded(_FOLDER)
    else:
        scheme = scheme_of(place)
        if scheme not in _BUILT_IN:
            return _of_another_package(scheme, place, config, read_only)
        with extra_postgres(shown_dsn(place)):
            made = _loaded(_BUILT_IN[scheme])
    opened = partial(made, place, config)
    try:
        return opened(read_only=read_only)  # type: ignore[no-any-return]
    except StoreReadOnly as error:  # files changed and the index is of another user, or the tables are
        if read_only or (isinstance(place, Path) and not place.is_dir()):
            raise
        _logger.warning(
            "%s; it is opened for reading only: reads are not counted and recalls not recorded", error
        )
        try:
            return opened(read_only=True)  # type: ignore[no-any-return]
        except StoreReadOnly:  # there is nothing to read
            raise error from None


def finish_erasures(store: _OpenStore) -> None:
    """Finish, as the store is opened, erasures that were cut off: what the erased chunks left elsewhere."""
    try:
        folder = None if store.backend.read_only else store.files.path(ERASING)
        if store.backend.read_only or (folder is not None and not folder.exists()):
            return
        if not store.files.names(ERASING):
            return
        _loaded(f"{_ERASING}:finish_erasure")(store)
    except (NamespaceError, StorageError) as error:  # no reason not to open: the next opening tries again
        _logger.warning("an erasure that was cut off is not finished: %s", error)


def erase_chunk(store: object, chunk_id: str) -> bool:
    """Erase one chunk (``erasing.erase_chunk``); False if there is none."""
    return bool(_loaded(f"{_ERASING}:erase_chunk")(store, chunk_id))


@contextmanager
def extra_postgres(what: str) -> Iterator[None]:
    """Load modules of the extra ``postgres`` inside the block; if it is missing, the error names it and ``what``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("psycopg", "psycopg_c", "psycopg_binary"):
            raise
        raise StorageError(
            f"{what} needs the extra `postgres`", hint="pip install 'rlm-mem[postgres]'"
        ) from None


def _loaded(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _of_another_package(scheme: str, place: str, config: Config, read_only: bool) -> Backend:
    found = extension(BACKENDS, scheme, StorageError)
    if found is None:
        installed = "".join(f"{one.name}://…, " for one in extensions(BACKENDS))
        raise StorageError(
            f"no backend for {shown_dsn(place)}: the scheme {scheme}:// is not known",
            hint=f"name a folder, postgresql://…, {installed}or install a package that serves this scheme",
        )
    made = found.load(StorageError)
    try:
        return made(place, config, read_only=read_only)  # type: ignore[no-any-return]
    except RlmMemError:
        raise
    except Exception as error:  # code of another package: it may raise anything
        raise StorageError(
            f"{shown_dsn(place)} cannot be opened by the package {found.package}: {described(error)}"
        ) from error
