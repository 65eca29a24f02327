"""The hooks that agents run on their events, by the command lines that `rlm-mem install` writes.

These lines are parsed here, since they run at every prompt and Typer would take a seventh of their time. Typer parses
any other line, such as one with `--help`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import structs

import rlm_mem
from rlm_mem.cli.logging import configure_logging
from rlm_mem.cli.namespaces import hook_namespace
from rlm_mem.config import Config, locate
from rlm_mem.mcp.hook_clients import SECONDS, hook_client_named
from rlm_mem.mcp.hooks import MAX_EVENT_BYTES, guarded, handle_event, is_cursor_duplicate, parse_event

CLIENT = "claude-code"
"""The client if a line does not name one."""
_OPTIONS = {"--client", "--brain", "--namespace"}


def run_line(words: Sequence[str]) -> bool:
    """Run the hook that a command line calls; return False if Typer must parse the line.

    Args:
        words: the arguments after ``rlm-mem hook``.
    """
    kind, names, values = "".join(words[:1]), words[1::2], words[2::2]
    if kind not in SECONDS or len(names) != len(values) or not _OPTIONS.issuperset(names):
        return False
    given = dict(zip(names, values, strict=True))
    configure_logging(None, None, None)
    run_hook(
        kind, given.get("--client", CLIENT), given.get("--brain"), hook_namespace(given.get("--namespace"))
    )
    return True


def run_hook(kind: str, client_name: str, brain: str | None, namespace: str | None) -> None:
    """Run a hook, which prints one JSON object or nothing and never fails, so that it does not block an agent.

    What is printed stays if the hook then fails, or is ended at its time limit.

    Args:
        kind: the event, one of ``SECONDS``.
        client_name: the agent, one of ``HOOK_CLIENTS``.
        brain: the value of the option; None: the default.
        namespace: the namespace; None: that of the project of the event.
    """
    with guarded(f"{kind} of {client_name}", SECONDS[kind]):
        client = hook_client_named(client_name)
        event = parse_event(sys.stdin.buffer.read(MAX_EVENT_BYTES) if sys.stdin is not None else b"")
        if is_cursor_duplicate(client.name, event):
            return
        place = locate(brain)
        settings = cache(lambda: Config.load(place))
        until = time.monotonic() + SECONDS[kind] / 2

        def open_memory(namespace: str | None) -> rlm_mem.Memory:
            # All memories together wait for half of the time, since each may find the same lock held.
            config = _impatient(settings(), until - time.monotonic())
            return rlm_mem.Memory.open(place, namespace=namespace, config=config, actor=f"hook:{client.name}")

        def give(context: str) -> None:
            if output := client.context(kind, context):
                print(output, flush=True)

        handle_event(
            kind,
            client.name,
            event,
            open_memory,
            give,
            brain=place if isinstance(place, Path) else None,
            namespace=namespace,
        )


def _impatient(config: Config, seconds: float) -> Config:
    """Return the settings with a limit for waiting for other writers: what can be read is given all the same."""
    wait = min(config.store.lock_wait_seconds, max(0.0, seconds))
    return structs.replace(config, store=structs.replace(config.store, lock_wait_seconds=wait))
