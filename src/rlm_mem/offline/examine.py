"""Find the likeliest answer in passages by the fitted tables, with the figures for its probabilities."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rlm_mem.offline.candidates import Candidate, candidates
from rlm_mem.offline.extraction import trimmed, word_counts, word_f1
from rlm_mem.offline.features import (
    PassageSigns,
    mentions,
    passage_signs,
    signals,
    with_unspoken_names,
    word_share,
)
from rlm_mem.offline.kinds import fit_of, is_wrong_kind, share_needed
from rlm_mem.offline.notes import matched_share
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import YES_NO
from rlm_mem.offline.weights import Weights
from rlm_mem.record import FrozenRecord

READ_FULLY = 6
"""Number of best passages that are read word by word; for others only authors and words count."""

_MAX_COMPARED = 50
_MAX_LISTED = 3
_LIST_SHARE = 0.3
_CITED_SHARE = 0.12
_MAX_CITED = 4


class Examined(FrozenRecord, frozen=True):
    """The result of `examine`: the answer, its passages, and the figures for its probabilities.

    ``sentence`` is the whole sentence if the answer is only a part of it, else empty; ``share_needed``: see
    `kinds.share_needed`.
    """

    answer: str
    passages: tuple[Passage, ...]
    figures: dict[str, float]
    share_needed: float
    sentence: str = ""

    @property
    def exact(self) -> bool:
        """Whether the answer is exactly of the kind asked for, such as a date, a number or a name."""
        return self.figures["exact"] == 1.0


def examine(question: Question, passages: Sequence[Passage], table: Weights) -> Examined | None:
    """Find the best answer; None if there is no candidate."""
    passages = [passage for passage in passages if passage.sentences]
    question = with_unspoken_names(question, passages)
    signs = passage_signs(question, passages)
    scored = score_candidates(question, passages, signs, table)
    if not scored:
        return None
    shares = shares_of([score for _, _, score in scored])
    mass: dict[int, float] = defaultdict(float)
    for (_, index, _), share in zip(scored, shares, strict=True):
        mass[index] += share
    chosen, agreement = choose(question, scored, shares)
    order = sorted(mass, key=lambda index: -mass[index])
    answer_index = scored[chosen][1]
    order.remove(answer_index)
    order.insert(0, answer_index)
    answer = _displayed(scored[chosen][0])
    used = [answer_index]
    if question.many:
        answer, used = _listed(scored, shares, mass, order, answer)
    cited = used + [i for i in order if i not in used and mass[i] >= _CITED_SHARE * mass[order[0]]]
    figures = evidence_figures(question, passages, signs, scored, shares, mass, chosen, agreement)
    best = scored[chosen][0]
    needed = share_needed(question, best)
    sentence = trimmed(best.sentence.text) if best.first >= 0 else ""
    return Examined(
        answer, tuple(passages[i] for i in cited[: max(_MAX_CITED, len(used))]), figures, needed, sentence
    )


Scored = tuple[Candidate, int, float]


def score_candidates(
    question: Question, passages: Sequence[Passage], signs: Sequence[PassageSigns], table: Weights
) -> list[Scored]:
    """Every candidate of the passages worth reading, with the number of its passage and its score."""
    span = table.span
    found = []
    for index, (passage, sign) in enumerate(zip(passages, signs, strict=True)):
        if sign.rank >= READ_FULLY:
            continue
        for candidate in candidates(question, passage):
            if is_wrong_kind(question, candidate):
                continue
            total = sum(
                span.get(name, 0.0) * value for name, value in signals(question, candidate, sign).items()
            )
            found.append((candidate, index, total))
    return found


def shares_of(scores: Sequence[float]) -> list[float]:
    """Softmax: the probability of each candidate."""
    best = max(scores)
    raised = [math.exp(score - best) for score in scores]
    total = sum(raised)
    return [one / total for one in raised]


def choose(question: Question, scored: Sequence[Scored], shares: Sequence[float]) -> tuple[int, float]:
    """The number of the best candidate, and how far the others agree with it (0–1).

    For spans this is the one whose words overlap most with all likely ones: of several neighbouring spans with
    similar probabilities, the common core is chosen. For dates, numbers and names it is the likeliest one.
    """
    likely = sorted(range(len(scored)), key=lambda i: -shares[i])[:_MAX_COMPARED]
    bags = [word_counts(scored[i][0].text) for i in likely]
    expected = [
        sum(shares[other] * word_f1(bags[a], bags[b]) for b, other in enumerate(likely))
        for a in range(len(likely))
    ]
    best = max(range(len(likely)), key=lambda a: expected[a]) if question.kind.is_span else 0
    return likely[best], min(1.0, expected[best])


def _listed(
    scored: Sequence[Scored], shares: Sequence[float], mass: dict[int, float], order: list[int], answer: str
) -> tuple[str, list[int]]:
    """The joined answers of up to three passages of similar probability, for a question about several things."""
    parts, used = [answer], [order[0]]
    for index in order[1:]:
        if len(parts) >= _MAX_LISTED or mass[index] < _LIST_SHARE * mass[order[0]]:
            break
        own = [n for n, (_, home, _) in enumerate(scored) if home == index]
        text = _displayed(scored[max(own, key=lambda n: shares[n])][0])
        if all(word_f1(word_counts(text), word_counts(part)) < 0.5 for part in parts):
            parts.append(text)
            used.append(index)
    return ", ".join(parts), used


def _displayed(candidate: Candidate) -> str:
    """The text of a candidate with its article and without loose punctuation."""
    text = candidate.text.strip(" \t\n,;:-–—*")
    if candidate.first > 0 and candidate.form in ("span", "clause"):
        before = candidate.sentence.words[candidate.first - 1]
        if before.low in ("a", "an", "the") and not candidate.sentence.words[candidate.first].opens:
            text = f"{before.low} {text}"
    return text


def evidence_figures(
    question: Question,
    passages: Sequence[Passage],
    signs: Sequence[PassageSigns],
    scored: Sequence[Scored],
    shares: Sequence[float],
    mass: Mapping[int, float],
    chosen: int,
    agreement: float,
) -> dict[str, float]:
    """Evidence that the passages contain the answer: the speaker, how many words match, how clear the choice is."""
    weights = signs[0].weights
    total = sum(weights.values()) or 1.0
    best, index, _ = scored[chosen]
    home, passage = signs[index], passages[index]
    named = [(s, p) for s, p in zip(signs, passages, strict=True) if s.speaker == 1]
    others = [(s, p) for s, p in zip(signs, passages, strict=True) if s.speaker == -1]
    anybody = bool(named or others)

    def widest(group: list[tuple[PassageSigns, Passage]]) -> float:
        return max((s.cover for s, _ in group), default=0.0)

    def said(group: list[tuple[PassageSigns, Passage]]) -> float:
        sentences = (sentence.stems for _, p in group for sentence in p.sentences if not sentence.asks)
        return max((word_share(weights, stems) for stems in sentences), default=0.0)

    def least_lag(group: list[tuple[PassageSigns, Passage]]) -> float:
        return min((s.lag for s, _ in group), default=0.0)

    everywhere = frozenset().union(*(p.stems | p.before_stems for p in passages))
    entropy = -sum(share * math.log(share + 1e-12) for share in shares)
    return {
        "named": float(anybody),
        "own_mass": sum(m for i, m in mass.items() if signs[i].speaker == 1),
        "other_mass": sum(m for i, m in mass.items() if signs[i].speaker == -1),
        "cover_gap": widest(named) - widest(others) if anybody else 0.0,
        "said_named": said(named) if anybody else 0.0,
        "said_gap": said(named) - said(others) if anybody else 0.0,
        "lag_gap": max(-4.0, min(4.0, least_lag(others) - least_lag(named))) / 4 if named and others else 0.0,
        "stands_out": min(4.0, statistics.median(s.lag for s in signs)) / 4,
        "best_said": signs[0].best_said,
        "matched": matched_share(question, passage),
        "fits": fit_of(question, best),
        "home_lag": min(4.0, home.lag) / 2,
        "home_cover": home.cover,
        "home_near": home.near,
        "home_other": float(home.speaker == -1),
        "wordless": float(not any(t in everywhere for t in question.strong)),
        "absent": sum(1 for name in question.names if not any(mentions(p, name) for p in passages))
        / max(1, len(question.names)),
        "home_nameless": float(
            bool(question.names) and not any(mentions(passage, n) for n in question.names)
        ),
        "unseen": sum(w for t, w in weights.items() if t in question.strong and t not in everywhere) / total,
        "length": min(10, len(question.strong)) / 8,
        "share": max(shares),
        "home_share": mass[index],
        "agreement": agreement,
        "entropy": entropy / 5,
        "best": max(score for _, _, score in scored) / 5,
        "date": float(best.form == "date"),
        "exact": float(best.form in ("date", "number", "duration", "quote", "author", "option")),
        "yes_no": float(question.kind is YES_NO),
        "why_how": float(question.kind.is_open),
        "many": float(question.many),
        "words": min(12, len(best.text.split())) / 8,
    }
