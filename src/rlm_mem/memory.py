"""The public entry point of the package: the class Memory.

Memory opens a brain for remember, recall, reason, search and maintenance; its methods delegate to other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Unpack, overload

from rlm_mem import results, search as searching, store as storage
from rlm_mem.arguments import check_flag, check_kind, check_mapping, check_model, not_copied
from rlm_mem.config import Config, SecretAction, locate
from rlm_mem.store.core import bulk
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.records import ConversationInfo, LinkedChunk, SyncReport, Version, is_mirror, page

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.chunk.types import Ttl
    from rlm_mem.continuum.system import Continuum
    from rlm_mem.errors import InputError, RlmMemError
    from rlm_mem.ingest.remember import RememberResult, When
    from rlm_mem.interchange.documents import FolderOptions
    from rlm_mem.interchange.report import FolderReport
    from rlm_mem.models.base import LLM, Limits
    from rlm_mem.persona import Persona
    from rlm_mem.proposals.finding import Finder
    from rlm_mem.recall.costing import CostLine
    from rlm_mem.recall.host_session import RecallSession
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.reason import ReasoningResult
    from rlm_mem.recall.recall import RecallResult, ValueT, Wanted
    from rlm_mem.recall.trajectory import TrajectoryInfo
    from rlm_mem.recall.trajectory_export import ExportedRun
    from rlm_mem.receipts import Bundle, Receipt, Verification
    from rlm_mem.results import Checkpoint, Event, Hud, Progress, RecordedChange, Stats, UndoneChange
    from rlm_mem.search import Hit, MemoryContext
    from rlm_mem.store.core.erasure_report import ErasureReport
    from rlm_mem.store.core.findings import Finding
    from rlm_mem.store.core.integrity import Repair
    from rlm_mem.store.core.lookup import Filters
    from rlm_mem.text.secrets import Screened


class Memory:
    """Long-term memory of an agent: one namespace of a brain.

    Example::

        with Memory.open("brain") as memory:
            memory.remember("Dana prefers trains to planes.", conversation_id="trip")
            print(memory.recall("How does Dana like to travel?").content)

    An object can be shared by any number of threads. A :meth:`batch` belongs to the thread that opened it, a
    session of :meth:`recall_session` takes one call at a time, and :meth:`close` must be the last call.
    In a program with an event loop use ``AsyncMemory`` (:mod:`rlm_mem.aio`).

    Args:
        store: an open chunk store.
        llm: the model that writes the programs of recall and reason: a name such as ``"openai:…"`` or
            ``"cli:claude"``, an object with ``complete()``, a callable, or None for the configured model (by default
            the built-in offline one, which needs no key and no network).
    """

    def __init__(self, store: ChunkStore, llm: object = None) -> None:
        self.store = check_kind(store, ChunkStore, "store", hint="open a folder with Memory.open(PATH)")
        self._llm_argument = llm
        self._llm: LLM | None = None
        self._llm_lock = Lock()
        self._own = local()

    @classmethod
    def open(
        cls, brain: str | Path | None = None, *, namespace: str | None = None, llm: object = None,
        config: Config | None = None, clock: Callable[[], datetime] | None = None, read_only: bool = False,
        actor: str | None = None, confined: bool = False,
    ) -> Memory:  # fmt: skip
        """Open the memory of a PostgreSQL database, or of a brain folder, which is created if missing.

        Args:
            brain: the folder, or a DSN, ``postgresql://…`` (extra ``postgres``); None searches as the command line
                does: ``RLM_MEM_BRAIN``, the nearest ``brain/`` upwards, else the user's data folder.
            namespace: path such as ``agent/project/user`` that separates chunks; None: the configured one.
            llm: name of a model, function from prompt to text, or object with ``complete``; None: the configured model.
            config: settings; None loads the environment and, for a folder, its ``config.toml``.
            clock: returns the current time with a time zone; for tests.
            read_only: refuse to write. ``actor``: the author of changes in the audit log.
            confined: refuse calls that name another namespace.

        Raises:
            StorageError: the place cannot be used. InvalidConfig: a setting is wrong. InputError: ``llm`` is no model.
        """
        check_model(llm)
        place = locate(brain)
        store = ChunkStore(
            place if isinstance(place, str) else place / "memory",
            namespace=namespace,
            config=Config.load(place) if config is None else config,
            clock=clock,
            read_only=read_only,
            actor=actor,
            confined=confined,
        )
        return cls(store, llm)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    __getstate__ = not_copied

    def __repr__(self) -> str:
        return f"<Memory: namespace {self.store.namespace} of {self.store.backend.location}>"

    def close(self) -> None:
        """Write pending changes and close all files and connections."""
        self.store.close()
        # A model passed as an object is closed by its owner; one opened here by name is closed here.
        close = getattr(self._llm, "close", None)
        if (self._llm_argument is None or isinstance(self._llm_argument, str)) and callable(close):
            close()

    @property
    def config(self) -> Config:
        """The effective settings."""
        return self.store.config

    @property
    def llm(self) -> LLM:
        """The model that writes the programs, resolved when first used."""
        with self._llm_lock:  # concurrent threads must share one model
            if self._llm is None:
                from rlm_mem.models.opening import adapt

                self._llm = adapt(self._llm_argument, self.config)
            return self._llm

    @cached_property
    def continuum(self) -> Continuum:
        """The tiered memories of this brain: record, use, consolidate, prune, review, query."""
        from rlm_mem.continuum.system import Continuum

        return Continuum(self.store)

    @cached_property
    def _more(self) -> Mapping[str, Callable[..., Any]]:
        """``continuum.functions``, for programs, without loading the rest of the tiered memories."""
        from rlm_mem.continuum.query import program_functions

        return program_functions(self.store)

    # --- remember --------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, conversation_id: str | None = None, tags: Sequence[str] | str | None = None,
        confidence: float = 0.7, chunk_type: str | None = None, source: str = "interaction",
        occurred_at: When | None = None, metadata: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None, secrets: SecretAction | None = None,
        progress: Progress | None = None, replaces: Sequence[str] | str | None = None, origin: str | None = None,
        trust: str | None = None, expires: str | date | None = None, ttl: Ttl | None = None, again: bool = False,
    ) -> RememberResult:  # fmt: skip
        """Store text of any length: chunked, typed, linked, deduplicated, in one transaction.

        Memories that its wording replaces ("we moved from A to B") are found; those that it may replace or contradict
        wait for a reviewer (``updates.find``).

        Args:
            conversation_id: the conversation it belongs to. ``tags``: words for finding it; a text is one tag.
            confidence: 0 to 1. ``chunk_type``: fact, preference, pattern, decision or note; None: detected.
            occurred_at: when it was said or happened, ISO 8601, if not now.
            replaces: ids of chunks that it makes out of date; they are kept, and ranked below it.
            origin: its source: person, agent, tool, import or web. ``trust``: trusted, ordinary or untrusted.
            expires, ttl: time at which, or duration (``30d``, seconds) after which it expires; not both.
            secrets: ``redact``, ``keep`` or ``refuse`` keys and passwords; None: as configured, by default ``redact``.
            metadata, provenance, source, progress: see :class:`rlm_mem.ingest.remember.TextOptions`.
            again: store it even if the store already has nearly the same text.

        Raises:
            InvalidChunk: there is nothing to remember, or an argument is wrong; nothing was changed.
            NotFoundError, ConflictError: a chunk to replace does not exist, or was already replaced.
            StorageError: the write failed; nothing was changed.
        """
        from rlm_mem.ingest.remember import remember

        made = remember(
            self.store, text, conversation_id=conversation_id, tags=tags, confidence=confidence, chunk_type=chunk_type,
            source=source, occurred_at=occurred_at, metadata=metadata, provenance=provenance, secrets=secrets,
            progress=progress, replaces=replaces, origin=origin, trust=trust, expires=expires, ttl=ttl, again=again,
            finder=self._finder(),
        )  # fmt: skip
        return self._judged(made)

    def remember_many(
        self, items: Iterable[str | Mapping[str, Any] | InputError], *, batch: int = 500,
        progress: Progress | None = None, refused: Callable[[int, RlmMemError], None] | None = None,
    ) -> list[RememberResult]:  # fmt: skip
        """Store many texts as if one after the other, in transactions of at most ``batch`` texts and about a second.

        An item is a text or a mapping of ``text`` and arguments of :meth:`remember`. A finished transaction is durable;
        ``progress`` is then called with the numbers of texts stored and read so far. ``refused`` is called with the
        number (from 0) and error of each text that cannot be stored, which is skipped; without it the error is raised
        after the texts before it were stored (within a :meth:`batch`, none are). Others can write in between. Raises as
        :meth:`remember`.
        """
        from rlm_mem.ingest.filling import remember_many as fill

        made = fill(self.store, items, batch=batch, finder=self._finder(), progress=progress, refused=refused)
        return [self._judged(one) for one in made]

    def _judged(self, made: RememberResult) -> RememberResult:
        """The result after a configured model decided what it replaces (``updates.judge``, ``updates.nearest``)."""
        if not (made.proposed or self.store.config.updates.nearest):
            return made
        from rlm_mem.continuum.model_decisions import decide_remembered

        return decide_remembered(self.store, self.continuum.review, made, lambda: self.llm)

    def sync_folder(
        self, path: str | Path, *, progress: Progress | None = None, **options: Unpack[FolderOptions]
    ) -> FolderReport:
        """Remember the text files below a folder; each further call updates the memory to their present state.

        Changed files supersede their former chunks, removed files are archived, renamed ones keep their chunks.
        ``options`` (patterns, tags, dry_run, …) are those of ``interchange.sync_folder``; ``undo(change=…)`` undoes it.

        Raises:
            NotFoundError: the folder does not exist. StorageError: the memory cannot be written.
        """
        from rlm_mem.interchange.folders import sync_folder

        return sync_folder(self.store, path, progress=progress, **options)

    def _finder(self) -> Finder | None:
        """The finder of replaced and contradicted memories, one per thread; None if ``updates.find`` is off."""
        if self.config.updates.find == "off":
            return None
        from rlm_mem.proposals.finding import Finder

        found: Finder | None = getattr(self._own, "finder", None)
        if found is None:
            found = Finder(self.store, lambda new: self.continuum.review.add_proposed(new))
            self._own.finder = found
        return found

    def recall(
        self, question: str, *, result: Wanted[ValueT] | None = None, limits: Limits | None = None,
        engine: str | None = None, functions: Mapping[str, Callable[..., Any]] | None = None,
        on_step: Callable[[LoopStep], None] | None = None, on_text: Callable[[str], None] | None = None,
        max_tokens: int | None = None, as_of: str | date | datetime | None = None,
    ) -> RecallResult[ValueT]:  # fmt: skip
        """Answer a question by running programs that the model writes.

        Args:
            result: type of the answer: a msgspec Struct, a dataclass, a pydantic model, or a JSON Schema as a dict.
                ``value`` of the result is then of this type.
            limits: limits of this recall; None: the configured ones.
            engine: ``monty`` or ``cpython``; None: the configured one.
            functions: further read-only functions for the program, by name.
            on_step: called after each turn. ``on_text``: called with each piece of text that the model streams.
            max_tokens: of all excerpts in ``sources`` together; ``limits`` bounds the cost of the run itself.
            as_of: answer from the memories that were in force on this day or at this time.

        Returns:
            The result; ``content`` is None if nothing was concluded or the memory does not contain the answer.

        Raises:
            InvalidQuery: the question is empty. ModelError: the model failed.
        """
        from rlm_mem.recall.recall import RecallOperation

        more = {**self._more, **({} if functions is None else check_mapping(functions, "functions"))}
        operation = RecallOperation(self.store, self.llm, engine=engine, functions=more, as_of=as_of)
        found = operation.recall(question, result=result, limits=limits, on_step=on_step, on_text=on_text)
        return found if max_tokens is None else found.within(max_tokens)

    def reason(
        self, question: str, *, limits: Limits | None = None, engine: str | None = None,
        on_step: Callable[[LoopStep], None] | None = None, on_text: Callable[[str], None] | None = None,
        as_of: str | date | datetime | None = None,
    ) -> ReasoningResult:  # fmt: skip
        """Follow links across memories to a conclusion with its path; the arguments are as in :meth:`recall`."""
        from rlm_mem.recall.reason import ReasonOperation

        operation = ReasonOperation(self.store, self.llm, engine=engine, functions=self._more, as_of=as_of)
        return operation.reason(question, limits=limits, on_step=on_step, on_text=on_text)

    def limits(self, **given: float | None) -> Limits:
        """The configured limits of a run with the given fields of ``Limits`` changed; None: as configured."""
        from rlm_mem.recall.running import limits_from

        return limits_from(self.config.recall).changed(given)

    def recall_session(
        self, query: str, *, limits: Limits | None = None, llm: object = None, config: Config | None = None,
        engine: str | None = None, functions: Mapping[str, Callable[..., Any]] | None = None,
        keep: bool = False, result: Any = None,
    ) -> RecallSession:  # fmt: skip
        """Open a recall in which the caller acts as the model, so that no key is needed (see ``RecallSession``).

        With ``keep`` its variables persist for further questions (``ask``); ``result`` is as for :meth:`recall`.
        """
        from rlm_mem.recall.host_session import recall_session

        more = {**self._more, **({} if functions is None else check_mapping(functions, "functions"))}
        return recall_session(
            self.store, query, limits=limits, llm=llm, config=config, engine=engine,
            functions=more, keep=keep, result=result,
        )  # fmt: skip

    def receipt(
        self, run: object = "last", *, bundle: bool = False, key: str | Path | None = None,
        password: str | None = None,
    ) -> Receipt:  # fmt: skip
        """Create a receipt of an answer, which anyone can verify later (docs/spec/receipt.md).

        Args:
            run: a result of recall or reason, or the id of a recorded run; ``"last"``: the newest run.
            bundle: also create the bundle for verifying the receipt without this memory (``Receipt.bundle``).
            key: file of an Ed25519 private key to sign with (extra ``sign``); ``password``: its password, if any.

        Raises:
            NotFoundError: there is no such run.
            InputError: the run has no answer, the key cannot be used, or it is too late to create a bundle.
        """
        from rlm_mem.receipts import make_receipt

        return make_receipt(self.store, run, functions=self._more, bundle=bundle, key=key, password=password)

    def verify(
        self, receipt: Receipt | bytes | str | Path, *, bundle: Bundle | bytes | str | Path | None = None,
        key: str | Path | None = None,
    ) -> Verification:  # fmt: skip
        """Verify a receipt: whether it was altered, and whether its answer still holds.

        Args:
            receipt: the receipt, the content of its file, or the path.
            bundle: the bundle of the receipt, on which its programs are replayed; None: replay on this memory.
            key: the expected public key of the signature: a line ``ssh-ed25519 …``, or a file.

        Raises:
            InputError: a file cannot be read, or the key is not valid.
        """
        from rlm_mem.receipts import verify

        return verify(receipt, store=self.store, bundle=bundle, key=key, functions=self._more)

    def search(
        self, query: str, *, limit: int = 10, filters: Filters | None = None, by: str = "chunk",
        as_of: str | date | datetime | None = None, explain: bool = False, max_tokens: int | None = None,
        neighbours: int = 0,
    ) -> list[Hit]:  # fmt: skip
        """Rank memories for a query, deterministically and without a model.

        Args:
            limit: maximum number of hits.
            filters: tags, type, conversation, period, speaker.
            by: ``chunk``, ``segment`` (the sentence or turn) or ``conversation``.
            as_of: rank by what was in force at that time.
            explain: return the parts of each score.
            max_tokens: of all snippets and neighbours together; the last hit that fits is cut.
            neighbours: turns or sentences on each side returned with each hit (`Hit.neighbours`), 0 to 10.
        """
        found = searching.search(
            self.store, query, limit=limit, filters=filters, by=by, as_of=as_of, explain=explain,
            neighbours=neighbours,
        )  # fmt: skip
        return found if max_tokens is None else searching.hits_within(found, max_tokens)

    def context(self, message: str = "", *, max_tokens: int = 800) -> MemoryContext:
        """Memories as text for a prompt: those relevant to a message, the newest preferences, then the newest of all.

        Args:
            max_tokens: maximum size of the text (o200k). Superseded memories are omitted.
        """
        return searching.memory_context(self.store, message, max_tokens=max_tokens)

    # --- single memories -------------------------------------------------------------------------------

    def get(self, chunk_id: str, *, as_of: str | date | datetime | None = None) -> Chunk | None:
        """Return a chunk, or None if it does not exist; counted as a read.

        Args:
            as_of: return its state at this time, or None if it was not in force (see ``ChunkStore.held_at``).
        """
        return (self.store if as_of is None else self.store.held_at(as_of)).get_chunk(chunk_id)

    def supersede(
        self, old_id: str, new_id: str, reason: str | None = None, *, confidence: float = 1.0, force: bool = False
    ) -> Chunk:  # fmt: skip
        """Record that one chunk replaces another, from the time of the newer one; ``undo`` reverts it.

        Search, recall and programs then rank the newer one first; with an earlier ``as_of`` they return the older one.
        See ``ChunkStore.supersede``; ``force``: even if the other one is newer.

        Returns:
            The older chunk, with the id of its successor in ``metadata.superseded_by``.

        Raises:
            NotFoundError, ConflictError, InvalidLink: one is missing, is replaced already, or is not the newer one.
        """
        return self.store.supersede(old_id, new_id, reason, confidence=confidence, force=force)

    def earlier(self, chunk_id: str, limit: int = 3) -> list[Hit]:
        """The valid earlier memories nearest to one, best first: what it may make out of date (``search.earlier``)."""
        return searching.earlier(self.store, chunk_id, limit)

    def update(
        self, chunk_id: str, content: str | None = None, metadata: Mapping[str, Any] | None = None,
        links: Sequence[Any] | Mapping[str, Any] | None = None, tags: Sequence[str] | str | None = None, *,
        confidence: float | None = None, chunk_type: str | None = None, expected_revision: int | None = None,
        secrets: SecretAction | None = None, on_secret: Callable[[Screened], None] | None = None,
    ) -> Chunk | None:  # fmt: skip
        """Change a chunk and keep its former version (see ``ChunkStore.update_chunk``); None if it does not exist."""
        if is_mirror(chunk_id) and (content, metadata, tags, confidence, chunk_type) != (None,) * 5:
            self.continuum.refuse_change(chunk_id)
        return self.store.update_chunk(
            chunk_id, content, metadata, links, tags, confidence=confidence, chunk_type=chunk_type,
            expected_revision=expected_revision, secrets=secrets, on_secret=on_secret,
        )  # fmt: skip

    def quarantine(self, chunk_id: str, reason: str | None = None) -> Chunk:
        """Hide a chunk from every read until it is released (see ``ChunkStore.quarantine``)."""
        return self.store.quarantine(chunk_id, reason)

    def release(self, chunk_id: str, trust: str | None = None) -> Chunk:
        """Release a chunk from quarantine, with its former trust or ``trust`` (see ``ChunkStore.release``)."""
        return self.store.release(chunk_id, trust)

    def delete(self, chunk_id: str, permanent: bool = False) -> bool:
        """Move a chunk to the archive, or delete it permanently; returns whether it existed.

        Permanently is as by ``erase``, in a batch once it is committed. A tiered memory is archived with its mirror.
        Raises ConflictError: it is to be deleted permanently.
        """
        if check_flag(permanent, "permanent") and not self.store.backend.in_transaction:
            self.continuum.refuse_deletion(chunk_id)
            return bool(self.erase(chunk_ids=[chunk_id], dry_run=False).chunk_ids)
        return self._owner(chunk_id).delete_chunk(chunk_id, permanent)

    def archive(
        self, *, restore: bool = False, dry_run: bool = True, **wanted: Unpack[bulk.Wanted]
    ) -> list[str]:
        """Archive, or restore, all chunks of a conversation, with tags or from a source, as one change; returns ids.

        The filters are ``conversation_id``, ``tags`` and ``source``, at least one, of which a chunk must match all that
        are given. By default nothing is changed (``dry_run``). Raises InputError: there is no filter.
        """
        return bulk.archive(self.store, restore=restore, dry_run=dry_run, **wanted)

    def erase(
        self, *, person: str | None = None, source: str | None = None, namespace: str | None = None,
        chunk_ids: Sequence[str] | None = None, dry_run: bool = True, progress: Progress | None = None,
    ) -> ErasureReport:  # fmt: skip
        """Erase a person or source in every namespace, a namespace, or chunks; or only report, as ``erasing.erase``."""
        from rlm_mem.store.core.erasing import erase

        return erase(
            self.store, person=person, source=source, namespace=namespace, chunk_ids=chunk_ids,
            dry_run=dry_run, progress=progress,
        )  # fmt: skip

    def verify_erasure(self, report: ErasureReport) -> list[str]:
        """Files and rows whose bytes still contain anything that the report lists as erased."""
        from rlm_mem.store.core.erasure_checks import verify_erasure

        return verify_erasure(self.store, report)

    def restore(self, chunk_id: str) -> Chunk | None:
        """Restore a chunk from the archive, or a tiered memory with its mirror."""
        return self._owner(chunk_id).restore_chunk(chunk_id)

    def _owner(self, chunk_id: object) -> Continuum | ChunkStore:
        return self.continuum if is_mirror(chunk_id) else self.store

    def history(self, chunk_id: str) -> list[Version]:
        """Every kept version of a chunk, the current one last."""
        return self.store.history(chunk_id)

    @overload
    def undo(self, chunk_id: None = None, *, change: str | None = None) -> UndoneChange | None: ...
    @overload
    def undo(self, chunk_id: str, *, to_revision: int | None = None) -> Chunk | None: ...
    def undo(
        self, chunk_id: str | None = None, *, to_revision: int | None = None, change: str | None = None
    ) -> Chunk | UndoneChange | None:
        """Undo the last change in the namespace that was made in this clone, or the last change of one chunk.

        Args:
            chunk_id: restore its former version or that of ``to_revision``; if new, undo its replacements.
            change: undo the change with this id, which may itself be an undo.

        Returns:
            The chunk, or the undone change of chunks, tiered memories, personas or reviews. None if there is
            nothing to undo.

        Raises:
            ConflictError: something was changed since, also by hand, or its former state is no longer stored; of a
                whole change, also within a batch. Without an id: all changes were made in other clones.
            NotFoundError: no change has this id.
        """
        if chunk_id is not None:
            return self.store.undo(chunk_id, to_revision=to_revision)
        return self.continuum.undo_change(change)

    def recorded_changes(self, limit: int | None = 20) -> list[RecordedChange]:
        """The last ``limit`` changes of the namespace (None: all), newest first, which ``undo`` can undo by id."""
        most = None if limit is None else page(limit, "limit")
        return list(islice(self.continuum.recorded_changes(), most))

    def link(
        self, source_id: str, target_id: str, link_type: str, strength: float = 0.5, reasoning: str | None = None
    ) -> bool:  # fmt: skip
        """Link two chunks; raises InvalidLink for an unknown type, a bad strength or a missing chunk."""
        return self.store.add_link(source_id, target_id, link_type, strength, reasoning)

    def unlink(self, source_id: str, target_id: str, link_type: str | None = None) -> int:
        """Remove links from one chunk to another; returns their number."""
        return self.store.remove_link(source_id, target_id, link_type)

    def links(
        self, chunk_id: str, link_type: str | None = None, direction: str = "both", limit: int | None = None
    ) -> list[LinkedChunk]:
        """Chunks linked with a chunk, strongest first; ``limit`` None returns all."""
        return self.store.linked(chunk_id, link_type, direction, limit)

    def list_chunks(
        self, conversation_id: str | None = None, start_date: str | date | None = None,
        end_date: str | date | None = None, tags: Sequence[str] | str | None = None, chunk_type: str | None = None, *,
        any_tags: Sequence[str] | str | None = None, namespace: str | None = None, archived: bool = False,
        limit: int | None = None, offset: int = 0, newest_first: bool = False,
        as_of: str | date | datetime | None = None, origin: Sequence[str] | str | None = None,
        trust: str | None = None,
    ) -> list[str]:  # fmt: skip
        """Ids by filter, in order of time (see ``ChunkStore.list_chunks``); ``as_of``: only chunks then in force."""
        return (self.store if as_of is None else self.store.held_at(as_of)).list_chunks(
            conversation_id, start_date, end_date, tags, chunk_type, any_tags=any_tags, namespace=namespace,
            archived=archived, limit=limit, offset=offset, newest_first=newest_first, origin=origin, trust=trust,
        )  # fmt: skip

    def tags(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Tags with their counts."""
        return self.store.tag_counts(limit)

    def conversations(self, limit: int | None = None) -> list[ConversationInfo]:
        """Conversations, the most recently active first."""
        return self.store.conversations(limit)

    @contextmanager
    def batch(self) -> Iterator[Memory]:
        """Group writes into one transaction, which is applied completely or not at all."""
        finder = None if self.store.backend.read_only else self._finder()
        with self.store.batch() if finder is None else finder.transaction():
            yield self

    def stats(self) -> Stats:
        """Statistics of this namespace; ``ChunkStore.get_stats`` returns them as a dictionary."""
        return results.Stats.of(self.store.get_stats())

    def check(self, progress: Progress | None = None) -> list[Finding]:
        """Run every integrity check of files, links, index and tiered memories."""
        return [*storage.check(self.store, progress=progress), *self.continuum.findings()]

    def repair(self, *, dry_run: bool = True, progress: Progress | None = None) -> list[Repair]:
        """Repair defects without deleting content; by default only report what would be done."""
        return [
            *storage.repair(self.store, dry_run=dry_run, progress=progress),
            *self.continuum.repairs(dry_run=dry_run),
        ]

    def rebuild_index(self, progress: Progress | None = None) -> SyncReport:
        """Rebuild the index from the files."""
        return self.store.rebuild_index(progress)

    def sync(self, full: bool = False) -> SyncReport:
        """Read files that were changed by hand or by version control."""
        return self.store.sync(full)

    def checkpoint(self) -> Checkpoint:
        """Write access counts into the files, and update the JSON views."""
        written = self.store.checkpoint()
        return results.Checkpoint(written["access_counts_folded"], tuple(written["views"]))

    def persona(self, session: str = "default", *, mode: str = "BASE", keep: bool = False) -> Persona:
        """The persona of a session, with its mode and sliders; ``keep`` stores its state in the brain."""
        from rlm_mem.persona import Persona

        return Persona(self.store.files, session, mode=mode, keep=keep)

    def hud(self, persona: Persona | None = None) -> Hud:
        """Figures of LIVEHUD for a persona; None: the stored default session."""
        figures = self.hud_figures(persona)
        return results.Hud(**{**figures, "sliders": tuple(figures["sliders"])})

    def hud_figures(self, persona: Persona | None = None) -> Mapping[str, Any]:
        """The figures of :meth:`hud` as plain data, for gauges and JSON (keys: ``rlm_mem.persona.figures.KEYS``)."""
        from rlm_mem.persona.figures import figures_of
        from rlm_mem.recall.trajectory import trajectories

        return figures_of(
            self.store,
            self.persona(keep=True) if persona is None else persona,
            last_run=next(trajectories(self.store), None),
            spent_today=self.costs(since=f"{self.store.clock().astimezone(UTC):%Y-%m-%d}"),
        )

    def trajectories(
        self, *, operation: str | None = None, since: str | date | None = None, until: str | date | None = None,
        limit: int | None = 50,
    ) -> list[TrajectoryInfo]:  # fmt: skip
        """Recorded runs, newest first.

        Args:
            operation: only runs of ``recall``, ``reason`` or ``session``.
            since, until: ``YYYY-MM-DD`` or a longer time; a date alone includes its day. ``limit``: None: all.
        """
        from rlm_mem.recall.shown_runs import list_trajectories

        return list_trajectories(self.store, operation=operation, since=since, until=until, limit=limit)

    def export_trajectories(
        self, *, fields: Sequence[str] | None = None, operation: str | None = None,
        since: str | date | None = None, until: str | date | None = None,
    ) -> Iterator[ExportedRun]:  # fmt: skip
        """Recorded runs as plain data for training, newest first, with secrets redacted.

        Args:
            fields: of :data:`rlm_mem.recall.trajectory_export.FIELDS`; None: all.
            operation, since, until: as for :meth:`trajectories`. Raises InputError for an unknown field.
        """
        from rlm_mem.recall.trajectory_export import export_trajectories

        return export_trajectories(self.store, fields=fields, operation=operation, since=since, until=until)

    def costs(self, *, since: str | date | None = None, until: str | date | None = None) -> list[CostLine]:
        """Costs of recalls by day, model and operation, oldest day first."""
        from rlm_mem.recall.costing import costs

        return costs(self.store, since=since, until=until)

    def events(
        self, since: str | date | None = None, op: str | None = None, chunk_id: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        """The audit log of this namespace, oldest first; ``limit`` selects the newest events."""
        return (results.Event.of(line) for line in self.store.events(since, op, chunk_id, limit))
