"""Queries of tiered memories: by tier, by goal across tiers, hints for a goal, and functions for programs.

Matching uses the lexical ranking of search over the mirrors, so a reworded goal finds its trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import field

from rlm_mem import search as searching
from rlm_mem.arguments import check_flag, check_mapping, check_words
from rlm_mem.chunk import Chunk, parse_time
from rlm_mem.chunk.types import shown
from rlm_mem.continuum.answers import Hint, MemoryHit, QueryKind
from rlm_mem.continuum.mirror import key_of
from rlm_mem.continuum.runs import read_run
from rlm_mem.continuum.schema import TIERS
from rlm_mem.errors import InvalidMemory, InvalidQuery
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.core.records import TIER_TAG, is_mirror, page, reliability, tier_of
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from rlm_mem.continuum.files import MemoryFiles, TieredMemory
    from rlm_mem.store.core.chunk_store import ChunkStore

DEFAULT_WEIGHTS: Mapping[str, float] = {
    name: tier.weight for name, tier in TIERS.items() if tier.weight is not None
}
"""Query weights by tier; ultra-low has none, since it is always included (docs/spec/decisions.md, 31)."""

_CANDIDATES = 40
_MIN_PER_TIER = 5  # below this, a tier gets a search of its own
_CACHE_SIZE = 20_000
_MIN_COVERAGE = 1 / 3
"""A memory matches a goal when it has at least this share of the goal's content words."""


class QueryResult(FrozenRecord, frozen=True):
    """Hits, best first, and the ultra-low memories that are always included."""

    hits: list[MemoryHit] = field(default_factory=list)
    core: list[MemoryHit] = field(default_factory=list)


class QueryMemoryTool:
    """Queries tiered memories through the store's one index.

    Args:
        store: the chunk store with their mirrors.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        self._read: dict[str, tuple[int, Chunk]] = {}
        self._terms: dict[str, set[str]] = {}

    # --- the three frequency queries ---------------------------------------------------------------------------------

    def recent(self, goal: str, *, hours: float = 24, limit: int = 10) -> list[MemoryHit]:
        """High-frequency query: memories related to a goal, created within the last ``hours`` hours."""
        if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 <= hours <= _MAX_HOURS:
            raise InvalidQuery(f"hours must be a number from 0 to {_MAX_HOURS:,}, not {shown(hours)}")
        since = self._store.clock() - timedelta(hours=hours)
        hits = self._ranked(goal, {"high": 1.0})
        return [hit for hit in hits if parse_time(hit.created_at) >= since][: page(limit, "limit")]

    def proven(self, goal: str, *, min_confidence: float = 0.85, limit: int = 10) -> list[MemoryHit]:
        """Mid-frequency query: traces for a goal, of at least ``min_confidence``, the best success rate first."""
        hits = [hit for hit in self._ranked(goal, {"mid": 1.0}) if hit.confidence >= min_confidence]
        return sorted(hits, key=lambda hit: (-(hit.success_rate or 0.0), -hit.score, hit.key))[
            : page(limit, "limit")
        ]

    def stable(self, task_type: str | None = None, *, goal: str = "", limit: int = 10) -> list[MemoryHit]:
        """Low-frequency query: patterns of a task type that are validated across projects."""
        tags = [f"{TIER_TAG}low", "cross-project", *([f"task:{task_type}"] if task_type else [])]
        if check_words(goal, "goal").strip():
            hits = self._ranked(goal, {"low": 1.0}, tags=tags)
        else:
            hits = self._hits(self._store.list_chunks(tags=tags), 0.0)
            hits.sort(key=lambda hit: (-(hit.success_rate or 0.0), -hit.confidence, hit.key))
        return hits[: page(limit, "limit")]

    def of_kind(
        self,
        kind: QueryKind,
        goal: str,
        *,
        tier_weights: Mapping[str, float] | None = None,
        min_confidence: float | None = None,
        task_type: str | None = None,
        include_core: bool = True,
        limit: int = 10,
    ) -> QueryResult:
        """The query of a kind, with those of the arguments that apply to it; None: the default of the query."""
        if kind == "recent":
            return QueryResult(self.recent(goal, limit=limit))
        if kind == "stable":
            return QueryResult(self.stable(task_type, goal=goal, limit=limit))
        least = {} if min_confidence is None else {"min_confidence": min_confidence}
        if kind == "proven":
            return QueryResult(self.proven(goal, limit=limit, **least))
        return self.query(
            goal, tier_weights=tier_weights, task_type=task_type, include_core=include_core, limit=limit, **least
        )  # fmt: skip

    # --- the multi-tier query ----------------------------------------------------------------------------------------

    def query(
        self,
        goal: str,
        *,
        tier_weights: Mapping[str, float] | None = None,
        min_confidence: float = 0.0,
        task_type: str | None = None,
        include_core: bool = True,
        limit: int = 10,
    ) -> QueryResult:
        """Search across tiers with priority weights.

        Args:
            goal: the task, in free text.
            tier_weights: weight by tier, normalised to a sum of 1; None: high .1, mid .6, low .3. A weight for
                ultra-low ranks the core with the rest.
            min_confidence: 0-1. ``task_type``: only memories of this type.
            include_core: also return all ultra-low memories.

        Raises:
            InvalidQuery: no goal, an unknown tier, a weight that is negative, or weights that are all zero.
        """
        check_flag(include_core, "include_core")
        weights = _normalise_weights(DEFAULT_WEIGHTS if tier_weights is None else tier_weights)
        if not isinstance(goal, str) or not goal.strip():
            raise InvalidQuery("a query needs a goal")
        tags = [f"task:{check_words(task_type, 'task_type')}"] if task_type is not None else []
        hits = [hit for hit in self._ranked(goal, weights, tags=tags) if hit.confidence >= min_confidence]
        return QueryResult(hits[: page(limit, "limit")], self.core() if include_core else [])

    def core(self) -> list[MemoryHit]:
        """The ultra-low memories: identity, profiles, the approved library."""
        return self._hits(self._store.list_chunks(tags=[f"{TIER_TAG}ultra-low"]), 1.0)

    def memories(self, tier: str | None = None, limit: int = 100) -> list[MemoryHit]:
        """Memories of one tier, or of all, the most reliable first; raises InvalidQuery for an unknown tier."""
        page(limit, "limit")
        if tier is not None and check_words(tier, "tier") not in TIERS:
            raise InvalidQuery(f"there is no tier {tier!r:.40}: use {', '.join(TIERS)}")
        tags = [f"{TIER_TAG}{name}" for name in ([tier] if tier else TIERS)]
        newest = list(filter(is_mirror, self._store.list_chunks(any_tags=tags, newest_first=True)))[:2_000]
        known = [one for one in self._store.summaries(newest) if not one.superseded_by]
        best = sorted(known, key=lambda one: -one.confidence)[: max(limit, 1) * 2]
        hits = self._hits([one.id for one in best], 0.0)
        return sorted(hits, key=lambda hit: (-hit.parts["reliability"], hit.key))[:limit]

    def _hits(self, ids: list[str], relevance: float) -> list[MemoryHit]:
        """The current memories with these ids, which no search has ranked."""
        chunks = self._store.get_many(list(filter(is_mirror, ids)), track=False).values()
        return [_hit(chunk, relevance, {"relevance": relevance}) for chunk in chunks if _is_current(chunk)]

    # --- ranking -----------------------------------------------------------------------------------------------------

    def _ranked(
        self, goal: str, weights: Mapping[str, float], tags: list[str] | None = None
    ) -> list[MemoryHit]:
        """Hits ranked by search relevance (1 for the best of all tiers) × tier weight × reliability."""
        scores = self._search_scores(
            goal, [name for name, weight in weights.items() if weight > 0], tags or []
        )
        chunks = self._chunks(list(scores))
        terms = set(get_analyser(self._store.config.search.language).terms(goal))
        best = max(scores.values(), default=0.0)
        hits = []
        for chunk in chunks:
            coverage = self._coverage(terms, chunk)
            if not _is_current(chunk) or coverage < _MIN_COVERAGE:
                continue
            relevance = max(0.0, scores[chunk.id] / best) if best > 0 else coverage
            weight = weights[tier_of(chunk) or "high"]
            hits.append(
                _hit(chunk, weight, {"relevance": round(relevance, 4), "coverage": round(coverage, 4)})
            )
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))

    def _search_scores(self, goal: str, tiers: list[str], tags: list[str]) -> dict[str, float]:
        """Search scores by chunk id, from one search over all tiers and one more for each tier with too few results."""

        def search(names: list[str]) -> dict[str, float]:
            criteria = Filters(
                tags_all=tuple(sorted(tags)), tags_any=tuple(f"{TIER_TAG}{name}" for name in names)
            )
            limit = _CANDIDATES
            while True:  # other chunks with such a tag take the place of no memory
                found = dict(searching.ranked_ids(self._store, goal, limit=limit, filters=criteria))
                mirrors = {one: score for one, score in found.items() if is_mirror(one)}
                if len(mirrors) >= _CANDIDATES or len(found) < limit:
                    return mirrors
                limit *= 4

        scores = search(tiers)
        if len(scores) < _CANDIDATES or len(tiers) == 1:
            return scores
        reached = Counter(tier_of(one) for one in self._store.summaries(list(scores)))
        for tier in tiers:
            if reached[tier] < _MIN_PER_TIER:
                scores |= search([tier])
        return scores

    def _chunks(self, ids: list[str]) -> list[Chunk]:
        """Mirrors with these ids, read again only if their revision has changed."""
        revisions = {one.id: one.revision for one in self._store.summaries(ids)}
        stale = [one for one, revision in revisions.items() if self._read.get(one, (0, None))[0] != revision]
        if len(self._read) + len(stale) > _CACHE_SIZE:
            self._read.clear()
            stale = list(revisions)
        for chunk in self._store.get_many(stale, track=False).values():
            self._read[chunk.id] = (chunk.revision, chunk)
        known = ((one, self._read.get(one)) for one in ids)  # another thread may clear it
        return [read[1] for one, read in known if read is not None and one in revisions]

    def _coverage(self, terms: set[str], chunk: Chunk) -> float:
        """Share of the goal's content words that occur in the memory's title or goal."""
        if not terms:
            return 1.0
        extra = chunk.metadata.extra
        words = f"{extra.get('goal_signature') or ''}\0{extra.get('title') or ''}"
        memory_terms = self._terms.get(words)
        if memory_terms is None:
            signature, _, title = words.partition("\0")
            memory_terms = {
                *signature.split("_"),
                *get_analyser(self._store.config.search.language).terms(title),
            }
            if len(self._terms) > _CACHE_SIZE:
                self._terms.clear()
            self._terms[words] = memory_terms
        return len(terms & memory_terms) / len(terms)


def _is_current(chunk: Chunk) -> bool:
    """Whether a chunk mirrors a memory that is neither superseded nor just a card of the library."""
    about = chunk.metadata
    return not (about.superseded_by or about.extra.get("component_of")) and key_of(chunk) is not None


def _hit(chunk: Chunk, weight: float, parts: dict[str, float]) -> MemoryHit:
    extra: Mapping[str, Any] = chunk.metadata.extra
    place = chunk.metadata.provenance
    rate = extra.get("success_rate")
    confidence = chunk.metadata.confidence
    reliability_score = reliability(confidence, rate, extra.get("volatility"))
    score = parts["relevance"] * weight * reliability_score
    return MemoryHit(
        chunk_id=chunk.id,
        file=str(place.get("file") or ""),
        entry=place.get("entry"),
        tier=tier_of(chunk) or "high",
        kind=str(extra.get("kind") or ""),
        title=str(extra.get("title") or ""),
        score=round(score, 6),
        confidence=confidence,
        success_rate=rate,
        usage_count=int(extra.get("usage_count") or 0),
        task_type=extra.get("task_type"),
        created_at=chunk.metadata.occurred_at or chunk.metadata.created_at,
        parts={
            **parts,
            "tier_weight": round(weight, 4),
            "reliability": reliability_score,
            "confidence": confidence,
            **({"success_rate": rate} if rate is not None else {}),
        },
    )


def _normalise_weights(weights: Mapping[str, float]) -> dict[str, float]:
    for name, weight in check_mapping(weights, "tier_weights").items():
        if name not in TIERS:
            raise InvalidQuery(f"there is no tier {name!r:.40}: use {', '.join(TIERS)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e9:
            raise InvalidQuery(f"the weight of {name} is {weight!r:.40}: it must be a number from 0 up")
    total = sum(weights.values())
    if total <= 0:
        raise InvalidQuery("all tier weights are zero", hint="leave them out for high .1, mid .6, low .3")
    return {name: weight / total for name, weight in weights.items()}


_MAX_LIMIT = 50
_MAX_HOURS = 1_000_000


def program_functions(store: ChunkStore) -> dict[str, Callable[..., Any]]:
    """The functions ``search_traces`` and ``memories`` for programs, by name."""
    queries = QueryMemoryTool(store)

    def search_traces(goal: str, limit: int = 10) -> list[dict[str, Any]]:
        """Memories of proven work for a goal, best first, with tier, reliability and figures."""
        if not isinstance(goal, str) or not goal.strip():
            return []
        weights = {"high": 0.1, "mid": 0.6, "low": 0.3, "ultra-low": 0.3}
        result = queries.query(
            goal[:2_000], tier_weights=weights, include_core=False, limit=_clamp_limit(limit)
        )
        return [_as_record(hit) for hit in result.hits]

    def memories(tier: str | None = None, limit: int = 20) -> list[dict[str, Any]]:
        """Memories of a tier (high, mid, low, ultra-low), the most reliable first."""
        return [_as_record(hit) for hit in queries.memories(tier, _clamp_limit(limit))]

    return {"search_traces": search_traces, "memories": memories}


def _clamp_limit(limit: Any) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit != limit:
        raise InvalidQuery(f"limit must be a number from 1 to {_MAX_LIMIT}")
    return int(max(1, min(_MAX_LIMIT, limit)))


def _as_record(hit: MemoryHit) -> dict[str, Any]:
    return {
        "chunk_id": hit.chunk_id,
        "id": hit.chunk_id,
        "title": hit.title,
        "tier": hit.tier,
        "kind": hit.kind,
        "file": hit.key,
        "score": hit.score,
        "reliability": hit.parts["reliability"],
        "confidence": hit.confidence,
        "success_rate": hit.success_rate,
        "usage_count": hit.usage_count,
        "created_at": hit.created_at,
    }


_RISKY, _PROVEN, _USES = 0.85, 0.9, 3


def hints(queries: QueryMemoryTool, files: MemoryFiles, goal: str, *, limit: int = 5) -> list[Hint]:
    """Warnings and success patterns from the memories that match a goal, warnings first."""
    result = queries.query(
        goal, tier_weights={"high": 0.2, "mid": 0.5, "low": 0.3}, include_core=False, limit=limit
    )
    risks: list[Hint] = []
    successes: list[Hint] = []
    for hit in result.hits:
        try:
            entry = files.get(hit.key)
        except InvalidMemory:  # edited by hand; a check reports it
            continue
        if entry is None:
            continue
        risks += _risks(entry)
        if entry.meta.usage_count >= _USES and (entry.meta.rate or 0.0) >= _PROVEN:
            successes.append(_success(entry))
    return [*risks[:limit], *successes[:limit]]


def _figures(entry: TieredMemory) -> str:
    return f"{entry.key} ({entry.meta.successes} of {entry.meta.usage_count} uses went well)"


def _risks(entry: TieredMemory) -> Iterator[Hint]:
    run = read_run(entry.body)
    failures = Counter(
        (failure.get("step"), str(failure.get("error") or "").strip()) for failure in entry.meta.failures
    )
    for (number, error), times in failures.most_common(3):
        step = next((step for step in run.steps if step.number == number), None)
        where = f"step {number} ({step.tool})" if step else "it"
        cure = f"; on error: {step.on_error}" if step and step.on_error else ""
        again = f" {times} times" if times > 1 else ""
        what = f"{where} failed{again}: {error or 'no reason was recorded'}{cure}"
        yield Hint("risk", what, (_figures(entry),))
    for context, (uses, good) in entry.meta.contexts.items():
        if uses >= _USES and good / uses < _RISKY:
            what = f"went well in only {good} of {uses} uses in {context}"
            yield Hint("risk", what, (_figures(entry),))


def _success(entry: TieredMemory) -> Hint:
    run = read_run(entry.body)
    order = " → ".join(run.tools) if run.steps else entry.title
    success_signs = f"; success shows as: {'; '.join(run.indicators[:2])}" if run.indicators else ""
    return Hint("success", f"{order}{success_signs}", (_figures(entry),))
