"""The addresses of a server: accepted host names and connections."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from rlm_mem.errors import InvalidConfig

#: The address that the server listens on by default.
LOOPBACK = "127.0.0.1"

_NAMES = (LOOPBACK, "localhost", "[::1]")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Site:
    """The addresses of a server.

    Attributes:
        port: the port it listens on.
        public_url: address for clients on other machines, such as ``https://memory.example``; None: there is none.
        proxies: networks of the reverse proxies that terminate TLS.
        local_only: whether it only listens on the loopback interface.
        oauth: whether an authorization server issues tokens for it.
    """

    port: int
    public_url: str | None = None
    proxies: tuple[Network, ...] = ()
    local_only: bool = True
    oauth: bool = False

    @cached_property
    def _local_hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.port}" for name in _NAMES)

    @cached_property
    def _public_host(self) -> str | None:
        return None if self.public_url is None else urlsplit(self.public_url).netloc.lower()

    @cached_property
    def _origins(self) -> frozenset[str]:
        local = {f"{scheme}://{host}" for host in self._local_hosts for scheme in ("http", "https")}
        return frozenset(local if self.public_url is None else {*local, self.public_url.lower()})

    @cached_property
    def address(self) -> str:
        """The base URL of links: scheme, host and port."""
        return self.public_url or f"http://{LOOPBACK}:{self.port}"

    @property
    def resource(self) -> str:
        """The identifier of the MCP server as an OAuth resource (RFC 8707), for which tokens must be issued."""
        return f"{self.address}/mcp"

    @property
    def secure(self) -> bool:
        """Whether browsers connect over TLS."""
        return self.address.startswith("https://")

    def is_own_origin(self, origin: str) -> bool:
        """Whether an Origin header names this server."""
        return origin.lower() in self._origins

    def refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Status and reason to refuse a request that was not made to one of the server's addresses; None if it was."""
        host = headers.get("host", "").lower()
        peer = _address(scope)
        if host in self._local_hosts:
            if self.local_only or (peer is not None and peer.is_loopback):
                return None
            return 421, "this name of the server is for its own machine"
        if self._public_host is None:
            return 421, "this server answers to 127.0.0.1 and localhost only"
        if host != self._public_host:
            return 421, f"this server answers to {self._public_host} only"
        if scope.get("scheme") == "https":
            return None
        from_proxy = peer is not None and any(peer in network for network in self.proxies)
        if not from_proxy:
            return 403, "requests for this name come by TLS or by its proxy only"
        if headers.getlist("x-forwarded-proto") != ["https"]:
            return 403, "the proxy does not say that the client came by TLS: X-Forwarded-Proto: https"
        return None

    def challenge(self, error: str = "", scope: str = "") -> str:
        """The value of WWW-Authenticate (RFC 6750, RFC 9728)."""
        parts = {"error": error, "scope": scope}
        if self.oauth:
            parts["resource_metadata"] = f"{self.address}/.well-known/oauth-protected-resource/mcp"
        if not self.oauth and not scope:
            return "Bearer"
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine.

    Raises:
        InvalidConfig: it is not an IP address.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InvalidConfig(
            f"--host {host!r:.80} is not an IP address", hint="use 0.0.0.0 for every IPv4 interface"
        ) from None


def proxy_networks(proxies: Iterable[str]) -> tuple[Network, ...]:
    """Parse proxies given as addresses or networks (``10.0.0.0/24``).

    Raises:
        InvalidConfig: one of them is neither an address nor a network.
    """
    found: list[Network] = []
    for one in proxies:
        try:
            found.append(ipaddress.ip_network(one))
        except ValueError:
            raise InvalidConfig(
                f"--proxy {one!r:.80} is not an IP address or network", hint="for example --proxy 10.0.0.5"
            ) from None
    return tuple(found)


def _address(scope: Scope) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    client = scope.get("client")
    try:
        found = ipaddress.ip_address(client[0]) if client else None
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
