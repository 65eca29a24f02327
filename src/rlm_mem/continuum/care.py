"""Problems of tiered memories as findings of the integrity check, and what repair does about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.errors import RlmMemError
from rlm_mem.store.core.brain_files import place_of
from rlm_mem.store.core.integrity import Finding, Repair

if TYPE_CHECKING:
    from rlm_mem.continuum.system import Continuum

__all__ = ["findings", "repairs"]

INTERRUPTED = "change-interrupted"


def findings(continuum: Continuum) -> list[Finding]:
    """Every problem of the tiered memories of the namespace; places are relative to the brain."""
    namespace = continuum.store.namespace
    return [
        Finding(problem.code, problem.message, file=place_of(namespace, problem.file))
        for problem in continuum.check()
    ]


def repairs(continuum: Continuum, *, dry_run: bool = True) -> list[Repair]:
    """Finish what was interrupted; what breaks a rule of a memory is for a person."""
    found = findings(continuum)
    error: str | None = None
    if not dry_run and any(one.code == INTERRUPTED for one in found):
        try:
            continuum.changes.recover()
        except RlmMemError as failed:
            error = str(failed)
    return [
        Repair(
            one,
            one.remedy,
            done=one.code == INTERRUPTED and not dry_run and error is None,
            manual=one.code != INTERRUPTED,
            error=error if one.code == INTERRUPTED else None,
        )
        for one in found
    ]
