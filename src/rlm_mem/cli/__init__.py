"""The command ``rlm-mem``: arguments, tables, progress, exit codes.

No decision about memory is made here: every command calls the public interface of :mod:`rlm_mem.memory` and prints
the result. :mod:`rlm_mem.cli.catalogue` lists the commands; a command line loads only the module of its command.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from rlm_mem import own_process
from rlm_mem.cli.overview import answer_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["command", "main"]


def command() -> NoReturn:
    """Run the command line of this process, and end the process: the entry point of ``rlm-mem``."""
    own_process.leave(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the arguments after ``rlm-mem``; None: those of ``sys.argv``, in a process of the command's own.

    Returns:
        Exit code: 0 for success, 1 if the operation failed, 2 for bad input, 130 if interrupted.
    """
    if arguments is None:
        own_process.speak_utf8()
        own_process.prepare()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]  # empty or 0 means unknown
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments), own=arguments is None)
    except OSError as error:
        # Python would flush the output again at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # the reader closed the pipe (rlm-mem list | head): not an error
        with contextlib.suppress(OSError):
            print(f"rlm-mem: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while modules are loaded, or within a hook
        return 130


def _run(given: list[str], *, own: bool) -> int:
    """Run the command; raise OSError if its output cannot be written."""
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    answer = None if "_RLM_MEM_COMPLETE" in os.environ else answer_for(given)
    if answer is not None:
        sys.stdout.write(answer)
        sys.stdout.flush()
        return 0 if given and given[-1].startswith("-") else 2
    if given[:1] == ["hook"]:
        from rlm_mem.cli.events import run_line

        if run_line(given[1:]):
            sys.stdout.flush()
            return 0
    from rlm_mem.cli.app import main as run  # Typer takes 100 ms of CPU; nothing above needs it

    if own:
        own_process.end_in_order()
    code = run(given)
    # For agents, exit code 2 of a hook means that the user's prompt is refused.
    return 1 if code == 2 and given[:1] == ["hook"] else code
