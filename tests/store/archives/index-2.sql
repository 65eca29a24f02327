CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE namespaces(ns INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE conversations(conversation INTEGER PRIMARY KEY, ns INTEGER NOT NULL, id TEXT NOT NULL, chunks INTEGER NOT NULL DEFAULT 0, last_at REAL, UNIQUE(ns, id));
CREATE TABLE chunks(
    doc INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    ns INTEGER NOT NULL,
    conversation INTEGER,
    type TEXT NOT NULL,
    status INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL,
    created_at TEXT NOT NULL,
    modified_at TEXT NOT NULL,
    occurred_at TEXT,
    valid_from TEXT,
    valid_to TEXT,
    superseded_by TEXT,
    confidence REAL NOT NULL,
    tokens INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    content_hash TEXT NOT NULL,
    norm_hash TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    accessed_at TEXT NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    access_unsaved INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX chunks_time ON chunks(ns, status, at, doc);
CREATE INDEX chunks_order ON chunks(ns, conversation, at, doc);
CREATE INDEX chunks_hash ON chunks(content_hash);
CREATE INDEX chunks_norm ON chunks(norm_hash);
CREATE UNIQUE INDEX chunks_path ON chunks(path);
CREATE INDEX chunks_unsaved ON chunks(doc) WHERE access_unsaved = 1;
CREATE TABLE links(
    doc INTEGER NOT NULL, position INTEGER NOT NULL, dst_id TEXT NOT NULL, type TEXT NOT NULL,
    strength REAL NOT NULL, created_at TEXT NOT NULL, reasoning TEXT, PRIMARY KEY(doc, position)
) WITHOUT ROWID;
CREATE INDEX links_dst ON links(dst_id, type);
CREATE TABLE terms(term INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL);
CREATE TABLE segments(doc INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE changes(seq INTEGER PRIMARY KEY AUTOINCREMENT, ns INTEGER NOT NULL, doc INTEGER NOT NULL);
CREATE INDEX changes_ns ON changes(ns, seq);
CREATE TABLE postings_state(ns INTEGER PRIMARY KEY, generation TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE TABLE folders(path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE unreadable(
    path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, inode INTEGER, reason TEXT
) WITHOUT ROWID;
CREATE TABLE totals(ns INTEGER, status INTEGER, type TEXT, chunks INTEGER, tokens INTEGER, bytes INTEGER,
    PRIMARY KEY(ns, status, type)) WITHOUT ROWID;
CREATE TRIGGER totals_in AFTER INSERT ON chunks BEGIN
    INSERT INTO totals VALUES(new.ns, new.status, new.type, 1, new.tokens, new.size)
    ON CONFLICT DO UPDATE SET chunks = chunks + 1, tokens = tokens + new.tokens, bytes = bytes + new.size;
END;
CREATE TRIGGER totals_out AFTER DELETE ON chunks BEGIN
    UPDATE totals SET chunks = chunks - 1, tokens = tokens - old.tokens, bytes = bytes - old.size
    WHERE ns = old.ns AND status = old.status AND type = old.type;
END;
CREATE TRIGGER totals_change AFTER UPDATE OF ns, status, type, tokens, size ON chunks BEGIN
    UPDATE totals SET chunks = chunks - 1, tokens = tokens - old.tokens, bytes = bytes - old.size
    WHERE ns = old.ns AND status = old.status AND type = old.type;
    INSERT INTO totals VALUES(new.ns, new.status, new.type, 1, new.tokens, new.size)
    ON CONFLICT DO UPDATE SET chunks = chunks + 1, tokens = tokens + new.tokens, bytes = bytes + new.size;
END;
CREATE TABLE "tags"(ns INTEGER, tag TEXT, at REAL, doc INTEGER, PRIMARY KEY(ns, tag, at, doc)) WITHOUT ROWID;
CREATE INDEX tags_doc ON tags(doc);
CREATE TABLE tag_totals(ns INTEGER, tag TEXT, chunks INTEGER, PRIMARY KEY(ns, tag)) WITHOUT ROWID;
CREATE INDEX conversations_last ON conversations(ns, last_at DESC, id);
CREATE TRIGGER tag_in AFTER INSERT ON tags BEGIN
    INSERT INTO tag_totals VALUES(new.ns, new.tag, 1) ON CONFLICT DO UPDATE SET chunks = chunks + 1;
END;
CREATE TRIGGER tag_out AFTER DELETE ON tags BEGIN
    UPDATE tag_totals SET chunks = chunks - 1 WHERE ns = old.ns AND tag = old.tag;
END;
CREATE TRIGGER conversation_in AFTER INSERT ON chunks WHEN new.status = 0 AND new.conversation IS NOT NULL BEGIN
    UPDATE conversations SET chunks = chunks + 1, last_at = max(coalesce(last_at, new.at), new.at)
    WHERE conversation = new.conversation;
END;
CREATE TRIGGER conversation_out AFTER DELETE ON chunks WHEN old.status = 0 AND old.conversation IS NOT NULL BEGIN
    UPDATE conversations SET chunks = chunks - 1, last_at = (SELECT at FROM chunks c WHERE c.ns = old.ns
        AND c.conversation = old.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = old.conversation;
END;
CREATE TRIGGER conversation_change AFTER UPDATE OF ns, conversation, status, at ON chunks
WHEN old.status != new.status OR old.at != new.at OR old.conversation IS NOT new.conversation BEGIN
    UPDATE conversations SET chunks = chunks - (old.status = 0), last_at = (SELECT at FROM chunks c WHERE c.ns = old.ns
        AND c.conversation = old.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = old.conversation;
    UPDATE conversations SET chunks = chunks + (new.status = 0), last_at = (SELECT at FROM chunks c WHERE c.ns = new.ns
        AND c.conversation = new.conversation AND c.status = 0 ORDER BY at DESC LIMIT 1)
    WHERE conversation = new.conversation;
END;
