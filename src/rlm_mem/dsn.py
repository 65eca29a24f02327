"""Names of databases: telling a DSN from a folder, and showing one without its password."""

from __future__ import annotations

import re

__all__ = ["is_dsn", "shown_dsn"]

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = re.compile(r"(?i)\b((?:ssl)?password|passfile)=[^&\s]*")


def is_dsn(place: object) -> bool:
    """Whether a text names a PostgreSQL database rather than a folder."""
    return isinstance(place, str) and place.strip().lower().startswith(_SCHEMES)


def shown_dsn(dsn: str) -> str:
    """The DSN as messages may show it: without passwords."""
    scheme, _, rest = dsn.strip().partition("://")
    place, slash, path = rest.partition("/")
    if "@" not in place and "@" in rest:  # a slash inside an unquoted password
        place, _, after = rest.rpartition("@")
        place, (after, slash, path) = f"{place}@", after.partition("/")
        place += after
    user, at, hosts = place.rpartition("@")
    return _SECRET.sub(r"\1=***", f"{scheme}://{user.partition(':')[0]}{at}{hosts}{slash}{path}")
