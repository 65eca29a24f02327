"""Every operation, in the order of the OpenAPI document; new groups are registered here."""

from __future__ import annotations

from importlib import import_module

from rlm_mem.operations.operation import Operation

_GROUPS = (
    "server remembering chunks archive links batches asking sessions tiers reviews personas records receipts moving "
    "erasing tokens"
)

OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for group in _GROUPS.split()
    for operation in import_module(f"rlm_mem.operations.{group}").OPERATIONS
)

#: The operations that HTTP offers.
ROUTES: tuple[Operation, ...] = tuple(operation for operation in OPERATIONS if operation.method)

_BY_NAME = {operation.name: operation for operation in OPERATIONS}


def operation_named(name: str) -> Operation:
    """Return the operation with this name; raises KeyError if there is none."""
    return _BY_NAME[name]
