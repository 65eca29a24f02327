"""Erasing over HTTP: a person or a source in every namespace, or a namespace; and verifying an erasure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct, json

from rlm_mem.errors import AccessDenied
from rlm_mem.operations.operation import Context, Operation
from rlm_mem.operations.problems import input_errors_as_conflicts
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import DryRun, Line, Request, about

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

_GROUP = "care"
_MAX_CHARS = 50_000_000


class EraseRequest(DryRun):
    """The person, the source or the namespace to erase: one of the three."""

    person: Annotated[Line, about("The name, as whole words in any case.")] | None = None
    source: Annotated[Line, about("A conversation, a path, or a value of `source`, exactly.")] | None = None
    namespace: Annotated[Line, about("A namespace, which is erased completely.")] | None = None


class Erased(Struct):
    """What was erased, or would be. ``report`` is the content of the report, with which the erasure can be verified:
    keep it elsewhere, since it names what was erased. ``remaining`` lists where it may still be.
    """

    dry_run: bool
    chunk_ids: list[str]
    files: list[str]
    events: int
    remaining: list[str]
    report: str


class VerifyErasure(Request):
    """The report of an erasure."""

    report: Annotated[str, about("The report that `erase` returned.", max_length=_MAX_CHARS)]


class Left(Struct):
    """Files or rows that still contain any of it; empty if there are none."""

    left: list[str]


def _everything(context: Context) -> Memory:
    """Return the memory with every namespace.

    Raises:
        AccessDenied: the server serves only one namespace.
    """
    if context.opened.bound:
        raise AccessDenied(
            "this server serves one namespace, and erasing concerns all of them",
            hint="use rlm-mem erase, or a server without --namespace",
        )
    from rlm_mem.access.confined import released_memory

    return released_memory(context.memory)


def _erase(context: Context, request: EraseRequest) -> Erased:
    whole = _everything(context)
    with input_errors_as_conflicts():
        made = whole.erase(
            person=request.person,
            source=request.source,
            namespace=request.namespace,
            dry_run=request.dry_run,
            progress=lambda done, total: context.progress(done, total, f"checked {done} of {total} chunks"),
        )
    if not request.dry_run:  # what this server has in memory would still show, and record, what was erased
        context.runs.forget()
        context.opened.end_recalls()
    return fill(Erased, made, report=json.encode(made).decode())


def _verify(context: Context, request: VerifyErasure) -> Left:
    from rlm_mem.store.core.erasure_checks import read_report

    whole = _everything(context)
    with input_errors_as_conflicts():
        return Left(whole.verify_erasure(read_report(request.report.encode("utf-8", "replace"))))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/erase", "erase", "Erase a person, a source or a namespace; by default a dry run.", _GROUP,
        permission="admin", everywhere=True, run=_erase, writes=True,
        description="It cannot be undone. If the server is stopped meanwhile, repeat the request to continue.",
    ),
    Operation(
        "POST", "/erase/verify", "verifyErasure", "Check whether anything listed in the report of an erasure remains.",
        _GROUP, permission="admin", everywhere=True, run=_verify, max_bytes=4 * _MAX_CHARS,
    ),
)  # fmt: skip
