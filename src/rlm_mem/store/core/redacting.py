"""Takes what is erased out of the files, former versions and lines of the audit log that stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rlm_mem.chunk import normalise_unicode
from rlm_mem.store.core.brain_files import (
    ERASING,
    JOURNAL,
    MIRRORED,
    OF_BRAIN,
    SHOWN,
    Runs,
    is_open_run,
    named_ids,
    own_lines,
    parse_event,
    with_new_ids,
)
from rlm_mem.store.core.changes import TRANSITIONS, UNDO
from rlm_mem.store.core.contents import NamespaceReader, NamespaceWriter
from rlm_mem.store.core.erasure_marks import Ends
from rlm_mem.store.core.erasure_report import Matcher, of_namespace
from rlm_mem.store.core.records import in_lots

_PLACEHOLDER = "[erased]"
_GONE = "erased"
"""Stands for the id of an erased chunk in a text or its front matter."""
_RUNS = "trajectories/"
_RECORDS = (TRANSITIONS, UNDO, _RUNS, "system/review", "imports", MIRRORED, SHOWN)


class Redaction:
    """Takes a name, the content of chunks and their ids out of what stays.

    Args:
        needles: recognises the name and the content; what is found in files is added to its report.
        erased_ids: the ids of the chunks.
    """

    def __init__(self, needles: Matcher, erased_ids: set[str]) -> None:
        self._needles = needles
        self._report = needles.report
        self._erased_ids = erased_ids

    # --- brain files ----------------------------------------------------------------------------------------------

    def clean_files(self, reader: NamespaceReader, names: Iterable[str]) -> None:
        """Remove or redact files with the name or erased content, or that name erased chunks."""
        is_whole = self._report.namespace is not None
        in_folder = reader.stored.path("system") is not None  # whether namespaces share some files
        shared = (*(f"{folder}/" for folder in OF_BRAIN), JOURNAL) if in_folder else ()
        wanted = (one for one in names if not one.startswith(ERASING))
        for name, data in reader.stored.contents(sorted(wanted, key=lambda one: one.startswith(UNDO))):
            is_record, has_lines = name.startswith(_RECORDS), name.endswith(".jsonl")
            is_owned = is_whole and not name.startswith(shared)
            has_steps = is_whole and name == JOURNAL and bool(own_lines(reader.namespace, data))
            mentions = named_ids(data, self._erased_ids) if is_record or not is_whole else set[str]()
            is_found, is_named = self._needles.found(data), self._needles.names(name.encode("utf-8"))
            if not (is_owned or has_steps or mentions or is_found or is_named):
                continue
            self._report.files.append(
                f"{reader.namespace}: {'(a name that is erased)' if is_named else name}"
            )
            if self._report.dry_run:
                continue
            # The rest of a recorded run would not be a record, and without its first line would be of no namespace.
            is_undivided = name.startswith(_RUNS) or (is_record and not has_lines)
            if is_owned or is_named or is_undivided or (is_found and name.endswith(".json")):
                reader.stored.remove(name)
            else:
                self._redact_file(reader, name, mentions, without_steps=has_steps)

    def _redact_file(
        self, reader: NamespaceReader, name: str, mentions: set[str], *, without_steps: bool
    ) -> None:
        """Redact a file, also what others wrote to it since it was read.

        Args:
            mentions: the ids of erased chunks that it names.
            without_steps: drop the lines of the namespace from the journal that others share.
        """
        with reader.stored.transaction():
            data = reader.stored.read(name) or b""
            if without_steps:
                steps = set(own_lines(reader.namespace, data).splitlines(keepends=True))
                data = b"".join(line for line in data.splitlines(keepends=True) if line not in steps)
            if name.endswith(".jsonl"):
                data = self._without_lines(data, mentions)
            else:  # a list of ids stays one
                gone = "" if name.endswith(".json") else _GONE
                data = with_new_ids(self._redacted(data), dict.fromkeys(mentions, gone))
            reader.stored.write(name, data)

    def _without_lines(self, data: bytes, mentions: set[str]) -> bytes:
        """Return a text without its lines that have the name or erased content, or mention a chunk."""
        kept = (
            line
            for line in data.splitlines(keepends=True)
            if not (self._needles.found(line) or named_ids(line, mentions))
        )
        return b"".join(kept)

    def _redacted(self, data: bytes) -> bytes:
        """Return a text with a placeholder for the name, and for each line with erased content."""
        instead = f"{_PLACEHOLDER}\n".encode()
        lines = data.splitlines(keepends=True)
        # Before the name goes, by which a quotation may be recognised.
        quoted = (next(self._needles.places(line), None) is not None for line in lines)
        data = b"".join(instead if is_quoted else line for line, is_quoted in zip(lines, quoted, strict=True))
        if self._needles.names(data):  # in the whole text: a line may end within the name
            text = normalise_unicode("NFC", data.decode("utf-8", "replace"))
            data = self._needles.pattern.sub(_PLACEHOLDER, text).encode("utf-8")
        return data

    def end_runs(self, reader: NamespaceReader, runs: Runs) -> None:
        """Remove what runs recorded of the chunks before these were deleted, and the records of runs that go on.

        Such a run may have read a chunk that it has not recorded yet; without its file it records no more. One that
        was only begun is of no namespace yet.
        """
        names = [one for one in reader.file_names(runs) if one.startswith(_RUNS)]
        self.clean_files(reader, names)
        for name, data in reader.stored.contents([*names, *runs.get(None, ())]):
            if is_open_run(data):
                reader.stored.remove(name)
                self._report.files.append(f"{reader.namespace}: {name}")

    def drop_undo_records(self, reader: NamespaceReader) -> None:
        """Remove records of the change that cleaned the files, since they contain the former content."""
        is_whole = self._report.namespace == reader.namespace
        for name, data in reader.stored.contents(reader.stored.names(UNDO, recursive=True)):
            if is_whole or self._needles.found(data) or named_ids(data, self._erased_ids):
                reader.stored.remove(name)

    # --- former versions ------------------------------------------------------------------------------------------

    def clean_versions(self, writer: NamespaceWriter, ends: Ends) -> None:
        """Take links to erased chunks, and replacements by them, out of the former versions of the others.

        Args:
            ends: the end of the validity of a chunk before it was replaced.
        """
        versioned = writer.versioned() if self._erased_ids else []
        for ids in in_lots(versioned):
            lot = writer.states(ids)
            with writer.transaction() as transaction:
                for former in (one for chunk_id in lot for one in writer.former(chunk_id)):
                    by, links = former.metadata.superseded_by, former.links
                    former.links = [link for link in links if link.target_id not in self._erased_ids]
                    if by in self._erased_ids:
                        former.metadata.superseded_by = None
                        former.metadata.valid_to = ends.get(str(by), {}).get(former.id)
                    if by in self._erased_ids or len(former.links) < len(links):
                        transaction.keep(former)

    # --- the audit log --------------------------------------------------------------------------------------------

    def concerns(self, lines: bytes) -> bool:
        """Return whether any of these lines of the audit log may have to be rewritten."""
        if self._report.namespace is not None or b"\\u" in lines:
            # No line of this program is escaped: what such a line says shows only when it is parsed.
            return True
        return self._needles.found(lines) or bool(named_ids(lines, self._erased_ids))

    def event(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return an event of the audit log without its data about erased chunks; None: it is unchanged."""
        if self._report.namespace is not None:
            return None if event.get("erased") or event.get("op") == "erase" else _emptied(event)
        if event.get("op") == "erase" and "before" not in event:
            return None  # the line of an erasure itself
        data, about = msgspec.json.encode(event), (event.get("chunk_id"), *(event.get("chunk_ids") or ()))
        is_about = not self._erased_ids.isdisjoint(one for one in about if isinstance(one, str))
        if self._needles.found(data) or (is_about and not event.get("erased")):
            return _emptied(event)
        return self._without_ids(event) if named_ids(data, self._erased_ids) else None

    def stray_line(self, line: bytes) -> bytes | None:
        """Return a line of no known namespace without its data, empty if it cannot be read; None: it is unchanged."""
        event, named = parse_event(line), self._report.namespace
        if event is not None and (event.get("erased") or (named is not None and event.get("op") == "erase")):
            return None
        is_owned = named is not None and of_namespace(named).search(line) is not None
        if not (is_owned or self._needles.found(line) or named_ids(line, self._erased_ids)):
            return None
        return b"" if event is None else msgspec.json.encode(_emptied(event)) + b"\n"

    def own_events(self, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the events that an erasure logs: of an erased chunk only that it was, without the hash of its text.

        ``made``: the same change had created it, so that it does not keep the change from being undone.
        """
        events, kept = list(events), list[dict[str, Any]]()
        made = {event.get("chunk_id") for event in events if event["op"] == "create"}
        for event in events:
            if event.get("chunk_id") not in self._erased_ids:
                kept.append(self._without_ids(event))
            elif event["op"] == "erase":
                line = {name: value for name, value in event.items() if name != "before"}
                kept.append(line | ({"made": True} if event["chunk_id"] in made else {}))
        return kept

    def _without_ids(self, event: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in event.items()
            if not named_ids(msgspec.json.encode(value), self._erased_ids)
        }


def _emptied(event: dict[str, Any]) -> dict[str, Any]:
    return {"ts": event.get("ts"), "op": event.get("op"), "ns": event.get("ns"), "erased": True}
