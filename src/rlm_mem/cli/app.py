"""The application: dispatches a command line to the function of its command, and maps errors to exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from rlm_mem.cli import catalogue
from rlm_mem.cli.call import Where, with_shared_options
from rlm_mem.cli.examples import EXAMPLES
from rlm_mem.cli.logging import configure_logging
from rlm_mem.cli.overview import VERSION, overview
from rlm_mem.cli.terminal import print_error
from rlm_mem.errors import InputError, RlmMemError

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
#: Errors with these numbers come from writing standard output if they name no file.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
_NUMBER = re.compile(r"is not a valid (float|int)(?: range)?(?=\.)")


class LazyGroup(TyperGroup):
    """A group that lists its commands from the catalogue, and loads only the one that is called."""

    def __init__(self, *, entry: catalogue.GroupRow | None = None, **settings: Any) -> None:
        super().__init__(**{"rich_markup_mode": "rich", "no_args_is_help": True, **settings})
        self.entry = entry
        self.commands = {row.name: _listed_command(row) for row in catalogue.rows_of(entry)}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as Typer has it
        """Return the command with this name or former name, for help and completion."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        found = self._found(cmd_name)
        return None if found is None else _listed_command(found)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the called command, with its options."""
        if self.entry and self.entry.default and len(args) > 2 and self._found(args[0]) is None:
            args = [self.entry.default, *args]
        name, command, rest = super().resolve_command(ctx, args)
        found = self._found(name or "")
        return name, loaded(found) if isinstance(found, catalogue.CommandRow) else command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as Typer has it
        """Write the help in the format of ``rlm-mem --help``."""
        formatter.write(overview(self.entry))

    def _found(self, name: str) -> catalogue.CommandRow | catalogue.GroupRow | None:
        return catalogue.find(f"{self.entry.name} {name}" if self.entry else name)


def _listed_command(row: catalogue.CommandRow | catalogue.GroupRow) -> Any:
    if isinstance(row, catalogue.GroupRow):
        return LazyGroup(entry=row, name=row.name, help=row.summary)
    return TyperCommand(row.name, help=row.summary)


@cache
def loaded(command: catalogue.CommandRow) -> Any:
    """Return a command with its options and arguments, loaded from its module."""
    module, _, name = command.target.partition(":")
    function = getattr(import_module(f"rlm_mem.cli.{module}"), name)
    single = typer.Typer(rich_markup_mode="rich", add_completion=False, pretty_exceptions_enable=False)
    examples = EXAMPLES.get(command.path, ())
    epilog = "\n".join(["Examples:", *(f"  rlm-mem {line}" for line in examples)]) if examples else None
    single.command(command.name, help=function.__doc__, epilog=epilog)(with_shared_options(function))
    return get_command(single)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(VERSION)
        raise typer.Exit


def _option(name: str, **more: Any) -> Any:
    known = catalogue.OPTIONS[name]
    return typer.Option(*known.flags, metavar=known.metavar, help=known.help, **more)


def _global_options(
    ctx: typer.Context,
    brain: Annotated[str | None, _option("brain")] = None,
    namespace: Annotated[str | None, _option("namespace")] = None,
    log_level: Annotated[str | None, _option("log_level")] = None,
    log_format: Annotated[str | None, _option("log_format")] = None,
    version: Annotated[bool, _option("version", callback=_print_version, is_eager=True)] = False,  # noqa: ARG001 - its callback does the work
) -> None:
    ctx.obj = Where(brain, namespace)
    configure_logging(brain, log_level, log_format)


@cache
def build() -> Any:
    """Build the command from the catalogue; once, as every command: programs may call `main` often."""
    made = typer.Typer(
        name="rlm-mem",
        cls=LazyGroup,
        help=catalogue.SUMMARY,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_global_options)
    return get_command(made)


def main(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: the arguments after ``rlm-mem``.

    Returns:
        Exit code: 0 for success, 1 if the operation failed, 2 for bad input, 130 if interrupted.

    Raises:
        OSError: the output cannot be written.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = build()(args=list(arguments), prog_name="rlm-mem", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # Typer's code for a KeyboardInterrupt
            return _end(INTERRUPTED, "interrupted", None)
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _end(INTERRUPTED, "interrupted", None)
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):
            raise exit_.__context__ from None
        return exit_.code if isinstance(exit_.code, int) else FAILED
    except RlmMemError as error:
        return _end(BAD_INPUT if isinstance(error, InputError) else FAILED, str(error), error.hint)
    except Exception as error:
        # Any other error: print one line instead of a traceback.
        if hasattr(error, "format_message"):
            message = error.format_message()
            # Without a command, the message is empty, since the help has already been printed.
            begin = _NUMBER.sub(_plain_number, message[:1].lower() + message[1:])
            return _end(BAD_INPUT, begin, _usage_hint(error, arguments)) if message else BAD_INPUT
        if os.environ.get("RLM_MEM_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and not error.filename:
            raise
        if isinstance(error, OSError) and error.filename and error.strerror:
            hint = "check who may read and write it" if isinstance(error, PermissionError) else None
            return _end(FAILED, f"{error.filename}: {error.strerror}", hint)
        kind = "" if isinstance(error, OSError) else f"unexpected {type(error).__name__}: "
        return _end(FAILED, f"{kind}{error}", "RLM_MEM_DEBUG=1 shows the traceback.")
    return code if isinstance(code, int) else 0


def _end(code: int, message: str, hint: str | None) -> int:
    print_error(message, hint)
    return code


def _plain_number(found: re.Match[str]) -> str:
    return f"is not a {'whole ' if found[1] == 'int' else ''}number"


def _usage_hint(error: Exception, arguments: Sequence[str]) -> str:
    context = getattr(error, "ctx", None)
    if context:
        command = context.command_path
    else:  # of an option with a value that it does not take
        words = [one for one in arguments if not one.startswith("-")]
        paths = (" ".join(words[at : at + length]) for at in range(len(words)) for length in (2, 1))
        command = f"rlm-mem {next(filter(catalogue.find, paths), '')}".rstrip()
    # What has a space before any "=" is a text, not an option.
    if any(one.startswith("-") and " " in one.partition("=")[0] for one in arguments):
        return f"put -- before a text that begins with -, as in {command} -- '- …'"
    if getattr(error, "message", "").startswith("No such command"):
        return f"{command} --help lists the commands."
    wrong_number = type(error).__name__ in ("MissingParameter", "UsageError")
    examples = EXAMPLES.get(command.removeprefix("rlm-mem "), ()) if wrong_number else ()
    return f"{command} --help shows how" + (f"; for example, rlm-mem {examples[0]}" if examples else ".")
