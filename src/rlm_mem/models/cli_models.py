"""Models that run a command: an agent such as ``claude`` or ``codex``, or any program that reads a prompt.

No key is needed, since the agent's own login is used. The prompt is passed on standard input or replaces the argument
``{prompt}``; the answer is the command's output.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Unpack

from rlm_mem.config import LLMConfig
from rlm_mem.errors import InvalidConfig, ModelError, ModelOverloaded, ModelRefused, ModelUnavailable
from rlm_mem.models.base import Completion, Options, Prompt, Usage, estimate_usage, render_prompt, sendable
from rlm_mem.models.commands import CommandResult, run_command
from rlm_mem.models.retry import TRANSIENT_STATUS
from rlm_mem.text.secrets import redact

_PROMPT = "{prompt}"
_MAX_DETAIL = 400
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


@dataclass(frozen=True)
class Agent:
    """How to get a plain completion, without tools, from a command-line agent.

    Attributes:
        argv: the command that reads the prompt from standard input.
        read: parses its output into a completion; raises ModelError if it reports a failure.
        login: the remedy if it is not logged in.
    """

    argv: tuple[str, ...]
    read: Callable[[CommandResult], Completion]
    login: str


class CommandLLM:
    """A model that runs a command for each completion.

    Args:
        argv: the program and its arguments, in which ``{prompt}`` is replaced by the prompt.
        settings: ``timeout_seconds`` is the default time-out of a call; the other settings are ignored.
        agent: how to read the answer of a known agent; None uses the output unchanged.
        name: name of the model in messages and trajectories.
    """

    def __init__(
        self, argv: Sequence[str], settings: LLMConfig, *, agent: Agent | None = None, name: str = "cli"
    ) -> None:
        self.name = name
        self._argv = tuple(argv)
        self._settings = settings
        self._agent = agent

    @classmethod
    def from_spec(cls, spec: str, settings: LLMConfig) -> CommandLLM:
        """Create the model for ``claude``, ``codex``, either with further arguments, or any command line.

        Raises:
            InvalidConfig: the command line is empty or has unmatched quotes.
            ModelUnavailable: the program does not exist.
        """
        try:
            words = shlex.split(spec, posix=os.name == "posix")
        except ValueError as error:
            raise InvalidConfig(f"cli:{redact(spec)} is not a command line: {error}") from None
        if not words:
            raise InvalidConfig("cli: names no command", hint="write cli:claude, cli:codex or cli:COMMAND")
        agent = AGENTS.get(words[0])
        argv = [*agent.argv, *words[1:]] if agent else words
        program = shutil.which(argv[0])
        if program is None:
            raise ModelUnavailable(f"there is no program {argv[0]!r}", hint="install it, or give its path")
        # The name is written into trajectories, so it omits the arguments, which may contain secrets.
        return cls([program, *argv[1:]], settings, agent=agent, name=f"cli:{Path(words[0]).name}")

    def __repr__(self) -> str:
        return f"<LLM {self.name}>"

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Run the command once; of the options, only ``timeout`` and ``on_text`` are used.

        Raises:
            ModelTimeout: it took too long and was stopped, with all processes it had started.
            ModelUnavailable: it cannot be run or is not logged in.
            ModelError: it failed, or its output was empty or too long.
        """
        prompt = sendable(render_prompt(messages))
        # A NUL is not allowed in an argument.
        argv = [prompt.replace("\0", " ") if word == _PROMPT else word for word in self._argv]
        stdin_text = "" if _PROMPT in self._argv else prompt
        timeout = options.get("timeout")
        timeout = self._settings.timeout_seconds if timeout is None else timeout
        on_text = options.get("on_text")
        if self._agent is None:
            outcome = run_command(argv, stdin_text, name=self.name, timeout=timeout, on_text=on_text)
            completion = _read_plain(outcome, prompt, self.name)
        else:
            # An empty folder contains no project files, instructions or servers that an agent could act upon.
            with tempfile.TemporaryDirectory(prefix="rlm-mem-", ignore_cleanup_errors=True) as folder:
                outcome = run_command(argv, stdin_text, name=self.name, timeout=timeout, cwd=Path(folder))
            try:
                completion = self._agent.read(outcome)
            except ModelUnavailable as error:
                raise ModelUnavailable(error.message, hint=self._agent.login) from None
            if on_text is not None:
                on_text(completion.text)
        model = completion.model or self.name
        return replace(completion, model=model, provider="cli", seconds=outcome.seconds)


def _read_plain(outcome: CommandResult, prompt: str, name: str) -> Completion:
    text = _ESCAPES.sub("", outcome.output).strip()
    if outcome.status != 0:
        raise ModelError(
            f"{name} failed with exit status {outcome.status}: {_detail(outcome.errors or text)}"
        )
    if not text:
        raise ModelError(f"{name} printed nothing: {_detail(outcome.errors)}")
    return Completion(text, estimate_usage(prompt, text), finish_reason="stop")


def _read_claude(outcome: CommandResult) -> Completion:
    result = _json_object(outcome.output)
    if result is None or "result" not in result:
        raise _failure("claude", outcome, outcome.errors or outcome.output)
    text = str(result["result"] or "")
    if result.get("is_error") or outcome.status != 0:
        raise _failure(
            "claude", outcome, text or str(result.get("subtype", "")), result.get("api_error_status")
        )
    used = _mapping(result.get("usage"))
    cached, written = _count(used, "cache_read_input_tokens"), _count(used, "cache_creation_input_tokens")
    models = _mapping(result.get("modelUsage"))
    model = max(models, key=lambda name: _count(_mapping(models[name]), "outputTokens"), default="")
    cost = result.get("total_cost_usd")
    # For other vendors' models behind the user's own server, the agent only guesses a price.
    known = isinstance(cost, (int, float)) and not isinstance(cost, bool) and "claude" in model
    return Completion(
        text,
        # This agent reports cached tokens separately from input tokens.
        Usage(
            input_tokens=_count(used, "input_tokens") + cached + written,
            output_tokens=_count(used, "output_tokens"),
            cached_tokens=cached,
            cache_write_tokens=written,
        ),
        model=model,
        cost=Decimal(str(cost)) if known else None,
        finish_reason="length" if result.get("stop_reason") == "max_tokens" else "stop",
    )


def _read_codex(outcome: CommandResult) -> Completion:
    text: str | None = None
    failure = ""
    used: Mapping[str, Any] = {}
    for line in outcome.output.split("\n"):  # other line ends may be within a text
        event = _json_object(line) or {}
        item = _mapping(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            # The last message is the answer; earlier ones report progress.
            text = str(item.get("text", ""))
        elif event.get("type") == "turn.completed":
            used = _mapping(event.get("usage"))
        elif event.get("type") in ("error", "turn.failed"):
            failure = str(event.get("message") or _mapping(event.get("error")).get("message") or failure)
    if outcome.status != 0 or text is None:
        raise _failure("codex", outcome, failure or outcome.errors)
    usage = Usage(
        input_tokens=_count(used, "input_tokens"),
        output_tokens=_count(used, "output_tokens"),
        cached_tokens=_count(used, "cached_input_tokens"),
        reasoning_tokens=_count(used, "reasoning_output_tokens"),
    )
    return Completion(text, usage, finish_reason="stop")


def _failure(name: str, outcome: CommandResult, text: str, status: object = None) -> ModelError:
    detail = _detail(text)
    if re.search(r"log ?in\b|logged in|not authenticated|unauthorized|401|api key", detail, re.IGNORECASE):
        return ModelUnavailable(f"{name} is not logged in: {detail}")
    if re.search(r"prompt is too long|context (?:window|length)", detail, re.IGNORECASE):
        return ModelRefused(f"the prompt is longer than the context window of {name}: {detail}")
    if isinstance(status, int) and (status in TRANSIENT_STATUS or status >= 500):
        return ModelOverloaded(f"{name} could not reach its model: {detail}", hint="retry later")
    return ModelError(f"{name} failed with exit status {outcome.status}: {detail}")


def _detail(message: str) -> str:
    text = " ".join(redact(_ESCAPES.sub("", message)).split())
    return text[-_MAX_DETAIL:] or "no message"


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(figures: Mapping[str, Any], name: str) -> int:
    value = figures.get(name)
    return value if isinstance(value, int) and value > 0 else 0


AGENTS: Mapping[str, Agent] = {
    "claude": Agent(
        (
            "claude",
            "--print",
            "--output-format=json",
            "--tools=",  # no actions, only an answer
            "--strict-mcp-config",  # no MCP servers, since one of this package would receive its own question
            "--no-session-persistence",
            "--system-prompt=Follow the instructions you are given. Answer with text only.",
        ),
        _read_claude,
        "run claude once and log in",
    ),
    "codex": Agent(
        (
            *("codex", "exec", "--json", "--sandbox=read-only", "--skip-git-repo-check", "--ephemeral"),
            # Remembered text must not make the agent read files or send them anywhere.
            *("-c", "features.shell_tool=false", "-c", "web_search=disabled"),
            *("-c", "features.apps=false", "-c", "features.plugins=false"),
            *("-c", "features.multi_agent=false", "-c", "features.goals=false"),
        ),
        _read_codex,
        "run: codex login",
    ),
}
"""Agents available as ``cli:NAME``; arguments after the name are passed to the command."""
