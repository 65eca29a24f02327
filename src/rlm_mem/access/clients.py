"""The client of an ASGI request, as the guard of the server has found it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from rlm_mem.access.grants import Caller

__all__ = ["NEEDED", "client_of", "set_client"]

_KEY = "rlm_mem.client"
#: Where the permission stands that a refused request would have needed.
NEEDED = "rlm_mem.needed"


def set_client(scope: MutableMapping[str, Any], client: Caller) -> None:
    """Say who sent a request; the guard alone does."""
    scope[_KEY] = client


def client_of(scope: Mapping[str, Any]) -> Caller:
    """Who sent a request; nobody, who may do nothing, where no guard has looked."""
    found = scope.get(_KEY)
    return found if isinstance(found, Caller) else Caller()
