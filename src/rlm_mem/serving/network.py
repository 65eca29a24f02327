"""Network settings of a server, and the protection it requires for connections from other machines."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.http.site import LOOPBACK, Site, is_loopback, proxy_networks


@dataclass(frozen=True)
class Network:
    """Network settings of a server.

    Attributes:
        port: port to listen on; 0: any free port.
        host: address to listen on; others than loopback addresses need tokens, and TLS or a proxy.
        public_url: address for other machines, such as ``https://memory.example``.
        tls_cert, tls_key: PEM files with the certificate chain and its key.
        proxies: addresses or networks of the reverse proxies that terminate TLS.
        oauth_issuer: an authorization server whose tokens are also accepted.
    """

    port: int = 0
    host: str = LOOPBACK
    public_url: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    proxies: tuple[str, ...] = ()
    oauth_issuer: str | None = None

    @property
    def local_only(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    def check(self, tokens: TokenFile | None) -> None:
        """Raise an error if other machines could connect without protection.

        Raises:
            InvalidConfig: protection is missing; the message names it.
        """
        self.site(self.port)
        self._check_certificate()
        if self.local_only:
            return
        missing = []
        if self.public_url is None:
            missing.append("the address that clients use (--public-url https://…)")
        if self.tls_cert is None and not self.proxies:
            missing.append(
                "TLS (--tls-cert and --tls-key, or --proxy ADDRESS of a proxy that terminates TLS)"
            )
        if self.oauth_issuer is None and (tokens is None or not tokens.in_force()):
            missing.append("a token (rlm-mem token create)")
        if missing:
            raise InvalidConfig(
                f"--host {self.host} lets other machines connect, which needs {'; '.join(missing)}",
                hint="leave out --host to serve only this machine",
            )

    def site(self, port: int) -> Site:
        """The addresses of the server on this port.

        Raises:
            InvalidConfig: the public URL is malformed or lacks https://, or a proxy is no IP address or network.
        """
        return Site(
            port,
            public_url=None if self.public_url is None else self._public(self.public_url),
            proxies=proxy_networks(self.proxies),
            local_only=self.local_only,
            oauth=self.oauth_issuer is not None,
        )

    def _public(self, address: str) -> str:
        try:
            parts = urlsplit(address)
            valid = bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        local = valid and self.local_only and parts.scheme == "http" and self.tls_cert is None
        if not valid or parts.username or parts.path not in ("", "/") or parts.query or parts.fragment:
            raise InvalidConfig(
                f"--public-url {address!r:.120} is not an address", hint="for example https://memory.example"
            )
        if parts.scheme != "https" and not local:
            raise InvalidConfig(f"--public-url {address!r:.120} does not begin with https://")
        return f"{parts.scheme}://{parts.netloc}".lower()

    def _check_certificate(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidConfig("TLS needs both --tls-cert and --tls-key")
        if self.tls_cert is None or self.tls_key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidConfig(
                f"the certificate {self.tls_cert} with the key {self.tls_key} cannot be used: {reason}",
                hint="give matching PEM files, with a key that has no password",
            ) from None


@contextlib.contextmanager
def listening(network: Network) -> Iterator[socket.socket]:
    """A listening socket; clients can connect from now on and wait until they are served.

    A service manager may have opened it and passed it in ``LISTEN_FDS`` and ``LISTEN_PID``.

    Raises:
        StorageError: the port cannot be used.
    """
    inherited = _inherited_socket()
    if inherited is not None:
        with inherited:
            yield inherited
        return
    # asyncio sets TCP_NODELAY only on sockets with an explicit protocol; without it each answer waits 40 ms for the
    # client to acknowledge its headers.
    host = LOOPBACK if network.host == "localhost" else network.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, network.port))
            made.listen(_BACKLOG)
        except OSError as error:
            raise StorageError(
                f"port {network.port} of {host} cannot be used: {error.strerror}",
                hint="use --port 0 for a free one",
            ) from None
        yield made


#: Maximum connections that queue while a server restarts.
_BACKLOG = 2048
_FIRST_INHERITED = 3


def _inherited_socket() -> socket.socket | None:
    if os.environ.get("LISTEN_FDS") != "1" or os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    del os.environ["LISTEN_FDS"], os.environ["LISTEN_PID"]
    try:
        found = socket.socket(fileno=_FIRST_INHERITED)
    except OSError as error:
        raise StorageError(f"the socket of LISTEN_FDS cannot be used: {error.strerror}") from None
    if found.type != socket.SOCK_STREAM or found.family not in (socket.AF_INET, socket.AF_INET6):
        raise StorageError(
            "the socket of LISTEN_FDS is not a TCP socket", hint="use ListenStream= with a port"
        )
    found.set_inheritable(False)
    return found
