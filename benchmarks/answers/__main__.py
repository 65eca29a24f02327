"""Starts the command: `python benchmarks/answers …`."""

import sys
from pathlib import Path

# Python puts this folder on the import path; the package is found from the folder of the benchmarks.
sys.path[0] = str(Path(__file__).parents[1])

from answers.command import main  # noqa: E402 - found by the path above

sys.exit(main())
