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
    """The program ``rlm-mem``: run the command line of this process, and end the process."""
    own_process.leave(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: what follows ``rlm-mem``; None: taken from ``sys.argv``, and the process belongs to the command.

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
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except OSError as error:
        # At exit Python would flush the output again, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # the reader closed the pipe (rlm-mem list | head): not an error
        with contextlib.suppress(OSError):
            print(f"rlm-mem: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while modules are loaded, or within a hook
        return 130


def _run(given: list[str]) -> int:
    """Run the command; raises OSError if its output cannot be written."""
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

    code = run(given)
    # Agents take exit code 2 of a hook to mean that the user's prompt is refused.
    return 1 if code == 2 and given[:1] == ["hook"] else code
