"""`rlm-mem erase`: erases a person or a source everywhere, or a namespace; or verifies an erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rlm_mem.chunk import DEFAULT_NAMESPACE
from rlm_mem.cli.call import Call
from rlm_mem.cli.options import flag, option
from rlm_mem.cli.sources import is_there, read_bounded
from rlm_mem.cli.terminal import amount, note, one_line, print_text
from rlm_mem.config import path_of_stored
from rlm_mem.errors import InputError
from rlm_mem.interchange.folder_names import FolderName
from rlm_mem.interchange.repositories import repository_of
from rlm_mem.memory import Memory
from rlm_mem.results import Progress
from rlm_mem.store.core.erasing import erase
from rlm_mem.store.core.erasure_checks import read_report, verify_erasure
from rlm_mem.store.core.erasure_report import ErasureReport
from rlm_mem.store.core.files import write_atomic

# Bytes; the report of a large namespace has some fingerprints of each of its chunks
_MAX_REPORT = 1_000_000_000
_LISTED = 20  # chunks and files that are shown


def erase_(
    call: Call,
    person: Annotated[
        str | None, option("--person", "NAME", "Erase everything that names this person.")
    ] = None,
    source: Annotated[
        str | None, option("--source", "SOURCE", "Erase everything from this file, folder or conversation.")
    ] = None,
    all_: Annotated[bool, flag("--all", "Erase everything in the namespace that --namespace names.")] = False,
    report: Annotated[
        Path | None, option("--report", "FILE", "Write the report to this new file; --apply needs one.")
    ] = None,
    verify: Annotated[
        Path | None, option("--verify", "FILE", "Check whether anything listed in this report remains.")
    ] = None,
    apply: Annotated[bool, flag("--apply", "Erase. Default: only show what would be erased.")] = False,
) -> None:
    """Erase a person, a source or a namespace, permanently. rlm-mem erase --verify FILE verifies it."""
    if verify is not None:
        if person or source or all_ or report or apply:
            raise InputError("--verify takes no other option", hint="give the report that erase wrote")
        _verify(call, verify)
        return
    if all_ and call.namespace is None:
        raise InputError(
            "--all erases a namespace: name it", hint="--namespace NAME; rlm-mem store namespaces lists them"
        )
    if report is not None and report.exists():
        raise InputError(f"{report} exists already", hint="name a new file")
    if apply and report is None:
        raise InputError(
            "erasing needs a file for its report", hint="give --report FILE, outside of the memory"
        )
    with call.with_progress("searching", "chunks") as (memory, update):
        if report is not None:
            _reserve(report, memory)
        try:
            if source and is_there(source):
                source = _as_remembered(memory, source, update)
            made = erase(
                memory.store,
                person=person,
                source=source,
                namespace=call.namespace if all_ else None,
                dry_run=not apply,
                progress=update,
                planned=partial(_write, report),
            )
            texts = _texts(memory, made.chunk_ids[:_LISTED]) if made.dry_run else {}
        except BaseException:
            if report is not None and report.exists():
                if report.stat().st_size:
                    note(f"part may be erased of what {report} lists; repeat the command with a new --report")
                else:
                    report.unlink()
            raise
    _name_repository(made, call.place)
    _write(report, made)
    call.report(made, lambda: _show(made, texts))


def _name_repository(made: ErasureReport, place: Path | str) -> None:
    """Name the git repository around the memory among what remains."""
    with suppress(OSError):  # one that cannot be read is named as version control like others
        found = repository_of(place.resolve()) if isinstance(place, Path) else None
        if found is not None:
            made.remaining.insert(
                bool(made.unread), f"the history of the git repository {found.root}, and of its clones"
            )


def _write(report: Path | None, made: ErasureReport) -> None:
    """Write the report; until it is whole, what was planned stays: nothing else tells what was erased."""
    if report is not None:
        data = msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"
        write_atomic(report, data)


def _reserve(report: Path, memory: Memory) -> None:
    """Create the file of the report before anything is erased: without it the erasure could not be verified."""
    system = memory.store.backend.files(DEFAULT_NAMESPACE).path("system")
    if system is not None and report.absolute().resolve().is_relative_to(system.resolve().parent):
        raise InputError(
            f"{report} is inside the memory, but the report names what is erased",
            hint="name a file outside of the memory",
        )
    try:
        report.open("xb").close()
    except OSError as error:
        raise InputError(
            f"{report} cannot be written: {error.strerror}; nothing was erased", hint="name another file"
        ) from None


def _texts(memory: Memory, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of chunks of any namespace, by their ids."""
    found: dict[str, str] = {}
    for name, _ in memory.store.namespaces():
        chunks = memory.store.backend.chunks(name, ids, status=None)
        found |= {one: chunk.content for one, chunk in chunks.items()}
    return found


def _as_remembered(memory: Memory, path: str, update: Progress) -> str:
    """Return the path under which chunks are remembered: absolute for a folder's, as it was given for a single file."""

    def is_known(source: str) -> bool:
        return bool(erase(memory.store, source=source, dry_run=True, progress=update).chunk_ids)

    absolute = str(Path(path).absolute())
    if Path(path).is_dir():  # it may be recorded under another name, as after a move
        absolute = FolderName(memory.store, absolute).name
    known = [one for one in dict.fromkeys((path, absolute)) if is_known(one)]
    if len(known) > 1:
        note(f"more came from {absolute}: erase this source too")
    return known[0] if known else next(filter(is_known, _in_folders(memory, absolute)), path)


def _in_folders(memory: Memory, path: str) -> list[str]:
    """Return the names that a file may have in the folders around it, which are recorded by those of repositories."""
    found = dict[str, None]()
    for folder in Path(path).parents:
        names = FolderName(memory.store, str(folder))
        within = Path(path).relative_to(folder).as_posix()
        found |= {f"{one}/{within}": None for one in (names.name, names.own) if path_of_stored(one) is None}
    return list(found)


def _show(made: ErasureReport, texts: Mapping[str, str]) -> None:
    if made.unread:
        print_text(f"not searched: {made.remaining[0]}", "yellow")
    if not (made.chunk_ids or made.files or made.events):
        if made.namespace:
            print_text(f"{made.namespace} is empty")
            print_text("rlm-mem store namespaces lists the namespaces", "dim")
            return
        print_text(f"nothing names {made.person}" if made.person else f"nothing came from {made.source}")
        if made.source:
            print_text("rlm-mem store conversations lists conversations and files", "dim")
        return
    print_text(str(made))
    for one in made.chunk_ids[:_LISTED]:
        print_text(f"  {one}  {one_line(texts.get(one, ''), 100)}".rstrip(), "dim")
    for file in made.files[:_LISTED]:
        print_text(f"  {file}", "dim")
    if max(len(made.chunk_ids), len(made.files)) > _LISTED:
        print_text(f"  the first {_LISTED} of each; --json lists all", "dim")
    if made.dry_run:
        print_text("add --apply --report FILE to erase; this cannot be undone")
    else:
        print_text("not erased:")
        for line in made.remaining:
            print_text(f"  {line}", "dim")


def _verify(call: Call, path: Path) -> None:
    made = read_report(read_bounded(path, _MAX_REPORT))
    with call.open() as memory:
        left = verify_erasure(memory.store, made)
    if not call.printed_json({"left": left}):
        for where in left:
            print_text(where)
        print_text(f"found in {amount(len(left), 'place')}" if left else "nothing remains")
    if left:
        raise typer.Exit(1)
