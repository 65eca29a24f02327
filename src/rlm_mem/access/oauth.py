"""Tokens of an OAuth 2.1 authorization server: this server is the protected resource (RFC 9068, RFC 8707).

A token is accepted if the authorization server has signed it for this server (``aud``) and it has not expired.
It contains its permissions: scopes ``rlm-mem:read``, ``rlm-mem:write``, …, and the claim ``rlm_mem_namespaces``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import jwt

from rlm_mem.access.grants import PERMISSIONS, Access, Permission, check_patterns
from rlm_mem.access.tokens import OAUTH
from rlm_mem.dsn import is_loopback_url
from rlm_mem.errors import InputError, InvalidConfig, StorageError

NAMESPACES_CLAIM = "rlm_mem_namespaces"
_SCOPE = "rlm-mem:"

#: Symmetric algorithms are refused, since whoever can verify such a signature could also make one.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@|:-]{0,63}\Z")
_MAX_BYTES = 1_000_000
_MAX_KNOWN = 2000
_KNOWN_SECONDS = 60.0
"""Seconds for which a verification is cached; a withdrawn key is refused after that."""
_KEYS_SECONDS = 600.0
_RETRY_SECONDS = 5.0
"""Minimum seconds between requests for unknown keys, since anybody can send tokens that name one."""
_LEEWAY = 30.0

_log = logging.getLogger(__name__)


class ResourceServer:
    """Verifies the tokens that an authorization server issues for this server.

    Args:
        issuer: its address, as in the claim ``iss``.
        resource: the identifier of this server, as in the claim ``aud``.
        clock: seconds since 1970.
        transport: HTTP transport to the authorization server; None: the network.

    Raises:
        InvalidConfig: the issuer is not an https address; http is accepted on the loopback interface only.
    """

    def __init__(
        self,
        issuer: str,
        resource: str,
        clock: Callable[[], float] = time.time,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = transport
        self.issuer = _check_address(issuer, "--oauth-issuer")
        self.resource = resource
        self._clock = clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._keys_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()
        self._known: OrderedDict[str, tuple[Access, float, float]] = OrderedDict()

    async def access_of(self, token: str) -> Access | None:
        """The access granted by a token; None if it is not valid for this server.

        Raises:
            StorageError: the keys of the authorization server cannot be fetched.
        """
        mark = _token_hash(token)
        known = self._known.get(mark)
        now = self._clock()
        if known is not None and now < min(known[1], known[2]):
            return known[0]
        self._known.pop(mark, None)
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in _ALGORITHMS or str(header.get("typ", "JWT")).lower() not in _TYPES:
                return None
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=[self.resource, f"{self.resource}/"],
                issuer=self.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            access = _access(claims)
        except (jwt.PyJWTError, InputError, ValueError, TypeError, RecursionError) as error:
            # Only the class is logged, since messages may quote the token.
            _log.info("a token of %s is refused: %s", self.issuer, type(error).__name__)
            return None
        self._known[mark] = (access, float(claims["exp"]), now + _KNOWN_SECONDS)
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return access

    def is_current(self, token: str) -> bool:
        """Whether a formerly valid token has not expired."""
        known = self._known.get(_token_hash(token))
        return known is not None and self._clock() < known[1]

    async def _key(self, name: object) -> jwt.PyJWK | None:
        key_id = name if isinstance(name, str) else None
        async with self._fetching:
            now = self._clock()
            stale = now - self._keys_at > _KEYS_SECONDS or self._find(key_id) is None
            if stale and now - self._tried_at > _RETRY_SECONDS:
                self._tried_at = now
                try:
                    self._keys = await self._fetch()
                    self._keys_at = now
                except (httpx2.HTTPError, ValueError, jwt.PyJWTError) as error:
                    _log.warning("the keys of %s cannot be read: %s", self.issuer, type(error).__name__)
            if not self._keys:
                raise StorageError(
                    f"the keys of {self.issuer} cannot be read", hint="check --oauth-issuer and the network"
                )
            return self._find(key_id)

    def _find(self, name: str | None) -> jwt.PyJWK | None:
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(name)

    async def _fetch(self) -> Mapping[str | None, jwt.PyJWK]:
        async with httpx2.AsyncClient(
            timeout=10, follow_redirects=False, transport=self._transport
        ) as client:
            address = None
            for metadata in _metadata_addresses(self.issuer):
                answer = await client.get(metadata)
                if answer.status_code == 200:
                    found = _object(answer)
                    if found.get("issuer") != self.issuer:
                        raise ValueError("the metadata are of another issuer")
                    address = _check_address(str(found.get("jwks_uri")), "jwks_uri")
                    break
            if address is None:
                raise ValueError("there are no metadata")
            answer = await client.get(address)
            answer.raise_for_status()
            return {key.key_id: key for key in jwt.PyJWKSet.from_dict(_object(answer)).keys}


def _metadata_addresses(issuer: str) -> tuple[str, ...]:
    """Addresses of an authorization server's metadata: RFC 8414, then OpenID Connect."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    inserted = (
        f"/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    )
    found = dict.fromkeys((*inserted, f"{path}/.well-known/openid-configuration"))
    return tuple(urlunsplit((parts.scheme, parts.netloc, one, "", "")) for one in found)


def _object(answer: httpx2.Response) -> dict[str, Any]:
    if len(answer.content) > _MAX_BYTES:
        raise ValueError("the answer is too large")
    found = answer.json()
    if isinstance(found, dict):
        return found
    raise ValueError("the answer is not an object")


def _check_address(address: str, what: str) -> str:
    with contextlib.suppress(ValueError):  # a malformed host or port
        parts = urlsplit(address)
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback_url(address))
        if safe and parts.hostname and parts.port != 0 and not parts.query and not parts.fragment:
            return address
    raise InvalidConfig(f"{what} {address!r:.200} is not an https address without a query")


def _access(claims: Mapping[str, Any]) -> Access:
    scope_claim = claims.get("scope", claims.get("scp", ""))
    names = scope_claim.split() if isinstance(scope_claim, str) else [str(one) for one in scope_claim]
    included = frozenset[Permission]().union(
        *(PERMISSIONS[one] for one in PERMISSIONS if f"{_SCOPE}{one}" in names)
    )
    namespaces = claims.get(NAMESPACES_CLAIM, ())
    patterns = check_patterns(namespaces.split() if isinstance(namespaces, str) else list(namespaces))
    subject = str(claims["sub"])
    if not _SUBJECT.match(subject):
        subject = _token_hash(subject)[:32]
    return Access(OAUTH + subject, patterns, included)


def _token_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
