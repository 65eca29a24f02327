"""LIVEHUD: real figures of a store and a session, under canonical keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from rlm_mem import Memory
from rlm_mem.models.base import Completion, Usage
from rlm_mem.persona import Library, render_gauge
from rlm_mem.persona.figures import KEYS, SLIDER_KEYS, figures_of
from tests.conftest import Clock
from tests.typed import present


@pytest.fixture
def memory(place: Path | str, clock: Clock) -> Any:
    with Memory.open(place, clock=clock, llm=Priced(None)) as opened:
        yield opened


class Priced:
    """A model that concludes at once, at a price."""

    name = "priced"

    def __init__(self, cost: Decimal | None) -> None:
        self.cost = cost

    def complete(self, messages: Any, **options: Any) -> Completion:
        program = (
            "```repl\nids = [h['chunk_id'] for h in search('Ana')]\n"
            "x = [read_chunk(i) for i in ids]\nFINAL('tea', chunk_ids=ids)\n```"
        )
        return Completion(program, Usage(1000, 20, 0, 0), self.name, cost=self.cost)


def paths(figures: Mapping[str, Any], before: str = "") -> list[str]:
    """Dotted keys of a set of figures; a list is one key."""
    found: list[str] = []
    for key, value in figures.items():
        found += paths(value, f"{before}{key}.") if isinstance(value, Mapping) else [before + key]
    return found


def words(text: str) -> int:
    return len(text.split())


def test_the_figures_as_a_result_say_the_main_ones_in_a_line(memory: Memory) -> None:
    memory.remember("Ana drinks tea.")
    hud, figures = memory.hud(), memory.hud_figures()
    assert hud.sliders == tuple(figures["sliders"]) and hud.mode == figures["mode"]
    assert str(hud).startswith("default: 1 chunks, mode BASE, ")


def test_the_keys_are_the_documented_ones(memory: Memory) -> None:
    figures = memory.hud_figures()
    assert sorted(paths(figures)) == sorted(KEYS)
    assert {key for slider in figures["sliders"] for key in slider} == set(SLIDER_KEYS)
    assert len(figures["sliders"]) == 10


def test_an_empty_memory_has_figures_too(memory: Memory) -> None:
    figures = memory.hud_figures()
    assert figures["store"]["chunks"] == 0
    assert figures["tiers"] == {"high": 0, "mid": 0, "low": 0, "ultra_low": 0}
    assert figures["memory"]["past_at"] is figures["memory"]["present_at"] is None
    assert figures["cost"]["usd"] == 0.0
    assert figures["cost"]["runs"] == 0
    assert figures["health"]["state"] == "well"
    for tense in ("past", "present", "future"):
        assert 3 <= words(figures["memory"][tense]) <= 9


def test_the_memory_protocol_describes_real_recalls_and_writes(memory: Memory, clock: Clock) -> None:
    ids = memory.remember("Ana drinks green tea in the morning and coffee never.").chunk_ids
    memory.store.create_chunk("Ana visits the dentist.", occurred_at="2026-03-05T09:00:00Z")
    memory.recall("What does Ana drink?")
    clock.advance(hours=1)
    figures = memory.hud_figures()
    told = figures["memory"]
    assert told["past"] == "read 2 chunks for: What does Ana drink?"
    assert told["present"] == "wrote a note: Ana visits the dentist."
    assert told["future"] == "on 2026-03-05: Ana visits the dentist."
    assert told["future_at"].startswith("2026-03-05")
    assert figures["system"]["chunks_loaded"] == 2
    assert figures["system"]["context"]["used"] > 100
    memory.update(ids[0], content="Ana drinks white tea.")
    assert memory.hud_figures()["memory"]["present"].startswith("revised a")
    memory.delete(ids[0])
    assert memory.hud_figures()["memory"]["present"] == f"archived a chunk, {ids[0]}"
    for tense in ("past", "present", "future"):
        assert 3 <= words(told[tense]) <= 9


def test_figures_agree_with_the_store(memory: Memory) -> None:
    for number in range(4):
        memory.store.create_chunk(f"Fact {number}.", tags=["a", f"t{number}"], conversation_id="c")
    memory.delete(memory.list_chunks()[0])
    figures, stats = memory.hud_figures(), memory.store.get_stats()
    assert figures["store"]["chunks"] == stats["chunk_count"] == 3
    assert figures["store"]["archived"] == 1
    assert figures["store"]["tokens"] == stats["total_tokens"]
    assert figures["store"]["tags"] == stats["tags"]


def test_looking_at_the_hud_changes_nothing(memory: Memory) -> None:
    chunk = memory.store.create_chunk("Ana drinks tea.")
    before = sum(1 for _ in memory.store.events())
    assert memory.hud_figures()["memory"] == memory.hud_figures()["memory"]
    assert sum(1 for _ in memory.store.events()) == before
    assert present(memory.store.get_chunk(chunk.id, track=False)).metadata.access_count == 0


@pytest.mark.local_only("about files")
def test_reads_wait_until_the_checkpoint(memory: Memory) -> None:
    chunk = memory.store.create_chunk("Ana drinks tea.")
    memory.get(chunk.id)
    figures = memory.hud_figures()
    assert figures["system"]["writes_pending"] == 1
    assert figures["memory"]["future"] == "1 access count waits for the next checkpoint"
    memory.checkpoint()
    assert memory.hud_figures()["system"]["writes_pending"] == 0


def test_tiers_are_counted_by_the_tags_of_mirrors(memory: Memory) -> None:
    for tier, count in (("high", 1), ("mid", 2), ("ultra-low", 3)):
        for number in range(count):
            mirror = f"chunk-memory-{tier}-{number}"
            memory.store.create_chunk(f"{tier} {number}", tags=[f"tier:{tier}"], chunk_id=mirror)
    memory.store.create_chunk("no memory", tags=["tier:mid"])
    gone = memory.store.create_chunk("merged", tags=["tier:mid"], chunk_id="chunk-memory-gone")
    memory.store.update_chunk(gone.id, metadata={"superseded_by": memory.list_chunks()[0]})
    assert memory.hud_figures()["tiers"] == {"high": 1, "mid": 2, "low": 0, "ultra_low": 3}


@pytest.mark.local_only("about files")
def test_an_unreadable_file_asks_for_attention(memory: Memory, tmp_path: Path) -> None:
    memory.store.create_chunk("Ana drinks tea.")
    path = next((tmp_path / "brain" / "memory" / "chunks").rglob("*.json"))
    path.write_text("{", encoding="utf-8")
    memory.sync(full=True)
    health = memory.hud_figures()["health"]
    assert (health["state"], health["unreadable_files"]) == ("attention", 1)


@pytest.mark.parametrize(
    ("cost", "usd", "text"),
    [
        (None, None, "1 call unpriced, 1 call of models"),
        (Decimal("0.0123"), 0.0123, "$0.0123, 1 call of models"),
        (Decimal(0), 0.0, "$0.00, 1 call of models"),
    ],
)
def test_unpriced_is_never_zero(
    tmp_path: Path, clock: Clock, cost: Decimal | None, usd: float | None, text: str
) -> None:
    with Memory.open(tmp_path / "brain", clock=clock, llm=Priced(cost)) as memory:
        memory.remember("Ana drinks tea.")
        memory.recall("What does Ana drink?")
        figures = memory.hud_figures()["cost"]
        assert (figures["usd"], figures["text"], figures["calls"]) == (usd, text, 1)
        assert figures["tokens"] == 1020
        clock.advance(days=1)
        assert memory.hud_figures()["cost"]["calls"] == 0, "only today counts"


def test_sliders_are_shown_with_their_defaults(memory: Memory) -> None:
    persona = memory.persona()
    persona.say("Research mode and max humor")
    figures = memory.hud_figures(persona)
    humor = next(one for one in figures["sliders"] if one["name"] == "humor")
    assert (humor["value"], humor["default"], humor["by_hand"], humor["mark"]) == (100, 45, True, "*")
    assert figures["mode"] == {
        "name": "RESEARCH_ANALYST",
        "label": "RESEARCH_ANALYST (adjusted)",
        "adjusted": True,
    }
    assert figures["system"]["vibe"] == "more humor, more technicality, more tools"


def test_the_kept_session_is_the_one_shown(memory: Memory) -> None:
    memory.persona(keep=True).use("concise")
    assert memory.hud_figures()["mode"]["name"] == "CONCISE"


def test_another_namespace_is_not_seen(memory: Memory, tmp_path: Path) -> None:
    memory.remember("Ana drinks tea.")
    memory.recall("What does Ana drink?")
    with Memory.open(tmp_path / "brain", namespace="other") as other:
        figures = other.hud_figures()
        assert figures["session"]["namespace"] == "other"
        assert figures["memory"]["past"] == "nothing has been recalled yet"
        assert figures["memory"]["present"] == "nothing has been written lately"
        assert figures["store"]["chunks"] == 0


@pytest.mark.local_only("about files")
def test_a_torn_line_of_the_log_does_not_matter(memory: Memory, tmp_path: Path) -> None:
    memory.store.create_chunk("Ana drinks tea.")
    log = next((tmp_path / "brain" / "memory" / "log").glob("*.jsonl"))
    with log.open("ab") as file:
        file.write(b'{"op": "cre')
    assert memory.hud_figures()["memory"]["present"] == "wrote a note: Ana drinks tea."


@pytest.mark.parametrize("width", [60, 80, 120])
def test_livehud_is_aligned_with_hostile_content(memory: Memory, width: int) -> None:
    memory.remember("日本語のメモ 👨‍👩‍👧 ❤️\x1b[31m 🇩🇪\u202e of row-level security, long words follow")
    memory.recall("Ana 日本語 👍🏽\x1b]0;title\x07?")
    drawn = render_gauge(Library().gauge("livehud"), memory.hud_figures(), width)
    assert {cell_len(line) for line in drawn.split("\n")} == {width}
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", drawn) is None
    assert "日本語のメモ 👨 ❤" in drawn
    for slider in ("Verbosity", "Humor", "Creativity", "Morality", "Directness", "Technicality"):
        assert re.search(rf"{slider} +[█░]{{20}} ", drawn)


@pytest.mark.parametrize("name", Library().gauges())
def test_every_gauge_of_the_package_is_drawn(memory: Memory, name: str) -> None:
    drawn = render_gauge(Library().gauge(name), memory.hud_figures(), 60)
    assert {cell_len(line) for line in drawn.split("\n")} == {60}


def test_figures_need_nothing_but_store_and_persona(memory: Memory) -> None:
    figures = figures_of(memory.store, memory.persona())
    assert figures["at"] > datetime(2026, 2, 10, tzinfo=UTC).isoformat()
    assert figures["cost"]["text"] == "$0.00, 0 calls of models"
