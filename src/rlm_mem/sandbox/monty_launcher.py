"""A script, run by an isolated Python, that starts a Monty worker with only its three pipes.

Workers started by the library inherit open descriptors and the environment, which may contain keys of model providers.
This script closes the descriptors and executes the worker with an empty environment.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Close descriptors, then execute ``sys.argv[1]`` with an empty environment."""
    try:
        highest = os.sysconf("SC_OPEN_MAX")
    except (ValueError, OSError):
        highest = 65_536
    try:
        # pathlib would take twice as long to load as everything else here.
        found = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    except OSError:
        found = list(range(3, min(highest, 65_536)))
    for number in found:
        if number > 2:
            try:
                os.close(number)
            except OSError:
                continue
    # The library reports crashes of a worker, so its stderr need not reach the host's terminal.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    os.chdir("/")
    os.execve(sys.argv[1], sys.argv[1:], {})


if __name__ == "__main__":
    main()
