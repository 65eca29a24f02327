"""`rlm-mem hook`: the commands that agents run on their events, and the rules of capture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import rlm_mem
from rlm_mem import capture
from rlm_mem.capture.rules import RULES_FILE, SHIPPED, load_rules
from rlm_mem.capture.transcripts import read_part
from rlm_mem.cli.call import BrainCall, Where
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, indented, note, print_json, screen, text
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InputError
from rlm_mem.mcp.hook_clients import SECONDS, doubled_by_cursor, hook_client_named
from rlm_mem.mcp.hooks import MOST_EVENT, carry_out, event_from, guarded

Client = Annotated[str, option("--client", "NAME", "claude-code, codex, cursor, gemini-cli or qwen-code.")]


def session_start(call: Where, client: Client = "claude-code") -> None:
    """For an agent's hook: print, as context of the session, what the project and its user keep to."""
    _hook(call, "session-start", client)


def user_prompt(call: Where, client: Client = "claude-code") -> None:
    """For an agent's hook: print memories that bear on the prompt; nothing where none does."""
    _hook(call, "user-prompt", client)


def stop(call: Where, client: Client = "claude-code") -> None:
    """For an agent's hook: capture by rule what was said since the last call."""
    _hook(call, "stop", client)


def pre_compact(call: Where, client: Client = "claude-code") -> None:
    """For an agent's hook: capture by rule what was said, before the context is compacted."""
    _hook(call, "pre-compact", client)


def session_end(call: Where, client: Client = "claude-code") -> None:
    """For an agent's hook: capture by rule what was said since the last call."""
    _hook(call, "session-end", client)


def _hook(call: Where, kind: str, client_name: str) -> None:
    """Run a hook: it exits with 0 and prints one JSON object or nothing, so that it never blocks an agent."""
    output = ""
    with guarded(f"{kind} of {client_name}", SECONDS[kind]):
        client = hook_client_named(client_name)
        event = event_from(sys.stdin.buffer.read(MOST_EVENT) if sys.stdin is not None else b"")
        if doubled_by_cursor(client, event):
            return
        place = call.place

        def opened(namespace: str | None) -> rlm_mem.Memory:
            return rlm_mem.Memory.open(place, namespace=namespace, actor=f"hook:{client.name}")

        context = carry_out(
            kind,
            client.name,
            event,
            opened,
            brain=place if isinstance(place, Path) else None,
            namespace=call.namespace,
        )
        output = client.context(kind, context) if context else ""
    if output:
        sys.stdout.write(output + "\n")


def rules(
    call: BrainCall,
    write: Annotated[
        bool, flag("--write", f"Write {RULES_FILE} into the folder of the brain, to be edited.")
    ] = False,
) -> None:
    """Show the rules of capture in force, and the file that they come from."""
    place = call.place
    if write:
        if not isinstance(place, Path):
            raise InputError(
                "the rules of a database cannot be edited", hint="only a brain folder has a file"
            )
        path = place / RULES_FILE
        try:
            place.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(SHIPPED.read_text(encoding="utf-8"))
        except FileExistsError:
            raise ConflictError(f"{path} is there already", hint="edit it, or remove it first") from None
    found = load_rules(place if isinstance(place, Path) else None)
    if call.json:
        print_json(
            {"file": str(found.where), "limits": found.limits, "rules": [rule for rule, _ in found.rules]}
        )
        return
    note(f"from {found.where}")
    screen().print(text(found.where.read_text(encoding="utf-8").rstrip()), soft_wrap=True)


def try_(
    call: BrainCall, transcript: Annotated[Path, argument("FILE", "A transcript of a coding agent.")]
) -> None:
    """Show what the rules would keep of a transcript, secrets hidden; nothing is written."""
    place = call.place
    found = load_rules(place if isinstance(place, Path) else None)
    secrets = Config.load(place).secrets
    part = read_part(transcript)
    kept = [
        (message, one) for message in part.messages for one in found.kept(capture.screened(message, secrets))
    ]
    if call.json:
        print_json(
            [{"speaker": message.speaker, "at": message.at, "rule": one.rule, "type": one.type, "text": one.text}
             for message, one in kept]
        )  # fmt: skip
        return
    console = screen()
    for message, one in kept:
        console.print(text(f"{one.rule}", "cyan") + text(f"  {message.speaker} · {one.type}", "dim"))
        console.print(indented(one.text, 4))
    most = found.limits.per_session
    bound = f"; only the first {most} of one session" if len(kept) > most else ""
    console.print(text(f"{amount(len(part.messages), 'message')}, {len(kept)} kept{bound}", "dim"))
