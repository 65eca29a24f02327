"""One memory from several: their figures added up, their steps and conditions joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlm_mem.continuum.files import TieredMemory
from rlm_mem.continuum.rules import GAIN, LOSS, MAX_CONTEXTS, MAX_FAILURES
from rlm_mem.continuum.runs import ExecutionRecord, read_run

__all__ = ["joined_run", "merged_fields", "with_evidence"]

MAX_EVIDENCE = 50


def merged_fields(entries: Sequence[TieredMemory]) -> dict[str, Any]:
    """The frontmatter of what comes out of several memories; the first that went well gives what cannot be added.

    Confidence starts from the best of them; each further log that went well or badly counts like a use.
    """
    main = next((entry for entry in entries if entry.meta.successes), entries[0])
    metas = [entry.meta for entry in entries]
    uses = sum(meta.usage_count for meta in metas)
    good = sum(meta.successes for meta in metas)
    contexts: dict[str, list[int]] = {}
    home = next((key for meta in metas for key in meta.contexts), "")
    validated = 0
    for meta in metas:
        for key, (count, well) in meta.contexts.items():
            known = contexts.setdefault(key, [0, 0])
            known[0] += count
            known[1] += well
            # A log that went well elsewhere is a test on new data, like a use elsewhere.
            validated += well if key != home and meta is not metas[0] and not meta.validation_count else 0
    validated += sum(meta.validation_count for meta in metas)
    while len(contexts) > MAX_CONTEXTS:
        del contexts[min(list(contexts)[1:], key=lambda key: contexts[key][0])]
    confidence = _confidence(entries)
    failures = sorted(
        (one for meta in metas for one in meta.failures), key=lambda one: str(one.get("at", ""))
    )
    used = [meta.last_used or meta.created_at for meta in metas if meta.usage_count]
    projects = {key.partition("@")[0] for key, (_, well) in contexts.items() if well} - {""}
    return {
        **main.raw,
        "id": None,
        "confidence_score": confidence,
        "usage_count": uses,
        "success_count": good,
        "success_rate": round(good / uses, 6) if uses else None,
        "access_count": sum(meta.access_count for meta in metas),
        "created_at": min(meta.created_at or "" for meta in metas),
        "last_used": max((one for one in used if one), default=None),
        "pattern_confidence": confidence,
        "validation_count": validated,
        "cross_project_validated": len(projects) > 1,
        "contexts": contexts,
        "failures": failures[-MAX_FAILURES:],
        "sources": list(
            dict.fromkeys(
                source
                for entry in entries
                for source in (entry.meta.sources if _made(entry) else [entry.key])
            )
        )[-100:],
    }


def _made(entry: TieredMemory) -> bool:
    return entry.meta.tier != "high"


def _confidence(entries: Sequence[TieredMemory]) -> float:
    best = next((entry for entry in entries if _made(entry)), None) or max(
        entries, key=lambda entry: (bool(entry.meta.successes), entry.meta.confidence_score)
    )
    confidence = best.meta.confidence_score
    for entry in entries:
        if entry is not best and entry.meta.usage_count:
            confidence = (
                confidence + GAIN * (1 - confidence) if entry.meta.successes else confidence * (1 - LOSS)
            )
    return round(confidence, 6)


def joined_run(entries: Sequence[TieredMemory]) -> ExecutionRecord:
    """The latest run that went well, with the conditions of all, and a line of evidence for each."""
    runs = [read_run(entry.body) for entry in entries]
    good = [run for entry, run in zip(entries, runs, strict=True) if entry.meta.successes] or runs
    main = good[-1]
    notes = list(dict.fromkeys(run.notes for run in runs if run.notes))
    evidence = [
        f"{entry.meta.created_at}: {entry.meta.successes} of {entry.meta.usage_count} went well ({entry.key})"
        + "".join(f"; {failure.get('error')}" for failure in entry.meta.failures[-1:] if failure.get("error"))
        for entry in entries
    ]
    return ExecutionRecord(
        goal=main.goal,
        steps=main.steps,
        preconditions=_union(run.preconditions for run in good),
        postconditions=_union(run.postconditions for run in good),
        indicators=_union(run.indicators for run in good),
        evidence=(*main.evidence, *evidence)[-MAX_EVIDENCE:],
        notes="\n\n".join(notes[-5:]),
        sections=main.sections,
    )


def _union(lists: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def with_evidence(body: str, lines: Sequence[str]) -> str:
    """A body with further lines of evidence; everything else stays as it was written, the oldest lines go."""
    present = body.rstrip().splitlines()
    heading = next((at for at, line in enumerate(present) if line.strip().lower() == "## evidence"), None)
    if heading is None:
        present += ["", "## Evidence", ""]
        heading = len(present) - 2
    end = next((at for at in range(heading + 1, len(present)) if present[at].startswith("#")), len(present))
    section = [line for line in present[heading + 1 : end] if line.strip()]
    section = [*section, *(f"- {' '.join(line.split())}" for line in lines)][-MAX_EVIDENCE:]
    rest = ["", *present[end:]] if end < len(present) else []
    return "\n".join([*present[: heading + 1], "", *section, *rest]) + "\n"
