"""The application: its commands in order, what stands before them, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from rlm_mem import __version__
from rlm_mem.cli import options
from rlm_mem.cli.logging import log_lines
from rlm_mem.cli.open import Where
from rlm_mem.errors import InputError, RlmMemError

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

#: Modules with commands, in the order in which the help shows them.
GROUPS = (
    "remember", "ask", "receipt", "read", "edit", "interchange", "continuum", "review", "traces", "records",
    "maintenance", "backup", "machines", "persona", "settings", "server", "demo",
)  # fmt: skip


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rlm-mem {__version__}")
        raise typer.Exit


def before(
    ctx: typer.Context,
    brain: Annotated[
        str | None,
        typer.Option(
            "--brain", metavar="PATH", help="The brain folder or DSN, for whichever command follows."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="NAME", help="Whose memory, for whichever command follows."),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level", metavar="LEVEL", help="Log lines on stderr: debug, info, warning, error."
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option("--log-format", metavar="FORM", help="Log lines as text, or json: one object a line."),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        options.flag("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Long-term memory for LLM agents: plain files, links, and answers found by programs."""
    ctx.obj = Where(brain, namespace)
    log_lines(brain, log_level, log_format)


def build(groups: Sequence[str] = GROUPS) -> typer.Typer:
    """The command with the commands of some modules: looking at every one takes longer than most of them run."""
    made = typer.Typer(
        name="rlm-mem",
        help="Long-term memory for LLM agents: plain files, links, and answers found by programs.",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for group in groups:
        import_module(f"rlm_mem.cli.{group}").add_to(made)
    made.callback()(before)
    return made


def needed(arguments: Sequence[str]) -> Sequence[str]:
    """The modules that a command line needs: one, where it names a command that is known, else all."""
    from rlm_mem.cli.overview_data import MODULES, OPTIONS

    takes_value = {name for names, metavar, _ in OPTIONS if metavar for name in names.split(", ")}
    words = iter(arguments)
    for word in words:
        if word in takes_value:
            next(words, None)
        elif not word.startswith("-"):
            return (MODULES[word],) if word in MODULES else GROUPS
        elif word == "--version":
            return ()
    return GROUPS


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = whole = build()
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: what follows ``rlm-mem``; None means ``sys.argv``.

    Returns:
        0 when it worked, 1 when the operation failed, 2 for bad input, 130 when interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = build(needed(given))(
            args=given,
            prog_name="rlm-mem",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (rlm-mem list | head): not an error, and nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _end(INTERRUPTED, "interrupted", None)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else FAILED
    except RlmMemError as error:
        return _end(BAD_INPUT if isinstance(error, InputError) else FAILED, str(error), error.hint)
    except Exception as error:
        # The last line of defence: whatever went wrong, a person sees one line, not a traceback.
        if hasattr(error, "format_message"):
            message = error.format_message()
            # No command at all: the help has been printed, and there is nothing to add.
            return _end(BAD_INPUT, message, _usage_hint(error)) if message else BAD_INPUT
        if os.environ.get("RLM_MEM_DEBUG"):
            raise
        kind = "" if isinstance(error, OSError) else f"unexpected {type(error).__name__}: "
        return _end(FAILED, f"{kind}{error}", "RLM_MEM_DEBUG=1 shows the traceback.")
    return code if isinstance(code, int) else 0


def _end(code: int, message: str, hint: str | None) -> int:
    from rlm_mem.cli.terminal import print_error

    print_error(message, hint)
    return code


def _usage_hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'rlm-mem'} --help shows how."
