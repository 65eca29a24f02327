"""Every operation, in the order of the OpenAPI document; new groups are registered here."""

from __future__ import annotations

from rlm_mem.operations import (
    archive,
    asking,
    batches,
    chunks,
    erasing,
    links,
    moving,
    personas,
    receipts,
    records,
    remembering,
    reviews,
    server,
    sessions,
    tiers,
    tokens,
)
from rlm_mem.operations.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *server.OPERATIONS,
    *remembering.OPERATIONS,
    *chunks.OPERATIONS,
    *archive.OPERATIONS,
    *links.OPERATIONS,
    *batches.OPERATIONS,
    *asking.OPERATIONS,
    *sessions.OPERATIONS,
    *tiers.OPERATIONS,
    *reviews.OPERATIONS,
    *personas.OPERATIONS,
    *records.OPERATIONS,
    *receipts.OPERATIONS,
    *moving.OPERATIONS,
    *erasing.OPERATIONS,
    *tokens.OPERATIONS,
)

#: The operations that HTTP offers.
ROUTES: tuple[Operation, ...] = tuple(operation for operation in OPERATIONS if operation.method)

_BY_NAME = {operation.name: operation for operation in OPERATIONS}


def operation_named(name: str) -> Operation:
    """Return the operation with this name; raises KeyError if there is none."""
    return _BY_NAME[name]
