"""Every operation, in the order in which the document shows them: the one place where a group is registered."""

from __future__ import annotations

from rlm_mem.operations import (
    about,
    asking,
    batches,
    care,
    chunks,
    links,
    moving,
    personas,
    records,
    reviews,
    sessions,
    tier_care,
    tiers,
)
from rlm_mem.operations.operation import Operation

__all__ = ["OPERATIONS", "ROUTES"]

OPERATIONS: tuple[Operation, ...] = (
    *about.OPERATIONS,
    *chunks.OPERATIONS,
    *links.OPERATIONS,
    *batches.OPERATIONS,
    *asking.OPERATIONS,
    *sessions.OPERATIONS,
    *tiers.OPERATIONS,
    *tier_care.OPERATIONS,
    *reviews.OPERATIONS,
    *personas.OPERATIONS,
    *records.OPERATIONS,
    *care.OPERATIONS,
    *moving.OPERATIONS,
)

#: Those that HTTP offers.
ROUTES: tuple[Operation, ...] = tuple(operation for operation in OPERATIONS if operation.method)
