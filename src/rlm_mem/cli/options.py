"""Declaration of arguments and options, and those shared by several commands, so that a name has one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rlm_mem.config import SecretAction

WHERE = "Where"
FILTER = "Filters"
LIMITS = "Limits"


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=help, **more)


def option(names: str, metavar: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """Declare an option with a value.

    Args:
        names: the names, separated by spaces, such as ``--limit -n``.
        metavar: the name of the value in the help.
        panel: title of its panel in the help; None: the general one.
        more: further arguments of ``typer.Option``.
    """
    return typer.Option(*names.split(), metavar=metavar, help=help, rich_help_panel=panel, **more)


def path(text: str) -> Path:
    """Return the path that an option or argument names; an empty one is refused: it would be the working folder.

    The help shows the name of this function.
    """
    if not text:
        raise typer.BadParameter("the path is empty")
    return Path(text)


def flag(names: str, help: str, panel: str | None = None) -> Any:
    """Declare a boolean option, which takes no value."""
    return option(names, "", help, panel)


def tokens(help: str) -> Any:
    """Declare the option that names the file with the named tokens of a server."""
    return option("--tokens", "FILE", help, envvar="RLM_MEM_TOKENS", parser=path)


Brain = Annotated[
    str | None,
    option(
        "--brain",
        "PATH",
        "The brain folder, or postgresql://…. Default: RLM_MEM_BRAIN, the nearest brain/, or the user's data folder.",
        WHERE,
    ),
]
Namespace = Annotated[
    str | None,
    option(
        "--namespace",
        "NAME",
        "The namespace: project (of this folder; ./project: of that name), or a path. Default: store.namespace.",
        WHERE,
    ),
]
Json = Annotated[bool, flag("--json", "Print JSON on stdout.")]

Tags = Annotated[list[str] | None, option("--tag -t", "TAG", "A tag; repeatable.")]
TYPES = "fact, preference, pattern, note, decision, or a registered one."
Type = Annotated[str | None, option("--type", "TYPE", TYPES)]
Confidence = Annotated[float | None, option("--confidence", "0..1", "How certain it is.")]
Conversation = Annotated[
    str | None,
    option(
        "--conversation -c",
        "ID",
        "The conversation it belongs to. Default: none; that of a file is its path.",
    ),
]
Origin = Annotated[
    str | None,
    option(
        "--origin",
        "ORIGIN",
        "Where it came from: person, agent, tool, import or web. Default: person; of a file, import.",
    ),
]
Trust = Annotated[
    str | None,
    option(
        "--trust", "LEVEL", "quarantined, untrusted, ordinary or trusted. Default: according to its origin."
    ),
]
Secrets = Annotated[
    SecretAction | None,
    option(
        "--secrets",
        "ACTION",
        "What to do with keys and passwords: redact, keep or refuse. Default: the setting secrets.action.",
    ),
]
Limit = Annotated[int, option("--limit -n", "N", "At most this many.", min=1)]
Llm = Annotated[
    str | None, option("--llm", "SPEC", "The model: offline, openai:MODEL, … Default: the configured one.")
]
Every = Annotated[float, option("--every", "SECONDS", "With --watch: seconds between checks.", min=0.1)]

MaxTokens = Annotated[
    int | None,
    option("--max-tokens", "N", "Limit the memory text in the output to the best N tokens.", min=1),
]

ChunkId = Annotated[str, argument("ID", "A chunk id; its beginning, or that of its last part, is enough.")]
ChunkIds = Annotated[
    list[str], argument("ID...", "Chunk ids; the beginning of each, or that of its last part, is enough.")
]

Tools = Annotated[
    Literal["default", "all"],
    option("--tools", "WHICH", "default: the ten that agents need; all: every tool."),
]
ReadOnly = Annotated[bool, flag("--read-only", "Offer only tools that change no memory.")]
