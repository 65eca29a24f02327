"""Permissions and namespaces of a client of a server, and the client of a request as the guard identified it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from rlm_mem.chunk import check_namespace
from rlm_mem.errors import AccessDenied, InputError, NamespaceError

Permission = Literal["read", "write", "review", "admin", "metrics"]

#: The permissions that each permission includes.
PERMISSIONS: Mapping[Permission, frozenset[Permission]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write"}),
    "review": frozenset({"read", "review"}),
    "admin": frozenset(get_args(Permission)),
    "metrics": frozenset({"metrics"}),
}

_MAX_PATTERNS = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_MAX_NAME = 40
"""Characters of a client's name in the audit log."""
_LONGEST_ID = 200


@dataclass(frozen=True)
class Access:
    """The access of a client.

    Attributes:
        name: for the audit log, metrics and limits.
        namespaces: names or patterns; ``team/*`` is all below ``team``, ``*`` is all.
        permissions: granted permissions, and those that they include.
        rate: sustained requests per second; None: the server's limit.
        owner: whether it is the owner of the server, by the server's own token or over stdin and stdout.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    permissions: frozenset[Permission] = frozenset()
    rate: float | None = None
    owner: bool = False

    @property
    def actor(self) -> str:
        """The actor for the audit log."""
        return self.name if self.owner else f"token:{self.name}"

    def permits(self, needed: Permission) -> bool:
        """Whether a permission is granted."""
        return needed in self.permissions

    def check(self, needed: Permission) -> None:
        """Raise an error unless a permission is granted.

        Raises:
            AccessDenied: the token lacks the permission.
        """
        if not self.permits(needed):
            raise AccessDenied(
                f"the token {self.name!r:.80} has no permission to {_VERBS[needed]}",
                hint=f"use a token with the permission {needed}",
                needed=needed,
            )

    def covers(self, namespace: str) -> bool:
        """Whether one of its patterns covers the namespace."""
        return any(_covers(pattern, namespace) for pattern in self.namespaces)

    def includes(self, namespaces: Iterable[str], permissions: Iterable[Permission] = ()) -> bool:
        """Whether all of these patterns and permissions are within this access."""
        return self.permissions.issuperset(permissions) and all(map(self.covers, namespaces))


_VERBS: Mapping[Permission, str] = {
    "read": "read",
    "write": "write",
    "review": "decide reviews",
    "admin": "administer the server",
    "metrics": "read the metrics",
}

#: Access of the owner of the server.
OWNER = Access("server", ("*",), PERMISSIONS["admin"], owner=True)
#: Access of an unauthenticated client.
NOBODY = Access("nobody")


@dataclass(frozen=True)
class Caller:
    """The client of a request.

    Attributes:
        access: its permissions and namespaces.
        namespace: the requested namespace; None: the default.
        browser: whether the request came with the cookie of a login.
        choose: sets the namespace of further requests; None if each request names its own.
        session: distinguishes agents that share a token, in the audit log and for undo; empty: unknown.
    """

    access: Access = NOBODY
    namespace: str | None = None
    browser: bool = False
    choose: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    session: str = ""

    def namespace_of(self, default: str, served: Sequence[str] = ("*",)) -> str:
        """The namespace of its requests.

        Args:
            default: namespace of the server; used if it is permitted, else the first of the token.
            served: patterns of the namespaces that the server offers.

        Raises:
            NamespaceError: it is not permitted. InputError: the client must name one.
        """
        allowed = self.access.covers
        server = Access("", tuple(served)).covers
        if self.namespace is not None:
            requested = check_namespace(self.namespace)
            if allowed(requested) and server(requested):
                return requested
            raise NamespaceError(
                f"the token {self.access.name!r:.80} has no access to the namespace {requested!r}",
                hint="name a namespace of the token, or none",
            )
        for name in (default, *self.access.namespaces):
            if "*" not in name and allowed(name) and server(name):
                return name
        if any(server(name) or _covers(name, default) for name in self.access.namespaces):
            raise InputError(
                f"the token {self.access.name!r:.80} has access to several namespaces: name one",
                hint="send the header RLM-MEM-Namespace",
            )
        raise NamespaceError(f"the token {self.access.name!r:.80} has access to no namespace of this server")


def name_of_client(text: str) -> str:
    """Return the name that a client gives itself, as the audit log shows it: at most 40 characters, and no colon."""
    return _NOT_IN_NAMES.sub("-", text[:_MAX_NAME]).strip("-")


def new_session(client: str) -> str:
    """Return a new id of a session over MCP: the client's name and a number."""
    return f"{name_of_client(client) or 'client'}~{secrets.token_hex(4)}"


def session_of(session_id: str) -> str:
    """Return ``NAME:NUMBER`` of an id that ``new_session`` returned, and less of any other."""
    name, _, number = session_id[:_LONGEST_ID].rpartition("~")
    return ":".join(filter(None, (name_of_client(name), name_of_client(number))))


def check_permissions(names: Iterable[str]) -> tuple[Permission, ...]:
    """Validate names of permissions, and return them in order.

    Raises:
        InputError: a name is unknown, or there is none.
    """
    found: list[Permission] = []
    for name in names:
        known: list[Permission] = [one for one in PERMISSIONS if one == name]
        if not known:
            raise InputError(
                f"the permission {name!r:.40} is not known", hint=f"use {', '.join(PERMISSIONS)}"
            )
        found += known
    if not found:
        raise InputError("a token needs a permission", hint=f"give some of {', '.join(PERMISSIONS)}")
    return tuple(dict.fromkeys(found))


def check_patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    """Validate namespaces and patterns such as ``team/*``, and return them in order.

    Raises:
        NamespaceError: one is malformed. InputError: there are too many.
    """
    found = tuple(dict.fromkeys(patterns))
    if len(found) > _MAX_PATTERNS:
        raise InputError(f"a token names at most {_MAX_PATTERNS} namespaces", hint="use a pattern: team/*")
    for one in found:
        if one != "*":
            check_namespace(one.removesuffix("/*") if isinstance(one, str) else one)
    return found


def _covers(pattern: str, namespace: str) -> bool:
    if pattern in ("*", namespace):
        return True
    return pattern.endswith("/*") and namespace.startswith(pattern[:-1])


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
