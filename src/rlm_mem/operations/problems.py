"""Errors as problem details (RFC 9457), with the HTTP status of each exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from rlm_mem import errors

MEDIA_TYPE = "application/problem+json"
#: Prefix of the tag URI that names the kind of a problem; an identifier, not an address.
TYPE_BASE = "tag:rlm-mem,2026:problem/"


class FieldError(msgspec.Struct, omit_defaults=True):
    """What is wrong with one part of a request.

    Attributes:
        detail: a sentence.
        pointer: JSON pointer into the body, or the name of a parameter.
    """

    detail: str
    pointer: str = ""


class Problem(msgspec.Struct, omit_defaults=True):
    """An error (RFC 9457): its kind, what happened, and the remedy.

    Attributes:
        type: URI that names the kind of problem; it ends in the name of the exception or of the refusal.
        title: the kind in a few words, always the same.
        status: the HTTP status.
        detail: what happened in this case.
        hint: the remedy, if one is known.
        errors: the parts of the request that are wrong.
        stopped_by: the budget that ended a run.
        retry_after: seconds after which to try again; 0: not stated.
    """

    type: str
    title: str
    status: int
    detail: str = ""
    hint: str = ""
    errors: list[FieldError] = []
    stopped_by: str = ""
    retry_after: int = 0

    @property
    def sentence(self) -> str:
        """What happened and the remedy as one text, the error of a tool."""
        return f"{self.detail}; {self.hint}" if self.hint else self.detail


class Refused(Exception):
    """A refusal of a request by the protocol layer, not by the memory."""

    def __init__(self, why: Problem) -> None:
        super().__init__(why.detail)
        self.problem = why


#: Status and title by exception, the most specific first.
_STATUS: tuple[tuple[type[BaseException], int, str], ...] = (
    (errors.NamespaceError, 403, "This namespace is not served here"),
    (errors.AccessDenied, 403, "The token does not permit this"),
    (errors.InputError, 422, "The request is invalid"),
    (errors.NotFoundError, 404, "Not found"),
    (errors.ConflictError, 409, "Another change came first"),
    (errors.StoreLocked, 503, "The store is busy"),
    (errors.StoreReadOnly, 403, "The memory is read-only"),
    (errors.StoreFull, 507, "The disk is full"),
    (errors.StoreClosed, 503, "The memory is closed"),
    (errors.ServerAway, 503, "A server of the store is unreachable"),
    (errors.StorageError, 500, "The store failed"),
    (errors.SessionComplete, 409, "The recall has ended"),
    (errors.SandboxViolation, 422, "The sandbox does not permit the program"),
    (errors.SandboxError, 422, "The program failed"),
    (errors.BudgetError, 409, "A budget is used up"),
    (errors.ModelUnavailable, 503, "The model is not available"),
    (errors.ModelTimeout, 504, "The model took too long"),
    (errors.ModelOverloaded, 503, "The model is overloaded"),
    (errors.ModelError, 502, "The model failed"),
)
_RETRY_AFTER = {errors.StoreLocked: 1, errors.ServerAway: 10, errors.ModelOverloaded: 5}
_REFUSALS = {
    400: ("malformed-request", "The request cannot be read"),
    401: ("unauthorized", "The token is missing or wrong"),
    403: ("forbidden", "This is not allowed"),
    404: ("not-found", "Nothing has this address"),
    405: ("method-not-allowed", "This address does not support this method"),
    406: ("not-acceptable", "None of the accepted media types is available"),
    408: ("request-timeout", "The request took too long to arrive"),
    409: ("conflict", "The request conflicts with the current state"),
    412: ("precondition-failed", "The chunk has changed meanwhile"),
    413: ("body-too-large", "The body is too large"),
    415: ("unsupported-media-type", "The body has the wrong media type"),
    421: ("misdirected-request", "This server does not serve that host"),
    422: ("invalid-request", "The request does not match its schema"),
    429: ("too-many-requests", "Too many requests"),
}


def problem(
    status: int, detail: str, *, hint: str = "", fields: list[FieldError] | None = None, retry_after: int = 0
) -> Problem:
    """Return the problem of a refusal that is not an exception of the memory."""
    name, title = _REFUSALS.get(status, ("error", "The request failed"))
    return Problem(TYPE_BASE + name, title, status, detail, hint, fields or [], retry_after=retry_after)


def refused(status: int, detail: str, *, hint: str = "", fields: list[FieldError] | None = None) -> Refused:
    """Return the refusal with the problem of these parts."""
    return Refused(problem(status, detail, hint=hint, fields=fields))


@contextmanager
def input_errors_as_conflicts() -> Iterator[None]:
    """Refuse with 409 what a schema cannot exclude, such as no filter at all, or two values that exclude each other."""
    try:
        yield
    except errors.InputError as error:
        raise refused(409, error.message, hint=error.hint or "") from None


def problem_of(error: BaseException) -> Problem:
    """Return the problem for an exception; an unexpected one becomes an internal error without details."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, errors.SessionCancelled):
        return Problem(TYPE_BASE + "cancelled", "The run was cancelled", 409, str(error))
    for kind, status, title in _STATUS:
        if isinstance(error, kind) and isinstance(error, errors.RlmMemError):
            return Problem(
                type=TYPE_BASE + type(error).__name__,
                title=title,
                status=status,
                detail=_encodable(error.message),
                hint=_encodable(error.hint or ""),
                stopped_by=error.stopped_by if isinstance(error, errors.BudgetError) else "",
                retry_after=next((wait for kind, wait in _RETRY_AFTER.items() if isinstance(error, kind)), 0),
            )
    return Problem(
        TYPE_BASE + "internal-error",
        "Internal server error",
        500,
        f"internal error: {type(error).__name__}; see the log of the server",
    )


def _encodable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode, since messages quote their input."""
    return text.encode("utf-8", "replace").decode()
