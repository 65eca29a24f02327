"""The page of tokens: list, create and revoke tokens."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from rlm_mem.access.grants import PERMISSIONS
from rlm_mem.dashboard.requests import PageRequest
from rlm_mem.errors import AccessDenied, ConflictError, InputError
from rlm_mem.operations.problems import Refused, problem_of


def tokens_page(request: PageRequest, *, made: Any = None, problem: str = "") -> Response:
    """Tokens whose scope is within that of the reader's token, and a form for a new one.

    Args:
        made: a token that was just created; it is shown only once.
    """
    given = {
        "name": "" if made else request.text("name", 64),
        "namespaces": request.text("namespaces", 2_000) or request.memory.store.namespace,
        "permissions": request.texts("permission") or ["read", "write"],
        "expires": request.text("expires", 40) or "90d",
    }
    return request.page(
        "tokens.html",
        status=400 if problem else 200,
        tokens=list(reversed(request.carry_out("listTokens").tokens)),
        permissions=[one for one in PERMISSIONS if request.client.access.permits(one)],
        server_read_only=request.state.read_only,
        made=made,
        problem=problem,
        given=given,
        live="",
    )


def change(request: PageRequest) -> Response:
    """Create a token, which the response shows, or revoke one."""
    if request.action("create", "revoke") == "revoke":
        request.carry_out("revokeToken", {"token_id": request.text("token_id", 20)})
        return request.go("/tokens", "token-revoked")
    try:
        made = request.carry_out(
            "createToken",
            name=request.text("name", 200),
            namespaces=request.text("namespaces", 20_000).replace(",", " ").split(),
            permissions=request.texts("permission"),
            expires=request.text("expires", 40).strip(),
        )
    except (InputError, ConflictError, AccessDenied, Refused) as error:
        return tokens_page(request, problem=problem_of(error).sentence)
    return tokens_page(request, made=made)
