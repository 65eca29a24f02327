"""For agents: `rlm-mem mcp`, what brings it into their clients, hooks, and the doctor."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.open import Where, brain_place, named_brain, open_memory
from rlm_mem.errors import InputError, RlmMemError

if TYPE_CHECKING:
    from rlm_mem.mcp.clients import Client

PANEL = "Agents"

Tools = Annotated[
    str, typer.Option("--tools", metavar="WHICH", help="default: the ten that agents need; all: every one.")
]
ReadOnly = Annotated[bool, options.flag("--read-only", help="Offer only tools that change no memory.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (mcp, serve, install, doctor):
        app.command(command.__name__, rich_help_panel=PANEL)(command)
    hook = typer.Typer(help="Commands for the hooks of coding agents.", no_args_is_help=True)
    hook.command("session-start")(hook_session_start)
    hook.command("pre-compact")(hook_pre_compact)
    app.add_typer(hook, name="hook", rich_help_panel=PANEL)


def mcp(
    ctx: typer.Context,
    http: Annotated[
        bool, options.flag("--http", help="Serve over HTTP on 127.0.0.1 instead of stdin and stdout.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --http; 0 takes a free one.")
    ] = 7411,
    tools: Tools = "default",
    read_only: ReadOnly = False,
    llm: options.Llm = None,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Serve the memory to agents over MCP; clients start this themselves (rlm-mem install)."""
    try:
        from rlm_mem.serving.run import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise _without(error) from None
    from rlm_mem.operations.context import Settings

    settings = Settings(
        brain=named_brain(ctx, brain),
        namespace=_namespace(ctx, namespace),
        llm=llm,
        read_only=read_only,
        every_tool=_every(tools),
    )
    if http:
        serve_http(settings, port)
    else:
        serve_stdio(settings)


def serve(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")
    ] = 7412,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="Holds the token; made with a new one if it is missing."
        ),
    ] = None,
    open_browser: Annotated[bool, options.flag("--open", help="Open the dashboard in a browser.")] = False,
    no_dashboard: Annotated[bool, options.flag("--no-dashboard", help="Serve MCP and HTTP only.")] = False,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="N",
            min=0,
            help="Requests a second over HTTP that a client may go on with; 0: any.",
        ),
    ] = 50.0,
    tools: Tools = "default",
    read_only: ReadOnly = False,
    llm: options.Llm = None,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Serve the memory on this machine: MCP, an HTTP interface with an OpenAPI document, and a dashboard."""
    try:
        from rlm_mem.serving.run import serve_all
    except ModuleNotFoundError as error:
        raise _without(error) from None
    from rlm_mem.operations.context import Settings

    settings = Settings(
        brain=named_brain(ctx, brain),
        namespace=_namespace(ctx, namespace),
        llm=llm,
        read_only=read_only,
        every_tool=_every(tools),
        actor="server",
    )
    serve_all(
        settings,
        port,
        token_file=token_file,
        dashboard=not no_dashboard,
        open_browser=open_browser,
        rate=rate,
    )


def _without(error: ModuleNotFoundError) -> RlmMemError:
    return RlmMemError(
        f"the server needs the package {error.name}",
        hint='Install it with: pip install "rlm-mem[server]"',
    )


def _every(tools: str) -> bool:
    if tools not in ("default", "all"):
        raise InputError(f"--tools is {tools!r}", hint="Use default or all.")
    return tools == "all"


def _namespace(ctx: typer.Context, namespace: str | None) -> str | None:
    where = ctx.find_object(Where)
    return namespace or (where.namespace if where is not None else None)


def install(
    ctx: typer.Context,
    client: Annotated[
        str | None,
        typer.Option(
            "--client",
            metavar="NAME",
            help="claude-code, claude-desktop, cursor, vscode or codex. Without it: asks, or lists them.",
            show_default=False,
        ),
    ] = None,
    project: Annotated[
        bool,
        options.flag(
            "--project", help="In the settings of the project here, for all who use it, not in the user's."
        ),
    ] = False,
    remove: Annotated[bool, options.flag("--remove", help="Take the entry out again.")] = False,
    show: Annotated[
        bool, options.flag("--print", help="Print the entry and its place; write nothing.")
    ] = False,
    tools: Tools = "default",
    read_only: ReadOnly = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Bring the memory into an MCP client: writes its configuration, keeping a copy of what was there."""
    from datetime import datetime

    from rlm_mem.cli.terminal import note, print_json, screen, text
    from rlm_mem.mcp import clients
    from rlm_mem.mcp.clients import write_with_backup

    known = clients.client_named(client) if client is not None else _chosen_client(as_json)
    if project and known.project is None:
        raise InputError(f"{known.name} has no settings of a project", hint="Leave --project out.")
    path = Path.cwd() / known.project if project and known.project else known.user(Path.home(), os.environ)
    if project:
        launcher, named = clients.shared_launcher(), _shared_brain(ctx, brain, known)
    else:
        launcher, named = clients.launcher(), _own_brain(ctx, brain)
    arguments = _server_arguments(ctx, named, namespace, tools, read_only)
    entry = clients.entry_of(known, [*launcher, *arguments])
    if show:
        wanted = clients.planned(known, Path(os.devnull), entry) or ""
        if as_json:
            print_json({"file": str(path), "table": known.table, "name": clients.ENTRY_NAME, "entry": entry})
        else:
            note(f"for {path}:")
            screen().print(text(wanted.rstrip()), soft_wrap=True)
        return
    made = clients.planned(known, path, None if remove else entry)
    backup = write_with_backup(path, made, datetime.now()) if made is not None else None
    if as_json:
        print_json({"file": str(path), "changed": made is not None, "backup": backup})
        return
    console = screen()
    if made is None:
        console.print(text(f"nothing to change in {path}"), soft_wrap=True)
        return
    console.print(text(f"{'removed from' if remove else 'written to'} {path}"), soft_wrap=True)
    if backup is not None:
        console.print(text(f"what was there before: {backup}", "dim"), soft_wrap=True)
    console.print(text(known.next_step))
    if project and not remove:
        if named is None:
            note("every user of the project has a memory of their own: --brain names one inside the project")
        if shutil.which(launcher[0]) is None:
            note(
                f"{launcher[0]} is not on the PATH here: whoever uses the project installs it, for example with "
                "pipx install 'rlm-mem[server]'"
            )


def _chosen_client(as_json: bool) -> Client:
    """The client that the user chooses from a list; off a terminal the list is all there is."""
    from rlm_mem.cli.terminal import print_json, screen, table, text
    from rlm_mem.mcp import clients

    here = {client.name: clients.is_here(client, Path.home(), os.environ) for client in clients.CLIENTS}
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    if as_json:
        print_json([{"client": name, "found": found} for name, found in here.items()])
    else:
        rows = table(*(("",) if asks else ()), "client", "found", "command")
        for number, (name, found) in enumerate(here.items(), 1):
            cells = [name, "yes" if found else "no", f"rlm-mem install --client {name}"]
            rows.add_row(*map(text, [str(number), *cells] if asks else cells))
        screen().print(rows)
    if not asks:
        raise InputError("into which client?", hint="Name one with --client NAME.")
    first = next((number for number, found in enumerate(here.values(), 1) if found), None)
    chosen = typer.prompt("into which one (number or name)", default=first, type=str).strip()
    names = list(here)
    if chosen.isdecimal() and 1 <= int(chosen) <= len(names):
        chosen = names[int(chosen) - 1]
    return clients.client_named(chosen)


def _own_brain(ctx: typer.Context, brain: str | None) -> str:
    """The brain by its full path, since clients start the server anywhere."""
    place = brain_place(ctx, brain)
    return place if isinstance(place, str) else str(place.expanduser().absolute())


def _shared_brain(ctx: typer.Context, brain: str | None, client: Client) -> str | None:
    """The brain as a committed file may name it: inside the project; None: each user's own.

    Raises:
        InputError: one was named that says nothing to others, or more than they may know.
    """
    from rlm_mem.cli.open import shown_place
    from rlm_mem.config import locate
    from rlm_mem.dsn import shown_dsn
    from rlm_mem.mcp import clients

    named = named_brain(ctx, brain)
    if isinstance(named, str):
        if shown_dsn(named) != named.strip() or "@" in named:
            raise InputError(
                f"{shown_place(named)} names a user or a password, and the settings of a project are committed",
                hint="Name the database without them (PGUSER, PGPASSFILE), or leave --project out.",
            )
        return named
    if named is not None:
        inside = clients.place_in_project(client, named, Path.cwd())
        if inside is None:
            raise InputError(
                f"{named} lies outside of the project, and the settings of a project are committed",
                hint="Leave --brain out, so that everybody's own memory is used; or leave --project out.",
            )
        return inside
    place = locate(environ={**os.environ, "RLM_MEM_BRAIN": ""})
    return clients.place_in_project(client, place, Path.cwd()) if isinstance(place, Path) else None


def _server_arguments(
    ctx: typer.Context, brain: str | None, namespace: str | None, tools: str, read_only: bool
) -> list[str]:
    """The arguments of the server."""
    arguments = ["mcp", *(("--brain", brain) if brain is not None else ())]
    chosen = _namespace(ctx, namespace)
    if chosen:
        arguments += ["--namespace", chosen]
    if _every(tools):
        arguments += ["--tools", "all"]
    return [*arguments, "--read-only"] if read_only else arguments


def doctor(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Say what is right and what is wrong with the installation and the memory; ends with 1 when something is."""
    from rlm_mem.cli.terminal import print_json, screen, text
    from rlm_mem.mcp.doctor import FAIL, OK, examine

    findings = []
    console = screen()
    for found in examine(named_brain(ctx, brain), _namespace(ctx, namespace)):
        findings.append(found)
        if not as_json:
            style = {OK: "green", FAIL: "red"}.get(found.state, "yellow")
            console.print(
                text(f"{found.state:8}", style), text(f"{found.subject}: {found.message}"), soft_wrap=True
            )
            if found.remedy:
                console.print(text(f"         {found.remedy}", "dim"), soft_wrap=True)
    wrong = [found for found in findings if found.state == FAIL]
    if as_json:
        print_json({"ok": not wrong, "findings": findings})
    if wrong:
        raise typer.Exit(1)


def hook_session_start(
    ctx: typer.Context,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=50, help="Memories of each kind.")
    ] = 8,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """For an agent's hook: print memories that fit the folder named on stdin, as context of the session."""
    from rlm_mem.cli.sources import piped
    from rlm_mem.cli.terminal import print_json
    from rlm_mem.mcp.hooks import event_from, session_context

    with _for_hook():
        event = event_from(piped() or "")
        place = brain_place(ctx, brain)
        if isinstance(place, Path) and not (place / "memory").is_dir():
            return  # nothing was ever remembered: nothing to say, and nothing to make here
        with open_memory(ctx, brain, namespace) as memory:
            context = session_context(memory, event, limit)
    if context:
        print_json({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}})


def hook_pre_compact(
    ctx: typer.Context,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """For an agent's hook: remember the transcript named on stdin before it is compacted."""
    from rlm_mem.cli.sources import piped
    from rlm_mem.cli.terminal import amount, note
    from rlm_mem.mcp.hooks import event_from, save_transcript

    with _for_hook():
        event = event_from(piped() or "")
        with open_memory(ctx, brain, namespace, create=True) as memory:
            note(f"remembered {amount(save_transcript(memory, event), 'chunk')}")


@contextlib.contextmanager
def _for_hook() -> Iterator[None]:
    """End with 1 whatever is wrong: 2 would tell the agent to stop what it is doing."""
    try:
        yield
    except RlmMemError as error:
        raise RlmMemError(str(error), hint=error.hint) from None
