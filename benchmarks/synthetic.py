"""A synthetic store of any size: conversations on topics, with word frequencies as in real language.

About 200 tokens a chunk: ten turns of two speakers, some 85 content words and as many function words. Content words
follow a Zipf-Mandelbrot law; four of ten come from the topic of the conversation. The same seed gives the same store.
Rows are written straight into the index tables, since a million files would measure the file system.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_mem.store.local import schema

NS = 1
SEGMENTS = 10
CHUNKS_PER_CONVERSATION = 30
VOCABULARY = 300_000
TOPICS = 2_000
TOPIC_WORDS = 300
SPEAKERS = 1_000
FUNCTION_WORDS = [
    "the", "of", "and", "to", "a", "in", "that", "it", "is", "was", "for", "on", "with", "as", "at", "by",
    "this", "but", "from", "they", "we",
]  # fmt: skip
_CONSONANTS, _VOWELS = "bdfgklmnprtvz", "aeiou"
_BATCH = 20_000


def word(number: int) -> str:
    """A pronounceable word that no stemmer alters (it ends in a syllable with o)."""
    syllables = []
    for _ in range(3):
        number, consonant = divmod(number, len(_CONSONANTS))
        number, vowel = divmod(number, len(_VOWELS))
        syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
    return "".join(syllables) + _CONSONANTS[number % len(_CONSONANTS)] + "o"


def speaker(number: int) -> str:
    """A name."""
    return "P" + word(number * 37 % VOCABULARY)[1:]


@dataclass(frozen=True)
class Batch:
    """Some chunks: the words of each segment, as numbers."""

    doc: npt.NDArray[np.int64]
    conversation: npt.NDArray[np.int64]
    at: npt.NDArray[np.float64]
    words: npt.NDArray[np.int64]
    segment_length: npt.NDArray[np.int64]  # [n, SEGMENTS]
    speakers: npt.NDArray[np.int64]  # [n, SEGMENTS]


class Corpus:
    """`size` synthetic chunks."""

    def __init__(self, size: int, seed: int = 1) -> None:
        self.size = size
        rng = np.random.default_rng(seed)
        share = 1.0 / (np.arange(VOCABULARY) + 10.0)
        self._share = np.cumsum(share / share.sum())
        # Topics take their words from all but the most frequent ones, each with its own order of frequency.
        self._topics = 100 + (rng.random((TOPICS, TOPIC_WORDS)) ** 2 * (VOCABULARY - 100)).astype(np.int64)
        inside = 1.0 / (np.arange(TOPIC_WORDS) + 3.0)
        self._inside = np.cumsum(inside / inside.sum())
        self._seed = seed

    def batches(self) -> Iterator[Batch]:
        """All chunks, in the order in which they were written."""
        for first in range(0, self.size, _BATCH):
            yield self.batch(first, min(_BATCH, self.size - first))

    def batch(self, first: int, count: int) -> Batch:
        """`count` chunks from number `first` on."""
        rng = np.random.default_rng((self._seed, first))
        doc = np.arange(first + 1, first + count + 1, dtype=np.int64)
        conversation = (doc - 1) // CHUNKS_PER_CONVERSATION + 1
        at = 1.6e9 + conversation * 7200.0 + (doc % CHUNKS_PER_CONVERSATION) * 60.0
        lengths = rng.integers(5, 13, (count, SEGMENTS))
        total = int(lengths.sum())
        words = np.searchsorted(self._share, rng.random(total))
        of_topic = rng.random(total) < 0.4
        topic = np.repeat(conversation * 7919 % TOPICS, lengths.sum(axis=1))[of_topic]
        words[of_topic] = self._topics[topic, np.searchsorted(self._inside, rng.random(len(topic)))]
        pair = np.stack([conversation * 13 % SPEAKERS, conversation * 29 % SPEAKERS], axis=1)
        speakers = pair[np.arange(count)[:, None], (np.arange(SEGMENTS) + doc[:, None]) % 2]
        return Batch(doc, conversation, at, np.minimum(words, VOCABULARY - 1), lengths, speakers)

    def questions(self, count: int, seed: int = 5) -> list[tuple[str, list[str]]]:
        """Questions about chunks of the store, with their content words: two of one segment, two common ones.

        Calibrated on real questions about dialogues, whose content words occur, added up, in a fifth of all chunks
        (median; a tenth of the questions in more than half).
        """
        rng = np.random.default_rng((seed, self.size))
        asked = []
        for _ in range(count):
            batch = self.batch(
                int(rng.integers(0, max(1, self.size // _BATCH))) * _BATCH, min(_BATCH, self.size)
            )
            starts = np.concatenate([[0], np.cumsum(batch.segment_length.ravel())])
            segment = int(rng.integers(0, batch.segment_length.size))
            own = batch.words[starts[segment] : starts[segment + 1]]
            common = np.searchsorted(self._share, rng.random(2) * 0.5)
            numbers = [*rng.choice(own, 2, replace=False).tolist(), *common.tolist()]
            words = list(dict.fromkeys(word(int(number)) for number in numbers))
            name = speaker(int(batch.speakers.ravel()[segment]))
            text = f"What did {name} say about the {words[0]} and {words[1]} " + " ".join(words[2:]) + "?"
            asked.append((text, words))
        return asked


def write_index(corpus: Corpus, path: Path) -> None:
    """Write the index tables of the corpus into a new SQLite file."""
    connection = schema.connect(path, wait_seconds=30)
    try:
        schema.make_tables(connection)
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        connection.execute("INSERT OR REPLACE INTO namespaces(ns, name) VALUES (1, 'default')")
        connection.executemany(
            "INSERT INTO terms(term, text) VALUES (?, ?)", ((n + 1, word(n)) for n in range(VOCABULARY))
        )
        connection.executemany(
            "INSERT INTO terms(term, text) VALUES (?, ?)",
            ((VOCABULARY + 1 + n, "author:" + speaker(n)) for n in range(SPEAKERS)),
        )
        last = (corpus.size - 1) // CHUNKS_PER_CONVERSATION + 1
        connection.executemany(
            "INSERT INTO conversations(conversation, ns, id) VALUES (?, 1, ?)",
            ((n, f"conv-{n}") for n in range(1, last + 1)),
        )
        for batch in corpus.batches():
            _write_batch(connection, batch)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _write_batch(connection: sqlite3.Connection, batch: Batch) -> None:
    stamp = "2026-01-01T00:00:00.000000Z"
    connection.executemany(
        "INSERT INTO chunks(doc, id, ns, conversation, type, at, created_at, modified_at, confidence, tokens, revision,"
        " content_hash, norm_hash, folder, size, mtime_ns, inode, accessed_at)"
        " VALUES (?, ?, 1, ?, 'note', ?, ?, ?, 0.7, 200, 1, ?, ?, ?, 1, 1, 1, ?)",
        (
            (doc, f"chunk-{doc}", conversation, at, stamp, stamp, str(doc), str(doc), str(doc), stamp)
            for doc, conversation, at in zip(
                batch.doc.tolist(), batch.conversation.tolist(), batch.at.tolist(), strict=True
            )
        ),
    )
    connection.executemany(
        "INSERT INTO segments(doc, data) VALUES (?, ?)", zip(batch.doc.tolist(), blobs(batch), strict=True)
    )


def blobs(batch: Batch) -> Iterator[bytes]:
    """The segment blobs of a batch (the format of rlm_mem.store.core.records), made array-wise."""
    count = len(batch.doc)
    lengths = batch.segment_length
    segment = np.repeat(np.arange(count * SEGMENTS), lengths.ravel())
    words = np.sort(segment * (1 << 20) + batch.words) & ((1 << 20) - 1)
    per_chunk = lengths.sum(axis=1)
    head = np.zeros((count, 3 + 6 * SEGMENTS), np.uint32)
    head[:, 0], head[:, 1], head[:, 2] = 1, SEGMENTS, per_chunk
    ends = np.cumsum(lengths, axis=1) * 14
    head[:, 3::6] = ends - lengths * 14
    head[:, 4::6] = ends
    head[:, 5::6] = VOCABULARY + 1 + batch.speakers + 1
    head[:, 7::6] = lengths
    head[:, 8::6] = lengths
    terms = (words + 1).astype(np.uint32)
    stops = np.cumsum(per_chunk).tolist()
    start = 0
    for number, stop in enumerate(stops):
        yield head[number].tobytes() + terms[start:stop].tobytes()
        start = stop


def texts(batch: Batch, names: list[str]) -> Iterator[str]:
    """The same chunks as text, with function words between: for engines that read text. `names[n]` is word n."""
    per_chunk = batch.segment_length.sum(axis=1)
    stops = np.cumsum(per_chunk).tolist()
    words = batch.words.tolist()
    filler = FUNCTION_WORDS
    start = 0
    for number, stop in enumerate(stops):
        parts = []
        for place in range(start, stop):
            parts.append(names[words[place]])
            parts.append(filler[(place * 7 + number) % len(filler)])
        yield speaker(int(batch.speakers[number, 0])) + ": " + " ".join(parts)
        start = stop
