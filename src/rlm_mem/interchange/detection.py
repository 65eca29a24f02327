"""Detects the format of a file from its name and first bytes, never from the name of an upload."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from importlib import import_module

from rlm_mem.errors import InputError
from rlm_mem.extensions import IMPORTERS, Extension, described, extension, extensions
from rlm_mem.interchange import formats
from rlm_mem.interchange.format import HEAD_BYTES, Claim, FileHead, Format
from rlm_mem.interchange.places import Unreadable
from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import ImportProblem, Record


def _built_in() -> Iterator[Format]:
    for module in pkgutil.iter_modules(formats.__path__, f"{formats.__name__}."):
        yield from (one for one in vars(import_module(module.name)).values() if isinstance(one, Format))


FORMATS = {one.name: one for one in sorted(_built_in(), key=lambda one: one.name)}
"""Every built-in format by name."""


NO_MEMORIES = (
    "JSON without memories, messages or conversations in a known form: rlm-mem remember --jsonl takes lines of "
    '{"text": …}'
)


def format_names() -> list[str]:
    """Return the names of all formats: the built-in ones, then those of installed packages."""
    return [*FORMATS, *(one.name for one in extensions(IMPORTERS))]


def format_named(name: str) -> Format:
    """Return the format of this name, built in or of an installed package.

    Raises:
        InputError: there is no format of this name, or its package cannot be loaded.
    """
    if name in FORMATS:
        return FORMATS[name]
    found = extension(IMPORTERS, name, InputError)
    if found is None:
        raise InputError(f"unknown format {name!r:.40}: use one of {', '.join(format_names())}")
    return _loaded(found)


def unknown_reason(head: FileHead) -> str | None:
    """Return why a file whose name suggests memories has no known format; None for any other name."""
    if head.suffix == ".zip" and head.data:
        return "an archive within an archive, or too large to be read there: import it by itself"
    if head.suffix not in (".zip", ".json", ".jsonl", ".ndjson") or head.is_derived:
        return None
    if not head.data.strip():
        return "empty"
    if b"\0" in head.data and head.data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return "binary, not JSON"
    if len(head.data) < HEAD_BYTES:
        try:
            json.loads(head.data)
        except (ValueError, RecursionError) as error:
            return f"not valid JSON: {error}" if isinstance(error, ValueError) else "JSON nested too deeply"
    return NO_MEMORIES


class Detector:
    """Detects the format of files; formats of other packages are loaded when a file first needs them.

    Args:
        problem: called with file or package, and reason, for each importer of another package that fails; the others
            are still used.
    """

    def __init__(self, problem: Callable[[str, str], None] = lambda _where, _reason: None) -> None:
        self._problem = problem

    def detect(self, head: FileHead) -> Format | None:
        """Return the format with the highest claim on a file; ties go to built-in formats, then by name.

        None for a file that is skipped: pictures, indexes, programs. Formats of other packages are tried if no
        built-in one claims more than ``POSSIBLE``.
        """
        best: Format | None = None
        highest = Claim.NO
        for one in FORMATS.values():
            claim = one.sniff(head)
            if claim > highest:
                best, highest = one, claim
        if highest > Claim.POSSIBLE:
            return best
        for one in self._installed:
            try:
                claim = Claim(one.sniff(head))
            except Exception as error:  # noqa: BLE001 - code of another package; reported
                self._problem(head.name, f"the importer {one.name} failed to inspect it: {described(error)}")
                continue
            if claim > highest:
                best, highest = one, claim
        return best

    @cached_property
    def _installed(self) -> list[Format]:
        found = []
        for one in extensions(IMPORTERS):
            try:
                found.append(_loaded(one))
            except InputError as error:
                self._problem(f"package {one.package}", str(error))
        return found


def _loaded(found: Extension) -> Format:
    """Load the format of another package, whose failures become problems of the file.

    Raises:
        InputError: it cannot be loaded, is not a ``Format``, or its name differs from the entry point's or is built in.
    """
    made = found.load(InputError)
    if not isinstance(made, Format) or not callable(made.sniff) or not callable(made.read):
        raise InputError(
            f"the entry point {found} is not an importer: a rlm_mem.interchange.Format was expected, "
            f"not {type(made).__name__}"
        )
    if made.name != found.name or made.name in FORMATS:
        problem = (
            "is the name of a built-in format" if made.name in FORMATS else f"is called {found.name!r} there"
        )
        raise InputError(f"the entry point {found} cannot be used: its format {made.name!r:.40} {problem}")

    def read(file: SourceFile) -> Iterator[Record]:
        try:
            for record in made.read(file):
                if isinstance(record, Record):
                    yield record
                else:
                    yield ImportProblem(
                        file.where,
                        f"the importer {made.name} (package {found.package}) returned {type(record).__name__}, "
                        "which is not a record",
                    )
        except Unreadable:
            raise
        except Exception as error:  # noqa: BLE001 - code of another package; reported
            yield ImportProblem(
                file.where, f"the importer {made.name} (package {found.package}) failed: {described(error)}"
            )

    return replace(made, read=read)
