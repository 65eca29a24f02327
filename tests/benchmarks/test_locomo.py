"""Conversations are read from the folder that all benchmarks take as `--data`, from its part, or from one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from locomo import load

CHAT = {
    "speaker_a": "Ana",
    "speaker_b": "Ben",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a grey cat called Pixel."}],
}
QA = {"question": "What is Ana's cat called?", "answer": "Pixel", "evidence": ["D1:1"], "category": 4}


def test_conversations_are_found_in_the_folder_of_all_data_and_in_their_own(tmp_path: Path) -> None:
    own = tmp_path / "locomo"
    own.mkdir()
    (own / "7.json").write_text(json.dumps({**CHAT, "qa": [QA]}))
    for place in (tmp_path, own, own / "7.json"):
        [conversation] = load(place)
        assert conversation.name == "7"
        assert [question.text for question in conversation.questions] == [QA["question"]]
