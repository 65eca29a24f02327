"""The doctor: checks of an installation and a brain, with a remedy for each defect."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_mem import __version__
from rlm_mem.chunk.types import amount
from rlm_mem.config import Config, home_folder, locate, working_folder
from rlm_mem.errors import RlmMemError
from rlm_mem.mcp.clients import CLIENTS, Client, is_here, read_text
from rlm_mem.mcp.commented_json import read_commented
from rlm_mem.mcp.hook_clients import HOOK_CLIENTS, HookClient, hook_client_named
from rlm_mem.mcp.hook_settings import our_hooks
from rlm_mem.mcp.hooks import log_file, paused, recent_failures
from rlm_mem.mcp.starting import ServerEntry, Started, entry_in, is_our_command, started

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.sandbox.guarantees import Guarantees

OK, WARN, FAIL = "ok", "warning", "wrong"
_Result = tuple[str, str] | tuple[str, str, str | None]
"""State, message and remedy, if any, of a check."""

_EXTRAS = {
    "llm": ("pydantic_ai", "other models than the built-in one"),
    "server": ("mcp", "the MCP server"),
    "keyring": ("keyring", "keys from the system's keyring"),
}


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check: `state` is ok, warning or wrong; `remedy` is the action to take.

    `guarantees` has the results of the probes of a sandbox engine; None for other checks.
    """

    subject: str
    state: str
    message: str
    remedy: str | None = None
    guarantees: Guarantees | None = None


def examine(brain: Path | str | None = None, namespace: str | None = None) -> Iterator[Diagnosis]:
    """Check the environment, the brain, its index, the model, the sandbox and the clients, without changes.

    The clients checked are those on this machine, with the settings of the user and of the project in the working
    folder; each server in them is started in the same way as by the client.

    Args:
        brain: the folder, or a DSN; None: the default of the command line.
        namespace: the namespace to check; None: the configured one.

    Yields:
        The result of each check, as it completes.
    """
    version = ".".join(map(str, sys.version_info[:3]))
    yield Diagnosis("installation", OK, f"rlm-mem {__version__} on Python {version}, {sys.platform}")
    yield from _extras()
    place = locate(brain)
    try:
        config = Config.load(place)
    except RlmMemError as error:
        yield _failed("settings", error)
    else:
        yield from _examine_brain(place, namespace)
        yield from _engines(config)
    here = home_folder(), os.environ, working_folder()
    plugin = _has_plugin(*here[:2])
    yield from _clients(*here, plugin=plugin)
    yield from _hooks(*here, plugin=plugin)


def _examine_brain(place: Path | str, namespace: str | None) -> Iterator[Diagnosis]:
    writable = True
    if isinstance(place, Path):
        if not (place / "memory").is_dir():
            yield Diagnosis(
                "brain",
                WARN,
                f"there is no memory at {place}",
                f"rlm-mem store init {shlex.quote(str(place))} creates one, and so does the first rlm-mem remember.",
            )
            return
        writable = os.access(place / "memory", os.W_OK)
        yield Diagnosis(
            "brain",
            OK if writable else WARN,
            f"found at {place}" + ("" if writable else ", but not writable"),
            None if writable else "Change its permissions, or use it read-only.",
        )
    try:
        from rlm_mem.memory import Memory

        memory = Memory.open(place, namespace=namespace, read_only=not writable, actor="doctor")
    except RlmMemError as error:
        yield _failed("store", error)
        return
    with memory:
        checks: tuple[tuple[str, Callable[[Memory], _Result]], ...] = (
            ("store", _store),
            ("clock", _clock),
            ("search", _search),
            ("model", _model),
            ("sandbox", _sandbox),
        )
        for subject, check in checks:
            try:
                yield Diagnosis(subject, *check(memory))
            except RlmMemError as error:
                yield _failed(subject, error)
            except Exception as error:  # noqa: BLE001 - a check that fails is itself a finding
                yield Diagnosis(
                    subject, FAIL, f"{type(error).__name__}: {error}", "RLM_MEM_DEBUG=1 shows the traceback."
                )


def _failed(subject: str, error: RlmMemError) -> Diagnosis:
    return Diagnosis(subject, FAIL, str(error), error.hint)


def _extras() -> Iterator[Diagnosis]:
    for extra, (module, purpose) in _EXTRAS.items():
        missing = find_spec(module) is None  # the check of a client that needs it fails below
        remedy = f'pip install "rlm-mem[{extra}]"' if missing else None
        yield Diagnosis(f"extra {extra}", OK, f"{'not ' * missing}installed: {purpose}", remedy)


def _clients(home: Path, environ: Mapping[str, str], project: Path, *, plugin: bool) -> Iterator[Diagnosis]:
    """Check that the server starts in the way of each installed client; the same command is tried only once."""
    tried: dict[Hashable, Started] = {}
    for client in CLIENTS:
        own, shared = client.user(home, environ), project / client.project if client.project else None
        places = [(own, home)] + ([(shared, project)] if shared is not None and shared != own else [])
        found = False
        for file, folder in places:
            subject = f"client {client.name}" + (" (project)" if folder is not home else "")
            try:
                entry = entry_in(client, file, folder)
            except (RlmMemError, ValueError) as error:
                yield Diagnosis(subject, FAIL, str(error), _again(client, folder is not home))
                found = True
                continue
            if entry is not None:
                found = True
                yield _start(client, subject, entry, environ, tried, shared=folder is not home)
        if found or not is_here(client, home, environ):
            continue
        if client.name == "claude-code" and plugin:
            yield Diagnosis(f"client {client.name}", OK, "has the plugin, with its own server and hooks")
            continue
        yield Diagnosis(
            f"client {client.name}",
            OK,
            "installed, but not connected to this memory",
            f"rlm-mem install {client.name}",
        )


def _has_plugin(home: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the plugin of this package is enabled in Claude Code."""
    try:
        settings = read_commented(read_text(hook_client_named("claude-code").user(home, environ)))
    except (RlmMemError, ValueError, RecursionError):  # missing or damaged settings
        return False
    plugins = settings.get("enabledPlugins") if isinstance(settings, dict) else None
    return isinstance(plugins, dict) and any(
        name.startswith("rlm-mem@") and enabled is True for name, enabled in plugins.items()
    )


def _hooks(home: Path, environ: Mapping[str, str], project: Path, *, plugin: bool) -> Iterator[Diagnosis]:
    """Check that the hooks in the settings of clients name an existing command and all events, and are not paused."""
    if (until := paused()) is not None:
        yield Diagnosis("hooks", WARN, f"paused {until}", "rlm-mem hook resume ends the pause.")
    if failures := recent_failures():
        yield Diagnosis(
            "hooks",
            WARN,
            f"{amount(len(failures), 'hook')} failed in the last 7 days, the last at {failures[-1][:300]}",
            f"{log_file()} lists them. A hook that took too long gave no memories; what it left of a transcript, the"
            " next one captures.",
        )
    for client in HOOK_CLIENTS:
        own, shared = client.user(home, environ), project / client.project
        for file in dict.fromkeys((own, shared)):
            try:
                found = our_hooks(read_text(file))
            except RlmMemError as error:
                yield _failed(f"hooks {client.name}", error)
                continue
            if found and client.name == "claude-code" and plugin:
                remove = f"rlm-mem install claude-code --hooks{' --project' if file != own else ''} --remove"
                yield Diagnosis(f"hooks {client.name}", WARN, f"set up in {file}, and by the plugin", remove)
            elif found:
                subject = f"hooks {client.name}" + (" (project)" if file != own else "")
                yield Diagnosis(subject, *_hooks_in(client, file, found, shared=file != own))


def _hooks_in(client: HookClient, file: Path, found: Mapping[str, str], *, shared: bool) -> _Result:
    again = f"rlm-mem install {client.name} --hooks{' --project' if shared else ''} writes them again."
    missing_programs = sorted(
        {_program(line) for line in found.values() if shutil.which(_program(line)) is None}
    )
    if missing_programs:
        is_by_name = missing_programs == ["rlm-mem"]
        remedy = "Put the command on the PATH: pipx install rlm-mem" if is_by_name else again
        return FAIL, f"{file} names a command that does not exist: {', '.join(missing_programs)}", remedy
    missing = [event for event in client.events.values() if event not in found]
    if missing:
        return WARN, f"{file} lacks {', '.join(missing)}", again
    former = sorted(set(found) - set(client.events.values()))
    if former:
        return WARN, f"{file} has {', '.join(former)}, which is no longer used", again
    return OK, f"set up in {file}, for {len(found)} events"


def _program(line: str) -> str:
    try:
        return shlex.split(line)[0]
    except (ValueError, IndexError):  # open quotes: not written by install
        return line.split()[0]


def _again(client: Client, shared: bool) -> str:
    return f"rlm-mem install {client.name}{' --project' if shared else ''} writes the entry again."


def _start(
    client: Client,
    subject: str,
    entry: ServerEntry,
    environ: Mapping[str, str],
    tried: dict[Hashable, Started],
    *,
    shared: bool,
) -> Diagnosis:
    again = _again(client, shared)
    if shared and not is_our_command(entry):
        # Another person may have written the project's file, with any command.
        return Diagnosis(subject, WARN, f"{entry.file} starts another command, which was not tried", again)
    inherited = {**environ, "RLM_MEM_BRAIN": "", "XDG_DATA_HOME": "", **entry.environ}
    try:
        place = locate(entry.brain, cwd=entry.folder, environ=inherited)
    except RlmMemError as error:
        return _failed(subject, error)
    if isinstance(place, Path) and not (entry.folder / place / "memory").is_dir():
        return Diagnosis(
            subject,
            WARN,
            f"set up in {entry.file}; there is no memory at {place} yet",
            f"The first session creates one, and so does rlm-mem store init {shlex.quote(str(place))}.",
        )
    result = tried.get(entry.start) or started(entry, environ)
    tried[entry.start] = result
    if result.failure:
        # The entry is the one that install writes, so writing it again does not help without the package.
        lacks_package = find_spec(_EXTRAS["server"][0]) is None and is_our_command(entry)
        remedy = 'pip install "rlm-mem[server]"' if lacks_package else again
        return Diagnosis(
            subject, FAIL, f"the server that {entry.file} names does not start: {result.failure}", remedy
        )
    return Diagnosis(
        subject, OK, f"the server that {entry.file} names starts, and offers {result.tools} tools"
    )


def _store(memory: Memory) -> _Result:
    figures = memory.store.get_stats()
    unreadable = figures.get("unreadable_files", 0)
    size = figures.get("index_size_mb")
    kept = memory.store.backend.location if size is None else f"index of {size} MB"
    message = f"{amount(figures['chunk_count'], 'memory')} in namespace {memory.store.namespace}, {kept}"
    if unreadable:
        return (
            FAIL,
            f"{message}; {amount(unreadable, 'file')} cannot be read",
            "rlm-mem store check lists them.",
        )
    return OK, f"{message} (rlm-mem store check checks everything)"


def _clock(memory: Memory) -> _Result:
    store = memory.store
    fault = store.backend.clock_fault(store.namespace, store.clock())
    if fault:
        return WARN, fault, "Set the clock of the machine that is wrong."
    return OK, "no memory was stored with a clock far ahead of this one"


def _search(memory: Memory) -> _Result:
    newest = memory.store.latest(1)
    if not newest:
        return OK, f"nothing is remembered in namespace {memory.store.namespace} yet"
    chunk = memory.store.get_chunk(newest[0].id, track=False)
    if chunk is None:
        remedy = "rlm-mem store check, then rlm-mem store repair."
        return FAIL, f"the file of {newest[0].id} is missing or damaged", remedy
    memory.search(chunk.content[:200], limit=1)
    return OK, "the index answers"


def _model(memory: Memory) -> _Result:
    configured = memory.config.llm.model
    name = memory.llm.name  # resolving it detects a missing extra or key; nothing is sent
    note = " (built in: no key, no network)" if configured == "offline" else ""
    return OK, f"{name}{note}"


def _sandbox(memory: Memory) -> _Result:
    from rlm_mem.sandbox.session import SandboxSession

    with SandboxSession(memory.store, config=memory.config) as session:
        ordinary = session.run("print(6 * 7)")
        escape = session.run("open('/etc/hostname').read()")
        engine = session.engine_name
    if ordinary.error is not None or "42" not in ordinary.output:
        return FAIL, f"{engine} cannot run a program: {ordinary.error}", "Try sandbox.engine."
    if escape.error is None:
        return FAIL, f"{engine} let a program open a file", "Use the engine monty."
    return OK, f"{engine} runs programs and denies them access to files"


def _engines(config: Config) -> Iterator[Diagnosis]:
    for name in ("monty", "cpython"):
        yield _engine(config, name)


def _engine(config: Config, name: str) -> Diagnosis:
    """Check the guarantees of an engine on this machine by its probes."""
    from rlm_mem.sandbox.engine import EngineLimits
    from rlm_mem.sandbox.guarantees import probe_engine

    sandbox = config.sandbox
    limits = EngineLimits(
        seconds=sandbox.timeout_seconds,
        memory_mb=sandbox.memory_mb,
        allow_weaker_isolation=sandbox.allow_weaker_isolation,
    )
    subject = f"sandbox engine {name}"
    try:
        found = probe_engine(name, limits)
    except RlmMemError as error:
        return _failed(subject, error)
    if not found.available:
        # The engine refuses to run programs with weaker isolation.
        state = FAIL if name == sandbox.engine else OK
        return Diagnosis(subject, state, found.isolation, "Use sandbox.engine = monty.", found)
    broken = [probe for probe in found.probes if not probe.held]
    if broken:
        tried = "; ".join(f"{probe.tried}: {probe.detail}" for probe in broken)
        return Diagnosis(subject, FAIL, f"failed: {tried}", "Use the other engine, and report this.", found)
    # With --json, the guarantees have the attempts and the rest.
    message = (
        f"{found.isolation}; tried and refused: files, network; "
        f"a program has {found.memory_mb} MB and {found.seconds:g} s at most"
    )
    state = OK if found.system_call_filter or name == "monty" else WARN
    remedy = (
        None
        if state == OK
        else "Unset RLM_MEM_SANDBOX_ALLOW_WEAKER_ISOLATION, or use sandbox.engine = monty."
    )
    return Diagnosis(subject, state, message, remedy, found)
