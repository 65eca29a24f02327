"""Every operation, in the order in which the document shows them: the one place where a group is registered."""

from __future__ import annotations

from rlm_mem.operations import (
    asking,
    batches,
    chunks,
    links,
    moving,
    personas,
    records,
    reviews,
    server,
    sessions,
    tiers,
)
from rlm_mem.operations.operation import Operation

__all__ = ["OPERATIONS", "ROUTES"]

OPERATIONS: tuple[Operation, ...] = (
    *server.OPERATIONS,
    *chunks.OPERATIONS,
    *links.OPERATIONS,
    *batches.OPERATIONS,
    *asking.OPERATIONS,
    *sessions.OPERATIONS,
    *tiers.OPERATIONS,
    *reviews.OPERATIONS,
    *personas.OPERATIONS,
    *records.OPERATIONS,
    *moving.OPERATIONS,
)

#: Those that HTTP offers.
ROUTES: tuple[Operation, ...] = tuple(operation for operation in OPERATIONS if operation.method)
