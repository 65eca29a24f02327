"""PageRequest, the request of a page with its memory and form fields, and routes that run the functions of pages."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from markupsafe import Markup
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rlm_mem.access.grants import Caller, Permission, client_of
from rlm_mem.dashboard.rendering import HEADERS, NAVIGATION, page
from rlm_mem.errors import InputError, NamespaceError, RlmMemError
from rlm_mem.http.limits import BodyTooLarge, body_parts, read_body
from rlm_mem.operations.decoding import from_agent, part
from rlm_mem.operations.fitting import Reply
from rlm_mem.operations.moving import MAX_UPLOAD_BYTES
from rlm_mem.operations.operation import Context
from rlm_mem.operations.problems import Refused, problem_of, refused
from rlm_mem.operations.registry import operation_named

if TYPE_CHECKING:
    from starlette.datastructures import UploadFile
    from starlette.requests import Request

    from rlm_mem.memory import Memory
    from rlm_mem.operations.context import OpenMemory
    from rlm_mem.operations.state import ServerState

_log = logging.getLogger(__name__)

#: Maximum size of a form in bytes; fits the longest content of a chunk, percent-encoded, with its fields.
MAX_FORM_BYTES = 16 * 1024 * 1024
#: Maximum number of files in one form.
MAX_FILES = 2_000
_MAX_FIELDS = 1_050  # a list has up to 200 memories to tick, a captured session up to 1,000 to keep

#: Notices shown after an action, by name; addresses contain only the name, so no link can inject text.
NOTICES: Mapping[str, str] = {
    "saved": "Saved. The previous version is kept.",
    "unchanged": "Nothing was changed, so nothing was written.",
    "remembered": "Remembered.",
    "replaces": "It replaces an earlier memory.",
    "asks": "It may replace or contradict an earlier memory: decide under Review.",
    "hidden": "Text that looks like a key or password was redacted.",
    "known": "The same text is already stored in the same conversation.",
    "known-quarantined": "A memory with these words is in quarantine, and hidden until it is released under Review.",
    "archived": "Archived. Searches do not find it; you can restore it here.",
    "restored": "Restored.",
    "none-ticked": "Nothing was done: no memory is ticked.",
    "no-tag": "Nothing was done: no tag was entered.",
    "ticked-tagged": "The tags of the ticked memories were changed, as one change.",
    "ticked-archived": "The ticked memories were archived, as one change.",
    "ticked-restored": "The ticked memories were restored, as one change.",
    "reverted": "The former version was restored as a new revision.",
    "erased": "Permanently deleted, with its versions and the links to it.",
    "moved": "Moved: it is in the other namespace now, and archived here.",
    "linked": "Linked.",
    "unlinked": "The link was removed.",
    "quarantined": "In quarantine: no search, recall or agent finds it. Review releases it.",
    "kept-one": "This memory replaces the other one, which is ranked below it now.",
    "imported": "Imported.",
    "nothing-imported": "Nothing was changed: all of it was already stored, or could not be read.",
    "discarded": "The files were discarded; nothing was imported.",
    "core": "It is part of the core now.",
    "forgotten": "The memory is archived; it can be restored.",
    "kept-memory": "The memory stays as it is.",
    "not-core": "It stays where it is, and is proposed again after further uses.",
    "holds": "Confirmed: it stays where it is.",
    "holds-not": "It was moved to the mid tier.",
    "captured": "The memories of the session stay, marked as reviewed.",
    "captured-some": "The ticked memories stay, marked as reviewed; the others were archived and can be restored.",
    "captures-archived": "The memories of the session were archived; each can be restored.",
    "released": "Released: searches find it again.",
    "archived-case": "Archived. It can be restored.",
    "replaced": "The older memory is marked as replaced.",
    "contradicting": "The two are linked as contradicting.",
    "both-hold": "Both stay as they are.",
    "deferred": "Deferred: it will be asked again later.",
    "decided-ticked": "The ticked cases are decided, each in a change of its own. Changes undoes each.",
    "undone": "The transition was undone: its files are as they were.",
    "taken-back": "Undone. Undoing is a change too: undo it to restore the change.",
    "persona": "The persona was changed.",
    "token-revoked": "Revoked. The server refuses the token from now on.",
    "cancelled": "The run was asked to stop.",
}


_ONCE = frozenset({"done", "change"})
"""Parameters of an address that belong to the action that led there."""
_RECENT = 20  # changes

#: Names of the pages that list memories, by path.
_LISTS: Mapping[str, str] = {path: label for path, label, _ in NAVIGATION}


@dataclass(frozen=True)
class PageRequest:
    """One request to a page.

    Attributes:
        request: the HTTP request.
        opened: the memory, confined to what the client may use.
        state: shared state of the server.
        client: who sent the request.
        form: the submitted fields.
        files: the submitted files.
        newest: the id of the newest change before this request, if it may write.
    """

    request: Request
    opened: OpenMemory
    state: ServerState
    client: Caller
    form: tuple[tuple[str, str], ...] = ()
    files: tuple[UploadFile, ...] = ()
    newest: str | None = None

    @property
    def memory(self) -> Memory:
        """The memory, confined to what the client may use."""
        return self.opened.memory

    # --- operations -----------------------------------------------------------------------------------

    def carry_out(self, name: str, path: Mapping[str, str] | None = None, /, **fields: Any) -> Any:
        """Run an operation with the fields of a form, validated as in every other interface.

        Args:
            path: parameters of its path. ``fields``: its other fields as text; empty ones are omitted.

        Returns:
            The data that the operation returns.

        Raises:
            RlmMemError, Refused: the operation failed or is not permitted.
        """
        operation = operation_named(name)
        assert operation.run is not None, f"{name} is answered by HTTP alone"
        parts = {part_name: part(part_name, value) for part_name, value in (path or {}).items()}
        opened = self.state.opened.admit(self.client, operation.needs, everywhere=operation.everywhere)
        context = Context(opened=opened, path=parts, kept_runs=self.state.runs)
        request = None if operation.request is None else from_agent(operation.request, fields)
        answer = operation.run(context, request)
        return answer.data if isinstance(answer, Reply) else answer

    @property
    def read_only(self) -> bool:
        """Whether the client cannot change memories."""
        return self.state.read_only or not self.client.access.permits("write")

    # --- request ---------------------------------------------------------------------------------

    @property
    def partial(self) -> bool:
        """Whether only the changing part of the page was requested."""
        return self.request.headers.get("hx-request") == "true"

    def text(self, name: str, longest: int = 20_000) -> str:
        """A field of the form or, if missing there, of the query string; empty if missing in both."""
        for key, value in reversed(self.form):
            if key == name:
                return value[:longest] if longest else value
        return str(self.request.query_params.get(name, ""))[: longest or None]

    def texts(self, name: str) -> list[str]:
        """All values of a field that may be repeated."""
        if self.form:
            return [value for key, value in self.form if key == name]
        return [str(value) for value in self.request.query_params.getlist(name)]

    def action(self, *known: str) -> str:
        """The action that a button of the form names, one of ``known``; raises InputError."""
        what = self.text("do", 40)
        if what not in known:
            raise InputError(
                f"the form has no action {what!r}", hint="load the page again, and use one of its buttons"
            )
        return what

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """An integer within bounds; the default if the text is not a number."""
        field_text = self.text(name, 20)
        try:
            return min(high, max(low, int(field_text)))
        except ValueError:
            return default

    def part(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.request.path_params[name])

    def came_from(self) -> tuple[str, str]:
        """Address and name of the list that linked to this page, with its query; by default the list of memories."""
        try:
            referrer = urlsplit(self.request.headers.get("referer", "")[:8_000])
        except ValueError:  # an incomplete IPv6 address
            referrer = urlsplit("")
        if referrer.netloc != self.request.url.netloc or referrer.path not in _LISTS:
            return "/memories", _LISTS["/memories"]
        query = parse_qsl(referrer.query)
        words = dict(query).get("q", "").strip()
        name = (
            f"Results for “{words:.40}”" if referrer.path == "/memories" and words else _LISTS[referrer.path]
        )
        return _without_action(referrer.path, query), name

    # --- response --------------------------------------------------------------------------------

    def page(self, template: str, *, block: str = "", status: int = 200, **values: Any) -> Response:
        """Respond with the whole page, or with one block of it."""
        return page(self.request, template, self._with_page_context(values), block=block, status=status)

    def answer(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Respond with the changing part if only that was requested, else with the whole page."""
        return self.page(template, block="region" if self.partial else "", status=status, **values)

    def fragment(self, template: str, *, block: str = "region", **values: Any) -> Response:
        """Respond with one block of a page."""
        return self.page(template, block=block, **values)

    def go(self, path: str, notice: str = "") -> Response:
        """Redirect to another page after an action; ``notice`` has the names of notices to show, separated by dots.

        If the action made one change, the notice has a button to undo it.
        """
        shown = {"done": notice, "change": self._own_change() if notice else ""}
        query = urlencode({name: value for name, value in shown.items() if value})
        separator = "&" if "?" in path else "?"
        return RedirectResponse(
            f"{path}{separator}{query}" if query else path, status_code=303, headers=HEADERS
        )

    def _own_change(self) -> str:
        """The id of the only change that this client made since the request began; empty if none or several."""
        since = takewhile(lambda one: one.id != self.newest, self.memory.recorded_changes(_RECENT))
        own = [one for one in since if one.actor == self.memory.store.actor]
        return own[0].id if len(own) == 1 and "erase" not in own[0].ops else ""

    def _undoable_change(self) -> str:
        """The change that the address names, if it is a recent one of the client that it may undo; else empty.

        Anybody may have made the address.
        """
        named = self.request.query_params.get("change", "")
        if not named or not self.may_undo:
            return ""
        own = (one for one in self.memory.recorded_changes(_RECENT) if one.actor == self.memory.store.actor)
        return named if any(one.id == named and not one.undone for one in own) else ""

    @property
    def may_undo(self) -> bool:
        """Whether the client may undo changes."""
        return not self.state.read_only and self.client.access.permits("review")

    def other_namespaces(self) -> list[str]:
        """Namespaces to which a memory can be moved: the shared one and others that the client can access."""
        opened, here = self.state.opened, self.memory.store.namespace
        reached = list(opened.namespaces_of(self.client))
        shared = opened.memory.config.store.namespace
        # A server started for one namespace offers no other, but its owner may still share a memory.
        if self.client.access.owner or shared in reached:
            reached.insert(0, shared)
        return [name for name in dict.fromkeys(reached) if name != here]

    def _may_choose(self) -> bool:
        """Whether the client may switch to another namespace."""
        reached = self.client.access.namespaces
        several = len(reached) > 1 or any("*" in one for one in reached)
        return self.client.choose is not None and several and not self.state.opened.bound

    def _with_page_context(self, values: Mapping[str, Any]) -> dict[str, Any]:
        done = self.request.query_params.get("done", "")
        return {
            "namespace": self.memory.store.namespace,
            # Every form names the namespace of its page, so that it cannot write to one chosen in the meantime.
            "bound": Markup('<input type="hidden" name="in" value="{}">').format(self.memory.store.namespace),
            "choosable": self._may_choose(),
            "read_only": self.read_only,
            "admin": _may_see_tokens(self.state, self.client),
            "notice": " ".join(NOTICES[name] for name in done.split(".") if name in NOTICES),
            "undoable": self._undoable_change(),
            "may_undo": self.may_undo,
            "unnoticed": _without_action(self.request.url.path, self.request.query_params.multi_items()),
            **values,
        }


Handler = Callable[[PageRequest], Response]

_T = TypeVar("_T")
_MAX_NAMESPACES = 256


@dataclass
class _CacheEntry(Generic[_T]):
    """A cached value of one namespace, with the time at which it was computed."""

    made: _T | None = None
    at: float = 0.0
    guard: threading.Lock = field(default_factory=threading.Lock)


class NamespaceCache(Generic[_T]):
    """A cache with one value per namespace; thread-safe.

    Args:
        make: computes the value of a namespace.
        seconds: age after which a value is computed again.
    """

    def __init__(self, make: Callable[[Memory], _T], seconds: float = math.inf) -> None:
        self._make = make
        self._seconds = seconds
        self._kept: dict[str, _CacheEntry[_T]] = {}
        self._guard = threading.Lock()

    def of(self, request: PageRequest) -> _T:
        """The value for the namespace of a request."""
        name = request.memory.store.namespace
        with self._guard:
            kept = self._kept.pop(name, None) or _CacheEntry()
            self._kept[name] = kept
            while len(self._kept) > _MAX_NAMESPACES:  # drop the least recently used one
                del self._kept[next(iter(self._kept))]
        with kept.guard:
            if kept.made is None or time.monotonic() - kept.at > self._seconds:
                kept.made, kept.at = self._make(request.memory), time.monotonic()
            return kept.made


def page_route(
    state: ServerState,
    path: str,
    handler: Handler,
    *,
    method: str = "GET",
    needs: Permission = "read",
    takes_files: bool = False,
) -> Route:
    """A route whose handler runs in a worker thread; errors are shown as pages.

    Args:
        needs: the permission that the client needs for the page.
        takes_files: the form contains files.
    """

    async def serve(request: Request) -> Response:
        form: tuple[tuple[str, str], ...] = ()
        files: tuple[UploadFile, ...] = ()
        try:
            client = client_of(request.scope)
            if request.method == "POST":
                _check_same_origin(request)
                if takes_files:
                    client.access.check(needs)
                    form, files = await files_of(request)
                else:
                    form = await form_of(request)
            try:
                opened = await state.admit(client, needs)
            except NamespaceError:
                raise
            except InputError:  # the token permits several namespaces, and the request names none
                if client.choose is None:
                    raise
                return RedirectResponse("/namespaces", status_code=303, headers=HEADERS)
            shown, present = dict(form).get("in"), opened.memory.store.namespace
            if shown is not None and shown != present:
                raise refused(
                    409,
                    f"the form was of the namespace {shown!r:.200}, and {present} was chosen since",
                    hint="nothing was done: choose that namespace again, and send the form once more",
                )
            newest = partial(_newest_change, opened.memory) if form and needs != "read" else lambda: None
            return await state.run_in_worker(
                lambda: handler(PageRequest(request, opened, state, client, form, files, newest()))
            )
        except (RlmMemError, Refused) as error:
            return _error_page(request, state, error)
        finally:
            for file in files:
                file.file.close()

    return Route(path, serve, methods=[method], include_in_schema=False)


def _newest_change(memory: Memory) -> str | None:
    return next((one.id for one in memory.recorded_changes(1)), None)


MOST_NAMESPACES = 200
"""Most namespaces in a list; if there are more, one is found by a part of its name."""


def namespaces_route(state: ServerState) -> Route:
    """The page on which a client chooses one of the namespaces that its token permits."""

    async def serve(request: Request) -> Response:
        try:
            client = client_of(request.scope)
            client.access.check("read")
            if request.method == "POST":
                _check_same_origin(request)
                name = dict(await form_of(request)).get("namespace", "")
                await state.admit(replace(client, namespace=name), "read")  # raises if it is not permitted
                if client.choose is None:
                    raise InputError(
                        "only a browser can choose a namespace", hint="send the header RLM-MEM-Namespace"
                    )
                client.choose(name)
                return RedirectResponse("/memories", status_code=303, headers=HEADERS)
            namespaces = await state.run_in_worker(lambda: state.opened.namespaces_of(client))
        except (RlmMemError, Refused) as error:
            return _error_page(request, state, error)
        several = len(namespaces) > MOST_NAMESPACES
        words = request.query_params.get("q", "")[:200].strip() if several else ""
        held = {one: count for one, count in namespaces.items() if words.casefold() in one.casefold()}
        return page(
            request,
            "namespaces.html",
            {
                "held": dict(islice(held.items(), MOST_NAMESPACES)),
                "found": len(held),
                "words": words if several else None,
                "chosen": client.namespace or state.opened.memory.store.namespace,
                "namespace": "",
                "admin": _may_see_tokens(state, client),
                "read_only": state.read_only,
            },
        )

    return Route("/namespaces", serve, methods=["GET", "POST"], include_in_schema=False)


def _may_see_tokens(state: ServerState, client: Caller) -> bool:
    return state.opened.tokens is not None and client.access.permits("admin")


def _check_same_origin(request: Request) -> None:
    """Refuse forms submitted from other sites, in addition to the guard."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        raise refused(
            403, "this form was sent by another site", hint="open the dashboard and send it from there"
        )


async def form_of(request: Request) -> tuple[tuple[str, str], ...]:
    """The fields of a submitted form.

    Raises:
        Refused: it is too large.
    """
    try:
        data = await read_body(request, MAX_FORM_BYTES)
    except BodyTooLarge:
        raise refused(
            413,
            f"the form has more than {MAX_FORM_BYTES >> 20} MiB",
            hint="use rlm-mem remember --file for long texts",
        ) from None
    try:
        fields = parse_qsl(
            data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise refused(413, f"the form has more than {_MAX_FIELDS:,} fields") from None
    # Browsers send the lines of text fields with CR LF; memories keep their LF.
    return tuple((name, value.replace("\r\n", "\n")) for name, value in fields)


async def files_of(request: Request) -> tuple[tuple[tuple[str, str], ...], tuple[UploadFile, ...]]:
    """The fields and the files of a submitted form; the caller closes the files.

    Raises:
        Refused: it is too large, or is not a form with files.
    """
    most = MAX_UPLOAD_BYTES
    body = body_parts(request, most)
    try:
        sent = await MultiPartParser(
            request.headers, body, max_files=MAX_FILES, max_fields=MAX_FILES + _MAX_FIELDS
        ).parse()
    except BodyTooLarge:
        raise refused(
            413,
            f"the files have more than {most >> 20} MiB together",
            hint="send them in parts, or use rlm-mem import on the machine of the memory",
        ) from None
    except (MultiPartException, KeyError) as error:  # KeyError: no boundary
        if "too many files" in str(error).casefold():
            raise refused(
                413,
                f"the form has more than {MAX_FILES:,} files",
                hint="pack the folder into a zip file, or use rlm-mem remember --folder",
            ) from None
        raise refused(
            400, "the form with files is damaged", hint="send it from the page Import again"
        ) from None
    fields = tuple((name, value) for name, value in sent.multi_items() if isinstance(value, str))
    files = tuple(value for _, value in sent.multi_items() if not isinstance(value, str))
    return fields, files


def local_address(text: str) -> str:
    """The path and the query of an address, without what an action added to it; empty if it is not one of a page."""
    try:
        parts = urlsplit(text[:8_000])
    except ValueError:  # an incomplete IPv6 address
        return ""
    # "//" and "/\\" lead to other hosts.
    if not parts.path.startswith("/") or parts.path.startswith(("//", "/\\")):
        return ""
    return _without_action(parts.path, parse_qsl(parts.query))


def _without_action(path: str, query: Iterable[tuple[str, str]]) -> str:
    """The address of a page without what an action added to it."""
    kept = urlencode([one for one in query if one[0] not in _ONCE])
    return f"{path}?{kept}" if kept else path


def _error_page(request: Request, state: ServerState, error: Exception) -> Response:
    why = problem_of(error)
    if why.status >= 500:
        _log.warning("%s %s: %s", request.method, request.url.path, error)
    values = {
        "title": why.title,
        "message": why.detail,
        "hint": why.hint,
        "namespace": "",
        "read_only": state.read_only,
        "admin": _may_see_tokens(state, client_of(request.scope)),
    }
    block = "content" if request.headers.get("hx-request") == "true" else ""
    return page(request, "error.html", values, block=block, status=why.status)
