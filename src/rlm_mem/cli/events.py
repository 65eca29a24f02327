"""The hooks that agents run on their events, from their command lines as `rlm-mem install` writes them.

They run at every prompt, so these lines are read here: Typer would take a seventh of their time. Any other line, such
as one that asks for help, is left to it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import rlm_mem
from rlm_mem.cli.logging import log_lines
from rlm_mem.cli.namespaces import hook_namespace
from rlm_mem.config import locate
from rlm_mem.mcp.hook_clients import SECONDS, hook_client_named
from rlm_mem.mcp.hooks import MOST_EVENT, carry_out, doubled_by_cursor, event_from, guarded

CLIENT = "claude-code"
"""The client of a line that names none."""
_OPTIONS = {"--client", "--brain", "--namespace"}


def run_line(words: Sequence[str]) -> bool:
    """Run the hook that a command line calls; False: Typer has to read the line.

    Args:
        words: what follows ``rlm-mem hook``.
    """
    kind, names, values = "".join(words[:1]), words[1::2], words[2::2]
    if kind not in SECONDS or len(names) != len(values) or not _OPTIONS.issuperset(names):
        return False
    given = dict(zip(names, values, strict=True))
    log_lines(None, None, None)
    run_hook(
        kind, given.get("--client", CLIENT), given.get("--brain"), hook_namespace(given.get("--namespace"))
    )
    return True


def run_hook(kind: str, client_name: str, brain: str | None, namespace: str | None) -> None:
    """Run a hook: it prints one JSON object or nothing and never fails, so that it never blocks an agent.

    Args:
        kind: the event, one of ``SECONDS``.
        client_name: the agent, one of ``HOOK_CLIENTS``.
        brain: as the option names it; None: the default one.
        namespace: None: that of the project of the event.
    """
    output = ""
    with guarded(f"{kind} of {client_name}", SECONDS[kind]):
        client = hook_client_named(client_name)
        event = event_from(sys.stdin.buffer.read(MOST_EVENT) if sys.stdin is not None else b"")
        if doubled_by_cursor(client.name, event):
            return
        place = locate(brain)

        def opened(namespace: str | None) -> rlm_mem.Memory:
            return rlm_mem.Memory.open(place, namespace=namespace, actor=f"hook:{client.name}")

        context = carry_out(
            kind,
            client.name,
            event,
            opened,
            brain=place if isinstance(place, Path) else None,
            namespace=namespace,
        )
        output = client.context(kind, context) if context else ""
    if output:
        sys.stdout.write(output + "\n")
