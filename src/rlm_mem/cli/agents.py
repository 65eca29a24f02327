"""Set-up of agents: `rlm-mem install`, for MCP servers and hooks, and the doctor."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.call import Call, Where, shown_place
from rlm_mem.cli.namespaces import option_value
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import note, print_json, print_table, print_text, text
from rlm_mem.config import home_folder, locate, working_folder
from rlm_mem.dsn import shown_dsn
from rlm_mem.errors import InputError, InvalidConfig, RlmMemError
from rlm_mem.mcp import clients
from rlm_mem.mcp.clients import write_with_backup
from rlm_mem.mcp.doctor import FAIL, OK, examine
from rlm_mem.mcp.hook_clients import HOOK_CLIENTS, HookClient, hook_client_named
from rlm_mem.mcp.hook_settings import hooks_of, with_hooks


def install(
    call: Call,
    client_name: Annotated[
        str | None,
        argument(
            "CLIENT",
            f"{', '.join(clients.NAMES[:-1])} or {clients.NAMES[-1]}. Without it: asks, or lists them.",
        ),
    ] = None,
    client: Annotated[str | None, option("--client", "NAME", "The same as CLIENT.")] = None,
    project: Annotated[
        bool,
        flag("--project", "Use the settings of this project, for everyone who uses it, instead of yours."),
    ] = False,
    hooks: Annotated[
        bool, flag("--hooks", "Install hooks, which remember automatically, instead of the MCP server.")
    ] = False,
    remove: Annotated[bool, flag("--remove", "Remove the entry, or with --hooks the hooks.")] = False,
    show: Annotated[bool, flag("--print", "Print the entry and its place; write nothing.")] = False,
    tools: options.Tools = "default",
    read_only: options.ReadOnly = False,
) -> None:
    """Add the memory to an MCP client: write its configuration, and keep a copy of the previous file."""
    client = client or client_name
    if hooks:
        if client is None:
            raise InputError(
                "no client was named for the hooks", hint="name one: rlm-mem install claude-code --hooks"
            )
        _install_hooks(call, hook_client_named(client), project, remove, show)
        return
    known = clients.client_named(client) if client is not None else _chosen_client(call.json)
    if project and known.project is None:
        raise InputError(f"{known.name} has no project settings", hint="leave --project out")
    path = _settings_file(known, project)
    if project:
        launcher, named = clients.shared_launcher(), _shared_brain(call, known)
    else:
        launcher, named = clients.launcher(), _own_brain(call)
    arguments = _server_arguments(call, known, named, tools, read_only, committed=project)
    entry = clients.entry_of(known, [*launcher, *arguments])
    if show:
        entry_shown = {"table": known.table, "name": clients.ENTRY_NAME, "entry": entry}
        _show_entry(call, path, entry_shown, clients.planned(known, Path(os.devnull), entry) or "")
        return
    made = clients.planned(known, path, None if remove else entry)
    if not _write(call, known.name, path, made, "removed from" if remove else "written to"):
        return
    if named is not None and not remove:
        print_text(f"memory: {shown_place(named)}", wrap=False)
    print_text(known.after_removal if remove else known.next_step)
    if not remove:
        if any(one.name == known.name for one in HOOK_CLIENTS):
            _print_other_part("Hooks that capture decisions", known.name, "--hooks", project)
        _note_what_lacks(launcher[0], has_own_memory=named is None, project=project)


def _note_what_lacks(command: str, *, has_own_memory: bool, project: bool) -> None:
    """Say what the users of a new entry must do, or may not expect."""
    if not project:
        if find_spec("mcp") is None:
            note("the server needs an extra: pip install 'rlm-mem[server]'")
        return
    if has_own_memory:
        note("each user of the project has their own memory; --brain names one inside the project")
    if shutil.which(command) is None:
        note(
            f"{command} is not on the PATH here: each user of the project must install it, for example with "
            "pipx install 'rlm-mem[server]'"
        )


def uninstall(
    call: Call,
    client_name: Annotated[str | None, argument("CLIENT", "The client; without it: every client.")] = None,
    project: Annotated[
        bool, flag("--project", "Change the settings of this project instead of yours.")
    ] = False,
) -> None:
    """Disconnect an agent: remove the entry and the hooks of the memory from a client, or all; the memories stay."""
    if client_name is not None:
        clients.client_named(client_name)  # raises for an unknown one
    removed: list[str] = []
    failed: list[str] = []
    for name, path, edit in _removals(call, project):
        if client_name not in (None, name):
            continue
        try:
            made = edit()
            if made is None:
                continue
            _replace(name, path, made)
        except RlmMemError as error:  # the others are disconnected nevertheless
            failed.append(error.sentence)
            continue
        removed += [] if str(path) in removed else [str(path)]  # one file may have had both
    if not call.printed_json({"removed_from": removed, "failed": failed}):
        for line in removed:
            print_text(f"removed from {line}", wrap=False)
        for line in failed:
            note(line)
        if not removed and not failed:
            what = "no client has an" if client_name is None else f"{client_name} has no"
            print_text(f"nothing to remove: {what} entry or hooks of this memory")
        if not project and _is_in_project(call, client_name):
            print_text("the settings of this project have some: rlm-mem uninstall --project removes them")
        place = shown_place(call.place)
        print_text(
            f"No memory was deleted. Those of this folder are in {place}; delete it to remove them.",
            wrap=False,
        )
        print_text("The command itself is removed by: pip uninstall rlm-mem")
    if failed:
        raise typer.Exit(1)


def _is_in_project(call: Where, client_name: str | None) -> bool:
    """Whether the settings of the project in this folder have an entry or hooks of the memory."""
    for name, _, edit in _removals(call, True):
        with suppress(RlmMemError):  # a file that cannot be read
            if client_name in (None, name) and edit() is not None:
                return True
    return False


def _removals(call: Where, project: bool) -> Iterator[tuple[str, Path, Callable[[], str | None]]]:
    """Each client and file that may have an entry or hooks, and what gives the file without them (None: has none)."""
    for client in clients.CLIENTS:
        if client.project or not project:
            path = _settings_file(client, project)
            yield client.name, path, partial(clients.planned, client, path, None)
    launcher, named = (
        (clients.shared_launcher(), []) if project else (clients.launcher(), ["--brain", _own_brain(call)])
    )
    for hook_client in HOOK_CLIENTS:
        path = _settings_file(hook_client, project)
        ours = hooks_of(hook_client, launcher, named)
        yield hook_client.name, path, partial(_without_hooks, hook_client, path, ours)


def _settings_file(client: clients.Client | HookClient, project: bool) -> Path:
    """The file of a client's settings: of the project in this folder, if it has such, or the user's."""
    return (
        working_folder() / client.project
        if project and client.project
        else client.user(home_folder(), os.environ)
    )


def _without_hooks(client: HookClient, path: Path, ours: Mapping[str, object]) -> str | None:
    """The text of a file without our hooks, ``ours`` if nothing was changed since; None if it has none."""
    edit = partial(_with_hooks, client=client, path=path)
    return clients.removal(path, clients.read_text(path), edit, ours)


def _with_hooks(
    before: str, wanted: Mapping[str, object] | None, *, client: HookClient, path: Path
) -> str | None:
    return with_hooks(before, client, wanted, where=str(path))


def _show_entry(call: Call, path: Path, data: Mapping[str, object], wanted: str) -> None:
    """Print what would be written into a client's file."""
    if not call.printed_json({"file": str(path), **data}):
        note(f"for {path}:")
        print_text(wanted.rstrip(), wrap=False)


def _is_ours_alone(name: str, path: Path) -> bool:
    """Whether a client's file contains only entries of this package, so that it needs no backup."""
    rest = clients.read_text(path)
    if not rest.strip():
        return False
    is_toml = path.suffix == ".toml"
    try:
        for client in clients.CLIENTS:
            if client.name == name and rest and (client.form == "toml") == is_toml:
                made = clients.edited(client, rest, None, where=str(path))
                rest = rest if made is None else made
        for hook_client in HOOK_CLIENTS:
            if hook_client.name == name and rest and not is_toml:
                made = with_hooks(rest, hook_client, None, where=str(path))
                rest = rest if made is None else made
    except InvalidConfig:  # it has something in an unexpected form
        return False
    return not rest.strip()


def _replace(name: str, path: Path, made: str) -> Path | None:
    """Replace a client's file, or delete it if nothing is left; returns the backup, if one was needed.

    A file that was there before without content stays.
    """
    if not made.strip():
        clients.remove_content(path, datetime.now())
        return None
    return write_with_backup(path, made, datetime.now(), keep=not _is_ours_alone(name, path))


def _write(call: Call, name: str, path: Path, made: str | None, done: str) -> bool:
    """Change a client's file, keep a backup, and report it; a file without other content is deleted.

    Returns:
        False if there is nothing more to print.
    """
    backup = None if made is None else _replace(name, path, made)
    if call.json:
        print_json({"file": str(path), "changed": made is not None, "backup": backup})
        return False
    if made is None:
        print_text(f"nothing to change in {path}", wrap=False)
        return False
    print_text(f"{done} {path}", wrap=False)
    if backup is not None:
        print_text(f"backup of the previous file: {backup}", "dim", wrap=False)
    return True


def _print_other_part(what: str, name: str, flag: str, project: bool) -> None:
    """Name the command that installs what this one did not."""
    command = " ".join(filter(None, ["rlm-mem install", name, flag, "--project" if project else ""]))
    print_text(f"{what} are added by {command}.", wrap=False)


def _install_hooks(call: Call, client: HookClient, project: bool, remove: bool, show: bool) -> None:
    """Write the hooks into a client's settings, or remove them; other entries are kept."""
    if project:
        launcher = clients.shared_launcher()
        # A committed file must not name a folder of this machine, and hooks run in any folder of the project.
        if call.named_brain is not None:
            raise InputError(
                "the hooks of a project cannot name a brain, since each of its users has their own",
                hint="leave --brain or --project out",
            )
        named: list[str] = []
    else:
        launcher = clients.launcher()
        # The same brain as the entry of the server has, which may also be installed from this folder.
        named = ["--brain", _own_brain(call)]
    if call.namespace:
        named += ["--namespace", option_value(call.namespace)]
    path = _settings_file(client, project)
    ours = hooks_of(client, launcher, named)
    if show:
        _show_entry(call, path, {"hooks": ours}, with_hooks("", client, ours, where=str(path)) or "")
        return

    if remove:
        made = _without_hooks(client, path, ours)
    else:
        made = _with_hooks(clients.read_text(path), ours, client=client, path=path)
    if not _write(call, client.name, path, made, f"hooks {'removed from' if remove else 'written to'}"):
        return
    if not remove:
        if not project:
            print_text(f"memory: {shown_place(named[1])}", wrap=False)
        print_text("They take effect in new sessions. rlm-mem hook rules shows what is captured.")
        print_text(
            "In a repository, rlm-mem project import brings in its instructions, memory bank and decisions."
        )
        _print_other_part("The tools to search, recall and remember", client.name, "", project)
        if client.name == "codex":
            print_text("Codex asks for permission once: /hooks.")


def _chosen_client(as_json: bool) -> clients.Client:
    """Return the client that the user chooses from a list; without a terminal, print the list and raise InputError."""
    installed = {
        client.name: clients.is_here(client, home_folder(), os.environ) for client in clients.CLIENTS
    }
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    if as_json:
        print_json([{"client": name, "found": found} for name, found in installed.items()])
    else:
        begin = 0 if asks else 1  # the number is there to be typed
        rows = [
            (number, name, "yes" if found else "no", f"rlm-mem install {name}")[begin:]
            for number, (name, found) in enumerate(installed.items(), 1)
        ]
        print_table(("", "client", "found", "command")[begin:], rows)
    if not asks:
        raise InputError("no client was named", hint="name one: rlm-mem install NAME")
    first = next((number for number, found in enumerate(installed.values(), 1) if found), None)
    chosen = typer.prompt("which client (number or name)", default=first, type=str).strip()
    names = list(installed)
    if chosen.isdecimal() and 1 <= int(chosen) <= len(names):
        chosen = names[int(chosen) - 1]
    return clients.client_named(chosen)


def _own_brain(call: Where) -> str:
    """Return the brain by its absolute path, since clients start the server in any folder."""
    place = call.place
    return place if isinstance(place, str) else str(place.expanduser().absolute())


def _shared_brain(call: Where, client: clients.Client) -> str | None:
    """Return the brain as a committed file may name it, inside the project or by DSN; None: each user's own brain.

    Raises:
        InputError: its path is outside the project, or its DSN names a user or password.
    """
    named = call.named_brain
    if isinstance(named, str):
        if shown_dsn(named) != named.strip() or "@" in named:
            raise InputError(
                f"{shown_place(named)} contains a user or a password, and the settings of a project are committed",
                hint="name the database without them (PGUSER, PGPASSFILE), or leave --project out",
            )
        return named
    if named is not None:
        inside = clients.place_in_project(client, named, working_folder())
        if inside is None:
            raise InputError(
                f"{named} is outside the project, and the settings of a project are committed",
                hint="leave out --brain to use each user's own memory, or leave out --project",
            )
        return inside
    place = locate(environ={**os.environ, "RLM_MEM_BRAIN": ""})
    return clients.place_in_project(client, place, working_folder()) if isinstance(place, Path) else None


def _server_arguments(
    call: Where, client: clients.Client, brain: str | None, tools: str, read_only: bool, *, committed: bool
) -> list[str]:
    arguments = ["mcp", *(("--brain", brain) if brain is not None else ())]
    if call.namespace:
        arguments += ["--namespace", option_value(call.namespace)]
    else:
        arguments += clients.project_arguments(client, committed=committed)
    if tools == "all":
        arguments += ["--tools", "all"]
    return [*arguments, "--read-only"] if read_only else arguments


def doctor(call: Call) -> None:
    """Check the installation, the memory and the clients; exit with 1 if something is wrong."""
    findings = []
    for found in examine(call.named_brain, call.namespace):
        findings.append(found)
        if not call.json:
            style = {OK: "green", FAIL: "red"}.get(found.state, "yellow")
            state = text(f"{found.state:8}", style)
            print_text(state + text(f" {found.subject}: {found.message}"), wrap=False)
            if found.remedy:
                print_text(f"         {found.remedy}", "dim", wrap=False)
    wrong = [found for found in findings if found.state == FAIL]
    if call.json:
        print_json({"ok": not wrong, "findings": findings})
    if wrong:
        raise typer.Exit(1)
