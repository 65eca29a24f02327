"""The page of tokens: list, make, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_mem.access.grants import PERMISSIONS
from rlm_mem.errors import AccessDenied, ConflictError, InputError
from rlm_mem.operations.problems import Refused, problem_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.visits import Visit


def tokens_page(visit: Visit, *, made: Any = None, problem: str = "", status: int = 200) -> Response:
    """The tokens whose scope is within that of the reader's token, and a form for a new one.

    Args:
        made: a new token, shown only this once.
    """
    given = {
        "name": "" if made else visit.text("name", 64),
        "namespaces": visit.text("namespaces", 2_000) or visit.memory.store.namespace,
        "permissions": visit.texts("permission") or ["read", "write"],
        "expires": visit.text("expires", 40) or "90d",
    }
    return visit.page(
        "tokens.html",
        status=status,
        tokens=list(reversed(visit.carry_out("listTokens").tokens)),
        permissions=[one for one in PERMISSIONS if visit.client.access.permits(one)],
        server_read_only=visit.state.read_only,
        made=made,
        problem=problem,
        given=given,
        live="",
    )


def change(visit: Visit) -> Response:
    """Make a token, which the answer shows, or revoke one."""
    what = visit.text("do", 20)
    if what == "revoke":
        visit.carry_out("revokeToken", {"token_id": visit.text("token_id", 20)})
        return visit.go("/tokens", "token-revoked")
    if what != "create":
        raise InputError("the form has no known action")
    lasts = visit.text("expires", 40).strip()
    try:
        made = visit.carry_out(
            "createToken",
            name=visit.text("name", 200),
            namespaces=visit.text("namespaces", 20_000).replace(",", " ").split(),
            permissions=visit.texts("permission"),
            expires=None if lasts == "never" else lasts or "90d",
        )
    except (InputError, ConflictError, AccessDenied, Refused) as error:
        return tokens_page(visit, problem=problem_of(error).sentence, status=400)
    return tokens_page(visit, made=made)
