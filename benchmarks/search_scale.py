"""Search at 10,000 to 1,000,000 chunks compared with SQLite FTS5 on the same data, in one run.

Compared, question by question in turn: the whole recipe (question analysis, candidates from the mapped postings,
ranking, ten results) and FTS5's own OR query (porter stemmer, ORDER BY rank LIMIT 10) in two forms: with the words of
the question as asked (`fts5`; FTS5 has no stop words), and with only the four content words (`fts5_picked`), which
avoids the longest lists. FTS5 has its index in a database of its own with a large cache. Reading the ten chunk files is
measured separately, on a real store, since FTS5 returns row numbers only.

Also: the first search of a fresh process (with the postings' pages dropped from memory first), a write by one process
in the next search of another, and making the postings from the stored segments.

    python benchmarks/search_scale.py                              # 10,000 and 100,000 chunks, a few minutes
    python benchmarks/search_scale.py --sizes 10000 100000 1000000 # the full table; needs 8 GB of disk
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import synthetic
from rlm_mem.search import search
from rlm_mem.search.api import question_for
from rlm_mem.search.candidates import gather
from rlm_mem.search.ranking import ranked
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.encoding import encode_segments
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.local import schema
from rlm_mem.store.local.postings import PostingsIndex
from rlm_mem.text.analysis import AnalysedSegment, get_analyser
from support import Report, arguments, spread, timed

QUESTIONS = {10_000: 300, 100_000: 200, 1_000_000: 60}
#: Questions for FTS5 with all their words; fewer, since they take long.
ASKED = 40


class Recipe:
    """The two stages as `search` runs them, without reading the chunks of the results."""

    def __init__(self, folder: Path) -> None:
        self.connection = schema.connect(folder / "index.sqlite", wait_seconds=30)
        self.postings = PostingsIndex(folder / "postings", synthetic.NS)

    def search(self, question: str) -> list[str]:
        """The ids of the ten best chunks."""
        return [chunk_id for chunk_id, _ in self.ranked(question)]

    def ranked(self, question: str, now: datetime | None = None) -> list[tuple[str, float]]:
        """The ids and scores of the ten best chunks."""
        source = self.postings.source(self.connection)
        query = question_for(source, question, "english", now)
        found = gather(source, query, Filters(), 100)
        return [(hit.chunk_id, hit.score) for hit in islice(ranked(query, found, "chunk"), 10)]

    def first_stage(self, words: list[str]) -> list[int]:
        """The hundred best chunks by their words alone."""
        source = self.postings.source(self.connection)
        return source.best(source.term_ids(words), np.ones(len(words)), 100, Filters())[0].tolist()

    def close(self) -> None:
        self.postings.close()
        self.connection.close()


class Fts5:
    """SQLite's full-text index on the same chunks."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=OFF")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.connection.execute("PRAGMA cache_size=-1000000")
        self.connection.execute("PRAGMA mmap_size=8000000000")

    def build(self, corpus: synthetic.Corpus) -> None:
        """Index the texts of all chunks."""
        names = [synthetic.word(n) for n in range(synthetic.VOCABULARY)]
        self.connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(body, content='', tokenize='porter unicode61')"
        )
        self.connection.execute("BEGIN")
        for batch in corpus.batches():
            self.connection.executemany(
                "INSERT INTO t(rowid, body) VALUES (?, ?)",
                zip(batch.doc.tolist(), synthetic.texts(batch, names), strict=True),
            )
        self.connection.execute("COMMIT")
        self.connection.execute("INSERT INTO t(t) VALUES ('optimize')")

    def search(self, words: list[str]) -> list[int]:
        """The ten best rows."""
        match = " OR ".join(f'"{word}"' for word in words)
        rows = self.connection.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10", (match,))
        return [row[0] for row in rows.fetchall()]


def measure(size: int, report: Report, place: Path) -> None:
    """All figures of one size."""
    corpus = synthetic.Corpus(size)
    folder = place / str(size)
    folder.mkdir()
    try:
        rows_ms, _ = timed(lambda: synthetic.write_index(corpus, folder / "index.sqlite"))
        recipe = Recipe(folder)
        build_ms, _ = timed(lambda: recipe.postings.merge(recipe.connection))
        fts = Fts5(folder / "fts.sqlite")
        fts_ms, _ = timed(lambda: fts.build(corpus))
        questions = corpus.questions(QUESTIONS.get(size, 100))
        for text, words in questions[:10]:
            recipe.search(text), fts.search(words)
        ours, picked, asked, stage = [], [], [], []
        for number, (text, words) in enumerate(questions):
            ours.append(timed(lambda text=text: recipe.search(text))[0])
            picked.append(timed(lambda words=words: fts.search(words))[0])
            stage.append(timed(lambda words=words: recipe.first_stage(words))[0])
            if number < ASKED:
                asked.append(timed(lambda text=text: fts.search(_all_words(text)))[0])
        us, them, spared, first = spread(ours), spread(asked), spread(picked), spread(stage)
        row: dict[str, Any] = {
            "chunks": size,
            "RLM-MEM p50": us["p50_ms"],
            "RLM-MEM p95": us["p95_ms"],
            "RLM-MEM, candidates only, p50": first["p50_ms"],
            "RLM-MEM, candidates only, p95": first["p95_ms"],
            "FTS5 p50": them["p50_ms"],
            "FTS5 p95": them["p95_ms"],
            "FTS5, best words, p50": spared["p50_ms"],
            "FTS5, best words, p95": spared["p95_ms"],
            "times faster than FTS5": round(them["p50_ms"] / us["p50_ms"], 1),
            "times faster than FTS5, best words": round(spared["p50_ms"] / us["p50_ms"], 1),
        }
        recipe.close()
        row |= cold_open(folder, questions)
        row |= other_process(folder)
        row |= {
            "postings built, s": round(build_ms / 1e3, 1),
            "FTS5 built, s": round(fts_ms / 1e3, 1),
            "rows written, s": round(rows_ms / 1e3, 1),
            "postings MB": round(_size(folder / "postings") / 1e6),
            "rows and segments MB": round((folder / "index.sqlite").stat().st_size / 1e6),
            "FTS5 MB": round((folder / "fts.sqlite").stat().st_size / 1e6),
            "peak memory MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        report.add(**row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cold_open(folder: Path, questions: list[tuple[str, list[str]]]) -> dict[str, float]:
    """A fresh process opens the postings and searches; their pages are dropped from memory first."""
    opened, searched = [], []
    for text, _ in questions[:5]:
        _drop_pages(folder / "postings")
        with Searcher(folder) as child:
            open_ms, search_ms, _ = child.ask(text)
            opened.append(open_ms)
            searched.append(search_ms)
    return {"open, cold, ms": spread(opened)["p50_ms"], "first search, cold, ms": spread(searched)["p50_ms"]}


def other_process(folder: Path) -> dict[str, Any]:
    """Another process searches, this one writes a chunk, the other searches again."""
    connection = sqlite3.connect(folder / "index.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    last = connection.execute("SELECT max(doc) FROM chunks").fetchone()[0]
    seen, searched = 0, []
    rounds = 20
    with Searcher(folder) as child:
        child.ask("warm up")
        for number in range(rounds):
            mark = f"xyzzo{number}o"
            _write_chunk(connection, last + 1 + number, mark)
            _, search_ms, found = child.ask(f"What about {mark}?")
            searched.append(search_ms)
            seen += found == [f"chunk-new-{last + 1 + number}"]
    connection.close()
    return {
        "writes of another process found": f"{seen}/{rounds}",
        "search after such a write, ms": spread(searched)["p50_ms"],
    }


def _all_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _write_chunk(connection: sqlite3.Connection, doc: int, mark: str) -> None:
    def term(text: str) -> int:
        connection.execute("INSERT OR IGNORE INTO terms(text) VALUES (?)", (text,))
        return int(connection.execute("SELECT term FROM terms WHERE text = ?", (text,)).fetchone()[0])

    stamp = "2026-01-01T00:00:00.000000Z"
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO chunks(doc, id, ns, conversation, type, at, created_at, modified_at, confidence, tokens, revision,"
        " content_hash, norm_hash, folder, size, mtime_ns, inode, accessed_at)"
        " VALUES (?, ?, 1, NULL, 'note', 2e9, ?, ?, 0.7, 200, 1, ?, ?, ?, 1, 1, 1, ?)",
        (doc, f"chunk-new-{doc}", stamp, stamp, str(doc), str(doc), str(doc), stamp),
    )
    blob = encode_segments([AnalysedSegment(0, 10, None, 0, 1, {mark: 1})], term)
    connection.execute("INSERT INTO segments(doc, data) VALUES (?, ?)", (doc, blob))
    connection.execute("INSERT INTO changes(ns, doc) VALUES (1, ?)", (doc,))
    connection.execute("COMMIT")


class Searcher:
    """Another process that searches on request."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--searcher", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str) -> tuple[float, float, list[str]]:
        """Milliseconds to open (of the first question only) and to search, and the ids found."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        opened, searched, *found = self._process.stdout.readline().split()
        return float(opened), float(searched), found

    def __enter__(self) -> Searcher:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(folder: Path) -> None:
    """The program of a `Searcher`. Imports are made by now: they are not part of the cost of the index."""
    get_analyser("english").terms("warm up the stemmer")
    recipe: Recipe | None = None
    opened = 0.0
    for line in sys.stdin:
        if recipe is None:
            start = time.perf_counter()
            recipe = Recipe(folder)
            recipe.postings.view(recipe.connection)
            opened = (time.perf_counter() - start) * 1e3
        took, found = timed(lambda line=line, recipe=recipe: recipe.search(line.strip()))
        print(opened, took, *found, flush=True)
        opened = 0.0


def real_store(report: Report, place: Path, size: int) -> None:
    """`search` on a real store with its files, ten results read, and the same after a write."""
    corpus = synthetic.Corpus(size)
    names = [synthetic.word(n) for n in range(synthetic.VOCABULARY)]
    with ChunkStore(place / "store") as store:
        start = time.perf_counter()
        for batch in corpus.batches():
            contents = list(_as_turns(batch, names))
            for first in range(0, len(contents), 1000):
                with store.batch():
                    for number in range(first, min(first + 1000, len(contents))):
                        store.create_chunk(
                            contents[number], conversation_id=f"conv-{batch.conversation[number]}"
                        )
        written = time.perf_counter() - start
        store.checkpoint()
        questions = corpus.questions(300)
        for text, _ in questions[:10]:
            search(store, text)
        took = spread([timed(lambda text=text: search(store, text))[0] for text, _ in questions])
        after_write = []
        for text, _ in questions[:30]:
            store.create_chunk(text)
            after_write.append(timed(lambda text=text: search(store, text))[0])
    report.facts[f"`search()` on a real store of {size:,} chunks, ten chunks read (ms)"] = took
    report.facts["the same directly after a write (ms)"] = spread(after_write)
    report.facts["writing that store in batches of 1,000, chunks/s"] = round(size / written)
    shutil.rmtree(place / "store", ignore_errors=True)


def _as_turns(batch: synthetic.Batch, names: list[str]) -> Any:
    """The chunks as dialogue, one turn a line."""
    words = batch.words.tolist()
    place = 0
    for number in range(len(batch.doc)):
        lines = []
        for segment in range(synthetic.SEGMENTS):
            length = int(batch.segment_length[number, segment])
            said = " the ".join(names[w] for w in words[place : place + length])
            lines.append(f"{synthetic.speaker(int(batch.speakers[number, segment]))}: {said}.")
            place += length
        yield "\n".join(lines)


def _drop_pages(folder: Path) -> None:
    for path in folder.rglob("*.npy"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of chunks")
    parser.add_argument("--searcher", type=Path, default=None, help="(internal) answer questions from stdin")
    options = parser.parse_args()
    if options.searcher is not None:
        serve(options.searcher)
        return
    sizes = options.sizes or ([10_000] if options.quick else [10_000, 100_000])
    report = Report(
        "search_scale", "Search at scale, milliseconds (FTS5: SQLite's OR query on the same data)"
    )
    with tempfile.TemporaryDirectory(prefix="rlm-mem-scale-") as name:
        for size in sizes:
            measure(size, report, Path(name))
        real_store(report, Path(name), 2_000 if options.quick else 10_000)
    report.finish(options.output)


if __name__ == "__main__":
    main()
