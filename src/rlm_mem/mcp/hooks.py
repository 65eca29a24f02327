"""The hooks of coding agents, which add memories to the context of sessions and prompts, and capture sessions by rule.

A client starts ``rlm-mem hook EVENT --client NAME``, writes the event as one JSON object to stdin and reads a JSON
object from stdout; ``hook_clients`` has the fields and names of each client. A hook never blocks its client: on any
error, and at its time limit, :func:`guarded` ends it with exit code 0 and no output, and logs the reason.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem import capture
from rlm_mem.capture import told
from rlm_mem.capture.actions import action_context, action_text
from rlm_mem.capture.context import AgentContext, prompt_context, session_context
from rlm_mem.capture.projects import Project, project_of
from rlm_mem.capture.rules import CaptureLimits, load_limits, load_rules
from rlm_mem.capture.transcripts import Session, SessionMessage, without_context
from rlm_mem.config import user_data_brain
from rlm_mem.errors import InputError, InvalidConfig, RlmMemError, StorageError
from rlm_mem.mcp.hook_clients import GIVES_CONTEXT, HOOK_CLIENTS, HookClient
from rlm_mem.store.core.files import write_atomic

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

#: Maximum bytes of an event.
MAX_EVENT_BYTES = 16_000_000

_MAX_LOG_BYTES = 1_000_000  # a larger log is renamed, replacing the one renamed before
_LATE_SECONDS = 0.3  # Copilot CLI 1.0 writes within some 20 ms
_TAIL_BYTES = 100_000  # bytes at the end of the log that are searched for failures
_LOG_TIME = "%Y-%m-%dT%H:%M:%S%z"
_SESSION_ID = re.compile(r"[\w-]{1,100}", re.ASCII)  # one that may be part of a path

Open = Callable[[str | None], "Memory"]
"""Opens the memory of a namespace; None means the shared one."""


def parse_event(data: bytes) -> dict[str, Any]:
    """Parse the event, a JSON object on stdin.

    Raises:
        InputError: stdin is not a JSON object.
    """
    try:
        event = json.loads(data.decode("utf-8", "replace")) if data.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("stdin is not the JSON object of a hook") from None
    if not isinstance(event, dict):
        raise InputError("stdin is not the JSON object of a hook")
    return event


def is_cursor_duplicate(client: str, event: Mapping[str, Any]) -> bool:
    """Return whether Cursor runs this hook from Claude Code's settings in addition to one of its own.

    Raises:
        StorageError: its settings cannot be read.
    """
    if client != "claude-code" or not event.get("cursor_version"):
        return False
    from rlm_mem.mcp.hook_settings import cursor_has_our_hooks

    return cursor_has_our_hooks(event)


def handle_event(
    kind: str,
    client: str,
    event: Mapping[str, Any],
    open_memory: Open,
    give: Callable[[str], None],
    *,
    brain: Path | None,
    namespace: str | None = None,
) -> None:
    """Run a hook: give the agent context, if any, and capture the session.

    Args:
        kind: one of ``hook_clients.SECONDS``.
        client: the client's name, which is recorded with captured memories.
        event: the event from the client.
        open_memory: opens the memory of a namespace; None means the shared one.
        give: takes the context for the model, before anything is captured, which takes longer.
        brain: the folder of the brain, which may contain the rules; None for a database.
        namespace: namespace of the project's memories; None: derived from the project's repository.

    Raises:
        RlmMemError: the event is malformed, or the memory cannot be used.
    """
    if kind == "user-prompt" and not _prompt(event):
        return  # Qwen Code runs this hook again with every result of a tool
    is_paused = paused() is not None
    gives = not is_paused and kind in GIVES_CONTEXT
    limits = load_limits(brain) if gives else CaptureLimits()
    if kind == "tool-use" and not (gives and limits.tool_tokens):
        return
    project = project_of(_folder(event))
    own = namespace or (project.namespace if project is not None else None)
    session = _session(kind, event, client)
    with ExitStack() as opened:

        @cache
        def memory(name: str | None) -> Memory:
            return opened.enter_context(open_memory(name))

        if is_paused:
            if _transcript(client, event) is not None and (brain is None or (brain / "memory").is_dir()):
                _capture(event, session, memory(own), brain, skip=True)
            return
        if gives and (brain is None or (brain / "memory").is_dir()):  # else there is no memory yet
            context = _context_for(kind, event, session, project, own, memory, limits)
            if context.lines and kind == "subagent-start":  # whose context is not that of the session
                give(context.text)
            elif context.lines:
                with told.recorded(
                    memory(None), session.id, context.chunk_ids,
                    with_tool=kind == "tool-use", anew=kind == "session-start",
                ) as ids:  # fmt: skip
                    if ids:
                        give(context.only(ids).text)
        # Without a transcript, no later hook can capture the prompt.
        if not gives or (kind == "user-prompt" and not _has_transcript(client, event)):
            _capture(event, session, memory(own), brain)
        if kind == "pre-compact":
            told.forget(memory(None), session.id)


def _session(kind: str, event: Mapping[str, Any], client: str) -> Session:
    name = str(_first(event, "session_id", "conversation_id") or "session")[:200]
    agent = event.get("agent_id")
    if kind == "tool-use" and isinstance(agent, str) and agent:
        name = f"{name}/{agent[:100]}"  # a subagent has a context of its own
    return Session(name, client)


def _context_for(
    kind: str,
    event: Mapping[str, Any],
    session: Session,
    project: Project | None,
    own: str | None,
    memory: Callable[[str | None], Memory],
    limits: CaptureLimits,
) -> AgentContext:
    shared = memory(None)
    project_memory = memory(own) if own is not None and own != shared.store.namespace else None
    known = told.given(shared, session.id, with_tool=kind == "tool-use")
    memories = [one for one in (project_memory, shared) if one is not None]
    if kind == "tool-use":
        # Also what the start of the session gave, since it is needed when the agent acts; but once.
        action = action_text(event.get("tool_input"), project.root if project is not None else _folder(event))
        return action_context(memories, action, budget=limits.tool_tokens, known=known)
    if kind != "user-prompt":
        if kind == "session-start" and event.get("source") == "resume" and known:
            return AgentContext({})  # its context still contains the memories
        if kind == "session-start" and project is not None and project_memory is not None:
            try:
                for notice in capture.bring_in_step(project_memory, project.root):
                    _write_log(
                        f"{kind} of {session.client}", f"{project.root}/{notice.where}: {notice.reason}"
                    )
            except RlmMemError as error:  # what is remembered already is better than nothing
                _write_log(f"{kind} of {session.client}", f"{project.root}: {error}")
        context = session_context(
            project_memory, shared, project.name if project is not None else "", budget=limits.context_tokens
        )
    else:
        context = prompt_context(
            memories,
            _prompt(event),
            budget=limits.prompt_tokens,
            known=known,
        )
    return context


def _capture(
    event: Mapping[str, Any], session: Session, memory: Memory, brain: Path | None, *, skip: bool = False
) -> None:
    """Capture the transcript that the event names, else the messages in the event itself.

    ``skip`` only records what was read, so that nothing said during a pause is captured after it.
    """
    path = _transcript(session.client, event)
    if path is not None:
        _await_lines(path, session.client)
        capture.capture_transcript(memory, path, session, lambda: load_rules(brain), skip=skip)
        return
    messages = []
    if text := _prompt(event):
        messages.append(SessionMessage("user", text))
    text = _first(event, "last_assistant_message", "prompt_response", "text")
    if isinstance(text, str) and text.strip():
        messages.append(SessionMessage("agent", text))
    if messages or capture.is_waiting(memory):
        capture.capture_messages(memory, messages, session, load_rules(brain))


def _await_lines(path: Path, client: str) -> None:
    """Wait until a client that writes its transcript late has written to it, which it may have done already."""
    known = _known_client(client)
    if known is None or not known.writes_late:
        return
    size, end = path.stat().st_size, time.monotonic() + _LATE_SECONDS
    while time.monotonic() < end and path.stat().st_size == size:
        time.sleep(0.01)


def _prompt(event: Mapping[str, Any]) -> str:
    """Return what the user typed; empty if the event has none.

    ``prompt`` may be what is sent to the model, with generated text, where a client has ``submitted_prompt`` too.
    """
    prompt = _first(event, "submitted_prompt", "prompt")
    return without_context(prompt) if isinstance(prompt, str) else ""


def _transcript(client: str, event: Mapping[str, Any]) -> Path | None:
    """Return the transcript that the event names, else that of its session where the client has a place for it."""
    path, place = event.get("transcript_path"), _place_of_transcripts(client)
    if isinstance(path, str) and path:
        found = Path(path).expanduser()
    elif place is not None and _SESSION_ID.fullmatch(session := str(event.get("session_id"))):
        found = place(Path.home(), os.environ, session)
    else:
        return None
    return found if found.is_file() else None


def _has_transcript(client: str, event: Mapping[str, Any]) -> bool:
    return _place_of_transcripts(client) is not None or _transcript(client, event) is not None


def _place_of_transcripts(client: str) -> Callable[[Path, Mapping[str, str], str], Path] | None:
    known = _known_client(client)
    return known.transcript if known is not None else None


def _known_client(name: str) -> HookClient | None:
    return next((one for one in HOOK_CLIENTS if one.name == name), None)


def _folder(event: Mapping[str, Any]) -> Path:
    """Return the folder of the session: the project's folder if the client names it, else the working folder."""
    roots = event.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return Path(roots[0])
    cwd = event.get("cwd")
    return Path(cwd) if isinstance(cwd, str) else Path()


def _first(event: Mapping[str, Any], *names: str) -> Any:
    return next((event[name] for name in names if event.get(name)), None)


def log_file() -> Path:
    """Return the path of the log of failed hooks."""
    return user_data_brain().parent / "hooks.log"


def recent_failures() -> list[str]:
    """The last lines of the log that are of the last 7 days; empty if it cannot be read."""
    since = (datetime.now().astimezone() - timedelta(days=7)).timestamp()
    try:
        with log_file().open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if (at := _time_of(line)) is not None and at >= since]


def _time_of(line: str) -> float | None:
    try:
        return datetime.strptime(line.partition(" ")[0], _LOG_TIME).timestamp()
    except ValueError:  # cut off at its beginning
        return None


@contextmanager
def guarded(what: str, seconds: float) -> Iterator[None]:
    """Run the block so that it never raises and ends in time.

    After ``seconds`` the process ends with exit code 0. An incomplete write is completed or undone the next time the
    memory is opened, as after a crash.
    """

    def end_process() -> None:
        _write_log(what, f"ended after the limit of {seconds:g} seconds")
        os._exit(0)

    timer = threading.Timer(seconds, end_process)
    timer.daemon = True
    timer.start()
    try:
        yield
    except RlmMemError as error:
        _write_log(what, str(error))
    except Exception as error:  # noqa: BLE001 - any error is logged, and the client continues
        _write_log(what, f"{type(error).__name__}: {error}")
    finally:
        timer.cancel()


def _write_log(what: str, reason: str) -> None:
    line = " ".join(f"{datetime.now().astimezone():{_LOG_TIME}} {what}: {reason}".split())
    try:
        path = log_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.old"))
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line[:2_000] + "\n")
    except (OSError, InvalidConfig):
        return  # a full disk, or a user without a home folder, must not block the client either


# --- pauses, during which hooks neither provide memories to agents nor capture anything ---------------------

_NO_END = "until resumed"


def _pause_file() -> Path:
    return user_data_brain().parent / "hooks.paused"


def pause(length: timedelta | None) -> str:
    """Pause the hooks of all clients of this user; return the end of the pause in words."""
    end = _NO_END if length is None else f"{datetime.now(UTC) + length:%Y-%m-%dT%H:%M:%SZ}"
    path = _pause_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, end.encode())  # half of it would be a pause without end
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}; the hooks are not paused") from None
    return _end_in_words(end)


def resume() -> bool:
    """End the pause; return False if there was none."""
    was_paused = paused() is not None
    try:
        _pause_file().unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{_pause_file()} cannot be removed: {error.strerror}") from None
    return was_paused


def paused() -> str | None:
    """Return the end of the pause in words; None if there is none. An unreadable file is a pause without end."""
    try:
        end = _pause_file().read_text(encoding="utf-8").strip()
        return (
            _end_in_words(end) if end == _NO_END or datetime.now(UTC) < datetime.fromisoformat(end) else None
        )
    except (FileNotFoundError, InvalidConfig):  # a user without a home folder has no pause either
        return None
    except (OSError, ValueError, TypeError):
        return _end_in_words(_NO_END)


def _end_in_words(end: str) -> str:
    return end if end == _NO_END else f"until {end[:16].replace('T', ' ')} UTC"
