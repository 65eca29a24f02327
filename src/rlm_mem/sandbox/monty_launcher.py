"""Starts a Monty worker with nothing of the host but its three pipes: a script, run by an isolated Python.

The library starts its workers itself and lets them inherit what is not marked otherwise: descriptors that the host was
given, its environment with the keys of model providers in it. This closes the former and drops the latter, then becomes
the worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Close, drop, become ``sys.argv[1]``."""
    try:
        highest = os.sysconf("SC_OPEN_MAX")
    except (ValueError, OSError):
        highest = 65_536
    try:
        found = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    except OSError:
        found = list(range(3, min(highest, 65_536)))
    for number in found:
        if number > 2:
            try:
                os.close(number)
            except OSError:
                continue
    # What a worker says when it crashes is told by the library; the terminal belongs to the host.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    os.chdir("/")
    os.execve(sys.argv[1], sys.argv[1:], {})


if __name__ == "__main__":
    main()
