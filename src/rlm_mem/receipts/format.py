"""The file format of receipts and bundles: lines of canonical JSON, chained by hashes (docs/spec/receipt.md)."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from rlm_mem.arguments import check_flag
from rlm_mem.chunk import parse_time
from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.sandbox.values import well_formed
from rlm_mem.store.core.files import write_atomic

VOLATILE = frozenset({"access_count", "accessed_at", "storage_size_mb", "index_size_mb"})
"""Keys of results that change without a change of the memory: access counts and sizes on disk."""


def plain_json(value: Any) -> Any:
    """Convert a value to plain JSON data.

    Tuples become lists, decimals and unknown types become text, lone surrogates U+FFFD, and non-finite numbers their
    names.
    """
    if isinstance(value, str):
        return well_formed(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {well_formed(str(name)): plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain_json(item) for item in value), key=canonical)
    if is_dataclass(value) and not isinstance(value, type):
        return plain_json(asdict(value))
    return well_formed(str(value) if isinstance(value, Decimal) else repr(value))


def canonical(value: Any) -> bytes:
    """Encode plain JSON data in its canonical form: one line with sorted keys, no spaces, UTF-8."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def digest(value: Any, domain: str) -> str:
    """SHA-256 in hexadecimal of a line with the domain, followed by the canonical form."""
    return hashlib.sha256(f"rlm-mem-receipt/1 {domain}\n".encode() + canonical(value)).hexdigest()


def without_volatile(value: Any) -> Any:
    """Plain data without the keys in ``VOLATILE``."""
    if isinstance(value, dict):
        return {name: without_volatile(item) for name, item in value.items() if name not in VOLATILE}
    return [without_volatile(item) for item in value] if isinstance(value, list) else value


FORMAT = 1
MAX_BYTES = 64_000_000
"""Maximum size of a receipt, and of a bundle."""
MAX_PARTS = 50_000
MAX_DEPTH = 64
"""Maximum levels of nesting in one line; a memory may have 32."""
_START = "0" * 64


class Altered(InputError):
    """A receipt or bundle was altered in its text, its order or one of its hashes."""


class HashedCall(Struct, forbid_unknown_fields=True, frozen=True):
    """One call of a program: function name, hash of the arguments and hash of the result."""

    name: str
    args: str
    result: str


class ReceiptOrigin(Struct, forbid_unknown_fields=True, frozen=True):
    """The run of the receipt, and the version of the program that wrote it."""

    format: int
    version: str
    run: str
    operation: str
    namespace: str


class AskedQuestion(Struct, forbid_unknown_fields=True, frozen=True):
    """The question and its time."""

    text: str
    asked_at: str


class RunSettings(Struct, forbid_unknown_fields=True, frozen=True):
    """The model, the engine and the limits of the run."""

    model: str
    engine: str
    limits: dict[str, Any]
    output_chars: int
    max_host_calls: int
    timeout_seconds: float
    language: str
    functions: list[str]


class MemoryState(Struct, forbid_unknown_fields=True, frozen=True):
    """The state of the memory when the receipt was written: the number of its last change."""

    change: int
    chunks: int


class ReceiptStep(Struct, forbid_unknown_fields=True, frozen=True):
    """One turn: programs, output and calls.

    ``reproduced`` is False if a replay already gave other results when the receipt was written.
    """

    turn: int
    depth: int
    question: str
    programs: list[str]
    output: str
    error: str | None
    error_kind: str | None
    chunks_read: list[str]
    final: bool
    reproduced: bool
    calls: list[HashedCall]


class ModelReply(Struct, forbid_unknown_fields=True, frozen=True):
    """The reply of a model to ``llm_query`` in a program."""

    turn: int
    prompt: str
    reply: str
    model: str
    error: str | None


class ChunkVersion(Struct, forbid_unknown_fields=True, frozen=True):
    """One version of a chunk that was read or cited; without revision and hash if it was no longer stored."""

    id: str
    revision: int | None
    hash: str | None
    cited: bool


class GivenAnswer(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """The outcome of the run; ``suggestion``: the likeliest answer if there is no sure one."""

    outcome: str
    content: str | None
    chunk_ids: list[str]
    confidence: float
    concluded: bool
    stopped_by: str | None
    by_program: bool
    detail: dict[str, Any]
    suggestion: str | None = None


class RunCost(Struct, forbid_unknown_fields=True, frozen=True):
    """Cost of the run; US dollars as text, null if the price of a call is unknown."""

    turns: int
    model_calls: int
    seconds: float
    usage: dict[str, int]
    usd: str | None
    models: list[dict[str, Any]]


class Seal(Struct, forbid_unknown_fields=True, frozen=True):
    """The last part, with the number of parts before it."""

    parts: int


class BundleHead(Struct, forbid_unknown_fields=True, frozen=True):
    """The first part of a bundle, which names its receipt."""

    format: int
    receipt: str


class ReceiptSignature(Struct, forbid_unknown_fields=True, frozen=True):
    """An Ed25519 signature over the last hash; key and signature in base64."""

    algorithm: str
    public_key: str
    signature: str


_ORDER: tuple[tuple[str, str, type[Struct], bool], ...] = (
    ("receipt", "origin", ReceiptOrigin, False),
    ("question", "question", AskedQuestion, False),
    ("settings", "settings", RunSettings, False),
    ("memory", "state", MemoryState, False),
    ("step", "steps", ReceiptStep, True),
    ("reply", "replies", ModelReply, True),
    ("chunk", "chunks", ChunkVersion, True),
    ("answer", "answer", GivenAnswer, False),
    ("cost", "cost", RunCost, False),
    ("seal", "", Seal, False),
)
"""Kinds of parts in order, each with the attribute of a receipt, its form, and whether it may be repeated."""


@dataclass(frozen=True)
class ReceiptPart:
    """One line: its kind, its content, and the hash over both and all lines before it."""

    kind: str
    body: dict[str, Any]
    hash: str


class _Document(ABC):
    """What a receipt and its bundle share."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The content of the file."""

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the file atomically; returns its path.

        Raises:
            InputError: it exists already. StorageError: it cannot be written.
        """
        write_atomic(check_new(path, overwrite=overwrite).absolute(), self.to_bytes())
        return Path(path)


@dataclass(frozen=True)
class Receipt(_Document):
    """The record of one answer as a file.

    Attributes:
        origin, question, settings, state, answer, cost: the parts that occur once.
        steps, replies, chunks: the repeated parts, in order.
        head: the hash over all parts, 64 hexadecimal digits, which a signature covers.
        signature: None for an unsigned receipt.
        bundle: the chunks and calls, if requested; written by :meth:`Bundle.write`.
    """

    origin: ReceiptOrigin
    question: AskedQuestion
    settings: RunSettings
    state: MemoryState
    steps: tuple[ReceiptStep, ...]
    replies: tuple[ModelReply, ...]
    chunks: tuple[ChunkVersion, ...]
    answer: GivenAnswer
    cost: RunCost
    signature: ReceiptSignature | None = None
    bundle: Bundle | None = field(default=None, compare=False, repr=False)

    @property
    def head(self) -> str:
        """The hash over all parts."""
        return self.parts()[-1].hash

    def parts(self) -> list[ReceiptPart]:
        """The lines of the file, without the signature."""
        bodies: list[tuple[str, Struct]] = []
        for kind, name, _, several in _ORDER[:-1]:
            value = getattr(self, name)
            bodies += [(kind, one) for one in (value if several else (value,))]
        bodies.append(("seal", Seal(len(bodies))))
        before, parts = _START, []
        for kind, body in bodies:
            plain = msgspec.to_builtins(body)
            before = chained(before, kind, plain)
            parts.append(ReceiptPart(kind, plain, before))
        return parts

    def to_bytes(self) -> bytes:
        """The content of the file."""
        lines = [canonical({"kind": one.kind, "body": one.body, "hash": one.hash}) for one in self.parts()]
        if self.signature is not None:
            lines.append(canonical({"kind": "signature", "body": msgspec.to_builtins(self.signature)}))
        return b"\n".join(lines) + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Receipt:
        """Parse a receipt, checking form, order and hashes, but not the content.

        Raises:
            Altered: the receipt is invalid; the message names the line.
        """
        bodies: list[tuple[str, Any]] = []
        signature: ReceiptSignature | None = None
        before, place = _START, 0
        for number, line in enumerate(_lines(data, "receipt"), 1):
            where = f"line {number} of the receipt"
            if signature is not None:
                raise Altered(f"{where} is after the signature")
            kind = line.get("kind")
            if kind == "signature" and bodies and bodies[-1][0] == "seal":
                signature = _convert(line.get("body"), ReceiptSignature, where)
                _check_keys(line, {"kind", "body"}, where)
                continue
            while place < len(_ORDER) and _ORDER[place][0] != kind:
                if not _ORDER[place][3] and (not bodies or bodies[-1][0] != _ORDER[place][0]):
                    break
                place += 1
            if place == len(_ORDER) or _ORDER[place][0] != kind:
                raise Altered(f"{where} is a part {str(kind)[:40]!r} that does not belong there")
            if not _ORDER[place][3] and bodies and bodies[-1][0] == kind:
                raise Altered(f"{where} is a second part {kind!r}")
            _check_keys(line, {"kind", "body", "hash"}, where)
            body = _convert(line.get("body"), _ORDER[place][2], where)
            before = chained(before, str(kind), line["body"])
            if line.get("hash") != before:
                raise Altered(f"{where} ({kind}) was altered, or one before it: its hash does not match")
            if canonical(msgspec.to_builtins(body)) != canonical(line["body"]):
                raise Altered(f"{where} is not in the form of a receipt")
            bodies.append((str(kind), body))
        if not bodies or bodies[-1][0] != "seal":
            raise Altered("the receipt has no end: lines are missing")
        if bodies[-1][1].parts != len(bodies) - 1:
            raise Altered("the receipt has another number of parts than its last line gives")
        fields: dict[str, Any] = {}
        for kind, name, _, several in _ORDER[:-1]:
            found = tuple(body for of, body in bodies if of == kind)
            fields[name] = found if several else found[0]
        receipt = cls(**fields, signature=signature)
        try:
            parse_time(receipt.question.asked_at)
        except InvalidChunk as error:
            raise Altered(f"the question has no time: {error}") from None
        if receipt.origin.format != FORMAT:
            raise InputError(
                f"the receipt has format {receipt.origin.format}; this version reads format {FORMAT}",
                hint="use the version of RLM-MEM that wrote it, or a later one",
            )
        return receipt


@dataclass(frozen=True)
class Bundle(_Document):
    """Data for replaying a receipt without the memory: chunks, and the result of each call.

    Attributes:
        receipt: head of its receipt.
        chunks: documents by chunk id.
        calls: for each step with calls, by its number from 0, the calls in order, each a mapping with ``name``,
            ``args``, ``read`` and either ``result`` or ``error``.
    """

    receipt: str
    chunks: dict[str, dict[str, Any]]
    calls: dict[int, list[dict[str, Any]]]

    def to_bytes(self) -> bytes:
        """The content of the file."""
        lines = [{"kind": "bundle", "body": {"format": FORMAT, "receipt": self.receipt}}]
        lines += [{"kind": "chunk", "body": one} for one in self.chunks.values()]
        lines += [
            {"kind": "calls", "body": {"step": step, "calls": [_encode_call(call) for call in calls]}}
            for step, calls in self.calls.items()
        ]
        return b"".join(canonical(line) + b"\n" for line in lines)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bundle:
        """Parse a bundle.

        Raises:
            Altered: the bundle is invalid; the message names the line.
        """
        head: BundleHead | None = None
        chunks: dict[str, dict[str, Any]] = {}
        calls: dict[int, list[dict[str, Any]]] = {}
        for number, line in enumerate(_lines(data, "bundle"), 1):
            where = f"line {number} of the bundle"
            _check_keys(line, {"kind", "body"}, where)
            kind, body = line.get("kind"), line.get("body")
            if (kind == "bundle") != (number == 1):
                raise Altered(f"{where} is a part {str(kind)[:40]!r} that does not belong there")
            if kind == "bundle":
                head = _convert(body, BundleHead, where)
            elif kind == "chunk" and isinstance(body, dict) and isinstance(body.get("id"), str):
                chunks[body["id"]] = body
            elif kind == "calls":
                step = _convert(body, _StepCalls, where)
                calls[step.step] = [_read_call(one, where) for one in step.calls]
            else:
                raise Altered(f"{where} is neither a chunk nor the calls of a step")
        if head is None:
            raise Altered("the bundle is empty")
        if head.format != FORMAT:
            raise InputError(f"the bundle has format {head.format}; this version reads format {FORMAT}")
        return cls(head.receipt, chunks, calls)


class CallError(Struct, forbid_unknown_fields=True, frozen=True):
    """The error of a call."""

    kind: str
    message: str


class TapedCall(Struct, forbid_unknown_fields=True, frozen=True):
    """One call with its result, as JSON text since programs see the order of keys, or its error."""

    name: str
    args: Any
    read: list[str]
    result: str | None
    error: CallError | None


class _StepCalls(Struct, forbid_unknown_fields=True, frozen=True):
    step: int
    calls: list[TapedCall]


def _encode_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a recorded call to the form of a bundle."""
    text = None if "error" in call else json.dumps(call["result"], ensure_ascii=False, allow_nan=False)
    return {**call, "result": text, "error": call.get("error")}


def _read_call(call: TapedCall, where: str) -> dict[str, Any]:
    """Convert a call of a bundle to the form recorded by sessions."""
    made: dict[str, Any] = {"name": call.name, "args": call.args, "read": call.read}
    if call.error is not None:
        return made | {"error": msgspec.to_builtins(call.error)}
    try:
        result = json.loads(call.result or "")
        canonical(result)
    except (ValueError, RecursionError):
        raise Altered(f"{where} contains a result that is not JSON") from None
    if _too_deep(result):
        raise Altered(f"{where} contains a result that is nested more than {MAX_DEPTH} levels deep")
    return made | {"result": result}


def chained(before: str, kind: str, body: Any) -> str:
    """The hash of a part whose predecessor has the hash ``before``."""
    text = b"rlm-mem-receipt/1 part\n" + before.encode() + b"\n" + canonical({"kind": kind, "body": body})
    return hashlib.sha256(text).hexdigest()


def _lines(data: bytes, what: str) -> Iterator[dict[str, Any]]:
    """Parse the lines as objects; each must be in canonical form."""
    if len(data) > MAX_BYTES:
        raise InputError(f"the {what} has {len(data):,} bytes; at most {MAX_BYTES:,} are read")
    if not data.endswith(b"\n"):
        raise Altered(f"the {what} does not end with a line break: it is empty, cut off or something else")
    lines = data[:-1].split(b"\n")
    if len(lines) > MAX_PARTS:
        raise InputError(f"the {what} has {len(lines):,} lines; at most {MAX_PARTS:,} are read")
    for number, line in enumerate(lines, 1):
        where = f"line {number} of the {what}"
        try:
            found = json.loads(line.decode("utf-8"))
            again = canonical(found)
        except (ValueError, RecursionError):
            raise Altered(f"{where} is not JSON in UTF-8") from None
        if not isinstance(found, dict) or again != line:
            raise Altered(f"{where} is not in the canonical form: it was written by hand or altered")
        if _too_deep(found):
            raise Altered(f"{where} is nested more than {MAX_DEPTH} levels deep")
        yield found


def _too_deep(value: Any) -> bool:
    """Whether plain data exceeds the maximum nesting of a receipt."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for one in level for item in _items(one) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _convert(body: object, kind: type[Any], where: str) -> Any:
    try:
        return msgspec.convert(body, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Altered(f"{where} does not fit its kind: {str(error)[:200]}") from None


def _check_keys(line: dict[str, Any], names: Set[str], where: str) -> None:
    if set(line) != names:
        raise Altered(f"{where} has fields that a part does not have")


def read_bytes(path: str | Path, what: str) -> bytes:
    """Read a file of at most 64 MB.

    Raises:
        InputError: the file is missing, too large, or not a regular file.
    """
    place = Path(path)
    try:
        if not place.is_file():
            raise InputError(
                f"{place} is not a file", hint=f"name the {what} that was written with the answer"
            )
        with place.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{place} has more than {MAX_BYTES:,} bytes, more than a {what} may have")
    return data


def check_new(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path if a file may be written to it.

    Raises:
        InputError: the path exists already, or is a folder.
    """
    place, overwrite = Path(path), check_flag(overwrite, "overwrite")
    if place.is_dir():
        raise InputError(f"{place} is a folder", hint="name a file")
    if place.exists() and not overwrite:
        raise InputError(f"{place} exists already", hint="name another file, or remove this one first")
    return place
