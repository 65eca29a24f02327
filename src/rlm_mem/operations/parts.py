"""The parts of addresses that vary, with their types; one name means the same in every address."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from rlm_mem.operations.types import CaseId, ChunkId, Handle, LinkType, RunId, TrajectoryId

__all__ = ["PARTS"]

PARTS: dict[str, Any] = {
    "chunk_id": ChunkId,
    "target_id": ChunkId,
    "link_type": LinkType,
    "handle": Handle,
    "run_id": RunId,
    "trajectory_id": TrajectoryId,
    "case_id": CaseId,
    "transition_id": Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$(?!\n)", description="Id of a transition.")
    ],
    "slider": Annotated[
        str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$(?!\n)", description="Name of a slider.")
    ],
}
