"""The importer and the model pass the contract suites of RLM-MEM; the gauge is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from rlm_mem_sample.kindle import FORMAT

from rlm_mem.cli import main
from rlm_mem.interchange import Format
from rlm_mem.models import LLM, get_llm
from rlm_mem.testing import ImporterContract, ModelContract

CLIPPINGS = """\ufeffDeep Work (Cal Newport)\r
- Your Highlight on page 14 | Location 180-182 | Added on Tuesday, 3 February 2026 21:15:07\r
\r
The ability to perform deep work is becoming increasingly rare and valuable.\r
==========\r
Deep Work (Cal Newport)\r
- Your Bookmark on page 20 | Location 244 | Added on Tuesday, 3 February 2026 21:40:00\r
\r
\r
==========\r
Deep Work (Cal Newport)\r
- Your Highlight on page 21 | Location 250-251 | Added on Wednesday, 4 February 2026 07:30:00\r
\r
Clarity about what matters provides clarity about what does not.\r
==========\r
The Overstory (Richard Powers)\r
- Your Note on page 3 | Location 12 | Added on Monday, 9 February 2026 08:00:00\r
\r
The chestnut is photographed every month.\r
==========\r
"""


class TestKindle(ImporterContract):
    chunks = 3
    foreign: ClassVar = {"poem.txt": b"The chestnut\n- Your leaves fall\n\n==========\n"}

    @pytest.fixture
    def importer(self) -> Format:
        return FORMAT

    @pytest.fixture
    def example(self) -> tuple[str, bytes]:
        return "My Clippings.txt", CLIPPINGS.encode()


class TestFirstHit(ModelContract):
    @pytest.fixture
    def model(self) -> LLM:
        return get_llm("sample:first")


def test_the_gauge_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain = str(tmp_path / "brain")
    assert main(["--brain", brain, "store", "init"]) == 0
    assert main(["--brain", brain, "persona", "hud", "reading"]) == 0
    assert "chunks" in capsys.readouterr().out
