"""Search over both backends, by the suite that other packages run (``rlm_mem.testing``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem.testing import CandidateSourceContract


class TestCandidateSource(CandidateSourceContract):
    @pytest.fixture
    def place(self, base: Path | str) -> Path | str:
        return base
