"""Creates receipts: the record of a run, with the chunk versions it is based on and the results of its calls.

The programs of the run are replayed on the memory, and each call is recorded. A step is marked as not
reproduced if the memory has changed since the run, or if a program uses random numbers or the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rlm_mem.arguments import check_flag
from rlm_mem.chunk import Chunk
from rlm_mem.errors import BudgetError, ConflictError, InputError
from rlm_mem.recall.shown_runs import check_shown, shown_trajectory
from rlm_mem.recall.trajectory import Trajectory
from rlm_mem.receipts.format import (
    FORMAT,
    VOLATILE,
    AskedQuestion,
    Bundle,
    ChunkVersion,
    GivenAnswer,
    MemoryState,
    ModelReply,
    Receipt,
    ReceiptOrigin,
    ReceiptStep,
    RunCost,
    RunSettings,
    digest,
    plain_json,
)
from rlm_mem.receipts.signing import sign
from rlm_mem.receipts.tape import CallRecorder, hashed
from rlm_mem.sandbox.values import well_formed
from rlm_mem.text.secrets import redact

if TYPE_CHECKING:
    from rlm_mem.recall.replaying import ReplayStep
    from rlm_mem.store.core.chunk_store import ChunkStore

_Part = TypeVar("_Part", bound=msgspec.Struct)
_CHANGING = re.compile(rf"(['\"](?:{'|'.join(sorted(VOLATILE))})['\"]: )(?:[\d.]+|'[^']*'|None)")


def make_receipt(
    store: ChunkStore,
    run: object = "last",
    *,
    functions: Any = None,
    bundle: bool = False,
    key: str | Path | None = None,
    password: str | None = None,
) -> Receipt:
    """Create the receipt of a run.

    Args:
        store: the memory of the run.
        run: a result of recall or reason, a trajectory, or the id of one; ``"last"``: the newest run.
        functions: additional host functions that the run's programs used, by name.
        bundle: also create the bundle (``Receipt.bundle``).
        key: file of an Ed25519 private key to sign with (extra ``sign``); ``password``: its password, if any.

    Raises:
        NotFoundError: the run does not exist.
        InputError: the run has not ended or failed, a run given by its id met a memory that is in quarantine, the key
            cannot be used, or a bundle is requested and the memory no longer returns the same results.
    """
    check_flag(bundle, "bundle")
    trajectory = run if isinstance(run, Trajectory) else getattr(run, "trajectory", run)
    if not isinstance(trajectory, Trajectory):
        trajectory = check_shown(shown_trajectory(store, str(trajectory)))
    outcome = trajectory.outcome
    if outcome is None or outcome.error is not None:
        raise InputError(
            f"run {trajectory.id} has no outcome, so there is no answer for a receipt",
            hint="ask again; rlm-mem trajectories list shows how each run ended",
        )
    if trajectory.as_of is not None:
        raise ConflictError(
            f"run {trajectory.id} was asked as of {trajectory.as_of[:10]}: a receipt covers only the present memory",
            hint="ask without as_of, or keep the run itself: rlm-mem trajectories show",
        )
    trajectory = without_keys(trajectory)
    recorder = CallRecorder(store, trajectory, functions=functions)
    with suppress(BudgetError):  # steps beyond the limit are marked as not reproduced
        recorder.play(trajectory.query, 0)
    replays = [recorder.replay_of(step) for step in trajectory.steps]
    parts = RecordedParts(trajectory)
    chunks, documents = _chunks(store, trajectory)
    config = recorder.config
    receipt = Receipt(
        origin=ReceiptOrigin(FORMAT, _version(), trajectory.id, trajectory.operation, trajectory.namespace),
        question=parts.question,
        settings=RunSettings(
            model=trajectory.model,
            engine=trajectory.engine,
            limits=plain_json(trajectory.limits),
            output_chars=recorder.output_chars,
            max_host_calls=config.sandbox.max_host_calls,
            timeout_seconds=float(config.sandbox.timeout_seconds),
            language=config.search.language,
            functions=sorted(functions or {}),
        ),
        state=MemoryState(store.backend.version(store.namespace), int(store.totals()["chunk_count"])),
        steps=tuple(_with_calls(step, *now) for step, now in zip(parts.steps, replays, strict=True)),
        replies=parts.replies,
        chunks=chunks,
        answer=parts.answer,
        cost=parts.cost,
    )
    if bundle:
        receipt = replace(receipt, bundle=_bundle(receipt, documents, [calls for _, calls in replays]))
    return receipt if key is None else replace(receipt, signature=sign(receipt.head, key, password=password))


def _bundle(
    receipt: Receipt, documents: dict[str, dict[str, Any]], calls: list[list[dict[str, Any]]]
) -> Bundle:
    if not all(step.reproduced for step in receipt.steps) or any(one.hash is None for one in receipt.chunks):
        raise InputError(
            f"the memory no longer returns what it returned to run {receipt.origin.run}, so there can be no bundle",
            hint="ask again, and write the receipt and its bundle together with the answer",
        )
    return Bundle(receipt.head, documents, {number: made for number, made in enumerate(calls) if made})


def _version() -> str:
    try:
        return version("rlm-mem")
    except PackageNotFoundError:
        return "unknown"


class RecordedParts:
    """The parts of a receipt that can be derived from a trajectory, without calls and reproduction."""

    def __init__(self, trajectory: Trajectory) -> None:
        outcome = trajectory.outcome
        assert outcome is not None
        self.question = AskedQuestion(well_formed(trajectory.query), trajectory.started_at)
        self.steps = tuple(_part(ReceiptStep, one, reproduced=True, calls=[]) for one in trajectory.steps)
        self.replies = tuple(_part(ModelReply, one, prompt=one.key) for one in trajectory.calls)
        by_program = any(step.final and not step.depth for step in trajectory.steps)
        self.answer = _part(GivenAnswer, outcome, outcome=outcome.word, by_program=by_program)
        self.cost = _part(
            RunCost,
            outcome,
            turns=outcome.iterations,
            usage={name: int(value) for name, value in asdict(outcome.usage).items()},
            usd=None if outcome.cost is None else str(outcome.cost),
        )


def without_keys(trajectory: Trajectory) -> Trajectory:
    """The trajectory with keys of model providers redacted, as in its file."""
    return replace(
        trajectory,
        query=redact(trajectory.query),
        steps=[_redact_record(step) for step in trajectory.steps],
        calls=[_redact_record(call) for call in trajectory.calls],
        outcome=trajectory.outcome and _redact_record(trajectory.outcome),
    )


def _redact_record(record: Any) -> Any:
    return replace(record, **{one.name: _redact_value(getattr(record, one.name)) for one in fields(record)})


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _redact_value(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_redact_value(item) for item in value)
    return value


def agrees(step: ReplayStep) -> bool:
    """Whether a replayed turn gave the same results, apart from the values in ``VOLATILE``."""
    then, now = step.then, step.now
    error = None if now.error is None else redact(now.error)
    quoted = then.error_kind == "QuotedProgram"
    return (
        _mask_changing_values(then.output) == _mask_changing_values(redact(now.output))
        and (quoted or _optional(then.error) == _optional(error))
        and tuple(then.chunks_read) == tuple(now.chunks_read)
        and then.final == now.final
    )


def chunk_hash(document: Mapping[str, Any]) -> str:
    """The hash of a chunk version: of its document without the fields that reads change."""
    metadata = document.get("metadata")
    stable_fields = dict(document)
    if isinstance(metadata, Mapping):
        stable_fields["metadata"] = {name: value for name, value in metadata.items() if name not in VOLATILE}
    return digest(plain_json(stable_fields), "chunk")


def _part(kind: type[_Part], record: object, **given: Any) -> _Part:
    """A part of a receipt: each field as given, else that of the record with this name, as plain data."""
    named = {name: getattr(record, name) for name in kind.__struct_fields__ if name not in given}
    return msgspec.convert(plain_json(named) | given, kind)


def _with_calls(step: ReceiptStep, now: ReplayStep | None, calls: list[dict[str, Any]]) -> ReceiptStep:
    if not step.programs:
        return step
    return msgspec.structs.replace(step, calls=hashed(calls), reproduced=now is not None and agrees(now))


def _chunks(
    store: ChunkStore, trajectory: Trajectory
) -> tuple[tuple[ChunkVersion, ...], dict[str, dict[str, Any]]]:
    """Versions read or cited, as of the end of the run, and their documents by id."""
    outcome = trajectory.outcome
    assert outcome is not None
    cited, ids = set(outcome.chunk_ids), chunk_ids_of(trajectory)
    present = store.get_many(ids, track=False)
    versions, documents = [], {}
    for chunk_id in ids:
        found = version_until(store, chunk_id, present.get(chunk_id), outcome.ended_at)
        if found is None:
            versions.append(ChunkVersion(chunk_id, None, None, chunk_id in cited))
            continue
        document = plain_json(found.to_dict())
        documents[chunk_id] = document
        versions.append(ChunkVersion(chunk_id, found.revision, chunk_hash(document), chunk_id in cited))
    return tuple(versions), documents


def chunk_ids_of(trajectory: Trajectory) -> list[str]:
    """Chunks that an ended run cited or read, in the order of a receipt: cited ones first."""
    outcome = trajectory.outcome
    assert outcome is not None
    read = (one for step in trajectory.steps for one in step.chunks_read)
    return list(dict.fromkeys([*outcome.chunk_ids, *read, *outcome.evidence]))


def version_until(store: ChunkStore, chunk_id: str, present: Chunk | None, moment: str) -> Chunk | None:
    """The version of a chunk at a given time; None if it is no longer stored."""
    if present is not None and present.metadata.modified_at <= moment:
        return present
    stored_versions: Iterable[Chunk] = (version.chunk for version in store.history(chunk_id))
    found = [chunk for chunk in stored_versions if chunk.metadata.modified_at <= moment]
    return max(found, key=lambda chunk: chunk.revision, default=None)


def _mask_changing_values(output: str) -> str:
    return _CHANGING.sub(r"\1…", well_formed(output))


def _optional(value: str | None) -> str | None:
    return None if value is None else well_formed(value)
