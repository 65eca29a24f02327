"""Parses addresses: distinguishes DSNs, folders and mistakes, hides passwords of DSNs, recognises loopback URLs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from rlm_mem.errors import InputError, InvalidConfig
from rlm_mem.extensions import BACKENDS, extension

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = r"(?i)\b((?:ssl)?password|passfile)\s*=\s*(?:'(?:\\.|[^'\\])*'|[^&\s]*)"
_ACCEPTED = "name a folder, or postgresql://USER@HOST:PORT/DATABASE"

# A scheme has at least two letters, so that C:/brain is a folder on Windows.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,40})(:|;?//)")
_KEYWORDS = re.compile(r"(?:host|hostaddr|dbname|user|password|port|service)\s*=")
_OTHERS = {
    "http", "https", "ftp", "file", "s3", "gs", "ssh", "git", "jdbc", "odbc", "redis", "duckdb", "cockroachdb",
    "sqlite", "sqlite3", "mysql", "mariadb", "mssql", "oracle", "mongodb",
}  # fmt: skip


def is_dsn(place: object) -> bool:
    """Whether a text names a PostgreSQL database rather than a folder."""
    return isinstance(place, str) and place.strip().lower().startswith(_SCHEMES)


def scheme_of(place: str) -> str:
    """The scheme before ``://`` in lower case; empty without one."""
    scheme, mark, _ = place.strip().partition("://")
    return scheme.lower() if mark else ""


def is_loopback_url(url: str) -> bool:
    """Whether a URL names this machine, by a usual name of its loopback interface."""
    try:
        host = urlsplit(url).hostname
    except ValueError:  # not a URL, such as "http://["
        return False
    return host in ("localhost", "127.0.0.1", "::1")


def checked_place(place: Path | str) -> Path | str:
    """Validate the place of a brain or store, and return a DSN as text or a folder as a path.

    A DSN names a PostgreSQL database, or has a scheme for which an installed package provides a backend. Any other text
    that looks like an address is refused, since it would otherwise become a folder of that name.

    Raises:
        InvalidConfig: it is empty, or an address for which no backend is installed.
    """
    if is_dsn(place):
        return str(place).strip()
    text = str(place)
    if not isinstance(place, str | os.PathLike) or not text.strip() or "\0" in text or not _is_name(text):
        raise InvalidConfig(f"{text!r:.80} is not the place of a memory", hint=_ACCEPTED)
    if _is_address(text.strip()):
        scheme = scheme_of(text)
        if isinstance(place, str) and scheme and extension(BACKENDS, scheme, InvalidConfig):
            return text.strip()
        raise InvalidConfig(
            f"{shown_dsn(text)!r:.120} is neither a folder nor a PostgreSQL database",
            hint=f"{_ACCEPTED}, or install a package that serves {scheme}://" if scheme else _ACCEPTED,
        )
    return Path(place)


def _is_name(text: str) -> bool:
    """Whether a text can be a file name; lone surrogates cannot be encoded."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def checked_path(target: Path | str) -> Path:
    """Validate the path of a file or folder to write, which cannot be a database.

    Raises:
        InputError: it is empty or an address.
    """
    text = str(target)
    if not text.strip() or "\0" in text or _is_address(text.strip()):
        raise InputError(
            f"{shown_dsn(text)!r:.120} is not a file or folder",
            hint="name a path, such as backups/brain.tar.gz",
        )
    return Path(target)


def _is_address(text: str) -> bool:
    if "://" in text or _KEYWORDS.match(text):
        return True
    found = _SCHEME.match(text)
    if found is None:
        return False
    scheme = re.split(r"[+.]", found[1].lower())[0]
    import difflib  # imported late: only needed for a text that may be a mistyped address

    if difflib.get_close_matches(scheme, ("postgresql", "postgres"), 1, 0.75):
        return True
    # Path() collapses the double slash of an address: mysql:/server.
    return found[2] == ":" and (scheme in _OTHERS or text.startswith("/", found.end()))


def shown_dsn(dsn: str) -> str:
    """The DSN without passwords, for messages."""
    scheme, mark, rest = dsn.strip().partition("://")
    if not mark:
        return re.sub(_SECRET, r"\1=***", re.sub(r":[^:@/\s]*@", ":***@", dsn.strip()))
    place, slash, path = rest.partition("/")
    if "@" not in place and "@" in rest:  # a slash inside an unquoted password
        place, _, after = rest.rpartition("@")
        place, (after, slash, path) = f"{place}@", after.partition("/")
        place += after
    user, at, hosts = place.rpartition("@")
    return re.sub(_SECRET, r"\1=***", f"{scheme}://{user.partition(':')[0]}{at}{hosts}{slash}{path}")
