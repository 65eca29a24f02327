"""Sandbox sessions that record the calls of their programs with results, or replay recorded calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from rlm_mem.chunk import parse_time
from rlm_mem.errors import BudgetError
from rlm_mem.models.base import Limits
from rlm_mem.recall.replaying import Replayer
from rlm_mem.receipts.format import HashedCall, digest, plain_json, without_volatile
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.functions import FUNCTIONS, STORE_FUNCTIONS
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.sandbox.values import chunk_ids_in

if TYPE_CHECKING:
    from rlm_mem.config import Config
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.replaying import ReplayStep
    from rlm_mem.recall.trajectory import Trajectory
    from rlm_mem.store.core.chunk_store import ChunkStore

_OWN = FUNCTIONS.difference(STORE_FUNCTIONS)
"""Functions whose calls are not recorded, since the session itself or recorded replies answer them."""

REPLAY_SECONDS = 300.0
"""Total wall-clock limit in seconds for the programs of one receipt."""

DIVERGED = "calls"
"""``stopped_by`` of a replay whose calls differ from the recorded ones."""


def args_hash(args: Any) -> str:
    """The hash of the arguments of a call."""
    return digest(args, "arguments")


def result_hash(call: dict[str, Any]) -> str:
    """The hash of the result of a call (without volatile keys) or its error, and of the ids that were read."""
    return digest(
        {"read": call["read"], "error": call["error"]}
        if call.get("error") is not None
        else {"read": call["read"], "result": without_volatile(call.get("result"))},
        "result",
    )


def hashed(calls: Sequence[dict[str, Any]]) -> list[HashedCall]:
    """Recorded calls as in a receipt."""
    return [HashedCall(call["name"], args_hash(call["args"]), result_hash(call)) for call in calls]


class TapedSession(SandboxSession):
    """A session whose calls of the memory are recorded, or answered from recorded calls.

    Attributes:
        made: the calls recorded since the last program.
        tape: recorded calls to replay; None: the memory is called.
    """

    made: list[dict[str, Any]]
    tape: list[dict[str, Any]] | None = None

    def answer_call(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Answer a call and record it, or replay its recorded result.

        Raises:
            HostCallFailed: the function failed, now or in the recording.
            BudgetError: the recorded call at this position differs.
        """
        if name in _OWN:
            return super().answer_call(name, args, keywords)
        arguments = plain_json({"args": args, "keywords": keywords})
        if self.tape is not None:
            return self._replay_call(name, arguments)
        before = set(self._reads)
        call: dict[str, Any] = {"name": name, "args": arguments, "read": []}
        try:
            result = super().answer_call(name, args, keywords)
        except HostCallFailed as error:
            call["error"] = plain_json({"kind": error.kind, "message": error.message})
            raise
        else:
            call["result"] = plain_json(result)
            return result
        finally:
            if "error" in call or "result" in call:
                call["read"] = [one for one in self._reads if one not in before]
                self.made.append(call)

    def _replay_call(self, name: str, arguments: Any) -> Any:
        assert self.tape is not None
        self._check_time()
        call = self.tape.pop(0) if self.tape else None
        if call is None or call["name"] != name or args_hash(call["args"]) != args_hash(arguments):
            raise BudgetError(f"the program calls {name} differently than recorded", stopped_by=DIVERGED)
        for chunk_id in call["read"]:
            self._note_read(chunk_id)
        self.made.append(call)
        if call.get("error") is not None:
            raise HostCallFailed(call["error"]["kind"], call["error"]["message"])
        result = call.get("result")
        self.shown(chunk_ids_in(result))
        return result


class CallRecorder(Replayer):
    """Replays a run with the clock at the time of the question, and records every call.

    Args:
        store: the memory, or with ``tapes`` what an answer is checked against.
        config: settings; None: those of the store. ``output_chars``: maximum characters of output per turn.
        tapes: recorded calls of each step, which are answered in place of the memory's functions.
    """

    def __init__(
        self,
        store: Any,
        recorded: Trajectory,
        *,
        config: Config | None = None,
        functions: Any = None,
        output_chars: int | None = None,
        tapes: Sequence[list[dict[str, Any]]] | None = None,
    ) -> None:
        pinned = cast("ChunkStore", _Pinned(store, parse_time(recorded.started_at)))
        limits = Limits(iterations=None, depth=50, seconds=REPLAY_SECONDS, model_calls=None)
        super().__init__(pinned, recorded, functions, limits, config)
        if output_chars is not None:
            self._output_chars = output_chars
        self._tapes = {} if tapes is None else dict(zip(map(id, recorded.steps), tapes, strict=True))
        self._replayed: dict[int, tuple[ReplayStep, list[dict[str, Any]]]] = {}

    def replay_of(self, then: LoopStep) -> tuple[ReplayStep | None, list[dict[str, Any]]]:
        """Return the replay of a recorded step and its calls; None and no calls if it was not reached."""
        return self._replayed.get(id(then), (None, []))

    @property
    def output_chars(self) -> int:
        """Maximum characters of output per turn."""
        return self._output_chars

    @property
    def config(self) -> Config:
        """The settings of the replay."""
        return self._runner.config

    def open_session(
        self, sub_question: Callable[[str], dict[str, Any]], accept: Callable[[Any], Any] | None
    ) -> SandboxSession:
        """Open a session that records its calls."""
        return self._runner.session(self._budget, self._llm, sub_question, accept=accept, kind=TapedSession)

    def before(self, session: SandboxSession, then: LoopStep) -> None:
        """Start recording a turn, or provide its recorded calls."""
        taped = cast("TapedSession", session)
        taped.made = []
        if id(then) in self._tapes:
            taped.tape = list(self._tapes[id(then)])

    def after(self, session: SandboxSession, then: LoopStep, now: LoopStep) -> None:  # noqa: ARG002 - as overridden
        """Store the recorded calls of a turn."""
        if then.programs:
            self._replayed[id(then)] = self.steps[-1], cast("TapedSession", session).made


class _Pinned:
    """A proxy of a store with a fixed clock, since phrases such as ``last week`` depend on the time."""

    def __init__(self, store: ChunkStore, moment: datetime) -> None:
        self._store = store
        self._moment = moment

    def clock(self) -> datetime:
        """The fixed moment."""
        return self._moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
