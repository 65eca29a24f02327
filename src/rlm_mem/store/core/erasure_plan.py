"""What an erasure removes: chunks by what they say, by where they are from or by their ids, and their fingerprints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk
from rlm_mem.chunk.types import amount
from rlm_mem.store.core.brain_files import Runs
from rlm_mem.store.core.changes import TRANSITIONS, UNDO
from rlm_mem.store.core.contents import NamespaceReader, owners
from rlm_mem.store.core.erasure_checks import bears_name
from rlm_mem.store.core.erasure_marks import Ends, Mark
from rlm_mem.store.core.erasure_report import (
    ErasureReport,
    Fingerprint,
    Matcher,
    fingerprints_of,
    of_namespace,
)
from rlm_mem.store.core.redacting import Redaction
from rlm_mem.store.core.succession import successions

if TYPE_CHECKING:
    from rlm_mem.results import Progress
    from rlm_mem.store.core.chunk_store import ChunkStore

_UNREAD = (
    "{} that cannot be read: rlm-mem store check names them; erase again when they are repaired or removed"
)


@dataclass
class Plan:
    """What an erasure is to remove.

    Attributes:
        spaces: all namespaces that the store reaches.
        runs: the recorded runs of all of them (``BrainFiles.runs``).
        needles: recognises the name and the content.
        found: ids of the chunks, by namespace; each namespace of which anything may be erased is a key.
        strays: those of them that no longer exist, but have former versions.
        versioned: ids of chunks with former versions, in the namespaces of ``found``.
        prints: fingerprints of the chunks, in order.
        ends: the end of the validity of the chunks that they replaced, before that.
        files: the files that the chunks were imported from.
        gone: ids of the chunks that an earlier run, which was cut off, has deleted, by namespace.
        mark: what is written of the erasure; None for a dry run.
    """

    store: ChunkStore
    spaces: list[str]
    runs: Runs
    needles: Matcher
    found: dict[str, list[str]] = field(default_factory=dict)
    strays: dict[str, list[str]] = field(default_factory=dict)
    versioned: set[str] = field(default_factory=set)
    prints: dict[Fingerprint, None] = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    gone: dict[str, set[str]] = field(default_factory=dict)
    mark: Mark | None = None

    @classmethod
    def _without_chunks(cls, store: ChunkStore, report: ErasureReport) -> Plan:
        runs = store.files.runs()
        return cls(store, list(dict.fromkeys([*owners(store, runs), store.namespace])), runs, Matcher(report))

    @classmethod
    def by_search(cls, store: ChunkStore, report: ErasureReport, progress: Progress | None) -> Plan:
        """Find the chunks of the person, source or namespace of a report.

        The chunks, their fingerprints and what cannot be read are added to the report.
        """
        namespace = report.namespace
        report.unread = store.unreadable_files  # indexes files that were corrected meanwhile
        if namespace is not None:
            report.remaining.append("the name of the namespace, in the audit log and in lists of namespaces")
        plan = cls._without_chunks(store, report)
        for name in plan.spaces:
            if namespace in (None, name):
                plan.found[name] = plan._chosen(NamespaceReader(store, name), progress)
        if namespace is not None and not store.confined:
            plan.found.setdefault(namespace, [])  # it may be named in the audit log only
        plan._choose_strays()
        plan._choose_damaged()
        # Those damaged since are known once all were read.
        report.unread = max(report.unread, store.unreadable_files)
        if report.unread:
            report.remaining.insert(0, _UNREAD.format(amount(report.unread, "chunk file")))
        for name, ids in plan.found.items():
            plan.found[name] = list(dict.fromkeys([*ids, *plan.strays.get(name, ())]))
        report.chunk_ids = list(plan.chunk_ids)
        report.fingerprints = list(plan.prints)
        plan._keep_unique()
        return plan

    @classmethod
    def by_ids(cls, store: ChunkStore, report: ErasureReport, ids: Sequence[str]) -> Plan:
        """Find the chunks with these ids in the namespace of a store, which are added to the report."""
        plan = cls._without_chunks(store, report)
        plan.add(ids)
        plan._recognise()
        return plan

    @classmethod
    def of_mark(cls, store: ChunkStore, mark: Mark) -> Plan:
        """Return the plan of an erasure of chunks by their ids that was begun, from its mark."""
        plan, report = cls._without_chunks(store, mark.report), mark.report
        plan.found = {name: [] for name in plan.spaces} | {mark.namespace: list(report.chunk_ids)}
        plan.prints, plan.ends, plan.mark = dict.fromkeys(report.fingerprints), mark.ends, mark
        plan._recognise()
        return plan

    @property
    def report(self) -> ErasureReport:
        """The report of the erasure."""
        return self.needles.report

    @property
    def chunk_ids(self) -> Iterator[str]:
        """The ids of the chunks in all namespaces."""
        return (one for ids in self.found.values() for one in ids)

    def redaction(self, name: str | None = None) -> Redaction:
        """Return what takes the chunks of a namespace, or of all, out of what stays."""
        spaces = self.gone.keys() | self.found.keys() if name is None else (name,)
        ids = (one for each in spaces for one in (*self.found.get(each, ()), *self.gone.get(each, ())))
        return Redaction(self.needles, set(ids))

    def go_on_from(self, marks: Sequence[Mark]) -> None:
        """Take over what earlier runs, which were cut off, had deleted; what got such an id since stays."""
        dropped = list({one for mark in marks for one in mark.dropped})
        for mark in marks:
            for chunk_id, ends in mark.ends.items():
                self.ends.setdefault(chunk_id, ends)
        for name in self.spaces if dropped else ():
            self.gone[name] = set(dropped).difference(NamespaceReader(self.store, name).states(dropped))

    def add(self, ids: Sequence[str]) -> None:
        """Add the chunks with these ids in the namespace of the store, and their fingerprints."""
        reader, here = NamespaceReader(self.store), self.store.namespace
        for name in (*self.spaces, here):
            self.found.setdefault(name, [])
        new = list(dict.fromkeys(ids))
        self.found[here] += new
        known = set(reader.states(new))
        if len(known) < len(new):
            of_store = (
                (one, versions[-1].namespace) for one, versions in self.store.backend.stray_versions()
            )
            strays = [one for one, namespace in of_store if one in new and namespace == here]
            self.strays.setdefault(here, []).extend(strays)
            known.update(strays)
        for chunk in reader.chunks(new).values():
            self._note_traces([chunk, *reader.former(chunk.id)])
            self.note_ends(chunk)
            self.versioned.add(chunk.id)
        self.report.chunk_ids += [one for one in new if one in known]

    def note_ends(self, chunk: Chunk) -> None:
        """Note the ends of validity that the chunks which a chunk replaced had before."""
        for old_id, link in successions(chunk).items():
            self.ends.setdefault(chunk.id, {})[old_id] = link.extra.get("former_valid_to")

    def _note_traces(self, states: Sequence[Chunk]) -> None:
        """Note the fingerprints of the texts of a chunk to erase, and the files that these were read from."""
        for one in states:
            self.prints.update(dict.fromkeys(fingerprints_of(self.report.salt, one.content)))
            about, conversation = one.metadata, one.metadata.conversation_id or ""
            if "path" in about.provenance:
                path = conversation if conversation.startswith("file:") else str(about.provenance["path"])
                self.files.add(path.removeprefix("file:"))

    # --- choosing chunks ------------------------------------------------------------------------------------------

    def _chosen(self, reader: NamespaceReader, progress: Progress | None) -> list[str]:
        """Return the ids of a namespace's chunks to erase; notes their fingerprints, and what has former versions."""
        ids: list[str] = []
        for page in reader.pages(progress):
            chunks = reader.chunks([state.id for state in page])
            if self.report.namespace is not None:
                ids += [state.id for state in page if state.id not in chunks]
            for chunk in chunks.values():
                # All versions, also later ones: a file that was put back is older than they are.
                former = reader.former(chunk.id)
                if former:
                    self.versioned.add(chunk.id)
                if self._is_erased([chunk, *former]):
                    ids.append(chunk.id)
        return ids

    def _choose_strays(self) -> None:
        """Add the chunks that no longer exist and have former versions to erase, and the fingerprints of these."""
        for chunk_id, versions in self.store.backend.stray_versions():
            owner = versions[-1].namespace
            if owner in self.found and self._is_erased(versions):
                self.strays.setdefault(owner, []).append(chunk_id)

    def _is_erased(self, states: Sequence[Chunk]) -> bool:
        """Return whether a chunk with these states is to be erased; if so, notes their fingerprints."""
        if self.report.namespace is None and not any(bears_name(one, self.needles) for one in states):
            return False
        self._note_traces(states)
        return True

    def _choose_damaged(self) -> None:
        """Add chunks with a text or a former version that does not validate and whose bytes name what is erased."""
        named = self.report.namespace
        for namespace, chunk_id, data in self.store.backend.damaged_texts(self.found):
            is_named = self.needles.names(data)
            if namespace:
                if named is not None or is_named:
                    self.found[namespace].append(chunk_id)
            elif not self.store.confined and (of_namespace(named).search(data) if named else is_named):
                self.strays.setdefault(named or self.store.namespace, []).append(chunk_id)

    # --- fingerprints ---------------------------------------------------------------------------------------------

    def _recognise(self) -> None:
        """Take the fingerprints by which chunks that were named by their ids are recognised."""
        self.report.fingerprints = list(self.prints)
        self.needles = Matcher(self.report)
        # All chunks are read only if a file that stays holds some of the text, which may be that of another chunk.
        if self._is_quoted():
            self._keep_unique()

    def _is_quoted(self) -> bool:
        for name in self.spaces:
            reader = NamespaceReader(self.store, name)
            names = [one for one in reader.file_names(self.runs) if not one.startswith((UNDO, TRANSITIONS))]
            for _, data in reader.stored.contents(names):
                if next(self.needles.places(data), None) is not None:
                    return True
        return False

    def _keep_unique(self) -> None:
        """Drop fingerprints of text that remaining chunks also contain: it is no trace of the erased ones."""
        self.needles = Matcher(self.report)
        if not self.report.fingerprints:
            return
        shared: set[Fingerprint] = set()
        for namespace in self.spaces:
            reader, erased_ids = NamespaceReader(self.store, namespace), set(self.found.get(namespace, ()))
            for page in reader.pages():
                stay = [state.id for state in page if state.id not in erased_ids]
                for chunk in reader.chunks(stay).values():
                    has_former = chunk.id in self.versioned or namespace not in self.found
                    for one in [chunk, *(reader.former(chunk.id) if has_former else ())]:
                        shared.update(self.needles.places(one.content.encode("utf-8")))
        self.report.fingerprints = [one for one in self.report.fingerprints if one not in shared]
        self.needles = Matcher(self.report)
