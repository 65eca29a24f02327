"""Stores the notes and dialogues of an import; those that replace a former text archive what it no longer has.

These are not documents of a folder, which ``folder_sync`` keeps in step: a file or an archive that is imported alone
does not show which others are gone or renamed, and a chat only grows. So what became of each is in the ledger.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from rlm_mem.chunk import check_tags
from rlm_mem.config import SecretAction
from rlm_mem.errors import InputError, RlmMemError
from rlm_mem.ingest.chunking import analyse
from rlm_mem.ingest.filling import remember_many
from rlm_mem.ingest.remember import RememberResult
from rlm_mem.interchange.records import Dialogue, Note
from rlm_mem.interchange.target import ImportTarget

_CONTENT = attrgetter("content")


@dataclass
class FileReading:
    """The reading of a file, with its unit and mark in the ledger."""

    unit: str
    mark: str
    failed: bool = False


@dataclass
class ImportedText:
    """A note or a dialogue as text to remember; ``mark`` changes with it."""

    record: Dialogue | Note
    reading: FileReading
    text: str
    unit: str
    when: Callable[[int], str | None]

    @property
    def mark(self) -> str:
        """A digest of everything that decides whether the text is stored anew."""
        said = f"{self.text}\0{self.when(0)}\0{self.record.tags}"
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def sections(self) -> bool:
        """Whether each section of it is a memory of its own."""
        return isinstance(self.record, Note) and self.record.sections

    def arguments(self, secrets: SecretAction | None) -> dict[str, Any]:
        """Return the arguments of ``remember``."""
        record = self.record
        return {
            "text": self.text, "conversation_id": record.conversation_id, "tags": record.tags, "source": "import",
            "occurred_at": self.when, "metadata": record.extra, "provenance": {"path": record.where},
            "secrets": secrets, "again": True, "sections": self.sections,
        }  # fmt: skip


def text_of(record: Dialogue | Note, reading: FileReading) -> ImportedText:
    """Return a record as the text that is remembered."""
    if isinstance(record, Note):
        unit = f"note:{record.conversation_id}" + (f"#{record.key}" if record.key else "")
        return ImportedText(record, reading, record.text, unit, lambda _position: record.at)
    starts: list[int] = []
    lines: list[str] = []
    position = 0
    for message in record.messages:
        starts.append(position)
        lines.append(f"{message.author}: {message.text}\n")
        position += len(lines[-1])
    times = [message.at for message in record.messages]
    return ImportedText(
        record,
        reading,
        "".join(lines),
        f"dialogue:{record.key}",
        lambda position: times[max(0, bisect_right(starts, position) - 1)],
    )


class TextImporter:
    """Stores notes and dialogues, or in a dry run counts what would be stored."""

    def __init__(self, target: ImportTarget) -> None:
        self._target, self._ledger = target, target.ledger
        self._store, self._report, self._options = target.store, target.report, target.options

    def store_all(self, texts: Sequence[ImportedText]) -> None:
        """Store notes and dialogues, in this order; each that replaces another in a separate transaction."""
        new: dict[str, ImportedText] = {}
        for text in texts:
            if isinstance(text.record, Dialogue):
                self._report.messages += len(text.record.messages)
            if text.unit in new:
                self._store_new(list(new.values()))
                new.clear()
            former = self._ledger.ids(text.unit)
            if self._ledger.mark(text.unit) == text.mark and not self._options.again:
                self._report.known += len(former)
            elif self._options.dry_run:
                self._count_chunks(text)
            elif former:
                self._store_new(list(new.values()))
                new.clear()
                with self._target.changing():
                    self._store_new([text])
            else:
                new[text.unit] = text
        self._store_new(list(new.values()))

    def _store_new(self, texts: Sequence[ImportedText]) -> None:
        """Store notes and dialogues, in large transactions."""
        if not texts:
            return

        def refused(number: int, error: RlmMemError) -> None:
            texts[number].reading.failed = True
            self._report.problem(texts[number].record.where, error.message)

        remember_many(
            self._store,
            [text.arguments(self._options.secrets) for text in texts],
            refused=refused,
            stored=lambda number, result: self._stored(texts[number], result),
            progress=lambda _done, _total: (
                None if self._store.backend.in_transaction else self._ledger.flush()
            ),
            change=self._target.change,
        )

    def _stored(self, text: ImportedText, result: RememberResult) -> None:
        self._report.created += result.created
        self._report.known += len(result.duplicates)
        self._report.tokens += result.tokens
        self._report.found(result.secrets)
        known = set(result.duplicates)
        new = [one for one in result.chunk_ids if one not in known]
        self._report.chunks(self._store.namespace, len(new), new)
        self._retire(
            text, result.chunk_ids, lambda: map(_CONTENT, self._store.get_many(result.chunk_ids).values())
        )
        self._ledger.note(text.unit, text.mark, result.chunk_ids)

    def _retire(
        self, text: ImportedText, present: Sequence[str], contents: Callable[[], Iterable[str]]
    ) -> None:
        """Archive replaced chunks: of text that was removed from a note, or of a conversation that was extended.

        Chunks that were changed in the store since are kept.

        Args:
            present: ids of its chunks now.
            contents: returns their contents.
        """
        former = [one for one in self._ledger.ids(text.unit) if one not in present]
        is_note = isinstance(text.record, Note)
        texts = list(contents()) if former and not is_note else []
        for chunk_id in former:
            chunk = self._store.get_chunk(chunk_id, track=False)
            if chunk is None or chunk.revision != 1:
                continue
            beginning = chunk.content.rstrip()
            if is_note or any(one.startswith(beginning) for one in texts):
                self._report.archived += self._options.dry_run or self._store.delete_chunk(chunk_id)

    def _count_chunks(self, text: ImportedText) -> None:
        record, config = text.record, self._store.config
        try:
            check_tags(record.tags)
            analysed = analyse(
                text.text, config.ingest, config.secrets, self._options.secrets, sections=text.sections
            )
        except InputError as error:
            self._report.problem(record.where, str(error))
            return
        self._report.found(analysed.screened)
        present = [self._store.find_same(piece.content, record.conversation_id) for piece in analysed.pieces]
        for piece, known in zip(analysed.pieces, present, strict=True):
            if known:
                self._report.known += 1
            else:
                self._report.created += 1
                self._report.tokens += piece.tokens
                self._report.chunks(self._store.namespace, 1)
                self._report.sample(record.where, piece.content)
        self._retire(text, [one for one in present if one], lambda: map(_CONTENT, analysed.pieces))
