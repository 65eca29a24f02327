"""RLM-MEM: long-term memory for LLM agents, kept as plain files and queried by programs that a model writes."""

from __future__ import annotations

from rlm_mem import errors
from rlm_mem.errors import *  # noqa: F403 - the whole tree of errors, which everything but the help loads
from rlm_mem.lazy import loader

TYPE_CHECKING = False
"""Same as `typing.TYPE_CHECKING`; importing `typing` would more than double the time of `rlm-mem --help`."""

if TYPE_CHECKING:
    from rlm_mem.aio import AsyncContinuum, AsyncMemory, AsyncRecallSession, RunStream
    from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata
    from rlm_mem.config import Config, SecretAction
    from rlm_mem.ingest.remember import RememberResult
    from rlm_mem.interchange.report import FolderReport
    from rlm_mem.memory import Memory
    from rlm_mem.models.base import Limits, ModelSpending, Usage
    from rlm_mem.recall.costing import CostLine
    from rlm_mem.recall.host_session import Execution, RecallSession
    from rlm_mem.recall.outcome import OutcomeWord
    from rlm_mem.recall.reason import ReasoningResult, ReasoningStep
    from rlm_mem.recall.recall import RecallResult, Source, Standing
    from rlm_mem.recall.repl_session import REPLSession
    from rlm_mem.recall.trajectory import Outcome, SubCall, Trajectory, TrajectoryInfo
    from rlm_mem.results import Checkpoint, Event, Hud, Stats
    from rlm_mem.search.prompting import MemoryContext
    from rlm_mem.search.ranking import Hit
    from rlm_mem.store.core.findings import Finding
    from rlm_mem.store.core.integrity import Repair
    from rlm_mem.store.core.lookup import Filters
    from rlm_mem.store.core.records import ConversationInfo, LinkedChunk, Summary, SyncReport, Version
    from rlm_mem.text.secrets import SecretsFound

__version__ = "1.0.0"

__all__ = [
    "Memory",
    "AsyncMemory",
    "Config",
    "SecretAction",
    "Chunk",
    "ChunkLinks",
    "ChunkMetadata",
    "Limits",
    "ModelSpending",
    "Usage",
    "Hit",
    "MemoryContext",
    "Filters",
    "RememberResult",
    "FolderReport",
    "SecretsFound",
    "RecallResult",
    "Source",
    "Standing",
    "ReasoningResult",
    "ReasoningStep",
    "OutcomeWord",
    "RecallSession",
    "AsyncRecallSession",
    "AsyncContinuum",
    "RunStream",
    "Execution",
    "REPLSession",
    "Trajectory",
    "TrajectoryInfo",
    "Outcome",
    "SubCall",
    "CostLine",
    "ConversationInfo",
    "LinkedChunk",
    "Summary",
    "Version",
    "SyncReport",
    "Finding",
    "Repair",
    "Checkpoint",
    "Event",
    "Hud",
    "Stats",
    "__version__",
]
__all__ += errors.__all__

__getattr__ = loader(
    __name__,
    {
        "memory": ("Memory",),
        "aio": ("AsyncContinuum", "AsyncMemory", "AsyncRecallSession", "RunStream"),
        "config": ("Config", "SecretAction"),
        "chunk": ("Chunk", "ChunkLinks", "ChunkMetadata"),
        "models.base": ("Limits", "ModelSpending", "Usage"),
        "search.api": ("Hit",),
        "search.prompting": ("MemoryContext",),
        "store.core.lookup": ("Filters",),
        "ingest.remember": ("RememberResult",),
        "interchange.report": ("FolderReport",),
        "text.secrets": ("SecretsFound",),
        "recall.recall": ("RecallResult", "Source", "Standing"),
        "recall.reason": ("ReasoningResult", "ReasoningStep"),
        "recall.outcome": ("OutcomeWord",),
        "recall.host_session": ("RecallSession", "Execution"),
        "recall.repl_session": ("REPLSession",),
        "recall.trajectory": ("Trajectory", "TrajectoryInfo", "Outcome", "SubCall"),
        "recall.costing": ("CostLine",),
        "store.core.records": ("ConversationInfo", "LinkedChunk", "Summary", "Version", "SyncReport"),
        "store.core.findings": ("Finding",),
        "store.core.integrity": ("Repair",),
        "results": ("Checkpoint", "Event", "Hud", "Stats"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
