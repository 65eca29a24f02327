"""QueryMemoryTool, hints, and the reliability of memories in programs and recalls."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rlm_mem.continuum import Continuum
from rlm_mem.continuum.files import TieredMemory
from rlm_mem.errors import InvalidQuery, NotFoundError
from rlm_mem.memory import Memory
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.store.core.records import reliability

from .conftest import STEPS, StillClock, added, learning, record, replaced, rewrite, trace_of

GOAL = "Research web content and summarize"
REWORDED = "Summarise the web pages you research"


def test_recent_context_is_of_the_high_tier_and_of_the_last_day(
    continuum: Continuum, still: StillClock
) -> None:
    record(continuum, GOAL)
    trace_of(continuum, "Deploy the service")
    record(continuum, "Bake bread")
    record(continuum, GOAL, indicators=[])
    still.now += timedelta(hours=24)
    assert [hit.title for hit in continuum.queries.recent(REWORDED)] == [GOAL]
    still.now += timedelta(seconds=1)
    assert continuum.queries.recent(REWORDED) == []


def test_proven_patterns_match_the_goal_are_confident_and_ordered_by_success(continuum: Continuum) -> None:
    good = rewrite(
        continuum, trace_of(continuum, GOAL),
        usage_count=20, success_count=19, success_rate=0.95, confidence_score=0.99,
    )  # fmt: skip
    best = rewrite(
        continuum, trace_of(continuum, GOAL, steps=[{"tool": "Browser", "call": "open"}]),
        usage_count=10, success_count=10, success_rate=1.0, confidence_score=0.86,
    )  # fmt: skip
    rewrite(
        continuum, trace_of(continuum, GOAL, steps=[{"tool": "Curl", "call": "get"}]),
        usage_count=10, success_count=10, success_rate=1.0, confidence_score=0.849,
    )  # fmt: skip
    trace_of(continuum, "Deploy the service to production")
    assert [hit.key for hit in continuum.queries.proven(REWORDED)] == [best.key, good.key]
    assert next(hit.key for hit in continuum.queries.query(REWORDED).hits) == good.key, (
        "by score it is the other way"
    )


def test_stable_knowledge_is_of_the_task_type_and_validated_across_projects(continuum: Continuum) -> None:
    wanted = rewrite(continuum, learning(continuum, GOAL), task_type="research")
    rewrite(continuum, learning(continuum, "Deploy the service"), task_type="development")
    local = {"alpha@one": [15, 15], "alpha@two": [10, 9]}
    rewrite(
        continuum, learning(continuum, "Read the archive", contexts=local, cross_project_validated=False),
        task_type="research",
    )  # fmt: skip
    assert [hit.key for hit in continuum.queries.stable("research")] == [wanted.key]
    assert len(continuum.queries.stable()) == 2
    assert [hit.key for hit in continuum.queries.stable(goal=REWORDED)] == [wanted.key]


def test_the_weighted_query_shows_the_parts_of_its_scores(continuum: Continuum) -> None:
    trace = trace_of(continuum, GOAL)
    record(continuum, GOAL, indicators=[])
    hits = continuum.queries.query(REWORDED).hits
    assert [hit.tier for hit in hits] == ["mid", "high"]
    assert hits[0].key == trace.key
    for hit in hits:
        product = hit.parts["relevance"] * hit.parts["tier_weight"] * hit.parts["reliability"]
        assert hit.score == pytest.approx(product, abs=1e-4)
    assert hits[0].parts["tier_weight"] == 0.6
    assert hits[1].parts["tier_weight"] == 0.1


def test_weights_are_normalised_and_decide_between_tiers(continuum: Continuum) -> None:
    trace_of(continuum, GOAL)
    record(continuum, GOAL, indicators=[])
    hits = continuum.queries.query(GOAL, tier_weights={"high": 30, "mid": 10}).hits
    assert [hit.tier for hit in hits] == ["high", "mid"]
    assert [hit.parts["tier_weight"] for hit in hits] == [0.75, 0.25]
    assert [hit.tier for hit in continuum.queries.query(GOAL, tier_weights={"mid": 1}).hits] == ["mid"]


@pytest.mark.parametrize("weights", [{"middle": 1.0}, {"mid": -1.0}, {"mid": 0.0}, {"mid": float("nan")}, {}])
def test_weights_that_make_no_sense_are_refused(continuum: Continuum, weights: dict[str, float]) -> None:
    with pytest.raises(InvalidQuery):
        continuum.queries.query(GOAL, tier_weights=weights)


def test_the_core_is_a_preamble_whatever_the_goal_unless_it_is_excluded(continuum: Continuum) -> None:
    core = added(continuum, "system/profiles/ana.md", "Ana", "Ana prefers trains to planes.")
    result = continuum.queries.query("Deploy the service")
    assert ([hit.key for hit in result.core], result.hits) == ([core.key], [])
    assert continuum.queries.query("Deploy", include_core=False).core == []
    ranked = continuum.queries.query("trains for Ana", tier_weights={"ultra-low": 1})
    assert [hit.key for hit in ranked.hits] == [core.key]


def test_filters_leave_out_the_doubtful_and_other_tasks(continuum: Continuum) -> None:
    record(continuum, GOAL, confidence=0.74, task_type="research")
    assert len(continuum.queries.query(GOAL).hits) == 1
    assert continuum.queries.query(GOAL, min_confidence=0.75).hits == []
    assert len(continuum.queries.query(GOAL, task_type="research").hits) == 1
    assert continuum.queries.query(GOAL, task_type="creative").hits == []


def test_success_and_steadiness_count_for_reliability(continuum: Continuum) -> None:
    trace = trace_of(continuum, GOAL)
    before = continuum.queries.query(GOAL).hits[0].parts["reliability"]
    rewrite(continuum, trace, usage_count=10, success_count=5, success_rate=0.5, contexts={})
    assert continuum.queries.query(GOAL).hits[0].parts["reliability"] < before
    figures = [reliability(0.8, 1.0, volatility) for volatility in ("high", "medium", "low")]
    assert figures == sorted(set(figures)), "what changes often is relied on less"


def test_a_library_card_and_a_replaced_source_give_no_second_hit(continuum: Continuum) -> None:
    low = learning(continuum, GOAL)
    assert [hit.key for hit in continuum.queries.query(GOAL).hits] == [low.key]
    assert [hit.key for hit in continuum.queries.memories()] == [low.key]


def test_hints_warn_of_what_failed_and_recommend_what_worked_with_evidence(continuum: Continuum) -> None:
    trace = trace_of(continuum, GOAL)
    for _ in range(30):
        continuum.traces.use(trace.key, True, project="alpha")
    for _ in range(2):
        continuum.traces.use(trace.key, False, project="alpha", error="the site blocks robots", step=1)
    risk, success = continuum.hints(REWORDED)
    assert (risk.kind, success.kind) == ("risk", "success")
    assert risk.text == "step 1 (WebFetch) failed 2 times: the site blocks robots; on error: retry once"
    assert success.text == "WebFetch → Summarize; success shows as: five lines"
    assert risk.evidence == (f"{trace.key} (31 of 33 uses went well)",)
    assert continuum.hints("Bake bread") == []


def test_a_broken_file_takes_no_hint_of_another_memory_away(continuum: Continuum) -> None:
    broken = trace_of(continuum)
    other = trace_of(continuum, "Fetch and summarise a book", steps=[{"tool": "Read", "call": "the book"}])
    for trace in (broken, other):
        continuum.traces.use(trace.key, False, error="Out of time.")
    assert len(continuum.hints("Fetch and summarise a page")) == 2
    replaced(continuum, broken.file, "memory_frequency: mid", "memory_frequency: sideways")
    (hint,) = continuum.hints("Fetch and summarise a page")
    assert other.key in hint.evidence[0]


# --- in the sandbox ---

PROGRAM = """```repl
found = search_traces("Summarise the web pages you research")
best = memories(tier="mid")[0]
chunk = read_chunk(found[0]["chunk_id"])
said = f"{found[0]['tier']} {best['title']} {chunk['tier']} {chunk['reliability'] > 0.5}"
FINAL(said, chunk_ids=[found[0]["chunk_id"]])
```"""


def test_programs_find_traces_and_a_recall_names_tier_and_reliability(continuum: Continuum) -> None:
    trace = trace_of(continuum, GOAL)
    memory = Memory(continuum.store, llm=ScriptedLLM([PROGRAM]))
    result = memory.recall("How is web research done?")
    assert result.content == f"mid {GOAL} mid True"
    (standing,) = result.standing
    assert (standing.chunk_id, standing.tier) == (trace.chunk_id, "mid")
    assert 0 < standing.reliability <= standing.confidence == trace.meta.confidence_score
    assert (standing.usage_count, standing.success_rate) == (1, 1.0)


def test_an_unknown_tier_in_a_program_gives_an_error_with_the_known_ones(continuum: Continuum) -> None:
    llm = ScriptedLLM(['```repl\nmemories(tier="middle")\n```', "```repl\nFINAL('done')\n```"])
    Memory(continuum.store, llm=llm).recall("What?")
    assert "use high, mid, low, ultra-low" in llm.prompts[1][-1].content


def test_recall_without_a_model_finds_a_trace(continuum: Continuum) -> None:
    record(continuum, "Renew the certificate", steps=STEPS, notes="The certificate is renewed with certbot.")
    continuum.consolidate()
    result = Memory(continuum.store).recall("What is the certificate renewed with?")
    assert result.outcome in ("answered", "closest only")
    assert result.chunk_ids[0] == _trace(continuum).chunk_id
    assert "certbot" in (result.content or result.sources[0].excerpt)
    assert result.standing[0].tier == "mid"


def _trace(continuum: Continuum) -> TieredMemory:
    (entry,) = continuum.files.entries(kinds=("trace",))
    return entry


def test_a_context_in_which_a_memory_often_failed_is_a_risk(continuum: Continuum) -> None:
    contexts = {"alpha": [20, 20], "beta": [6, 2], "gamma": [1, 0]}
    rewrite(
        continuum, trace_of(continuum, GOAL),
        usage_count=27, success_count=22, success_rate=0.814815, contexts=contexts,
    )  # fmt: skip
    assert [hint.text for hint in continuum.hints(REWORDED) if hint.kind == "risk"] == [
        "went well in only 2 of 6 uses in beta"
    ]


def test_a_chunk_that_only_claims_to_be_a_memory_is_none(continuum: Continuum) -> None:
    entry = trace_of(continuum, GOAL)
    file, _, block = entry.key.partition("#")
    for place in ({"file": file, "entry": block or None}, {"file": 5}, {}):
        claims = continuum.store.create_chunk(
            f"{GOAL}: ask Eve.", source="continuum", tags=["tier:ultra-low", "tier:mid"], provenance=place
        )
        with pytest.raises(NotFoundError):
            continuum.traces.find(claims.id)
    assert continuum.queries.core() == []
    assert [hit.key for hit in continuum.queries.query(GOAL).hits] == [entry.key]
    assert [hit.key for hit in continuum.queries.memories()] == [entry.key]
