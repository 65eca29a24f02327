"""``python -m rlm_mem`` is the command ``rlm-mem``."""

from __future__ import annotations

import sys

from rlm_mem.cli import main

if __name__ == "__main__":
    sys.exit(main())
