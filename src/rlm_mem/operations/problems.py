"""Errors as problem details (RFC 9457), with the HTTP status of each exception."""

from __future__ import annotations

import msgspec

from rlm_mem import errors

MEDIA_TYPE = "application/problem+json"
#: Beginning of the tag URI that names the kind of a problem; it is an identifier, not an address.
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
        title: the kind in a few words, the same every time.
        status: the HTTP status.
        detail: what happened this time.
        hint: the remedy, where one is known.
        errors: the parts of the request that are at fault.
        stopped_by: the budget that ended a run.
        retry_after: seconds after which it is worth trying again.
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
        """What happened and the remedy, as one text: the error of a tool."""
        return f"{self.detail}; {self.hint}" if self.hint else self.detail


class Refused(Exception):
    """A request is refused by the protocol layer, not by the memory."""

    def __init__(self, why: Problem) -> None:
        super().__init__(why.detail)
        self.problem = why


#: Status and title by exception, the most specific first.
_STATUS: tuple[tuple[type[BaseException], int, str], ...] = (
    (errors.NamespaceError, 403, "This namespace is not served here"),
    (errors.AccessDenied, 403, "The token does not permit this"),
    (errors.InputError, 422, "The request says something that cannot be done"),
    (errors.NotFoundError, 404, "There is no such thing here"),
    (errors.ConflictError, 409, "Somebody else was first"),
    (errors.StoreLocked, 503, "The store is busy"),
    (errors.StoreReadOnly, 403, "The memory is read-only"),
    (errors.StoreFull, 507, "The disk is full"),
    (errors.StoreClosed, 503, "The memory is closed"),
    (errors.ServerAway, 503, "A server of the store is away"),
    (errors.StorageError, 500, "The store could not be used"),
    (errors.SessionComplete, 409, "The recall has ended"),
    (errors.SandboxViolation, 422, "The program asks for what the sandbox forbids"),
    (errors.SandboxError, 422, "The program failed"),
    (errors.BudgetError, 409, "A budget is used up"),
    (errors.ModelUnavailable, 503, "The model is not set up"),
    (errors.ModelTimeout, 504, "The model took too long"),
    (errors.ModelOverloaded, 503, "The model is overloaded"),
    (errors.ModelError, 502, "The model failed"),
)
_AGAIN = {errors.StoreLocked: 1, errors.ServerAway: 10, errors.ModelOverloaded: 5}
_REFUSALS = {
    400: ("malformed-request", "The request cannot be read"),
    401: ("unauthorized", "The token is missing or wrong"),
    403: ("forbidden", "This is not allowed"),
    404: ("not-found", "There is nothing at this address"),
    405: ("method-not-allowed", "This address does not take this method"),
    406: ("not-acceptable", "None of the accepted media types can be given"),
    408: ("request-timeout", "The request took too long to arrive"),
    409: ("conflict", "It does not fit what is there"),
    412: ("precondition-failed", "It has changed meanwhile"),
    413: ("body-too-large", "The body is too large"),
    415: ("unsupported-media-type", "The body has the wrong media type"),
    421: ("misdirected-request", "This server does not answer to that name"),
    422: ("invalid-request", "The request does not fit its schema"),
    429: ("too-many-requests", "Too many requests"),
}


def problem(
    status: int,
    detail: str,
    *,
    hint: str = "",
    fields: list[FieldError] | None = None,
    retry_after: int = 0,
) -> Problem:
    """The problem of a refusal that is not an exception of the memory."""
    name, title = _REFUSALS.get(status, ("error", "The request failed"))
    return Problem(TYPE_BASE + name, title, status, detail, hint, fields or [], retry_after=retry_after)


def problem_of(error: BaseException) -> Problem:
    """The problem for an exception; an unexpected one becomes an internal error that reveals nothing of the machine."""
    from rlm_mem.operations.context import CallCancelled

    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, CallCancelled | errors.SessionCancelled):
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
                retry_after=next((wait for kind, wait in _AGAIN.items() if isinstance(error, kind)), 0),
            )
    return Problem(
        TYPE_BASE + "internal-error",
        "Something went wrong within the server",
        500,
        f"internal error: {type(error).__name__}; the server's log has more",
    )


def _encodable(text: str) -> str:
    """The text with characters that UTF-8 cannot encode replaced, since messages quote their input."""
    return text.encode("utf-8", "replace").decode()
