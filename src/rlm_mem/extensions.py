"""Extensions from other packages, found by entry points (docs/extending.md).

Packages are scanned only for names that are not built in, since a scan reads the metadata of every package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import RlmMemError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BACKENDS = "rlm_mem.backends"
"""Store backends, by URL scheme: ``Class(place, config, read_only=…)``, a ``Backend``."""

GAUGES = "rlm_mem.gauges"
"""Gauges, by name; the value is the Markdown text of a gauge."""

IMPORTERS = "rlm_mem.importers"
"""Importers, by the name of their format: a ``rlm_mem.interchange.Format``."""

PROVIDERS = "rlm_mem.providers"
"""Model providers, by the prefix of model names: ``provider(model, settings)``, which returns a model."""


class Extension:
    """An entry point of another package, which is imported only by ``load``."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry
        self.name = entry.name
        self.package = entry.dist.name if entry.dist else "a package without metadata"

    def __str__(self) -> str:
        return f"{self._entry.group}: {self.name} = {self._entry.value} (package {self.package})"

    def load(self, failure: type[RlmMemError]) -> Any:
        """Import and return the object of the entry point.

        Args:
            failure: class of the error to raise if the import fails.
        """
        try:
            return self._entry.load()
        except (Exception, SystemExit) as error:  # importing runs foreign code, which may raise anything
            raise failure(
                f"the entry point {self} cannot be loaded: {described(error)}",
                hint=f"update or uninstall {self.package}",
            ) from error


def described(error: BaseException) -> str:
    """Class and first line of an error raised by code of another package."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]:.200}" if lines else type(error).__name__


def extension(group: str, name: str, failure: type[RlmMemError]) -> Extension | None:
    """The extension with this name, or None.

    Raises:
        failure: several packages provide the name.
    """
    found = [one for one in extensions(group) if one.name == name]
    if len(found) > 1:
        raise failure(
            f"{len(found)} packages provide {name!r} for {group}: {', '.join(one.package for one in found)}",
            hint="uninstall all but one of them",
        )
    return found[0] if found else None


def extensions(group: str) -> Iterator[Extension]:
    """Every extension of a group, by name; a package found twice on the import path is listed once."""
    from importlib.metadata import entry_points  # imported late: slower than all of `rlm-mem --help`

    seen: set[tuple[str, str, str]] = set()
    for entry in sorted(
        entry_points(group=group), key=lambda one: (one.name, one.dist.name if one.dist else "")
    ):
        one = Extension(entry)
        key = (one.name, one.package, entry.value)
        if key not in seen:
            seen.add(key)
            yield one
