"""Detects communities of linked memories for the graph, and names them.

Memories move to the community in which the strength of their links most exceeds that expected by chance (the Louvain
method), then communities are merged by the same rule until modularity no longer rises. For the same links, the result
depends only on the order of the memories.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from rlm_mem.dashboard.words import stems_of

_ROUNDS = 20
"""Maximum number of passes over all memories per level; few are needed."""
_LEVELS = 12
_COMMON = 0.6
"""Minimum share of members with the same conversation or tag for it to name their community."""
_LIFT = 4
"""Minimum frequency of a tag, relative to all memories, for it to name a community."""
_WORD = re.compile(r"[^\W\d_]{3,30}")
_WORDS = 3


@dataclass(frozen=True)
class Member:
    """A memory to be assigned to a community.

    Attributes:
        text: beginning of its content, from which words that name the community are taken.
    """

    id: str
    text: str
    conversation: str | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class Community:
    """A group of closely linked memories.

    Attributes:
        name: the conversation or tag that most members share, else ``words``; unique in a graph.
        words: up to three words that are frequent in this community and rare elsewhere.
        members: indices into the sequence of members, ascending.
        linked: False for the community of memories without a link.
    """

    name: str
    words: tuple[str, ...]
    members: tuple[int, ...]
    linked: bool = True


def communities(
    members: Sequence[Member], links: Iterable[tuple[str, str, float]], *, language: str = "english"
) -> list[Community]:
    """Group memories by their links, largest community first; unlinked memories form the last one.

    Args:
        links: pairs of ids with the strength of their link, 0 to 1; strengths of a pair are added up.
    """
    number = {member.id: at for at, member in enumerate(members)}
    weights: list[dict[int, float]] = [{} for _ in members]
    for one, other, strength in links:
        a, b = number.get(one), number.get(other)
        if a is not None and b is not None and a != b:
            for here, there in ((a, b), (b, a)):
                weights[here][there] = weights[here].get(there, 0.0) + max(strength, 0.05)
    parts: dict[int, list[int]] = defaultdict(list)
    for at, part in enumerate(_cached_partition(tuple(tuple(near.items()) for near in weights))):
        parts[part].append(at)
    linked = sorted(
        (part for part in parts.values() if len(part) > 1), key=lambda part: (-len(part), part[0])
    )
    made = _name_communities(members, linked, language)
    single = tuple(sorted(part[0] for part in parts.values() if len(part) == 1))
    return [*made, Community("not linked", (), single, linked=False)] if single else made


@lru_cache(maxsize=8)
def _cached_partition(weights: tuple[tuple[tuple[int, float], ...], ...]) -> list[int]:
    """Cached :func:`partition`: a page and its drawing need the same result. The cache contains only numbers."""
    return partition([dict(near) for near in weights])


def partition(weights: Sequence[Mapping[int, float]]) -> list[int]:
    """Assign each node of an undirected weighted graph to a community, as a number.

    Args:
        weights: the neighbours of each node with the weights of their links, the same in both directions.
    """
    part = list(range(len(weights)))
    level: list[Mapping[int, float]] = list(weights)
    for _ in range(_LEVELS):
        moved = _optimise_level(level)
        names = {name: at for at, name in enumerate(dict.fromkeys(moved))}
        if len(names) == len(level):
            break
        part = [names[moved[at]] for at in part]
        joined: list[dict[int, float]] = [defaultdict(float) for _ in names]
        for at, near in enumerate(level):
            for other, weight in near.items():
                joined[names[moved[at]]][names[moved[other]]] += weight
        level = list(joined)
    return part


def _optimise_level(level: Sequence[Mapping[int, float]]) -> list[int]:
    """One level of the method: move nodes to the community of a neighbour while that raises modularity."""
    part = list(range(len(level)))
    degree = [sum(near.values()) for near in level]
    whole = sum(degree) or 1.0
    weight = list(degree)
    # Nodes are visited in scattered order; in their own, all turns of a conversation would join its first community.
    order = sorted(part, key=lambda at: at * 2_654_435_761 % 2**32)
    for _ in range(_ROUNDS):
        changed = False
        for at in order:
            home, near = part[at], level[at]
            weight[home] -= degree[at]
            toward = {home: 0.0}
            for other, strength in near.items():
                if other != at:
                    toward[part[other]] = toward.get(part[other], 0.0) + strength
            gain = {name: tie - degree[at] * weight[name] / whole for name, tie in toward.items()}
            best = max(gain, key=lambda name: (gain[name], name == home, -name))
            if gain[best] <= gain[home] + 1e-9:
                best = home
            weight[best] += degree[at]
            changed = changed or best != home
            part[at] = best
        if not changed:
            break
    return part


def _name_communities(
    members: Sequence[Member], parts: Sequence[Sequence[int]], language: str
) -> list[Community]:
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    of_member = [_stems(member.text, shown, language) for member in members]
    spread = Counter(stem for stems in of_member for stem in stems)
    tags = Counter(tag for member in members for tag in member.tags)
    taken: set[str] = set()
    made = []
    for part in parts:
        inside = Counter(stem for at in part for stem in of_member[at])
        score = {
            stem: times * log((len(members) + 1) / spread[stem])
            for stem, times in inside.items()
            if times > 1
        }
        best = sorted(score, key=lambda stem: (-score[stem], stem))
        # Two stems may come from the same word.
        words = tuple(dict.fromkeys(shown[stem].most_common(1)[0][0] for stem in best[: 2 * _WORDS]))[:_WORDS]
        topic = ", ".join(words)
        name = _shared_name(members, part, tags) or topic or members[part[0]].text[:30]
        if name in taken and topic not in ("", name):
            name = f"{name}: {topic}"
        number = 2
        whole = name
        while name in taken:
            name, number = f"{whole} ({number})", number + 1
        taken.add(name)
        made.append(Community(name, words, tuple(part)))
    return made


def _shared_name(members: Sequence[Member], part: Sequence[int], tags: Counter[str]) -> str:
    """The conversation shared by most members, else their characteristic tag; empty if there is neither."""
    conversations = Counter(members[at].conversation for at in part)
    tagged = Counter(tag for at in part for tag in members[at].tags)
    for found, least in ((conversations, 1), (tagged, _LIFT)):
        for name, times in found.most_common(3):
            share = times / len(part)
            if name and share >= _COMMON and share * len(members) >= least * tags.get(name, 0):
                return name
    return ""


def _stems(text: str, shown: dict[str, Counter[str]], language: str) -> set[str]:
    """The stems of a text; also counts in ``shown`` the words that each stem comes from."""
    found = set()
    for word in _WORD.findall(text):
        for stem in stems_of(word, language):
            shown[stem][word if word.isupper() else word.lower()] += 1
            found.add(stem)
    return found
