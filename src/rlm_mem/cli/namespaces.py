"""The notation of namespaces on a command line."""

from __future__ import annotations

from rlm_mem import capture
from rlm_mem.chunk import check_namespace
from rlm_mem.config import working_folder
from rlm_mem.errors import InputError

PROJECT = "project"
"""On a command line, the namespace of a folder's project."""
_LITERAL = "./"
"""Prefix of a name that is used as it is; no namespace begins with it."""


def named_namespace(name: str | None) -> str | None:
    """Return the namespace that an option names: for ``project``, that of the working folder's project.

    ``./project`` is the namespace called ``project``.

    Raises:
        InputError: the working folder belongs to no project, or the name is not valid.
    """
    if name != PROJECT:
        return None if name is None else check_namespace(name.removeprefix(_LITERAL))
    project = capture.project_of()
    if project is None:
        raise InputError(
            f"{working_folder()} belongs to no project",
            hint=f"change to its folder, or name its namespace; {option_value(PROJECT)} is the one called {PROJECT}",
        )
    return project.namespace


def hook_namespace(name: str | None) -> str | None:
    """Return the namespace that an option of a hook names; None: that of the project of the hook's event."""
    return None if name == PROJECT else literal(name)


def literal(name: str | None) -> str | None:
    """Return a namespace without the prefix ``./``."""
    return name and name.removeprefix(_LITERAL)


def option_value(namespace: str) -> str:
    """Return a namespace as written on a command line: ``./project`` for the one called ``project``."""
    return f"{_LITERAL}{namespace}" if namespace == PROJECT else namespace
