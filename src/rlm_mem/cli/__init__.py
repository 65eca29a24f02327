"""The command ``rlm-mem``: one module per group of commands.

Lives here: what is typed and what is shown (arguments, tables, progress, exit codes). Does not live here: any
decision about memory; every command calls the public interface of :mod:`rlm_mem.memory` and prints what comes
back. Heavy modules are imported inside the commands that need them, so that ``rlm-mem --help`` stays quick.
"""

from __future__ import annotations

from rlm_mem.cli.app import main

__all__ = ["main"]
