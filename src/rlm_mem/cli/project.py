"""`rlm-mem project`: the namespace of the repository here, its files for agents, and moving memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rlm_mem.capture.moving import MovedChunk, move_chunks
from rlm_mem.capture.project_files import keep_in_step, project_files
from rlm_mem.capture.projects import PROJECTS, Project, project_of
from rlm_mem.cli.call import Call
from rlm_mem.cli.ids import full_ids
from rlm_mem.cli.namespaces import PROJECT, literal, option_value
from rlm_mem.cli.options import Every, argument, flag, option
from rlm_mem.cli.remember import show_folder
from rlm_mem.cli.terminal import amount, note, print_text
from rlm_mem.config import Config
from rlm_mem.errors import InputError, ServerAway
from rlm_mem.interchange.folders import watch_entries
from rlm_mem.interchange.report import FolderReport
from rlm_mem.memory import Memory
from rlm_mem.own_process import until_stopped
from rlm_mem.store.core.records import is_mirror

if TYPE_CHECKING:
    from rlm_mem.continuum.cases import Case

_MAX_LISTED = 5
"""Maximum number of other projects' namespaces that are listed for a project without memories."""


def show(call: Call) -> None:
    """Show the project of this folder: its namespace, and the sizes of that and of the shared one.

    For a project without memories, also list other projects with some, since one may be its former name.
    """
    project = project_of()
    call = call.at(namespace=project.namespace if project and not call.namespace else None)
    place = call.place
    shared = Config.load(place).store.namespace
    own, count, waiting, others = call.namespace or shared, 0, 0, list[tuple[str, int]]()
    if isinstance(place, Path) and not (place / "memory").is_dir():
        note(f"there is no memory at {place} yet: the first remember creates it")
    else:
        with call.open() as memory:
            count = memory.stats().chunk_count
            waiting = len(memory.continuum.review.cases())
            others = _other_projects(memory, project) if project is not None and not count else []
    if call.printed_json(
        {
            "root": str(project.root) if project else None,
            "namespace": own,
            "memories": count,
            "open_reviews": waiting,
            "shared": shared,
            "other_projects": [{"namespace": name, "memories": held} for name, held in others],
        }
    ):
        return
    print_text(own, "cyan")
    if project is not None:
        print_text(f"of {project.root}", "dim", wrap=False)
    print_text(f"{amount(count, 'chunk')}; {amount(waiting, 'case')} to review; shared: {shared}")
    if waiting:
        named = PROJECT if project is not None and own == project.namespace else option_value(own)
        print_text(f"rlm-mem --namespace {named} review list", "dim", wrap=False)
    if others:
        print_text(
            "If the remote or the folder was renamed, the memories are in the namespace of the former name. "
            "Projects with memories:",
            wrap=False,
        )
        for name, held in others:
            print_text(f"  {name}: {amount(held, 'chunk')}", "cyan", wrap=False)
        print_text("rlm-mem --namespace FORMER project move --all --to project", "dim", wrap=False)


def _other_projects(memory: Memory, project: Project) -> list[tuple[str, int]]:
    """Return namespaces of other projects with memories: those of the same name first, then those with the most."""
    try:
        found = memory.store.namespaces()
    except ServerAway as error:
        found = error.namespaces
    others = [
        (name, count)
        for name, count in found
        if count and name.startswith(PROJECTS) and name != project.namespace
    ]
    name = project.root.name.lower()
    return sorted(others, key=lambda one: (name not in one[0].rpartition("/")[2], -one[1]))[:_MAX_LISTED]


def import_(
    call: Call,
    trust: Annotated[
        str,
        option(
            "--trust",
            "LEVEL",
            "The trust of new memories; untrusted ones are not given at a session's start.",
        ),
    ] = "ordinary",
    watch: Annotated[bool, flag("--watch", "Keep running, and follow changes of the files.")] = False,
    every: Every = 2.0,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would happen.")] = False,
) -> None:
    """Remember what the project of this folder keeps for coding agents, and keep it in step.

    Read are instructions and rules (CLAUDE.md, AGENTS.md, .cursor/rules, …), memory banks, numbered decisions (adr) and
    the notes of Claude Code. Hooks follow later changes at the start of each session.
    """
    if watch and dry_run:
        raise InputError("--watch cannot be combined with --dry-run")
    project = project_of()
    if project is None:
        raise InputError(
            "this folder belongs to no project", hint="change into the folder of a repository, and repeat"
        )
    here = call.at(namespace=call.namespace or project.namespace)
    with here.writing(dry_run=dry_run) as memory:
        files = project_files(memory, project.root, trust)
        if not dry_run:
            keep_in_step(memory, project.root, trust)

        def sync(first: bool) -> None:
            _show_synced(here, files.sync(dry_run=dry_run), quiet=not first)

        if not watch:
            sync(True)
            return
        note(f"watching the files of {project.root}; Ctrl-C ends it")
        with until_stopped():
            watch_entries(files.entries, sync, seconds=every)


def _show_synced(call: Call, reports: Sequence[FolderReport], *, quiet: bool) -> None:
    if quiet and not any(one.touched or one.refused for one in reports):
        return
    if call.printed_json([one.as_dict() for one in reports]):
        return
    for report in reports:
        show_folder(call, report)
    if not any(one.files for one in reports):
        print_text("there are no files for agents here: nothing is remembered", "yellow")


def _queue_again(call: Call, cases: Sequence[Case], new_ids: Mapping[str, str]) -> None:
    """Queue captured memories that were moved before their review for it in their new namespace."""
    with call.open() as memory:
        for case in cases:
            chunks = memory.store.get_many([new_ids[one] for one in case.chunk_ids if one in new_ids])
            if chunks:
                memory.continuum.review.add_captured(
                    case.entry, case.figures["client"], list(chunks.values())
                )


def move(
    call: Call,
    to: Annotated[
        str,
        option(
            "--to",
            "NAMESPACE",
            "The target: shared, project (of this folder), or a namespace (./shared if it has that name).",
        ),
    ],
    chunk_ids: Annotated[
        list[str] | None,
        argument("[ID...]", "Chunk ids; the beginning of each, or of its last part, is enough."),
    ] = None,
    every: Annotated[
        bool, flag("--all", "Move all memories but tiered ones, for example after a rename.")
    ] = False,
) -> None:
    """Move memories to another namespace, from that of --namespace, by default that of this project.

    With --to project they are moved from the shared one. The originals are archived.
    """
    if every == bool(chunk_ids):
        raise InputError(
            "--all moves every memory and takes no ids" if every else "no memories were named",
            hint="name the ids of the memories to move, or give --all",
        )
    project = project_of()
    if project is None and (to == PROJECT or not call.namespace):
        raise InputError(
            "this folder belongs to no project", hint="name the namespaces: --namespace FROM, --to NAMESPACE"
        )
    own = project.namespace if project is not None else ""
    origin = call.namespace or (None if to == PROJECT else own)
    goal = {"shared": None, PROJECT: own}.get(to, literal(to))
    with call.at(namespace=origin).open() as source:
        where = source.config.store.namespace if goal is None else goal
        if every and not call.namespace and to == PROJECT:
            raise InputError(
                "--all --to project would move all shared memories into one project",
                hint="name the namespace to move from: rlm-mem --namespace FROM project move --all --to project",
            )
        everything = (one for one in source.list_chunks() if not is_mirror(one))
        ids = list(everything) if every else full_ids(source, chunk_ids or [])
        waiting = (
            [case for case in source.continuum.review.cases() if case.kind == "capture"] if every else []
        )
        moved = move_chunks(source.store, where, ids)
    if waiting:
        _queue_again(call.at(namespace=where), waiting, {one.former_id: one.chunk_id for one in moved})
    if not call.printed_json(moved):
        _show_moved(moved, where)


def _show_moved(moved: Sequence[MovedChunk], where: str) -> None:
    for one in moved:
        print_text(f"{one.former_id} → {one.chunk_id}")
    print_text(f"moved {amount(len(moved), 'chunk')} to {where}", "dim", wrap=False)
    for one in moved:
        for other in one.apart:
            print_text(
                f"note: {other} stays. One of it and {one.former_id} replaced the other: "
                "move it, too, to keep them together",
                "yellow",
            )
