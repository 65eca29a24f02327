"""Receipts: writing the answer of a run as a receipt, and verifying receipts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import Request, TrajectoryId, about, matching

_GROUP = "records"
_MAX_CHARS = 16_000_000
_ALIASES = {"run": "trajectory_id", "run_id": "trajectory_id", "id": "trajectory_id"}


class ReceiptQuery(Request):
    """What the receipt contains."""

    bundle: Annotated[bool, about("Also return the bundle, for verification without this memory.")] = False


class ReceiptArguments(Bounded, kw_only=True):
    """Which answer to write as a receipt."""

    trajectory_id: Annotated[TrajectoryId, about("Id of a recall, from its result; or last.")]


class ReceiptText(MayBeCut):
    """A receipt: its file as text, and the hash over all of it."""

    run: str
    head: str
    receipt: str
    bundle: str | None = None


class VerifyRequest(Bounded, kw_only=True):
    """A receipt to verify."""

    receipt: Annotated[str, about("The content of its file.", max_length=_MAX_CHARS)]
    bundle: Annotated[str, about("The content of its bundle.", max_length=_MAX_CHARS)] | None = None
    key: (
        Annotated[
            str,
            matching(
                r"ssh-ed25519 [A-Za-z0-9+/=]{68}( [^\n]{0,200})?",
                "The public key that must have signed it: a line ssh-ed25519 ….",
            ),
        ]
        | None
    ) = None


class VerifiedPart(Struct):
    """The result for one part of a receipt."""

    part: str
    status: Literal["holds", "changed", "altered", "not checked"]
    detail: str


class Verified(MayBeCut):
    """Which parts of a receipt hold, have changed since, or were altered; the verdict is the worst of them."""

    verdict: Literal["holds", "changed", "incomplete", "altered"]
    question: str | None
    answer: str | None
    suggestion: str | None
    run: str | None
    signer: str | None
    checks: list[VerifiedPart]


def _receipt(context: Context, request: ReceiptQuery | ReceiptArguments) -> ReceiptText:
    bundle = isinstance(request, ReceiptQuery) and request.bundle
    made = context.memory.receipt(context.path["trajectory_id"], bundle=bundle)
    return ReceiptText(
        run=made.origin.run,
        head=made.head,
        receipt=made.to_bytes().decode(),
        bundle=None if made.bundle is None else made.bundle.to_bytes().decode(),
    )


def _verify(context: Context, request: VerifyRequest) -> Verified:
    found = context.memory.verify(
        request.receipt.encode("utf-8", "replace"),
        bundle=None if request.bundle is None else request.bundle.encode("utf-8", "replace"),
        key=request.key,
    )
    return fill(Verified, found, **found.about)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/trajectories/{trajectory_id}/receipt", "getReceipt", "The answer of a run as a receipt.", _GROUP,
        run=_receipt, request=ReceiptQuery,
        description="The programs of the run are replayed; `receipt` and `bundle` are the contents of two files.",
        tool=Tool(
            name="receipt",
            title="Receipt of an answer",
            description="Write an answer as a receipt that can be verified later: question, programs, "
            "outputs, versions of the memories it cites. A receipt cut by max_tokens cannot be "
            "verified.",
            request=ReceiptArguments,
            aliases=_ALIASES,
            default=False,
        ),
    ),
    Operation(
        "POST", "/receipts/verify", "verifyReceipt", "Verify which parts of a receipt still hold.", _GROUP,
        permission="read", run=_verify,
        description="Its programs run in the sandbox, on the bundle if given, else on this memory.",
        tool=Tool(
            name="verify_receipt",
            title="Verify a receipt",
            description="Verify a receipt by running its programs again: what is unchanged, what has changed "
            "since, and what was altered.",
            aliases={"text": "receipt", "file": "receipt", "content": "receipt"},
            default=False,
        ),
    ),
)  # fmt: skip
