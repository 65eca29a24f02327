"""Ending a program from outside, on both engines; workers that inherit nothing and die with their host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import errors
from rlm_mem.recall import REPLSession
from rlm_mem.recall.recall import RecallOperation
from rlm_mem.recall.shown_runs import list_trajectories
from rlm_mem.sandbox import seccomp
from rlm_mem.sandbox.engine import Alarm, Calls, Stop, stopped_by
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.typed import present

needs_filter = pytest.mark.skipif(
    not seccomp.supported(), reason="the cpython engine is confined on Linux x86-64 and 64-bit ARM only"
)
ENGINES = ["monty", pytest.param("cpython", marks=needs_filter)]
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


class Stuck:
    """A host function and a model that never answer, and tell when they were asked."""

    name = "stuck"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def wait(self) -> None:
        self.asked.set()
        self.go_on.wait(60)

    def complete(self, *_: Any, **__: Any) -> Any:
        self.wait()
        raise errors.ModelOverloaded("nobody waits for this")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.go_on.set()


@pytest.fixture
def session(store: ChunkStore, stuck: Stuck, engine: str) -> Iterator[REPLSession]:
    opened = REPLSession(
        store, stuck, engine=engine, functions={"wait": stuck.wait, "note": lambda: stuck.asked.set()}
    )
    opened.execute("kept = 5")
    yield opened
    opened.close()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Ended, but its parent has not asked for it yet.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    """Wait for the thing itself."""
    waiting = threading.Event()
    for _ in range(int(seconds * 100)):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not happen")


PROGRAMS = {
    "a loop": "note()\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a host function": "try:\n    wait()\nexcept BaseException: pass",
    "the model": "llm_query('x')",
    "a batch": "llm_query_batched(['x', 'y', 'z'])",
}


@needs_proc
@pytest.mark.parametrize("program", list(PROGRAMS))
@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_program_is_ended_from_another_thread(
    session: REPLSession, stuck: Stuck, program: str, way: str
) -> None:
    """Whatever it waits for; the worker is gone, the session says so and goes on."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            session.run(PROGRAMS[program])
        except BaseException as error:  # noqa: BLE001 - it is what is asked about
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert stuck.asked.wait(20)
    pid = session._engine.worker_pid or session._engine._running  # type: ignore[attr-defined]
    getattr(session, way)()
    thread.join(20)
    assert not thread.is_alive()
    assert [type(error) for error in ended] == [errors.SessionCancelled]
    assert ("cancelled" if way == "cancel" else "closed") in str(ended[0])
    assert not stuck.go_on.is_set(), "nobody waited for the function of the host"
    wait_until(lambda: gone(pid))
    assert session.execute("1 + 1") == 2
    if way == "cancel":
        assert session.execute("kept") == 5
    else:
        assert session.get_state() == {}


def test_a_nested_question_is_ended_with_the_one_that_asked(
    store: ChunkStore, stuck: Stuck, engine: str
) -> None:
    class Model:
        name = "model"

        def complete(self, messages: Any, **_: Any) -> Any:
            from rlm_mem.models.base import Completion

            if "deeper" in str(messages):
                stuck.wait()
            return Completion("```repl\nFINAL(rlm_query('deeper'))\n```")

    session = REPLSession(store, Model(), engine=engine)
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            session.retrieve("why?")
        except BaseException as error:  # noqa: BLE001 - it is what is asked about
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert stuck.asked.wait(20)
    session.cancel()
    thread.join(20)
    assert [type(error) for error in ended] == [errors.SessionCancelled]
    assert session.execute("2") == 2
    session.close()


def test_cancelling_without_a_program_does_nothing(session: REPLSession) -> None:
    session.cancel()
    assert session.execute("kept") == 5


def test_a_host_function_cannot_call_back_into_its_session(store: ChunkStore, engine: str) -> None:
    """It would wait for itself; it is told at once, and so is a thread that it starts."""
    told: list[Exception] = []
    made: list[REPLSession] = []

    def trying(call: Any) -> None:
        try:
            call(made[0])
        except errors.SessionBusy as error:
            told.append(error)

    def back() -> str:
        for call in (
            lambda one: one.execute("1"),
            lambda one: one.get_state(),
            lambda one: one.reset(),
            lambda one: one.close(),
        ):
            trying(call)
        thread = threading.Thread(target=trying, args=(lambda one: one.get_state(),))
        thread.start()
        thread.join(20)
        return "back"

    session = REPLSession(store, engine=engine, functions={"back": back})
    made.append(session)
    assert session.execute("back()", timeout=30) == "back"
    assert len(told) == 5 and all("a function that its program called" in str(error) for error in told[:4])
    assert "already running a program" in str(told[4])
    assert session.execute("1") == 1
    session.close()


HOST = """
import os, signal, socket, sys, tempfile
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where they run under nohup
from rlm_mem.own_process import end_in_order
from rlm_mem.recall import REPLSession
from rlm_mem.store.core.chunk_store import ChunkStore

end_in_order()
folder = tempfile.mkdtemp(dir=sys.argv[2])
secret = open(os.path.join(folder, "secret"), "w")
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
os.set_inheritable(secret.fileno(), True)
listener.set_inheritable(True)
with ChunkStore(folder) as store:
    session = REPLSession(store, engine=sys.argv[1])
    session.execute("kept = 5")
    print(session._engine.worker_pid, flush=True)
    try:
        session.run("while True: pass")
    except KeyboardInterrupt:
        print("interrupted", session.execute("kept"), flush=True)
"""


def host(engine: str, folder: Path) -> tuple[subprocess.Popen[str], int]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOST, engine, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "RLM_MEM_PROBE_KEY": "hush"},
    )
    assert started.stdout is not None
    return started, int(started.stdout.readline())


def used(pid: int) -> int:
    """Processor time of a process, in ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def wait_until_busy(pid: int) -> None:
    """Until the worker is in its endless loop: it uses processor time after its first program."""
    began = used(pid)
    wait_until(lambda: used(pid) > began + 10)


@needs_proc
def test_a_worker_dies_with_its_host_and_inherits_nothing_of_it(engine: str, tmp_path: Path) -> None:
    """The host, with a file and a socket open to be inherited, was killed with SIGKILL while an endless program ran."""
    started, worker = host(engine, tmp_path)
    wait_until_busy(worker)
    opened = (
        [str(path.readlink()) for path in Path(f"/proc/{worker}/fd").iterdir()] if os.geteuid() == 0 else []
    )
    assert all(one.startswith("pipe:") or one == os.devnull for one in opened), opened
    if os.geteuid() == 0:
        assert len(opened) == 3
        assert Path(f"/proc/{worker}/environ").read_bytes() == b""
    started.kill()
    started.wait(20)
    wait_until(lambda: gone(worker))


def test_a_worker_killed_as_its_program_ends_is_replaced(
    store: ChunkStore, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is up between the end of a program and the end of the watch over it."""
    cancel = Alarm.cancel

    def late(alarm: Alarm) -> None:
        alarm.fire()
        cancel(alarm)

    with REPLSession(store, None, 5, engine=engine) as session:
        session.execute("kept = 5")
        with monkeypatch.context() as patch:
            patch.setattr(Alarm, "cancel", late)
            session.execute("later = 6")
        assert session.execute("kept + later") == 11
        with monkeypatch.context() as patch:
            patch.setattr(Alarm, "cancel", late)
            assert session.get_state()["later"] == 6
        assert session.execute("kept + later") == 11


@needs_proc
def test_ctrl_c_ends_a_program_and_leaves_the_session_usable(engine: str, tmp_path: Path) -> None:
    started, worker = host(engine, tmp_path)
    wait_until_busy(worker)
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=40)
    assert out.strip() == "interrupted 5"
    assert started.returncode == 0
    assert gone(worker)


@needs_proc
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_the_process_does_not_wait_for_a_program(
    engine: str, tmp_path: Path, how: str
) -> None:
    started, worker = host(engine, tmp_path)
    wait_until_busy(worker)
    started.send_signal(signal.Signals[how])
    started.communicate(timeout=20)
    assert started.returncode == 128 + signal.Signals[how]
    assert gone(worker)


@pytest.mark.parametrize("stage", ["the model", "a program"])
def test_a_recall_that_is_stopped_says_so_in_its_trajectory(
    store: ChunkStore, stuck: Stuck, engine: str, stage: str
) -> None:
    """Whoever asked went away: the run ends at once, whatever it waits for, and its record is closed."""

    class Model:
        name = "model"

        def complete(self, *_: Any, **__: Any) -> Any:
            from rlm_mem.models.base import Completion

            if stage == "the model":
                stuck.wait()
            return Completion("```repl\nnote()\nwhile True: pass\n```")

    recall = RecallOperation(store, Model(), engine=engine, functions={"note": lambda: stuck.asked.set()})
    stop, ended = Stop(), []

    def ask() -> None:
        try:
            with stopped_by(stop):
                recall.recall("why?")
        except BaseException as error:  # noqa: BLE001 - it is what is asked about
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert stuck.asked.wait(20)
    stop.set()
    thread.join(20)
    assert [type(error) for error in ended] == [errors.SessionCancelled]
    recorded = list_trajectories(store)
    assert [one.outcome for one in recorded] == ["stopped"]


def test_a_session_needs_a_store() -> None:
    with pytest.raises(errors.InputError) as caught:
        REPLSession(None)  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)


@needs_proc
@pytest.mark.parametrize(
    ("code", "goes_on"),
    [
        ("FINAL('walnut')", False),
        ("for one in range(3):\n    FINAL('walnut')\nprint('after')", False),
        ("try:\n    FINAL('walnut')\nfinally:\n    print('after')", False),
        ("try:\n    FINAL('walnut')\nexcept BaseException:\n    search('walnut')", True),
        ("try:\n    FINAL('walnut')\nfinally:\n    while True:\n        pass", True),
    ],
)
def test_the_worker_of_a_program_that_ends_with_its_answer_is_used_again(
    store: ChunkStore, code: str, goes_on: bool
) -> None:
    """One that goes on after FINAL gets nothing more, and its worker is killed at once."""
    with REPLSession(store, engine="monty") as session:
        session.execute("1")
        pid = present(session._engine.worker_pid)
        result = session.run(code)
        assert result.final is not None
        assert (result.final.answer, result.output) == ("walnut", "")
    if goes_on:
        wait_until(lambda: gone(pid))
    else:
        assert not gone(pid)


def test_a_session_within_a_host_function_leaves_the_signals_of_the_process_as_they_were(
    store: ChunkStore,
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer)

    def nested(question: str) -> dict[str, Any]:
        with SandboxSession(store) as inner:
            return {"answer": inner.execute("2")}

    try:
        with SandboxSession(store, sub_question=nested) as session:
            assert session.execute("rlm_query('What?')")["answer"] == 2
    finally:
        assert signal.set_wakeup_fd(before) == writer
        os.close(reader), os.close(writer)


def test_a_with_block_that_ends_ends_the_program_of_another_thread(store: ChunkStore) -> None:
    begun, ended = threading.Event(), threading.Event()
    session = SandboxSession(store, functions={"begun": begun.set})

    def run() -> None:
        with pytest.raises(errors.SessionCancelled):
            session.execute("begun()\nwhile True: pass")
        ended.set()

    with pytest.raises(errors.SessionBusy), session:
        threading.Thread(target=run, daemon=True).start()
        assert begun.wait(20)
    assert ended.wait(5)


def test_the_thread_of_calls_keeps_no_result_while_it_waits() -> None:
    calls = Calls()
    try:
        kept = weakref.ref(calls.call(set[str], 5.0))
        wait_until(lambda: kept() is None)
    finally:
        calls.close()
