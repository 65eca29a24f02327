"""Both backends keep what every backend promises, by the suites that other packages run (``rlm_mem.testing``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem.testing import BackendContract


class TestBackend(BackendContract):
    @pytest.fixture
    def place(self, base: Path | str) -> Path | str:
        return base
