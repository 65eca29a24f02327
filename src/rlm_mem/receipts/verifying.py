"""Verifies receipts: form, signature, record of the run, chunks, and a replay of the programs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import msgspec

from rlm_mem.arguments import check_kind
from rlm_mem.chunk import Chunk
from rlm_mem.chunk.types import amount
from rlm_mem.config import Config, EngineName
from rlm_mem.errors import BudgetError, InputError, InvalidQuery, NotFoundError, RlmMemError
from rlm_mem.models.base import Usage
from rlm_mem.recall.loop import LoopStep, answer_text, existing, first_ids, supporting
from rlm_mem.recall.outcome import outcome_word
from rlm_mem.recall.trajectory import SubCall, Trajectory, load_trajectory
from rlm_mem.receipts.format import (
    Altered,
    Bundle,
    ChunkVersion,
    Receipt,
    ReceiptStep,
    canonical,
    plain_json,
    read_bytes,
)
from rlm_mem.receipts.making import RecordedParts, agrees, chunk_hash, chunk_ids_of, without_keys
from rlm_mem.receipts.signing import fingerprint, public_key, signed_by
from rlm_mem.receipts.tape import DIVERGED, CallRecorder, hashed
from rlm_mem.sandbox.values import Final, well_formed
from rlm_mem.text.secrets import redact

if TYPE_CHECKING:
    from rlm_mem.recall.replaying import ReplayStep
    from rlm_mem.store.core.chunk_store import ChunkStore

Status = Literal["holds", "changed", "altered", "not checked"]
Verdict = Literal["holds", "changed", "incomplete", "altered"]
_Result = tuple[Status, str]
"""Status and detail of a check."""

_RANDOM = frozenset(
    (
        *("now", "today", "utcnow", "time", "time_ns", "monotonic", "perf_counter"),
        *("random", "randint", "uniform", "shuffle", "choice", "choices", "sample", "uuid4"),
    )
)
"""Names of functions with non-deterministic results."""


@dataclass(frozen=True)
class PartCheck:
    """The result of checking one part of a receipt.

    Attributes:
        part: ``file``, ``signature``, ``record``, ``settings``, ``chunk ID``, ``step N``, ``answer``, ``cost``.
        status: ``holds``; ``changed``: the memory has changed since; ``altered``: the receipt was changed;
            ``not checked``, with the reason.
        detail: the reason as text.
    """

    part: str
    status: Status
    detail: str

    def __str__(self) -> str:
        return f"{self.part}: {self.status}, {self.detail}" if self.detail else f"{self.part}: {self.status}"


@dataclass(frozen=True)
class Verification:
    """The result of verifying a receipt: what holds, what has changed since, and what was altered.

    Attributes:
        verdict: ``altered`` if any part is; else ``changed`` if any part is; else ``incomplete`` if a chunk, a
            step or the answer could not be checked; else ``holds``.
        checks: results by part.
        receipt: the receipt; None if the file is not one.
        signer: the fingerprint of the key that signed it, or None. It is the expected key
            only if the check ``signature`` holds.
    """

    verdict: Verdict
    checks: tuple[PartCheck, ...]
    receipt: Receipt | None
    signer: str | None = None

    @property
    def about(self) -> dict[str, str | None]:
        """Question, answer, suggestion and run of the receipt; each None if the file is not one."""
        if self.receipt is None:
            return dict.fromkeys(("question", "answer", "suggestion", "run"))
        answer, question, run = self.receipt.answer, self.receipt.question.text, self.receipt.origin.run
        return {"question": question, "answer": answer.content, "suggestion": answer.suggestion, "run": run}

    @property
    def holds(self) -> bool:
        """Whether nothing was altered or changed, and chunks, steps and answer could all be checked."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  {check}" for check in self.checks)])


def verify(
    receipt: Receipt | bytes | str | Path,
    *,
    store: ChunkStore | None = None,
    bundle: Bundle | bytes | str | Path | None = None,
    key: str | Path | None = None,
    functions: Any = None,
) -> Verification:
    """Verify a receipt, replaying its programs in the sandbox.

    Args:
        receipt: the receipt, the content of its file, or the path.
        store: the memory of the run; its chunks and its record of the run are compared, and without a bundle the
            programs run on it.
        bundle: the bundle written together with the receipt; the programs run on it.
        key: the expected public key of the signature: a line ``ssh-ed25519 …``, or a file.
        functions: additional host functions of the memory, by name.

    Raises:
        InputError: a file cannot be read, is too large or of a later format; the key is not valid.
    """
    trusted = None if key is None else public_key(key)
    data = receipt if isinstance(receipt, bytes) else None
    if isinstance(receipt, str | Path):
        data = read_bytes(receipt, "receipt")
    try:
        found = check_kind(receipt, Receipt, "receipt") if data is None else Receipt.from_bytes(data)
    except Altered as error:
        return _verdict([PartCheck("file", "altered", str(error))], None, None)
    checks = [PartCheck("file", "holds", f"{len(found.parts())} parts, their order and their hashes")]
    signature, signer = _signature(found, trusted)
    record = _record(found, store)
    checks += [PartCheck("signature", *signature), *_consistency(found), PartCheck("record", *record)]
    if isinstance(bundle, str | Path):
        bundle = read_bytes(bundle, "bundle")
    try:
        notes = Bundle.from_bytes(bundle) if isinstance(bundle, bytes) else bundle
        if notes is not None:
            differences = list(_differences(found, check_kind(notes, Bundle, "bundle")))
            held = f"{amount(len(notes.chunks), 'chunk')} and the calls of the programs"
            checks += differences or [PartCheck("bundle", "holds", held)]
    except Altered as error:
        return _verdict([*checks, PartCheck("bundle", "altered", str(error))], found, signer)
    chunks = [] if store is None else _chunks(found, store)
    checks += chunks
    if notes is not None and any(check.status == "altered" for check in checks):
        # The calls recorded in an altered receipt are not reliable.
        return _verdict(checks, found, signer)
    if notes is None and store is None:
        reason = "there is neither a memory nor a bundle to replay them on"
        return _verdict([*checks, PartCheck("steps", "not checked", reason)], found, signer)
    unchanged = (
        store is None
        or notes is not None
        or (
            found.state.change == store.backend.version(store.namespace)
            and found.origin.namespace == store.namespace
            and all(check.status == "holds" for check in chunks)
        )
    )
    try:
        replayed = _Replayed(found, store, notes, functions or {}, unchanged=unchanged)
        answer = replayed.answer(recorded=record[0] == "holds")
        checks += [*replayed.checks, PartCheck("answer", *answer)]
    except InputError as error:
        if notes is None:
            raise  # of functions that the caller gave
        checks.append(PartCheck("bundle", "altered", str(error)))  # a chunk or a function that none can be
    return _verdict(checks, found, signer)


def _verdict(checks: list[PartCheck], receipt: Receipt | None, signer: str | None) -> Verification:
    states = {check.status for check in checks}
    open_ends = [
        check
        for check in checks
        if check.status == "not checked" and check.part not in ("signature", "record")
    ]
    otherwise: Verdict = "incomplete" if open_ends else "holds"
    verdict: Verdict = "altered" if "altered" in states else "changed" if "changed" in states else otherwise
    return Verification(verdict, tuple(checks), receipt, signer)


# --- form, signature and record ---------------------------------------------------------------------------


def _signature(receipt: Receipt, trusted: bytes | None) -> tuple[_Result, str | None]:
    """The result for the signature, and the fingerprint of its key."""
    if receipt.signature is None:
        if trusted is not None:
            return ("altered", "it is not signed, though a key was named"), None
        return ("not checked", "it is not signed"), None
    try:
        key = signed_by(receipt.head, receipt.signature)
    except Altered as error:
        return ("altered", str(error)), None
    name = fingerprint(key)
    if trusted is None:
        return ("not checked", f"it matches the key {name}; name the key that you trust"), name
    if key != trusted:
        return ("altered", f"it was made with another key, {name}"), name
    return ("holds", f"made with the key {name}"), name


def _consistency(receipt: Receipt) -> Iterator[PartCheck]:
    """Find contradictions between the parts."""
    answer, ids = receipt.answer, [one.id for one in receipt.chunks]
    word = outcome_word(content=answer.content, chunk_ids=answer.chunk_ids, concluded=answer.concluded)
    if answer.outcome != word:
        yield PartCheck("answer", "altered", f"its outcome is {word!r}, not {answer.outcome[:40]!r}")
    if answer.by_program != any(step.final and not step.depth for step in receipt.steps):
        yield PartCheck("answer", "altered", "it disagrees with the steps on whether a program gave it")
    if [one.id for one in receipt.chunks if one.cited] != answer.chunk_ids:
        yield PartCheck("answer", "altered", "the chunks that it names are not those that are marked")
    read = (one for step in receipt.steps for one in step.chunks_read)
    used = list(dict.fromkeys([*answer.chunk_ids, *read]))
    if ids[: len(used)] != used or len(set(ids)) != len(ids):
        yield PartCheck(
            "chunks", "altered", "they are not those that the answer names and the steps read, in order"
        )
    turns: dict[tuple[str, int], int] = {}
    for number, step in enumerate(receipt.steps, 1):
        run = (step.question, step.depth)
        if step.turn not in (1, turns.get(run, 0) + 1):
            yield PartCheck(f"step {number}", "altered", "it is not at its place")
        turns[run] = step.turn
        if not step.depth and step.question != receipt.question.text:
            yield PartCheck(f"step {number}", "altered", "it is about another question")


def _record(receipt: Receipt, store: ChunkStore | None) -> _Result:
    """Compare the receipt with the memory's own record of the run."""
    if store is None:
        return "not checked", "no memory was given that could have a record"
    try:
        trajectory = without_keys(load_trajectory(store, receipt.origin.run))
    except NotFoundError:
        return "not checked", "this memory has no record of the run any more, or never had one"
    except InvalidQuery as error:
        return "altered", str(error)
    if trajectory.outcome is None:
        return "not checked", "the record of the run has no end"
    parts = RecordedParts(trajectory)
    settings = receipt.settings
    pairs: list[tuple[str, Any, Any]] = [
        ("the question", receipt.question, parts.question),
        ("the kind of run", receipt.origin.operation, trajectory.operation),
        ("the namespace", receipt.origin.namespace, trajectory.namespace),
        ("the model", settings.model, trajectory.model),
        ("the engine", settings.engine, trajectory.engine),
        ("the limits", settings.limits, plain_json(trajectory.limits)),
        (
            "the steps",
            [msgspec.structs.replace(step, calls=[], reproduced=True) for step in receipt.steps],
            list(parts.steps),
        ),
        ("the chunks", [one.id for one in receipt.chunks], chunk_ids_of(trajectory)),
        ("the replies of models", list(receipt.replies), list(parts.replies)),
        ("the answer", receipt.answer, parts.answer),
        ("the cost", receipt.cost, parts.cost),
    ]
    other = [name for name, here, there in pairs if _bytes(here) != _bytes(there)]
    if other:
        return "altered", f"the memory's own record of the run differs in: {', '.join(other)}"
    return "holds", "the memory's own record of the run is the same"


def _bytes(value: Any) -> bytes:
    return canonical(msgspec.to_builtins(value))


# --- chunks -------------------------------------------------------------------------------------------------


def _chunks(receipt: Receipt, store: ChunkStore) -> list[PartCheck]:
    ids = [one.id for one in receipt.chunks]
    try:
        present = store.get_many(ids, track=False)
    except InputError as error:
        return [PartCheck("chunks", "altered", str(error))]
    return [PartCheck(f"chunk {one.id}", *_chunk(one, present.get(one.id), store)) for one in receipt.chunks]


def _chunk(one: ChunkVersion, now: Chunk | None, store: ChunkStore) -> _Result:
    """The result for a version that was read, of a chunk as it is now."""
    revision = one.revision
    if one.hash is None:
        return "not checked", "its version was not available when the receipt was written"
    if now is not None and now.revision == revision:
        if chunk_hash(now.to_dict()) == one.hash:
            return "holds", f"revision {revision}"
        return "altered", f"revision {revision} of the memory has another hash"
    state = (
        f"it is at revision {now.revision} now"
        if now is not None
        else "it was deleted since"
        if store.get_archived(one.id) is not None
        else "the memory has no such chunk"
    )
    for version in (former.chunk for former in store.history(one.id)):
        if version.revision == revision:
            if chunk_hash(version.to_dict()) == one.hash:
                return "changed", f"{state}; revision {revision} is kept, and is as it was"
            return "altered", f"revision {revision}, which is kept, has another hash"
    if now is not None and revision is not None and now.revision < revision:
        return "altered", f"the memory is only at revision {now.revision}, not {revision}"
    return "changed", f"{state}; revision {revision} is not kept"


def _differences(receipt: Receipt, bundle: Bundle) -> Iterator[PartCheck]:
    """Compare the chunks and calls of a bundle with the hashes of the receipt."""
    if bundle.receipt != receipt.head:
        yield PartCheck("bundle", "altered", "it belongs to another receipt, or one of the two was altered")
    expected_versions = {one.id: one for one in receipt.chunks}
    for chunk_id in {**expected_versions, **bundle.chunks}:
        version, document = expected_versions.get(chunk_id), bundle.chunks.get(chunk_id)
        if version is None or document is None or chunk_hash(document) != version.hash:
            why = "the bundle does not contain the version that was read"
            yield PartCheck(f"chunk {chunk_id[:140]}", "altered", why)
    steps = dict(enumerate(receipt.steps))
    for number in sorted(steps.keys() | bundle.calls.keys()):  # not a range: a bundle may name any number
        step = steps.get(number)
        noted = bundle.calls.get(number, [])
        part = f"step {number + 1}"
        if step is None or hashed(noted) != step.calls:
            yield PartCheck(part, "altered", "the bundle contains other calls than it made")
        for one in dict.fromkeys(_misquoted([call.get("result") for call in noted], bundle.chunks)):
            why = f"the bundle quotes {one} with another text than the chunk has"
            yield PartCheck(part, "altered", why)


def _misquoted(value: Any, documents: dict[str, dict[str, Any]]) -> list[str]:
    """Chunks that a result quotes with content that differs from the bundle's."""
    if isinstance(value, list):
        return [one for item in value for one in _misquoted(item, documents)]
    if not isinstance(value, dict):
        return []
    found = [one for item in value.values() for one in _misquoted(item, documents)]
    chunk_id, content = value.get("id") or value.get("chunk_id"), value.get("content")
    if isinstance(chunk_id, str) and isinstance(content, str) and chunk_id in documents:
        whole = str(documents[chunk_id].get("content"))
        if not whole.startswith(content.removesuffix("…")):
            found.append(chunk_id)
    return found


# --- replay -------------------------------------------------------------------------------------------------


class _BundleStore:
    """A minimal store on a bundle, for replaying recorded calls."""

    namespace = "bundle"

    def __init__(self, bundle: Bundle) -> None:
        self.config = Config()
        self._documents = bundle.chunks

    def existing(self, chunk_ids: Iterable[str]) -> set[str]:
        """Those of the ids that belong to chunks of the bundle."""
        return self._documents.keys() & set(chunk_ids)

    def get_many(self, chunk_ids: Sequence[str], *, track: bool = False) -> dict[str, Chunk]:  # noqa: ARG002
        """The chunks of the bundle by id."""
        return {one: Chunk.from_dict(self._documents[one]) for one in chunk_ids if one in self._documents}


class _Replayed:
    """Replays a receipt's programs, and checks each step and the answer.

    Args:
        store: the memory, on which the programs run if ``notes``, the bundle, is None.
        unchanged: whether nothing was written since the receipt, so that any difference is an alteration.

    Attributes:
        checks: results of the steps with programs.
    """

    def __init__(
        self, receipt: Receipt, store: Any, notes: Bundle | None, functions: Any, *, unchanged: bool
    ) -> None:
        self._receipt = receipt
        self._read = first_ids(dict.fromkeys(one for step in receipt.steps for one in step.chunks_read))
        self._store = store = store if notes is None else _BundleStore(notes)
        self._unchanged = unchanged
        trajectory = _trajectory(receipt)
        settings = receipt.settings
        config: Config = store.config
        config = replace(
            config,
            sandbox=replace(
                config.sandbox,
                engine=next(
                    (one for one in get_args(EngineName) if one == settings.engine), config.sandbox.engine
                ),
                timeout_seconds=min(max(settings.timeout_seconds, 0.01), config.sandbox.timeout_seconds),
                max_host_calls=min(max(settings.max_host_calls, 1), config.sandbox.max_host_calls),
            ),
        )
        tapes = None
        if notes is not None:
            tapes = [notes.calls.get(number, []) for number in range(len(receipt.steps))]
            functions = dict.fromkeys(settings.functions, _refuse_call)
        player = CallRecorder(
            store, trajectory, config=config, functions=functions,
            output_chars=min(max(settings.output_chars, 1), 400_000), tapes=tapes,
        )  # fmt: skip
        self._stopped_by: str | None = None
        self._final: Final | None = None
        try:
            self._final = player.play(receipt.question.text, 0)
        except BudgetError as error:
            self._final, self._stopped_by = player.final, error.stopped_by
        self.checks: list[PartCheck] = []
        for number, (step, then) in enumerate(zip(receipt.steps, trajectory.steps, strict=True), 1):
            if step.programs:
                found = self._step(step, *player.replay_of(then))
                self.checks.append(PartCheck(f"step {number}", *found))

    def _step(self, step: ReceiptStep, now: ReplayStep | None, calls: list[dict[str, Any]]) -> _Result:
        if now is None:
            if self._stopped_by == DIVERGED:
                return "altered", "its programs, or those before it, make other calls than were recorded"
            if not step.reproduced or self._stopped_by:
                return (
                    "not checked",
                    f"the replay ended before it ({self._stopped_by or 'it was not reached'})",
                )
            return "altered", "no program produces it"
        differs = next((pair for pair in zip_longest(step.calls, hashed(calls)) if pair[0] != pair[1]), None)
        same = agrees(now)
        if same and differs is None:
            return "holds", "the same output"
        if not step.reproduced:
            return "not checked", "the memory gave other results already when the receipt was written"
        if differs is None and _is_random(step.programs):
            return "not checked", "its programs read the clock or use random numbers"
        if self._unchanged:
            what = "output" if not same else "calls"
            return "altered", f"its programs give another {what}, though the memory has not changed"
        if any(check.status != "holds" for check in self.checks):
            return "changed", "it depends on steps that differ"
        if differs is None:
            return "altered", "its programs give another output, though the memory returns the same"
        noted, made = differs
        if noted is None or made is None or (noted.name, noted.args) != (made.name, made.args):
            return "altered", "its programs make other calls than were recorded"
        what = "with the same output" if same else "so the output is another"
        return "changed", f"{noted.name} returns something else now, {what}"

    def answer(self, *, recorded: bool) -> _Result:
        """The result for the answer; ``recorded``: whether the memory's own record of the run agrees."""
        answer, read = self._receipt.answer, self._read
        if not answer.concluded:
            if read and list(read) != answer.chunk_ids:
                return "altered", "it does not name the chunks that were read"
            return "holds", "the run ended without one"
        if not answer.by_program:
            if recorded:
                return "holds", "given by the caller that drove the run, as the memory's record confirms"
            return "not checked", "given by the caller that drove the run: no program produces it"
        if self._final is None:
            return self._other_answer("the replay ended without an answer")
        content, chunk_ids = self._expected(self._final)
        if content != (answer.content or None):
            return self._other_answer(f"the programs give {_shorten(content)}")
        if _redacted(self._final.suggestion) != answer.suggestion:
            return self._other_answer(f"the programs give the suggestion {_shorten(self._final.suggestion)}")
        if chunk_ids != answer.chunk_ids:
            return self._other_answer("the programs give other chunks")
        # A run that finds no answer has confidence 0 if chunk files could not be read.
        withdrawn = content is None and answer.suggestion is None and answer.confidence == 0.0
        if self._final.confidence not in (None, answer.confidence) and not withdrawn:
            return self._other_answer(f"the programs give the confidence {self._final.confidence}")
        return "holds", "the programs give the same"

    def _other_answer(self, detail: str) -> _Result:
        states = {check.status for check in self.checks}
        if "altered" in states or states <= {"holds"}:
            return "altered", detail
        return "changed" if "changed" in states else "not checked", detail

    def _expected(self, final: Final) -> tuple[str | None, list[str]]:
        """Answer and citations that the operation derives from the arguments of FINAL."""
        store = cast("ChunkStore", self._store)
        final_answer = final.answer
        named: list[Any] = list(final.chunk_ids)
        if self._receipt.origin.operation == "reason" and isinstance(final_answer, dict):
            supports = final_answer.get("supports")
            named += [one for one in supports if isinstance(one, str)] if isinstance(supports, list) else []
            final_answer = final_answer.get("conclusion", final_answer)
        text, inside = answer_text(final_answer)
        text = _redacted(text)
        chunks = existing(store, [*named, *inside])
        if text and not chunks:
            chunks = supporting(store, text, self._read)
        return text, list(chunks)


def _trajectory(receipt: Receipt) -> Trajectory:
    return Trajectory(
        id=receipt.origin.run,
        operation=receipt.origin.operation,
        query=receipt.question.text,
        namespace=receipt.origin.namespace,
        started_at=receipt.question.asked_at,
        model=receipt.settings.model,
        engine=receipt.settings.engine if receipt.settings.engine in ("monty", "cpython") else "monty",
        steps=[
            LoopStep(
                turn=step.turn, depth=step.depth, question=step.question, prompt_chars=0, prompt_tokens=0, reply="",
                programs=tuple(step.programs), output=step.output, error=step.error, error_kind=step.error_kind,
                chunks_read=tuple(step.chunks_read), final=step.final,
            )
            for step in receipt.steps
        ],
        calls=[
            SubCall(one.turn, one.prompt, "", 0, one.reply, one.model, Usage(), error=one.error)
            for one in receipt.replies
        ],
    )  # fmt: skip


def _refuse_call(*_arguments: Any, **_keywords: Any) -> Any:
    raise RlmMemError("calls are answered from the bundle")


def _is_random(programs: Sequence[str]) -> bool:
    """Whether a program uses a function with non-deterministic results."""
    for program in programs:
        try:
            names = {
                node.attr if isinstance(node, ast.Attribute) else node.id
                for node in ast.walk(ast.parse(program))
                if isinstance(node, ast.Attribute | ast.Name)
            }
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if names & _RANDOM:
            return True
    return False


def _redacted(text: str | None) -> str | None:
    """A text with keys redacted, as in a recorded run."""
    return None if text is None else well_formed(redact(text))


def _shorten(text: str | None) -> str:
    return "no answer" if text is None else f"{text[:117]!r}{'…' if len(text) > 117 else ''}"
