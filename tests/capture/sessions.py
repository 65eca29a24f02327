"""Transcripts and events in the shapes in which the clients write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Said = tuple[str, str]
"""Who says it, ``user`` or ``agent``, and what."""

AT = "2026-03-02T10:00:{:02d}.000Z"


def claude_code(said: Iterable[Said]) -> list[dict[str, Any]]:
    """Lines of a transcript of Claude Code, with tool calls in between."""
    lines: list[dict[str, Any]] = [{"type": "summary", "summary": "Work on the ledger", "leafUuid": "u-0"}]
    for number, (who, text) in enumerate(said):
        common = {
            "parentUuid": f"u-{number}", "uuid": f"u-{number + 1}", "sessionId": "s-1", "cwd": "/work",
            "version": "2.1.197",
            "isSidechain": False, "userType": "external", "timestamp": AT.format(number % 60),
        }  # fmt: skip
        if who == "user":
            lines.append({**common, "type": "user", "message": {"role": "user", "content": text}})
            continue
        content = [
            {
                "type": "thinking",
                "thinking": "We decided to use a thinking block for nothing.",
                "signature": "x",
            },
            {"type": "text", "text": text},
            {
                "type": "tool_use",
                "id": "t",
                "name": "Bash",
                "input": {"command": "echo always use tool input"},
            },
        ]
        message = {"id": "m", "type": "message", "role": "assistant", "model": "opus", "content": content}
        lines.append({**common, "type": "assistant", "message": message})
        result = {"tool_use_id": "t", "type": "tool_result", "content": "We decided to list every file here."}
        lines.append({**common, "type": "user", "message": {"role": "user", "content": [result]}})
    return lines


def codex(said: Iterable[Said]) -> list[dict[str, Any]]:
    """Lines of a rollout of Codex, with most messages twice."""

    def line(kind: str, number: int, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": AT.format(number % 60), "type": kind, "payload": payload}

    lines = [
        line("session_meta", 0, {"id": "s-1", "cwd": "/work", "originator": "codex_cli_rs", "cli_version": "0.169.0"}),
        line("response_item", 0, {
            "type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "# AGENTS.md instructions\nAlways use tabs in each file."}],
        }),
        line("response_item", 0, {
            "type": "message", "role": "developer",
            "content": [{"type": "input_text", "text": "Never write to the folder outside of the sandbox."}],
        }),
    ]  # fmt: skip
    for number, (who, text) in enumerate(said):
        role, part, event = (
            ("user", "input_text", "user_message")
            if who == "user"
            else ("assistant", "output_text", "agent_message")
        )
        item = {"type": "message", "role": role, "content": [{"type": part, "text": text}]}
        lines += [
            line("response_item", number, item),
            line("event_msg", number, {"type": event, "message": text}),
            line("response_item", number, {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
            line(
                "response_item",
                number,
                {"type": "function_call_output", "call_id": "c", "output": "We decided to fail."},
            ),
        ]
    return lines


def cursor(said: Iterable[Said]) -> list[dict[str, Any]]:
    """Lines of a transcript of Cursor."""
    return [
        {
            "role": "user" if who == "user" else "assistant",
            "message": {
                "content": [
                    {
                        "type": "text",
                        "text": f"<user_query>\n{text}\n</user_query>" if who == "user" else text,
                    }
                ]
            },
        }
        for who, text in said
    ]


def qwen(said: Iterable[Said]) -> list[dict[str, Any]]:
    """A transcript of Qwen Code, with what it records of itself, and of hooks after each prompt."""
    told = "<qwen:user-prompt-submit-context>\nWe decided to keep {}.\n</qwen:user-prompt-submit-context>"
    parts: list[dict[str, Any]]
    lines: list[dict[str, Any]] = [{"type": "system", "provenance": "system", "subtype": "ui_telemetry"}]
    for number, (who, text) in enumerate(said):
        if who == "user":
            role, parts = "user", [{"text": text}, {"text": told.format(f"what was told {number}")}]
        else:
            role, parts = "model", [{"text": "We decided to think.", "thought": True}, {"text": text}]
        message = {"role": role, "parts": parts}
        lines.append(
            {"type": who, "timestamp": AT.format(number % 60), "sessionId": "s-1", "message": message}
        )
    return lines


def copilot(said: Iterable[Said]) -> list[dict[str, Any]]:
    """Events of GitHub Copilot CLI, with what its agents and skills tell each other."""
    lines: list[dict[str, Any]] = [
        {"type": "session.start", "data": {"sessionId": "s-1", "producer": "copilot-agent"}}
    ]

    def line(kind: str, number: int, data: dict[str, Any], **more: Any) -> None:
        lines.append({"type": kind, "data": data, "id": "e", "timestamp": AT.format(number % 60), **more})

    for number, (who, text) in enumerate(said):
        if who == "user":
            sent = f"{text}\n\n<system_reminder>\nWe decided to keep what was told.\n</system_reminder>"
            line("user.message", number, {"content": text, "transformedContent": sent})
            line("user.message", number, {"content": "We decided to load a skill.", "source": "skill-pdf"})
            line("user.message", number, {"content": "Always go on.", "isAutopilotContinuation": True})
        else:
            line(
                "system.message",
                number,
                {"role": "system", "content": "Never edit files outside of the folder."},
            )
            line("assistant.message", number, {"content": "We decided to explore."}, agentId="a-1")
            line("assistant.message", number, {"content": text, "toolRequests": []})
    return lines


def gemini(said: Iterable[Said]) -> dict[str, Any]:
    """A session of Gemini CLI: one JSON object. Context of hooks is before the prompt in its text, and after it."""
    told = "<hook_context>We decided to keep what was told.</hook_context>"
    messages = [
        {
            "id": str(number), "timestamp": AT.format(number % 60), "type": "user" if who == "user" else "gemini",
            "content": [{"text": f"{told}\n\n{text}"}, {"text": told}] if who == "user" else text,
            "thoughts": [{"subject": "x", "description": "We decided to think."}],
        }
        for number, (who, text) in enumerate(said)
    ]  # fmt: skip
    return {"sessionId": "s-1", "projectHash": "p", "startTime": AT.format(0), "messages": messages}


def written(path: Path, client: str, said: Iterable[Said]) -> Path:
    """A transcript of a client in a file."""
    if client == "gemini-cli":
        path.write_text(json.dumps(gemini(said), indent=2), encoding="utf-8")
    else:
        forms = {
            "claude-code": claude_code, "codex": codex, "copilot-cli": copilot, "cursor": cursor, "qwen-code": qwen
        }  # fmt: skip
        lines = forms[client](said)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


#: What the clients write to stdin, without the fields of `common`.
_INPUTS: dict[str, dict[str, dict[str, Any]]] = {
    "claude-code": {
        "session-start": {"hook_event_name": "SessionStart", "source": "startup", "model": "opus"},
        "subagent-start": {"hook_event_name": "SubagentStart", "agent_id": "a-1", "agent_type": "Explore"},
        "user-prompt": {"hook_event_name": "UserPromptSubmit"},
        "tool-use": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1"},
        "stop": {"hook_event_name": "Stop", "stop_hook_active": False, "background_tasks": []},
        "pre-compact": {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": ""},
        "session-end": {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    },
    "codex": {
        "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
        "subagent-start": {"hook_event_name": "SubagentStart", "agent_id": "a-1", "agent_type": "worker"},
        "user-prompt": {"hook_event_name": "UserPromptSubmit", "turn_id": "t-1"},
        "tool-use": {"hook_event_name": "PreToolUse", "turn_id": "t-1", "tool_name": "Bash", "tool_use_id": "c-1"},
        "stop": {"hook_event_name": "Stop", "turn_id": "t", "stop_hook_active": False, "last_assistant_message": None},
        "pre-compact": {"hook_event_name": "PreCompact", "turn_id": "t-1", "trigger": "auto"},
        "session-end": {"hook_event_name": "SessionEnd", "reason": "other"},
    },
    "copilot-cli": {
        "session-start": {"hook_event_name": "SessionStart", "source": "new", "initial_prompt": "x"},
        "user-prompt": {"hook_event_name": "UserPromptSubmit"},
        "stop": {"hook_event_name": "Stop", "stop_reason": "end_turn", "stop_hook_active": False},
        "pre-compact": {"hook_event_name": "PreCompact", "trigger": "auto"},
        "session-end": {"hook_event_name": "SessionEnd", "reason": "complete"},
    },
    "cursor": {
        "session-start": {"hook_event_name": "sessionStart", "is_background_agent": False, "composer_mode": "agent"},
        "user-prompt": {"hook_event_name": "beforeSubmitPrompt", "attachments": []},
        "stop": {"hook_event_name": "stop", "status": "completed", "loop_count": 0},
        "pre-compact": {"hook_event_name": "preCompact", "trigger": "auto", "context_usage_percent": 85},
        "session-end": {"hook_event_name": "sessionEnd", "reason": "completed", "duration_ms": 45_000},
    },
    "gemini-cli": {
        "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
        "user-prompt": {"hook_event_name": "BeforeAgent"},
        "tool-use": {"hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_response": {}},
        "stop": {"hook_event_name": "AfterAgent", "prompt": "x", "prompt_response": "y", "stop_hook_active": False},
        "session-end": {"hook_event_name": "SessionEnd", "reason": "exit"},
    },
    "qwen-code": {
        "session-start": {"hook_event_name": "SessionStart", "source": "startup", "permission_mode": "default"},
        "user-prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "x"},
        "tool-use": {"hook_event_name": "PostToolUse", "tool_name": "run_shell_command", "tool_response": {}},
        "stop": {"hook_event_name": "Stop", "stop_hook_active": True, "last_assistant_message": "y"},
        "pre-compact": {"hook_event_name": "PreCompact", "trigger": "auto"},
        "session-end": {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    },
}  # fmt: skip


def event(client: str, kind: str, folder: Path, transcript: Path | None, **more: Any) -> dict[str, Any]:
    """What a client writes to stdin of a hook."""
    path = None if transcript is None else str(transcript)
    if client == "cursor":
        common: dict[str, Any] = {
            "conversation_id": "s-1", "generation_id": "g-1", "model": "auto", "cursor_version": "2.4.0",
            "workspace_roots": [str(folder)], "user_email": None, "transcript_path": path,
        }  # fmt: skip
    else:
        common = {"session_id": "s-1", "cwd": str(folder), "transcript_path": path}
    if client in ("claude-code", "codex"):
        common["permission_mode"] = "default"
    if client == "codex":
        common["model"] = "gpt-5"
    if client == "gemini-cli":
        common["timestamp"] = AT.format(0)
    return {**common, **_INPUTS[client][kind], **more}
