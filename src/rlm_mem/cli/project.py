"""`rlm-mem project`: the namespace of the repository here, and moving memories between namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rlm_mem.capture.moving import move_chunks
from rlm_mem.capture.projects import project_of
from rlm_mem.cli import options
from rlm_mem.cli.call import Call
from rlm_mem.cli.ids import full_ids
from rlm_mem.cli.options import option
from rlm_mem.cli.terminal import amount, print_json, screen, text
from rlm_mem.errors import InputError


def show(call: Call) -> None:
    """Show the project of this folder: its namespace, and how much is in it and in the shared one."""
    project = project_of(Path.cwd())
    with call.at(namespace=project.namespace if project and not call.namespace else None).open() as memory:
        own, count = memory.store.namespace, memory.stats().chunk_count
        shared = memory.config.store.namespace
        waiting = len(memory.continuum.review.cases())
    if call.json:
        print_json(
            {
                "root": str(project.root) if project else None,
                "namespace": own,
                "memories": count,
                "open_reviews": waiting,
                "shared": shared,
            }
        )
        return
    console = screen()
    console.print(text(own, "cyan"))
    if project is not None:
        console.print(text(f"of {project.root}", "dim"), soft_wrap=True)
    console.print(text(f"{amount(count, 'chunk')}; {amount(waiting, 'case')} to review; shared: {shared}"))
    if waiting:
        console.print(text(f"rlm-mem --namespace {own} review list", "dim"), soft_wrap=True)


def move(
    call: Call,
    chunk_ids: options.ChunkIds,
    to: Annotated[
        str, option("--to", "NAMESPACE", "Where to: shared, project (of this folder), or a namespace.")
    ],
) -> None:
    """Move memories into another namespace, from the one of --namespace, by default that of the project here.

    With --to project they come from the shared one. They are archived where they were.
    """
    project = project_of(Path.cwd())
    if project is None and (to == "project" or not call.namespace):
        raise InputError(
            "this folder belongs to no project", hint="name the namespaces: --namespace FROM, --to NAMESPACE"
        )
    own = project.namespace if project is not None else ""
    origin = call.namespace or (None if to == "project" else own)
    goal = {"shared": None, "project": own}.get(to, to)
    with call.at(namespace=origin).open() as source:
        where = source.config.store.namespace if goal is None else goal
        moved = move_chunks(source.store, where, full_ids(source, chunk_ids))
    if call.json:
        print_json(moved)
        return
    console = screen()
    for one in moved:
        console.print(text(f"{one.former_id} → {one.chunk_id}"))
    console.print(text(f"moved {amount(len(moved), 'chunk')} to {where}", "dim"), soft_wrap=True)
