"""The tables of the PostgreSQL backend: numbered migrations, and the row and key of a namespace.

All tables are in the schema ``rlm_mem`` and always qualified with it: nothing depends on the settings of a session.
Every primary key, unique key and index begins with ``ns``, a number derived from the namespace's name, so that any
table can be partitioned or distributed by it (docs/spec/postgresql.md has the statements). Texts are compared byte
by byte (COLLATE "C"), which is the order of Python and of the local store.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from typing import Any

from rlm_mem.errors import CorruptStore

SET_ON_WORKERS = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Applies the following ``SET LOCAL`` statements of the transaction to the workers of a cluster as well."""
LIMIT_LOCK_WAIT: tuple[tuple[str, tuple[()]], ...] = (
    (SET_ON_WORKERS, ()),
    ("SET LOCAL lock_timeout = '5s'", ()),
)
"""Statements to run before taking a lock that another transaction may hold for long."""

_FIRST = """
CREATE TABLE rlm_mem.namespaces(
    ns bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'here',
    moved_to text,
    next_doc integer NOT NULL DEFAULT 1,
    next_term integer NOT NULL DEFAULT 1,
    next_conversation integer NOT NULL DEFAULT 1,
    analysis text COLLATE "C" NOT NULL DEFAULT '',
    modified bigint NOT NULL DEFAULT 0,
    segments bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    conversations integer NOT NULL DEFAULT 0,
    loose integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE rlm_mem.chunks(
    ns bigint NOT NULL,
    doc integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    conversation integer,
    type text COLLATE "C" NOT NULL,
    status smallint NOT NULL DEFAULT 0,
    at double precision NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    modified_at text COLLATE "C" NOT NULL,
    occurred_at text COLLATE "C",
    valid_from text COLLATE "C",
    valid_to text COLLATE "C",
    superseded_by text COLLATE "C",
    confidence double precision NOT NULL,
    tokens integer NOT NULL,
    revision integer NOT NULL,
    source text COLLATE "C" NOT NULL DEFAULT '',
    content_hash text COLLATE "C" NOT NULL,
    norm_hash text COLLATE "C" NOT NULL,
    size integer NOT NULL,
    length integer NOT NULL DEFAULT 0,
    segment_count integer NOT NULL DEFAULT 0,
    PRIMARY KEY (ns, doc),
    UNIQUE (ns, id)
) WITH (fillfactor = 85);
CREATE INDEX chunks_time ON rlm_mem.chunks(ns, status, at, doc);
CREATE INDEX chunks_order ON rlm_mem.chunks(ns, conversation, at, doc);
CREATE INDEX chunks_hash ON rlm_mem.chunks(ns, content_hash);
CREATE INDEX chunks_norm ON rlm_mem.chunks(ns, norm_hash);
CREATE INDEX chunks_superseded ON rlm_mem.chunks(ns, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE rlm_mem.bodies(
    ns bigint NOT NULL,
    doc integer NOT NULL,
    body text NOT NULL,
    segments bytea NOT NULL,
    PRIMARY KEY (ns, doc)
);

CREATE TABLE rlm_mem.reads(
    ns bigint NOT NULL,
    doc integer NOT NULL,
    access_count integer NOT NULL,
    accessed_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (ns, doc)
) WITH (fillfactor = 70);

CREATE TABLE rlm_mem.tags(
    ns bigint NOT NULL,
    tag text COLLATE "C" NOT NULL,
    at double precision NOT NULL,
    doc integer NOT NULL,
    PRIMARY KEY (ns, tag, at, doc)
);
CREATE INDEX tags_doc ON rlm_mem.tags(ns, doc);

CREATE TABLE rlm_mem.tag_totals(
    ns bigint NOT NULL,
    tag text COLLATE "C" NOT NULL,
    chunks integer NOT NULL,
    PRIMARY KEY (ns, tag)
) WITH (fillfactor = 70);

CREATE TABLE rlm_mem.links(
    ns bigint NOT NULL,
    doc integer NOT NULL,
    position integer NOT NULL,
    dst_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    strength double precision NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    reasoning bytea,
    PRIMARY KEY (ns, doc, position)
);
CREATE INDEX links_dst ON rlm_mem.links(ns, dst_id, type);

CREATE TABLE rlm_mem.conversations(
    ns bigint NOT NULL,
    conversation integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    chunks integer NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    last_at double precision,
    PRIMARY KEY (ns, conversation),
    UNIQUE (ns, id)
) WITH (fillfactor = 85);
CREATE INDEX conversations_last ON rlm_mem.conversations(ns, last_at);

CREATE TABLE rlm_mem.terms(
    ns bigint NOT NULL,
    text text COLLATE "C" NOT NULL,
    term integer NOT NULL,
    df integer NOT NULL DEFAULT 0,
    segment_df integer NOT NULL DEFAULT 0,
    conversation_df integer NOT NULL DEFAULT 0,
    PRIMARY KEY (ns, text),
    UNIQUE (ns, term)
) WITH (fillfactor = 70);

CREATE TABLE rlm_mem.postings(
    ns bigint NOT NULL,
    term integer NOT NULL,
    first integer NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (ns, term, first)
) WITH (fillfactor = 75);

CREATE TABLE rlm_mem.conversation_terms(
    ns bigint NOT NULL,
    conversation integer NOT NULL,
    first integer NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (ns, conversation, first)
) WITH (fillfactor = 75);

CREATE TABLE rlm_mem.totals(
    ns bigint NOT NULL,
    status smallint NOT NULL,
    type text COLLATE "C" NOT NULL,
    chunks bigint NOT NULL,
    tokens bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (ns, status, type)
) WITH (fillfactor = 50);

CREATE TABLE rlm_mem.versions(
    ns bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    revision integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (ns, id, revision)
);

CREATE SEQUENCE rlm_mem.event_numbers;
CREATE TABLE rlm_mem.events(
    ns bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('rlm_mem.event_numbers'),
    ts text COLLATE "C" NOT NULL,
    op text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (ns, seq)
);
CREATE INDEX events_time ON rlm_mem.events(ns, ts);
CREATE INDEX events_op ON rlm_mem.events(ns, op, seq);

CREATE TABLE rlm_mem.event_chunks(
    ns bigint NOT NULL,
    chunk_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (ns, chunk_id, seq)
);

CREATE TABLE rlm_mem.files(
    ns bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    size bigint NOT NULL,
    modified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (ns, name)
);

CREATE TABLE rlm_mem.file_parts(
    ns bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (ns, name, part)
);

CREATE TABLE rlm_mem.shards(
    ns bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    dsn text NOT NULL
);
"""

# The origin, trust and expiry of chunks, which earlier versions did not record.
_TRUST = """
ALTER TABLE rlm_mem.chunks ADD COLUMN origin text COLLATE "C" NOT NULL DEFAULT 'agent';
ALTER TABLE rlm_mem.chunks ADD COLUMN trust text COLLATE "C" NOT NULL DEFAULT 'ordinary';
ALTER TABLE rlm_mem.chunks ADD COLUMN expires_at text COLLATE "C";
UPDATE rlm_mem.chunks SET origin = 'person', trust = 'trusted' WHERE source IN ('interaction', 'user', 'dashboard');
UPDATE rlm_mem.chunks SET origin = source, trust = 'untrusted' WHERE source IN ('import', 'tool', 'web');
CREATE INDEX chunks_trust ON rlm_mem.chunks(ns, status, trust, origin);
CREATE INDEX chunks_expiring ON rlm_mem.chunks(ns, expires_at) WHERE expires_at IS NOT NULL;
"""

# Tags in NFC, as chunks now have them.
_NORMAL_TAGS = """
INSERT INTO rlm_mem.tags(ns, doc, at, tag)
    SELECT ns, doc, at, normalize(tag, NFC) FROM rlm_mem.tags WHERE tag IS NOT NFC NORMALIZED
    ON CONFLICT DO NOTHING;
DELETE FROM rlm_mem.tags WHERE tag IS NOT NFC NORMALIZED;
INSERT INTO rlm_mem.tag_totals(ns, tag, chunks)
    SELECT t.ns, t.tag, count(*) FROM rlm_mem.tags t WHERE EXISTS (
        SELECT 1 FROM rlm_mem.tag_totals o
        WHERE o.ns = t.ns AND o.tag IS NOT NFC NORMALIZED AND normalize(o.tag, NFC) = t.tag)
    GROUP BY t.ns, t.tag
    ON CONFLICT (ns, tag) DO UPDATE SET chunks = excluded.chunks;
DELETE FROM rlm_mem.tag_totals WHERE tag IS NOT NFC NORMALIZED;
"""

#: Numbered and append-only: migration n takes a database from version n to n + 1; each runs in one transaction.
MIGRATIONS: tuple[str, ...] = (_FIRST, _TRUST, _NORMAL_TAGS)
SCHEMA_VERSION = len(MIGRATIONS)

#: Every table with rows of namespaces, in an order in which they can be copied and distributed.
TABLES = tuple(re.findall(r"CREATE TABLE rlm_mem\.(\w+)", "".join(MIGRATIONS)))

#: Tables of the database itself, without a namespace: they stay on the coordinator of a cluster.
LOCAL_TABLES = ("migrations",)


def namespace_key(name: str) -> int:
    """Return the key of a namespace, derived from its name alone: the same on every server, without a lookup."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def check_owner(name: str, namespace: str) -> None:
    """Raise CorruptStore if the row of a namespace is that of another one, whose name has the same key."""
    if name != namespace:
        raise CorruptStore(
            f"the namespaces {namespace!r} and {name!r} have the same key",
            hint="rename one of the two: they cannot share a database",
        )


# --- the row of a namespace -----------------------------------------------------------------------------------


@dataclass
class Head:
    """The row of a namespace while its lock is held: counters and figures, written back with the changes."""

    ns: int
    name: str
    state: str
    moved_to: str | None
    next_doc: int
    next_term: int
    next_conversation: int
    analysis: str
    modified: int
    segments: int
    length: int
    conversations: int
    loose: int

    def counters(self) -> tuple[Any, ...]:
        """Return the values that ``write`` writes; comparing them shows whether anything changed."""
        return tuple(getattr(self, name) for name in _COUNTERS)

    def write(self) -> tuple[str, tuple[Any, ...]]:
        """Return the statement that writes the row back."""
        columns = ", ".join(f"{name} = %s" for name in _COUNTERS)
        return f"UPDATE rlm_mem.namespaces SET {columns} WHERE ns = %s", (*self.counters(), self.ns)


_, *_COLUMNS = (one.name for one in fields(Head))
_COUNTERS = _COLUMNS[_COLUMNS.index("next_doc") :]
HEAD_COLUMNS = ", ".join(_COLUMNS)
"""The columns of a ``Head`` after its key, in order."""
