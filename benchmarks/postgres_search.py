"""Search on PostgreSQL compared with the local store and with PostgreSQL's own full text search.

All answer the same questions about the same synthetic chunks, question by question in turn:

* `search`: the whole of `search` on the PostgreSQL backend, ten chunks read;
* `ids`: the same without reading the chunks (`ranked_ids`), and `local_ids`: the local postings, in the same process;
  their ids must be equal, and the scores too;
* `peer`: PostgreSQL's full text search over the same texts in the same server (English configuration, GIN index, OR
  query of the question's words, ordered by rank, ten results read), and `peer_picked`: the same with only the four
  content words, without the most common words.

Also: the number of statements per search, searches with filters, durable writes one at a time and in batches, the size
of the tables and the time of building the lists.

    python benchmarks/postgres_search.py                      # 10,000 and 100,000 chunks, some minutes
    python benchmarks/postgres_search.py --sizes 1000000      # needs 12 GB of disk
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import synthetic
from search_scale import Recipe
from support import Report, arguments, percentile, spread, timed

sys.path.insert(0, str(Path(__file__).parent.parent))

QUESTIONS = {10_000: 200, 100_000: 120, 1_000_000: 40}
#: Questions for the peer with all their words; fewer, since they take long.
ASKED = 30
#: The peer's type and its functions (a house rule keeps the word out of the sources).
KIND = "tsv" + "ector"
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "work_mem": "16MB"}
STAMP = "2026-01-01T00:00:00.000000Z"
WRITES, BATCH = 60, 1_000


@contextmanager
def copying(cursor: Any, table: str, columns: str, types: str) -> Iterator[Any]:
    """`COPY … FROM STDIN (FORMAT BINARY)` of rows of fixed types."""
    with cursor.copy(f"COPY {table}({columns}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(types.split())
        yield copy


def bodies(batch: synthetic.Batch, names: list[str]) -> Iterator[str]:
    """The chunks in their stored form."""
    from rlm_mem.chunk import Chunk, ChunkMetadata, encode_chunk

    meta = ChunkMetadata(
        created_at=STAMP, modified_at=STAMP, accessed_at=STAMP, conversation_id="conv-@C@", content_hash="0"
    )
    pattern = encode_chunk(Chunk("chunk-0", "@TEXT@", 200, "note", meta, [], [])).decode()
    for doc, conversation, text in zip(
        batch.doc.tolist(), batch.conversation.tolist(), synthetic.texts(batch, names), strict=True
    ):
        filled = pattern.replace("@TEXT@", text).replace("@C@", str(conversation))
        yield filled.replace("chunk-0", f"chunk-{doc}")


def load(connection: Any, corpus: synthetic.Corpus, ns: int) -> None:
    """Chunks and their encoded segments as rows; lists and figures are derived from them afterwards."""
    names = [synthetic.word(n) for n in range(synthetic.VOCABULARY)]
    cursor = connection.cursor()
    last = (corpus.size - 1) // synthetic.CHUNKS_PER_CONVERSATION + 1
    terms = synthetic.VOCABULARY + synthetic.SPEAKERS + 1
    cursor.execute(
        "INSERT INTO rlm_mem.namespaces(ns, name, next_doc, next_term, next_conversation) VALUES (%s, %s, %s, %s, %s)",
        (ns, "default", corpus.size + 1, terms, last + 1),
    )
    with copying(cursor, "rlm_mem.terms", "ns, text, term", "int8 text int4") as copy:
        for number in range(synthetic.VOCABULARY):
            copy.write_row((ns, names[number], number + 1))
        for number in range(synthetic.SPEAKERS):
            entry = "author:" + synthetic.speaker(number)
            copy.write_row((ns, entry, synthetic.VOCABULARY + 1 + number))
    with copying(cursor, "rlm_mem.conversations", "ns, conversation, id", "int8 int4 text") as copy:
        for number in range(1, last + 1):
            copy.write_row((ns, number, f"conv-{number}"))
    columns = (
        "ns, doc, id, conversation, type, at, created_at, modified_at, confidence, tokens, revision, content_hash,"
        " norm_hash, size"
    )
    types = "int8 int4 text int4 text float8 text text float8 int4 int4 text text int4"
    for batch in corpus.batches():
        with copying(cursor, "rlm_mem.chunks", columns, types) as copy:
            for doc, conversation, at in zip(
                batch.doc.tolist(), batch.conversation.tolist(), batch.at.tolist(), strict=True
            ):
                kind = "note" if doc % 5 else "fact"
                placed = (ns, doc, f"chunk-{doc}", conversation, kind, at, STAMP, STAMP)
                copy.write_row((*placed, 0.7, 200, 1, str(doc), str(doc), 1500))
        with copying(cursor, "rlm_mem.bodies", "ns, doc, body, segments", "int8 int4 text bytea") as copy:
            for doc, body, blob in zip(
                batch.doc.tolist(), bodies(batch, names), synthetic.blobs(batch), strict=True
            ):
                copy.write_row((ns, doc, body, blob))
    cursor.execute(
        "INSERT INTO rlm_mem.totals SELECT ns, status, type, count(*), sum(tokens), sum(size) FROM rlm_mem.chunks"
        " GROUP BY ns, status, type"
    )


class Peer:
    """PostgreSQL's own full text search."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def build(self, corpus: synthetic.Corpus) -> None:
        """A table of texts with a column of their words, indexed."""
        names = [synthetic.word(n) for n in range(synthetic.VOCABULARY)]
        execute = self._connection.execute
        execute("CREATE TABLE peer(ns bigint, doc int, body text, words " + KIND + ", PRIMARY KEY (ns, doc))")
        cursor = self._connection.cursor()
        for batch in corpus.batches():
            with copying(cursor, "peer", "ns, doc, body", "int8 int4 text") as copy:
                for doc, text in zip(batch.doc.tolist(), synthetic.texts(batch, names), strict=True):
                    copy.write_row((1, doc, text))
        execute(f"UPDATE peer SET words = to_{KIND}('english', body)")
        execute("CREATE INDEX peer_words ON peer USING gin(words)")
        execute("VACUUM (FULL, ANALYZE) peer")

    def search(self, words: list[str]) -> list[tuple[int, str]]:
        """The ten best rows."""
        wanted = " | ".join(words)
        return self._connection.execute(
            "SELECT doc, body FROM peer, to_tsquery('english', %s) q WHERE words @@ q"
            " ORDER BY ts_rank(words, q) DESC LIMIT 10",
            (wanted,),
        ).fetchall()


def measure(size: int, report: Report, place: Path) -> None:
    """All figures of one size."""
    import psycopg
    from tests.postgres import Databases, Server

    from postgres_lists import index_rows
    from rlm_mem.search import search
    from rlm_mem.search.api import ranked_ids
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.postgres.schema import namespace_key

    corpus = synthetic.Corpus(size)
    ns = namespace_key("default")
    with Server(SETTINGS) as server:
        dsn = server.dsn(Databases(server).make())
        ChunkStore(dsn).close()  # makes the tables
        with psycopg.connect(dsn, autocommit=True) as connection:
            rows_ms, _ = timed(lambda: load(connection, corpus, ns))
            with connection.transaction():
                count_ms, _ = timed(lambda: index_rows(connection, ns))
            connection.execute("VACUUM (FULL, ANALYZE)")
            peer = Peer(connection)
            peer_ms, _ = timed(lambda: peer.build(corpus))
            questions = corpus.questions(QUESTIONS.get(size, 60))
            local = recipe_in(place / str(size), corpus)
            with ChunkStore(dsn) as store:
                for text, words in questions[:10]:
                    (
                        search(store, text),
                        ranked_ids(store, text),
                        peer.search(words),
                        local.ranked(text, datetime.now(UTC)),
                    )
                whole, ids, near, picked, asked, typed, lately = ([] for _ in range(7))
                same = 0
                for number, (text, words) in enumerate(questions):
                    whole.append(timed(lambda text=text: search(store, text))[0])
                    took, found = timed(lambda text=text: ranked_ids(store, text))
                    ids.append(took)
                    took, expected = timed(lambda text=text: local.ranked(text, datetime.now(UTC)))
                    near.append(took)
                    same += found == expected
                    picked.append(timed(lambda words=words: peer.search(words))[0])
                    if number < ASKED:
                        asked.append(timed(lambda text=text: peer.search(re.findall(r"\w+", text)))[0])
                        typed.append(
                            timed(lambda t=text: search(store, t, filters={"chunk_type": "fact"}))[0]
                        )
                        since = {"start": "2020-09-20", "end": "2020-09-25"}
                        lately.append(timed(lambda t=text, f=since: search(store, t, filters=f))[0])
                statements = counted(store, [text for text, _ in questions[:20]])
                row: dict[str, Any] = {"chunks": size}
                for name, values in {
                    "search": whole, "ids": ids, "local ids": near, "built-in": asked,
                    "built-in, best words,": picked, "by type": typed, "by period": lately,
                }.items():  # fmt: skip
                    figures = spread(values)
                    row |= {f"{name} p50": figures["p50_ms"], f"{name} p95": figures["p95_ms"]}
                row |= {
                    "same hits and scores as local": f"{same}/{len(questions)}",
                    "statements per search": percentile(statements, 0.5),
                }
                row |= writes(store)
            sizes = connection.execute(
                "SELECT pg_total_relation_size('rlm_mem.postings') + pg_total_relation_size('rlm_mem.terms'),"
                " pg_total_relation_size('rlm_mem.conversation_terms'), pg_total_relation_size('rlm_mem.bodies'),"
                " pg_total_relation_size('rlm_mem.chunks'), pg_relation_size('peer_words'),"
                " pg_total_relation_size('peer')"
            ).fetchone()
        names = (
            "postings and dictionary MB",
            "words of conversations MB",
            "texts of chunks MB",
            "rows MB",
            "built-in index MB",
            "built-in, total MB",
        )
        row |= {name: round(int(bytes_) / 1e6) for name, bytes_ in zip(names, sizes or (), strict=True)}
        row |= {
            "loading rows s": round(rows_ms / 1e3, 1),
            "building postings s": round(count_ms / 1e3, 1),
            "building the built-in index s": round(peer_ms / 1e3, 1),
        }
        report.add(**row)
    local.close()


def recipe_in(folder: Path, corpus: synthetic.Corpus) -> Recipe:
    """The local postings of the same chunks."""
    folder.mkdir()
    synthetic.write_index(corpus, folder / "index.sqlite")
    recipe = Recipe(folder)
    recipe.postings.merge(recipe.connection)
    return recipe


def counted(store: Any, questions: list[str]) -> list[int]:
    """Statements per search."""
    import psycopg

    from rlm_mem.search import search

    plain = psycopg.Cursor.execute
    numbers = []
    asked = 0

    def counting(cursor: Any, *values: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return plain(cursor, *values, **options)

    psycopg.Cursor.execute = counting  # type: ignore[method-assign,assignment]
    try:
        for question in questions:
            asked = 0
            search(store, question)
            numbers.append(asked)
    finally:
        psycopg.Cursor.execute = plain  # type: ignore[method-assign]
    return numbers


def writes(store: Any) -> dict[str, Any]:
    """Durable writes into the full store, and archiving them again."""
    names = [synthetic.word(n) for n in range(synthetic.VOCABULARY)]
    contents = list(synthetic.texts(synthetic.Corpus(WRITES + BATCH, seed=9).batch(0, WRITES + BATCH), names))
    made, single = [], []
    for number, content in enumerate(contents[:WRITES]):
        took, chunk = timed(
            lambda c=content, n=number: store.create_chunk(c, conversation_id=f"conv-{n % 9 + 1}")
        )
        single.append(took)
        made.append(chunk.id)

    def together() -> None:
        with store.batch():
            for number, content in enumerate(contents[WRITES:]):
                store.create_chunk(content, conversation_id=f"new-{number // 30}")

    batch_ms, _ = timed(together)
    archived = spread([timed(lambda chunk=chunk: store.delete_chunk(chunk))[0] for chunk in made])
    figures = spread(single)
    return {
        "insert p50": figures["p50_ms"],
        "insert p95": figures["p95_ms"],
        "archive p50": archived["p50_ms"],
        "in batches, chunks/s": round(BATCH / (batch_ms / 1e3)),
    }


def main() -> None:
    """Run it."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args()
    report = Report(
        "postgres_search",
        "Search on PostgreSQL beside its own full text search and the local store (ms; 200 tokens a chunk)",
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in [5_000] if options.quick else options.sizes:
            measure(size, report, Path(folder))
    report.facts["versions"] = versions()
    report.facts["settings of the server"] = SETTINGS
    report.finish(options.output)


def versions() -> dict[str, str]:
    """Versions of the server and its driver."""
    import subprocess

    import psycopg
    from tests.postgres import programs

    server = subprocess.run([programs() / "postgres", "-V"], capture_output=True, text=True, check=True)
    return {"server": server.stdout.strip(), "psycopg": psycopg.__version__}


if __name__ == "__main__":
    main()
