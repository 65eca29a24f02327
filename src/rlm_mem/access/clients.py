"""Stores the client of an ASGI request, as identified by the guard of the server."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from rlm_mem.access.grants import Caller

_KEY = "rlm_mem.client"
#: Key of the ASGI scope for the permission that a refused request lacked.
NEEDED = "rlm_mem.needed"


def set_client(scope: MutableMapping[str, Any], client: Caller) -> None:
    """Set the client of a request; only called by the guard."""
    scope[_KEY] = client


def client_of(scope: Mapping[str, Any]) -> Caller:
    """The client of a request; without a guard, a client without permissions."""
    found = scope.get(_KEY)
    return found if isinstance(found, Caller) else Caller()
