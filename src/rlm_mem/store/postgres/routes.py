"""Maps each namespace to its database: the opened one, unless its directory or a forwarding address differs."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from rlm_mem.dsn import shown_dsn
from rlm_mem.errors import ServerAway, StorageError, StoreLocked
from rlm_mem.store.core.recent import Recent
from rlm_mem.store.postgres.migrate import opened
from rlm_mem.store.postgres.schema import LIMIT_LOCK_WAIT, check_owner, namespace_key

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.store.postgres.pool import Pool

#: How long a reader reuses the location of a namespace after a lookup (seconds); writers check it under the lock.
_CACHE_SECONDS = 1.0
_MAX_HOPS = 8

#: Namespaces whose places and states a process caches (some 5 MB); others are looked up anew.
MOST_NAMESPACES = 10_000

_PLACE = (
    "SELECT n.name, n.state, n.moved_to, s.dsn FROM (SELECT 1) k"
    " LEFT JOIN rlm_mem.namespaces n ON n.ns = %s LEFT JOIN rlm_mem.shards s ON s.ns = %s"
)

_ADD = "INSERT INTO rlm_mem.namespaces(ns, name) VALUES (%s, %s) ON CONFLICT DO NOTHING"

_COUNTED = (
    "SELECT n.name, coalesce(sum(t.chunks), 0)::bigint FROM rlm_mem.namespaces n"
    " LEFT JOIN rlm_mem.totals t ON t.ns = n.ns AND t.status = 0 WHERE n.state <> 'moved' GROUP BY n.ns, n.name"
)
# The same query for each server of a cluster separately, so that an unreachable one does not hide the others.
_COUNTED_APART = (
    "SELECT nodename || ':' || nodeport, success, result FROM run_command_on_colocated_placements("
    "'rlm_mem.namespaces', 'rlm_mem.totals', $$SELECT json_agg(json_build_array(f.name, f.chunks)) FROM (SELECT n.name,"
    " coalesce(sum(t.chunks), 0) AS chunks FROM %s n LEFT JOIN %s t ON t.ns = n.ns AND t.status = 0"
    " WHERE n.state <> 'moved' GROUP BY n.name) f$$)"
)


def _listed(pool: Pool) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the namespaces of one database with their counts, and the cluster servers that do not respond."""
    try:
        return [(str(name), int(count)) for name, count in pool.rows(_COUNTED)], []
    except StorageError as error:
        if not (pool.distributed and isinstance(error, ServerAway)):
            raise
    found: list[tuple[str, int]] = []
    away: dict[str, str] = {}
    for server, success, result in pool.rows(_COUNTED_APART):
        if success:
            found += [(name, count) for name, count in msgspec.json.decode(result or "[]")]
        else:
            away[server] = str(result)
    return found, [f"{server} ({' '.join(why.split())})" for server, why in sorted(away.items())]


class Routes:
    """Pools of the databases in use, and the database of each namespace.

    Args:
        dsn: the opened database: it stores the directory, and every namespace that the directory lacks.
    """

    def __init__(self, dsn: str, config: Config, *, read_only: bool) -> None:
        self._dsn = dsn
        self._config = config
        self._read_only = read_only
        self._pools: dict[str, Pool] = {}
        self._places: Recent[str, tuple[Pool, float]] = Recent(MOST_NAMESPACES)
        self._unlisted: Recent[str, bool] = Recent(MOST_NAMESPACES)
        self._guard = threading.RLock()
        self.shown = shown_dsn(dsn)
        self.pinned = False
        """Whether to use the opened database for every namespace, ignoring the directory."""

    def home(self) -> Pool:
        """Return the opened database."""
        return self.pool(self._dsn)

    def pool(self, dsn: str) -> Pool:
        """Return the connections to a database, opened once; its tables are created if they are missing."""
        # First without the lock, which is held for long while another database is absent.
        pool = self._pools.get(dsn)
        if pool is None:
            with self._guard:
                pool = self._pools.get(dsn)
                if pool is None:
                    pool = self._pools[dsn] = opened(dsn, self._config, read_only=self._read_only)
        return pool

    def pin(self) -> None:
        """Use the opened database for every namespace, ignoring its directory and what was looked up in it."""
        self.pinned = True
        self._places = Recent(MOST_NAMESPACES)

    def of(self, namespace: str) -> Pool:
        """Return the database that stores a namespace, looked up again once a second."""
        cached = self._places.get(namespace)
        if cached is not None and time.monotonic() - cached[1] < _CACHE_SECONDS:
            return cached[0]
        return self._reroute(namespace)

    def _reroute(self, namespace: str) -> Pool:
        dsn, is_listed = self.trace(namespace)
        pool = self.pool(dsn)
        self._places.put(namespace, (pool, time.monotonic()))
        self._unlisted.put(namespace, not is_listed)
        return pool

    def trace(self, namespace: str) -> tuple[str, bool]:
        """Follow the directory and forwarding addresses, starting at the opened database.

        Returns:
            The DSN of the database that stores a namespace, and whether it has a row there.
        """
        ns, dsn = namespace_key(namespace), self._dsn
        for hop in range(_MAX_HOPS):
            name, state, moved_to, listed = self.pool(dsn).rows(_PLACE, (ns, ns))[0]
            check_owner(name or namespace, namespace)
            further = listed if hop == 0 and listed else moved_to if state == "moved" else None
            if further is None or self.pinned:
                return dsn, name is not None
            dsn = further
        raise StorageError(
            f"{self.shown}: the directory has a cycle for the namespace {namespace}",
            hint="look at the tables rlm_mem.shards and rlm_mem.namespaces",
        )

    def ensure_listed(self, namespace: str) -> None:
        """Add the row of a namespace that had none at its last lookup, so that it is listed."""
        pool = self.of(namespace)
        if self._unlisted.get(namespace):
            with contextlib.suppress(StoreLocked):  # another process is adding it
                pool.change([*LIMIT_LOCK_WAIT, (_ADD, (namespace_key(namespace), namespace))])
            self.listed(namespace)

    def listed(self, namespace: str) -> None:
        """Record that a namespace has a row."""
        self._unlisted.put(namespace, False)

    def moved(self, namespace: str, dsn: str) -> None:
        """Record the new database of a namespace that was moved."""
        self._places.put(namespace, (self.pool(dsn), time.monotonic()))

    def namespaces(self) -> list[tuple[str, int]]:
        """See ``IndexQueries.namespaces``."""
        home = self.home()
        found, away = _listed(home)
        directory = [] if away else home.rows("SELECT DISTINCT dsn FROM rlm_mem.shards ORDER BY dsn")
        for (dsn,) in directory:
            try:
                pool = self.pool(dsn)
                more, without = _listed(pool) if pool is not home else ([], [])
            except StorageError as error:
                more, without = [], [f"{shown_dsn(dsn)} ({error.message})"]
            found += more
            away += without
        if away:
            raise ServerAway(
                f"the list of namespaces is incomplete: {'; '.join(away)} did not respond",
                hint="retry when they are back",
                namespaces=sorted(found),
            )
        return sorted(found)

    def close(self) -> None:
        """Close every connection."""
        with self._guard:
            for pool in self._pools.values():
                pool.close()
