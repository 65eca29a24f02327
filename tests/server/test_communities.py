"""Communities of the graph: who belongs together, and by which name."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

from rlm_mem.dashboard.communities import Member, communities, partition


def circle(first: int, size: int, reach: int) -> list[tuple[int, int]]:
    """Pairs of a chain in which each is linked with the next ones, as turns of a conversation are."""
    return [(first + a, first + b) for a, b in combinations(range(size), 2) if b - a <= reach]


def weights(size: int, pairs: list[tuple[int, int]]) -> list[dict[int, float]]:
    made: list[dict[int, float]] = [{} for _ in range(size)]
    for a, b in pairs:
        made[a][b] = made[b][a] = 1.0
    return made


def test_what_is_linked_closely_is_one_community_and_a_bridge_does_not_join_two() -> None:
    pairs = [*combinations(range(6), 2), *((a + 6, b + 6) for a, b in combinations(range(6), 2)), (0, 6)]
    part = partition(weights(13, pairs))
    assert len(set(part[:6])) == len(set(part[6:12])) == 1
    assert len(set(part)) == 3


def test_a_chain_of_500_is_cut_into_stretches_and_small_ones_stay_whole() -> None:
    part = partition(weights(500, circle(0, 500, 3)))
    assert 5 < len(set(part)) < 60
    changes = sum(one != other for one, other in pairwise(part))
    assert changes == len(set(part)) - 1, "each is a stretch without gaps"
    six = partition(weights(36, [pair for at in range(6) for pair in circle(at * 6, 6, 3)]))
    assert [len(set(six[at * 6 : at * 6 + 6])) for at in range(6)] == [1] * 6
    assert len(set(six)) == 6


def test_names_are_a_conversation_a_tag_of_their_own_or_words() -> None:
    def group(name: str, text: str, **more: Any) -> list[Member]:
        return [Member(f"{name}{at}", f"{text} {at}", **more) for at in range(4)]

    members = [
        *group("a", "the lighthouse keeper", conversation="harbour", tags=["all"]),
        *group("b", "the brass telescope", tags=["optics", "all"]),
        *group("c", "the marble quarry", tags=["all"]),
        *group("d", "the marble quarry", tags=["all"]),
        Member("e", "by itself"),
    ]
    links = [(f"{name}{a}", f"{name}{b}", 0.5) for name in "abcd" for a, b in combinations(range(4), 2)]
    found = communities(members, [*links, ("a0", "nowhere", 1.0), ("a1", "a1", 1.0)])
    assert [one.name for one in found[:2]] == ["harbour", "optics"]
    assert set(found[2].words) == {"marble", "quarry"}
    assert found[3].name == f"{found[2].name} (2)"
    assert len({one.name for one in found}) == 5
    assert (found[4].linked, found[4].members) == (False, (16,))
    assert communities([], []) == []
