"""Says to the type checker what a test knows of a value, and fails where it is otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rlm_mem.store.core.backend import Backend
from rlm_mem.store.local.local_backend import LocalBackend

if TYPE_CHECKING:
    from rlm_mem.store.postgres.backend import PostgresBackend

T = TypeVar("T")


def present(found: T | None) -> T:
    """What was found."""
    assert found is not None, "there is nothing"
    return found


def postgres(backend: Backend) -> PostgresBackend:
    """A backend of a database, for a test that changes its rows."""
    from rlm_mem.store.postgres.backend import PostgresBackend

    assert isinstance(backend, PostgresBackend), backend
    return backend


def local(backend: Backend) -> LocalBackend:
    """A backend of files, for a test that looks into its index."""
    assert isinstance(backend, LocalBackend), backend
    return backend
