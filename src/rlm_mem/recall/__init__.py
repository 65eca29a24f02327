"""RECALL and REASON: the RLM loop over a store, its trajectories, their replay and cost, and the host-driven form.

``loop`` asks the model and runs its programs (``prompts``, ``programs``, ``model_calls``); ``running`` combines
session, budget and trajectory into a run, from which ``recall`` and ``reason`` make their results. Nothing here
writes chunks. Programs run in ``sandbox``; the models that write them are in ``models``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.recall.costing import CostLine as CostLine, costs as costs
    from rlm_mem.recall.host_session import (
        Execution as Execution,
        RecallSession as RecallSession,
        recall_session as recall_session,
    )
    from rlm_mem.recall.outcome import OUTCOMES as OUTCOMES, OutcomeWord as OutcomeWord
    from rlm_mem.recall.reason import (
        ReasoningResult as ReasoningResult,
        ReasoningStep as ReasoningStep,
        ReasonOperation as ReasonOperation,
    )
    from rlm_mem.recall.recall import RecallOperation as RecallOperation, RecallResult as RecallResult
    from rlm_mem.recall.repl_session import REPLSession as REPLSession
    from rlm_mem.recall.replaying import Replay as Replay, ReplayStep as ReplayStep, replay as replay
    from rlm_mem.recall.running import check_query as check_query, limits_from as limits_from
    from rlm_mem.recall.shown_runs import (
        list_trajectories as list_trajectories,
        shown_trajectory as shown_trajectory,
    )
    from rlm_mem.recall.trajectory import (
        Outcome as Outcome,
        SubCall as SubCall,
        Trajectory as Trajectory,
        TrajectoryInfo as TrajectoryInfo,
        load_trajectory as load_trajectory,
        prune_trajectories as prune_trajectories,
        trajectories as trajectories,
    )

__getattr__, __all__ = loader(
    __name__,
    {
        "costing": "CostLine costs",
        "host_session": "Execution RecallSession recall_session",
        "outcome": "OUTCOMES OutcomeWord",
        "reason": "ReasoningResult ReasoningStep ReasonOperation",
        "recall": "RecallOperation RecallResult",
        "repl_session": "REPLSession",
        "replaying": "Replay ReplayStep replay",
        "running": "check_query limits_from",
        "shown_runs": "list_trajectories shown_trajectory",
        "trajectory": "Outcome SubCall Trajectory TrajectoryInfo load_trajectory prune_trajectories trajectories",
    },
)
