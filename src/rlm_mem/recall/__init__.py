"""RECALL and REASON: the RLM loop over a store, its trajectories, their replay and cost, and the host-driven form.

``loop`` asks the model and runs its programs (``prompts``, ``programs``, ``model_calls``); ``running`` combines
session, budget and trajectory into a run, from which ``recall`` and ``reason`` make their results. Nothing here
writes chunks. Programs run in ``sandbox``; the models that write them are in ``models``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.recall.costing import CostLine, costs
    from rlm_mem.recall.host_session import Execution, RecallSession, recall_session
    from rlm_mem.recall.outcome import OUTCOMES, OutcomeWord
    from rlm_mem.recall.reason import ReasoningResult, ReasoningStep, ReasonOperation
    from rlm_mem.recall.recall import RecallOperation, RecallResult
    from rlm_mem.recall.repl_session import REPLSession
    from rlm_mem.recall.replaying import Replay, ReplayStep, replay
    from rlm_mem.recall.running import check_query, limits_from
    from rlm_mem.recall.trajectory import (
        Outcome,
        SubCall,
        Trajectory,
        TrajectoryInfo,
        list_trajectories,
        load_trajectory,
        prune_trajectories,
        trajectories,
    )

__all__ = [
    "RecallOperation",
    "RecallResult",
    "ReasonOperation",
    "ReasoningResult",
    "ReasoningStep",
    "REPLSession",
    "RecallSession",
    "Execution",
    "recall_session",
    "Trajectory",
    "TrajectoryInfo",
    "OUTCOMES",
    "Outcome",
    "OutcomeWord",
    "SubCall",
    "list_trajectories",
    "load_trajectory",
    "prune_trajectories",
    "trajectories",
    "Replay",
    "ReplayStep",
    "replay",
    "CostLine",
    "costs",
    "check_query",
    "limits_from",
]

__getattr__ = loader(
    __name__,
    {
        "costing": ("CostLine", "costs"),
        "host_session": ("Execution", "RecallSession", "recall_session"),
        "outcome": ("OUTCOMES", "OutcomeWord"),
        "reason": ("ReasoningResult", "ReasoningStep", "ReasonOperation"),
        "recall": ("RecallOperation", "RecallResult"),
        "repl_session": ("REPLSession",),
        "replaying": ("Replay", "ReplayStep", "replay"),
        "running": ("check_query", "limits_from"),
        "trajectory": (
            "Outcome",
            "SubCall",
            "Trajectory",
            "TrajectoryInfo",
            "list_trajectories",
            "load_trajectory",
            "prune_trajectories",
            "trajectories",
        ),
    },
)
