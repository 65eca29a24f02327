"""`rlm-mem hook`: the commands that agents run on their events, and the capture rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from rlm_mem import capture
from rlm_mem.capture.actions import action_context, action_text
from rlm_mem.capture.context import prompt_context, session_context, shared_terms
from rlm_mem.capture.projects import project_of
from rlm_mem.capture.rules import RULES_FILE, SHIPPED, load_limits, load_rules
from rlm_mem.capture.transcripts import read_part
from rlm_mem.chunk.types import duration
from rlm_mem.cli.call import BrainCall, Call, JsonCall, Where
from rlm_mem.cli.events import CLIENT, run_hook
from rlm_mem.cli.namespaces import hook_namespace
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, note, print_text, text
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InputError, InvalidChunk
from rlm_mem.mcp.hooks import pause, paused, resume

Client = Annotated[
    str, option("--client", "NAME", "claude-code, codex, copilot-cli, cursor, gemini-cli or qwen-code.")
]


class HookCall(Where, frozen=True):
    """The call of a hook, which uses the project of its event unless a namespace is named."""

    @staticmethod
    def named(namespace: str | None) -> str | None:
        """Return the namespace that the option names; None: that of the project."""
        return hook_namespace(namespace)


def _hook(event: str, what: str) -> Callable[[HookCall, str], None]:
    """Make the command that a client runs on an event."""

    def run(call: HookCall, client: Client = CLIENT) -> None:
        run_hook(event, client, call.brain, call.namespace)

    run.__doc__ = f"For an agent's hook: {what}."
    return run


session_start = _hook("session-start", "print rules and preferences of the project and its user as context")
subagent_start = _hook(
    "subagent-start", "print what a session is given at its start, for the empty context of a subagent"
)
user_prompt = _hook("user-prompt", "print memories that match the prompt, if any")
tool_use = _hook("tool-use", "print memories that speak to the command or the change of a file, if any")
stop = _hook("stop", "capture, by rules, from what was said since the last call")
pre_compact = _hook("pre-compact", "capture, by rules, before the context is compacted")
session_end = _hook("session-end", "capture, by rules, from what was said since the last call")


def context(
    call: Call,
    prompt: Annotated[
        str | None,
        argument("[PROMPT]", "Show what an agent gets with this prompt. Default: at the start of a session."),
    ] = None,
    action: Annotated[
        str | None,
        option("--action", "TEXT", "Show what an agent gets as it runs this command or changes this file."),
    ] = None,
) -> None:
    """Show what hooks give to an agent in this folder, and why: at the start, with a prompt, or with an action."""
    if prompt is not None and action is not None:
        raise InputError("a prompt and --action are two questions", hint="ask them one after the other")
    if (until := paused()) is not None:
        note(f"the hooks are paused {until} and provide nothing")
    place, project = call.place, project_of()
    own = call.namespace or (project.namespace if project is not None else None)
    limits = load_limits(place if isinstance(place, Path) else None)
    rows = []
    with call.at(namespace=Config.load(place).store.namespace).open() as shared, ExitStack() as opened:
        project_memory = None
        if own is not None and own != shared.store.namespace:
            project_memory = opened.enter_context(call.at(namespace=own).open())
        both = [one for one in (project_memory, shared) if one is not None]
        if action is not None:
            action = action_text({"command": action}, project.root if project is not None else Path.cwd())
            given = action_context(both, action, budget=limits.tool_tokens)
        elif prompt is None:
            name = project.name if project is not None else ""
            given = session_context(project_memory, shared, name, budget=limits.context_tokens)
        else:
            given = prompt_context(both, prompt, budget=limits.prompt_tokens)
        for chunk_id in given.chunk_ids:
            holder = next((one for one in both if one.store.exists(chunk_id)), shared)
            chunk = holder.store.get_chunk(chunk_id, track=False)
            if chunk is None:  # deleted meanwhile
                continue
            asked = action if action is not None else prompt
            words = shared_terms(holder, asked, chunk.content) if asked is not None else []
            because = f"shares {', '.join(words)}" if words else f"a {chunk.type}"
            where = holder.store.namespace
            rows.append({"id": chunk_id, "namespace": where, "because": because, "content": chunk.content})
    if call.printed_json(rows):
        return
    for row in rows:
        print_text(
            text(row["id"], "cyan") + text(f"  {row['because']} · {row['namespace']}", "dim"), wrap=False
        )
        print_text(row["content"], indent=4)
    if not rows:
        why = ": none shares enough words with it" if action is not None or prompt is not None else ""
        print_text(f"no memories are provided{why}", "dim")


def pause_(
    call: JsonCall,
    length: Annotated[
        str | None,
        argument("[LENGTH]", "How long, such as 30m, 1h or 2d. Default: until resumed."),
    ] = None,
) -> None:
    """Pause the hooks of every client: they give no memories to agents and capture nothing that is said meanwhile.

    The tools of the MCP server are not affected. rlm-mem hook resume ends the pause.
    """
    try:
        until = pause(None if length is None else duration(length))
    except InvalidChunk:
        raise InputError(
            f"{length!r:.40} is not a duration", hint="use a form such as 30m, 1h or 2d"
        ) from None
    call.report({"paused": until}, f"the hooks are paused {until}; rlm-mem hook resume ends the pause")


def resume_(call: JsonCall) -> None:
    """Resume the hooks after a pause."""
    was = resume()
    call.report({"resumed": was}, "the hooks are active again" if was else "the hooks were not paused")


def rules(
    call: BrainCall,
    write: Annotated[
        bool, flag("--write", f"Write {RULES_FILE} into the folder of the brain, to be edited.")
    ] = False,
) -> None:
    """Show the capture rules, and the file that they come from."""
    place = call.place
    if write:
        if not isinstance(place, Path):
            raise InputError(
                "the rules of a database cannot be edited", hint="only a brain folder has a file for them"
            )
        path = place / RULES_FILE
        try:
            place.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(SHIPPED.read_text(encoding="utf-8"))
        except FileExistsError:
            raise ConflictError(f"{path} exists already", hint="edit it, or remove it first") from None
    found = load_rules(place if isinstance(place, Path) else None)
    if call.printed_json(
        {
            "file": str(found.where),
            "limits": found.limits,
            "rules": [rule for rule, _ in found.rules],
            "signs": [sign for sign, _ in found.signs],
        }
    ):
        return
    note(f"from {found.where}")
    print_text(found.where.read_text(encoding="utf-8").rstrip(), wrap=False)


def try_(
    call: BrainCall, transcript: Annotated[Path, argument("FILE", "A transcript of a coding agent.")]
) -> None:
    """Show what the rules would keep of a transcript, without secrets; nothing is stored."""
    place = call.place
    found = load_rules(place if isinstance(place, Path) else None)
    secrets = Config.load(place).secrets
    part = read_part(transcript)
    kept = [
        (message, one) for message in part.messages for one in found.kept(capture.screened(message, secrets))
    ]
    data = [
        {
            "speaker": message.speaker,
            "at": message.at,
            "rule": one.rule,
            "type": one.type,
            "confidence": one.confidence,
            "signs": one.signs,
            "text": one.text,
        }
        for message, one in kept
    ]
    if call.printed_json(data):
        return
    for message, one in kept:
        about = f"  {message.speaker} · {one.type} · confidence {one.confidence:.2f}"
        shown = f" · signs: {', '.join(one.signs)}" if one.signs else ""
        print_text(text(f"{one.rule}", "cyan") + text(about + shown, "dim"))
        print_text(one.text, indent=4)
    maximum = found.limits.per_session
    bound = f"; only the first {maximum} of one session" if len(kept) > maximum else ""
    print_text(f"{amount(len(part.messages), 'message')}, {len(kept)} kept{bound}", "dim")
