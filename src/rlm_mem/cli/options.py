"""Options that several commands share, so that a name has the same meaning everywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rlm_mem.config import SecretAction
from rlm_mem.errors import InputError


def flag(*names: str, **more: Any) -> Any:
    """A boolean option without a value in the help."""
    return typer.Option(*names, metavar="", **more)


def tokens(help: str) -> Any:
    """The file with the named tokens of a server."""
    return typer.Option("--tokens", metavar="FILE", envvar="RLM_MEM_TOKENS", help=help)


WHERE = "Where"
FILTER = "Filters"
LIMITS = "Limits"

Brain = Annotated[
    str | None,
    typer.Option(
        "--brain",
        metavar="PATH",
        help="The brain folder, or postgresql://…; else RLM_MEM_BRAIN, the nearest brain/, the user's data folder.",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Whose memory: agent/project/user, or any path. Default: default.",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Json = Annotated[bool, flag("--json", help="Print JSON on stdout.")]

Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", metavar="TAG", help="A tag; may be given again.", show_default=False),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type", metavar="TYPE", help="fact, preference, pattern, note, decision, or a registered one."
    ),
]
Confidence = Annotated[
    float | None, typer.Option("--confidence", metavar="0..1", help="How reliable it is.", show_default=False)
]
Conversation = Annotated[
    str | None, typer.Option("--conversation", "-c", metavar="ID", help="The conversation it belongs to.")
]

CameAs = Annotated[
    str | None,
    typer.Option(
        "--origin",
        metavar="ORIGIN",
        help="How it came: person, agent, tool, import or web.",
        show_default=False,
    ),
]
Trusted = Annotated[
    str | None,
    typer.Option(
        "--trust",
        metavar="LEVEL",
        help="quarantined, untrusted, ordinary or trusted. Default: by its origin.",
        show_default=False,
    ),
]
OfOrigin = Annotated[
    str | None,
    typer.Option(
        "--origin",
        metavar="ORIGIN",
        help="Came as: person, agent, tool, import or web.",
        show_default=False,
        rich_help_panel=FILTER,
    ),
]
OfTrust = Annotated[
    str | None,
    typer.Option(
        "--trust",
        metavar="LEVEL",
        help="Trusted at least so far: untrusted, ordinary or trusted.",
        show_default=False,
        rich_help_panel=FILTER,
    ),
]

Secrets = Annotated[
    SecretAction | None,
    typer.Option(
        "--secrets",
        metavar="ACTION",
        help="Keys and passwords: redact, keep or refuse. Default: secrets.action, which is redact.",
        show_default=False,
    ),
]

Tools = Annotated[
    str, typer.Option("--tools", metavar="WHICH", help="default: the ten that agents need; all: every one.")
]
ReadOnly = Annotated[bool, flag("--read-only", help="Offer only tools that change no memory.")]


def every_tool(tools: str) -> bool:
    """Whether ``--tools`` asks for every tool.

    Raises:
        InputError: it names neither ``default`` nor ``all``.
    """
    if tools not in ("default", "all"):
        raise InputError(f"--tools is {tools!r}", hint="use default or all")
    return tools == "all"


WithTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        "-t",
        metavar="TAG",
        help="With this tag; given again: with all of them.",
        rich_help_panel=FILTER,
    ),
]
WithAnyTag = Annotated[
    list[str] | None,
    typer.Option("--any-tag", metavar="TAG", help="With at least one of these tags.", rich_help_panel=FILTER),
]
OfType = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Of this type.", rich_help_panel=FILTER)
]
InConversation = Annotated[
    str | None,
    typer.Option("--conversation", "-c", metavar="ID", help="In this conversation.", rich_help_panel=FILTER),
]
Llm = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="SPEC",
        help="Who writes the programs: offline, openai:MODEL, … Default: the configured one.",
        show_default=False,
    ),
]

_SHORT = "the beginning of it, or of its last part, is enough."
ChunkId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help=f"A chunk id; {_SHORT}",
        show_default=False,
    ),
]
ChunkIds = Annotated[
    list[str],
    typer.Argument(
        metavar="ID...",
        help=f"Chunk ids; of each {_SHORT}",
        show_default=False,
    ),
]
