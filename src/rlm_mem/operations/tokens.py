"""The named tokens of a server: list, create, revoke."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rlm_mem.access.grants import Access, Permission, check_patterns, check_permissions
from rlm_mem.access.tokens import TokenFile, TokenRecord
from rlm_mem.errors import AccessDenied, NotFoundError
from rlm_mem.operations.operation import Context, Operation
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import Request, about, matching

_GROUP = "tokens"


class TokenOut(Struct):
    """The record of a token, without its secret."""

    id: str
    name: str
    state: str
    namespaces: list[str]
    permissions: list[Permission]
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    rate: float | None


class TokenList(Struct):
    """The tokens whose scope is within that of the caller's token, including expired and revoked ones."""

    tokens: list[TokenOut]


class NewToken(Request, kw_only=True):
    """A token to be created."""

    name: Annotated[str, matching("[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", min_length=1, max_length=64)]
    namespaces: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=202)]],
        about("Namespaces; team/* for all below team, * for all.", max_length=100),
    ]
    permissions: Annotated[list[Permission], Meta(min_length=1, max_length=5)] = field(
        default_factory=lambda: ["read", "write"]
    )
    expires: Annotated[str, about("A time, or a lifetime such as 90d.", max_length=40)] | None = "90d"
    rate: Annotated[float, about("Requests per second.", gt=0, le=100_000)] | None = None


class MadeToken(Struct):
    """A new token, which only this answer contains."""

    token: str
    about: TokenOut


def _file(context: Context) -> TokenFile:
    if context.opened.tokens is None:
        raise NotFoundError(
            "this server has no named tokens", hint="start it with rlm-mem serve --tokens FILE"
        )
    return context.opened.tokens


def may_see(access: Access, event: Mapping[str, Any]) -> bool:
    """Whether a client may see a line of the audit log; those about tokens name namespaces that it may not know of."""
    if not str(event.get("op", "")).startswith("token_"):
        return True
    return access.permits("admin") and access.includes(
        event.get("namespaces", ()), event.get("permissions", ())
    )


def _out(file: TokenFile, one: TokenRecord) -> TokenOut:
    return fill(TokenOut, one, state=file.state_of(one))


def _list(context: Context, _: object) -> TokenList:
    file, access = _file(context), context.opened.access
    return TokenList(
        [_out(file, one) for one in file.records() if access.includes(one.namespaces, one.permissions)]
    )


def _create(context: Context, request: NewToken) -> MadeToken:
    file, access = _file(context), context.opened.access
    wanted, reached = check_permissions(request.permissions), check_patterns(request.namespaces)
    if not access.includes(reached, wanted):
        raise AccessDenied(
            f"the token {access.name!r:.80} cannot create a token with a wider scope than its own",
            hint="name namespaces within its own",
            needed="admin",
        )
    # A form cannot give null: an empty field is omitted.
    lasts = None if request.expires == "never" else request.expires
    record, token = file.create(
        request.name, reached, wanted, lasts=lasts, rate=request.rate, by=access.actor
    )
    _log(context, "token_create", record)
    return MadeToken(token, _out(file, record))


def _revoke(context: Context, _: object) -> TokenOut:
    file, access = _file(context), context.opened.access
    record = file.revoke(context.path["token_id"], by=access.actor, within=access)
    _log(context, "token_revoke", record)
    return _out(file, record)


def _log(context: Context, op: str, record: TokenRecord) -> None:
    context.memory.store.record_event(
        op, token=record.id, name=record.name, namespaces=list(record.namespaces),
        permissions=list(record.permissions),
    )  # fmt: skip


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/tokens", "listTokens", "The named tokens of this server.", _GROUP, permission="admin", run=_list,
    ),
    Operation(
        "POST", "/tokens", "createToken", "Create a token; only this answer contains it.", _GROUP, permission="admin",
        run=_create, status=201, writes=True,
    ),
    Operation(
        "DELETE", "/tokens/{token_id}", "revokeToken", "Revoke a token by its id.", _GROUP, permission="admin",
        run=_revoke, writes=True,
    ),
)  # fmt: skip
