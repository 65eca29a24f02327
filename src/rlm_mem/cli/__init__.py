"""The command ``rlm-mem``: one module per group of commands.

Lives here: what is typed and what is shown (arguments, tables, progress, exit codes). Does not live here: any
decision about memory; every command calls the public interface of :mod:`rlm_mem.memory` and prints what comes
back. Heavy modules are imported inside the commands that need them, only the module of the command that is called is
loaded, and ``rlm-mem --help`` loads none, so that a start stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: what follows ``rlm-mem``; None means ``sys.argv``.

    Returns:
        0 when it worked, 1 when the operation failed, 2 for bad input, 130 when interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--help"], ["-h"]):
        from rlm_mem.cli.overview import overview

        sys.stdout.write(overview())
        return 0
    from rlm_mem.cli.app import main as run

    return run(given)
