"""RLM-MEM: long-term memory for LLM agents, kept as plain files and queried by programs that a model writes."""

from __future__ import annotations

from rlm_mem import errors
from rlm_mem.errors import *  # noqa: F403 - the whole tree of errors, which everything but the help loads
from rlm_mem.lazy import loader

TYPE_CHECKING = False
"""Same as `typing.TYPE_CHECKING`; importing `typing` would more than double the time of `rlm-mem --help`."""

if TYPE_CHECKING:
    from rlm_mem.aio import (
        AsyncContinuum as AsyncContinuum,
        AsyncMemory as AsyncMemory,
        AsyncRecallSession as AsyncRecallSession,
        RunStream as RunStream,
    )
    from rlm_mem.chunk import Chunk as Chunk, ChunkLinks as ChunkLinks, ChunkMetadata as ChunkMetadata
    from rlm_mem.config import Config as Config, SecretAction as SecretAction
    from rlm_mem.ingest.remember import RememberResult as RememberResult
    from rlm_mem.interchange.report import FolderReport as FolderReport
    from rlm_mem.memory import Memory as Memory
    from rlm_mem.models.base import Limits as Limits, ModelSpending as ModelSpending, Usage as Usage
    from rlm_mem.recall.costing import CostLine as CostLine
    from rlm_mem.recall.host_session import Execution as Execution, RecallSession as RecallSession
    from rlm_mem.recall.outcome import OutcomeWord as OutcomeWord
    from rlm_mem.recall.reason import ReasoningResult as ReasoningResult, ReasoningStep as ReasoningStep
    from rlm_mem.recall.recall import RecallResult as RecallResult, Source as Source, Standing as Standing
    from rlm_mem.recall.repl_session import REPLSession as REPLSession
    from rlm_mem.recall.trajectory import (
        Outcome as Outcome,
        SubCall as SubCall,
        Trajectory as Trajectory,
        TrajectoryInfo as TrajectoryInfo,
    )
    from rlm_mem.results import Checkpoint as Checkpoint, Event as Event, Hud as Hud, Stats as Stats
    from rlm_mem.search.prompting import MemoryContext as MemoryContext
    from rlm_mem.search.ranking import Hit as Hit
    from rlm_mem.store.core.findings import Finding as Finding
    from rlm_mem.store.core.integrity import Repair as Repair
    from rlm_mem.store.core.lookup import Filters as Filters
    from rlm_mem.store.core.records import (
        ConversationInfo as ConversationInfo,
        LinkedChunk as LinkedChunk,
        Summary as Summary,
        SyncReport as SyncReport,
        Version as Version,
    )
    from rlm_mem.text.secrets import SecretsFound as SecretsFound

__version__ = "1.0.0"

__getattr__, __all__ = loader(
    __name__,
    {
        "memory": "Memory",
        "aio": "AsyncContinuum AsyncMemory AsyncRecallSession RunStream",
        "config": "Config SecretAction",
        "chunk": "Chunk ChunkLinks ChunkMetadata",
        "models.base": "Limits ModelSpending Usage",
        "search.api": "Hit",
        "search.prompting": "MemoryContext",
        "store.core.lookup": "Filters",
        "ingest.remember": "RememberResult",
        "interchange.report": "FolderReport",
        "text.secrets": "SecretsFound",
        "recall.recall": "RecallResult Source Standing",
        "recall.reason": "ReasoningResult ReasoningStep",
        "recall.outcome": "OutcomeWord",
        "recall.host_session": "RecallSession Execution",
        "recall.repl_session": "REPLSession",
        "recall.trajectory": "Trajectory TrajectoryInfo Outcome SubCall",
        "recall.costing": "CostLine",
        "store.core.records": "ConversationInfo LinkedChunk Summary Version SyncReport",
        "store.core.findings": "Finding",
        "store.core.integrity": "Repair",
        "results": "Checkpoint Event Hud Stats",
    },
)
__all__ += ["__version__", *errors.__all__]


def __dir__() -> list[str]:
    return sorted(__all__)
