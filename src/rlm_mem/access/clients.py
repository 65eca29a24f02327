"""The client of an ASGI request, as identified by the guard of the server."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from rlm_mem.access.grants import Caller

_KEY = "rlm_mem.client"
#: Key of the ASGI scope for the permission that a refused request lacked.
NEEDED = "rlm_mem.needed"


def set_client(scope: MutableMapping[str, Any], client: Caller) -> None:
    """Record who sent a request; only the guard calls this."""
    scope[_KEY] = client


def client_of(scope: Mapping[str, Any]) -> Caller:
    """Who sent a request; without a guard, a caller that may do nothing."""
    found = scope.get(_KEY)
    return found if isinstance(found, Caller) else Caller()
