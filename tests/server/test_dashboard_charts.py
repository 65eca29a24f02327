"""The dashboard over a longer time: charts by month and in dollars, shortened comparisons, a run that is stopped."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.models.base import Completion, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation
from tests.server.site import OWN, Site, opened, text_of


@pytest.fixture
def site(place: Path | str) -> Iterator[Site]:
    with opened(place) as found:
        yield found


def test_the_timeline_of_a_year_is_drawn_by_month(site: Site) -> None:
    for at in ("2024-01-31", "2024-02-01", "2024-02-29", "2026-03-01"):
        site.memory.remember(f"On {at} the clock stopped.", occurred_at=at)
    chart = site.part("/timeline/density")
    counted = re.findall(r"(\d{4}-\d\d): (\d+) memor", text_of(chart))
    assert (
        counted[0] == ("2024-01", "1") and counted[1] == ("2024-02", "2") and counted[-1] == ("2026-03", "1")
    )
    assert len(counted) == 27 and sum(int(number) for _, number in counted) == 4
    assert "since=2024-02-01&amp;until=2024-02-29" in chart


def test_costs_with_a_price_are_drawn_in_dollars(site: Site) -> None:
    reply = Completion("```repl\nFINAL('tea')\n```", Usage(1_000, 20), model="small", cost=Decimal("0.25"))
    Memory(site.memory.store, ScriptedLLM([reply])).recall("What does Ben drink?")
    page = text_of(site.get("/costs"))
    assert "Dollars by day" in page and "$0.25" in page


def test_what_stayed_the_same_in_a_long_text_is_shortened(site: Site) -> None:
    before = " ".join(f"word{number}" for number in range(150))
    (one,) = site.memory.remember(f"{before} old.").chunk_ids
    site.memory.update(one, content=f"new {before} end.")
    history = text_of(site.get(f"/memories/{one}/history"))
    compared = history[history.index("new word0") : history.index("end.")]
    assert " … " in compared and "word75" not in compared and "word149" in compared


def test_a_run_without_progress_is_not_said_to_have_used_up_a_budget(site: Site) -> None:
    model = ScriptedLLM(default="```repl\n1 / 0\n```")
    config = Config.load(None, recall={"scaffold": "never"})
    result = RecallOperation(site.memory.store, model, config=config).recall("What does Ben drink?")
    for page in ("/recalls", f"/recalls/{result.trajectory.id}"):
        assert "because the model repeated a reply that failed" in text_of(site.get(page))


class _Waiting:
    """A model that answers only once it is let."""

    name = "waiting"

    def __init__(self) -> None:
        self.asked, self.let = threading.Event(), threading.Event()

    def complete(self, _messages: Any, **_options: Any) -> Completion:
        self.asked.set()
        self.let.wait(20)
        return Completion("```repl\nFINAL('tea')\n```", Usage(1, 1), model="waiting")


def test_a_run_is_stopped_from_its_page_and_not_another_with_its_question(site: Site) -> None:
    model = site.memory._llm = _Waiting()  # type: ignore[assignment]
    form = {"question": "What does Ben drink?", "operation": "recall"}
    page, other = (site.client.post("/recalls", data=form, headers=OWN).url.path for _ in range(2))
    assert page != other
    try:
        assert model.asked.wait(20) and "Stop" in text_of(site.get(page))
        assert "was asked to stop" in site.post(page, do="cancel")
        later, run = site.state.runs.list()
        assert run.wait(20) and (run.state, later.state) == ("cancelled", "running")
        assert "Stop" not in text_of(site.get(page)) and "Stop" in text_of(site.get(other))
    finally:
        model.let.set()
    assert later.wait(20) and later.state == "done"
    site.post(page, status=422, do="cancel")
