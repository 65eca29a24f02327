"""Starts the command: `python benchmarks/answers …`."""

import sys
from pathlib import Path

# Started as a folder, Python looks for modules inside of it; they are of a package beside the other benchmarks.
sys.path[0] = str(Path(__file__).parents[1])

from answers.command import main  # noqa: E402 - found by the path above

sys.exit(main())
