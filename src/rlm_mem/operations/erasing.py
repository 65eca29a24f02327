"""Erasing over HTTP: a person or a source in every namespace, or a namespace; and checking whether anything is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, json

from rlm_mem.errors import AccessDenied, InputError
from rlm_mem.operations.operation import Context, Operation
from rlm_mem.operations.problems import Refused, problem
from rlm_mem.operations.shapes import shaped
from rlm_mem.operations.types import DryRun, Line, Request

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

_GROUP = "care"
_MOST_CHARS = 50_000_000


class EraseRequest(DryRun):
    """The person, the source or the namespace to erase: one of the three."""

    person: Annotated[Line, Meta(description="The name, as whole words in any case.")] | None = None
    source: (
        Annotated[Line, Meta(description="A conversation, a path, or a word of `source`, exactly.")] | None
    ) = None
    namespace: Annotated[Line, Meta(description="A namespace, of which everything is erased.")] | None = None


class Erased(Struct):
    """What was erased, or would be. ``report`` is the content of the report: keep it apart, since it names what was
    erased; with it anybody verifies the erasure. ``remaining`` says where it may still be.
    """

    dry_run: bool
    chunk_ids: list[str]
    files: list[str]
    events: int
    remaining: list[str]
    report: str


class VerifyErasure(Request):
    """The report of an erasure."""

    report: Annotated[str, Meta(max_length=_MOST_CHARS, description="The content that `erase` gave.")]


class Left(Struct):
    """Files or rows in which anything of it is found; empty: nowhere."""

    left: list[str]


def _everything(context: Context) -> Memory:
    """The memory with every namespace.

    Raises:
        AccessDenied: the server serves only one namespace.
    """
    if context.opened.bound:
        raise AccessDenied(
            "this server serves one namespace, and erasing concerns all of them",
            hint="use rlm-mem erase, or a server without --namespace",
        )
    from rlm_mem.access.confined import WholeMemory

    return WholeMemory(context.memory)


@contextmanager
def _stated() -> Iterator[None]:
    """Refuse with 409 what a schema cannot exclude: both names or none, words that cannot be erased, a bad report."""
    try:
        yield
    except InputError as error:
        raise Refused(problem(409, error.message)) from None


def _erase(context: Context, request: EraseRequest) -> Erased:
    whole = _everything(context)
    with _stated():
        made = whole.erase(
            person=request.person,
            source=request.source,
            namespace=request.namespace,
            dry_run=request.dry_run,
            progress=lambda done, total: context.progress(done, total, f"looked at {done} of {total} chunks"),
        )
    return shaped(Erased, made, report=json.encode(made).decode())


def _verify(context: Context, request: VerifyErasure) -> Left:
    from rlm_mem.store.core.erasing import read_report

    whole = _everything(context)
    with _stated():
        return Left(whole.verify_erasure(read_report(request.report.encode("utf-8", "replace"))))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/erase", "erase", "Erase a person, a source or a namespace; by default a dry run.", _GROUP,
        permission="admin", everywhere=True, run=_erase, request=EraseRequest, response=Erased, writes=True,
        description="It cannot be undone. Where the server is stopped in the middle, the same request goes on.",
    ),
    Operation(
        "POST", "/erase/verify", "verifyErasure", "Look for what is left of what the report of an erasure lists.",
        _GROUP, permission="admin", everywhere=True, run=_verify, request=VerifyErasure, response=Left,
        most_bytes=4 * _MOST_CHARS,
    ),
)  # fmt: skip
