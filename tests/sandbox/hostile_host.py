"""A host that runs the hostile programs one after the other and reports what became of it, as JSON on stdout.

A process of its own, because its peak memory and its very survival are what is asserted.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from hostile import PROGRAMS

from rlm_mem.errors import BudgetError, InputError, ProgramError, SandboxViolation
from rlm_mem.models.base import Completion, Usage
from rlm_mem.recall import REPLSession
from rlm_mem.sandbox import session as session_module
from rlm_mem.sandbox.policy import check_program
from rlm_mem.store.core.chunk_store import ChunkStore

SECRET_NAME, SECRET = "RLM_MEM_TEST_SECRET", "hush-4711-hush"


PATIENT = ("collisions", "layer", "newer syntax", "built-ins", "libraries")
"""Groups that attack what comes after the program, so it must come to its end."""

ORDINARY = """
import json, math, re
from collections import Counter
print('begun')
def longest(words):
    return max(words, key=len)
words = re.findall(r'[a-z]+', 'green tea, black tea')
pairs = sorted(((w, len(w)) for w in words), key=lambda p: (-p[1], p[0]))
try:
    int('x')
except ValueError as error:
    kind = type(error).__name__
[longest(words), Counter(words).most_common(1), json.dumps({'n': sum(n for _, n in pairs)}), pairs[0][0], kind,
 str(math.sqrt(16)), isinstance(words, list), stats()['chunk_count'], any(w == 'tea' for w in words)]
"""
ORDINARY_ANSWER = ["green", [("tea", 2)], '{"n": 16}', "black", "ValueError", "4.0", True, 1, True]
"""What an ordinary program gives after each hostile one, in the same session."""


def peak_mb() -> int:
    """Most memory that this process ever had; /proc, because getrusage counts what its parent had before."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            int(line.split()[1]) // 1024 for line in status.read_text().splitlines() if "VmHWM" in line
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class Parrot:
    """A model that says how much it used, so that no tokeniser (50 MB) is loaded to estimate it."""

    name = "parrot"

    def complete(self, _messages: Any, **_options: Any) -> Completion:
        return Completion("same again", Usage(1, 1))


def parse_only(code: str, **_rules: Any) -> ast.Module | None:
    """The policy, switched off: what is left is the engine."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def refused(session: REPLSession, code: str) -> bool:
    """Whether the policy refuses a program."""
    rules = {"importable": session._engine.importable, "reserved": session._reserved}
    try:
        check_program(code, **rules, max_chars=len(code))
    except SandboxViolation:
        return True
    except ProgramError:  # it cannot be parsed
        return False
    return False


def main(engine: str, policy: str, groups: list[str]) -> None:
    folder = Path(tempfile.mkdtemp())
    mark = folder / "escaped"
    os.environ[SECRET_NAME] = SECRET
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.setblocking(False)
    if policy == "off":
        session_module.check_program = parse_only
    outcomes = []
    with ChunkStore(folder / "memory") as store:
        kept = store.create_chunk("Ana: green tea, please.", conversation_id="conv-1", tags=["tea"], tokens=6)
        session = REPLSession(store, Parrot(), 5, engine=engine)
        session.llm_query("warm up")
        session.reset()
        for group, name, code in PROGRAMS:
            if groups and group not in groups:
                continue
            for word, value in (
                ("{MARK}", str(mark)),
                ("{SECRET}", SECRET_NAME),
                ("{PORT}", str(listener.getsockname()[1])),
            ):
                code = code.replace(word, value)
            if policy == "off" and not refused(session, code):
                continue  # it is run with the policy, too
            began = time.monotonic()
            try:
                step = session.run(code, timeout=5 if group in PATIENT else 0.15)
                error = step.error
            except (BudgetError, InputError) as raised:
                step, error = session.last_step, raised
            seconds = time.monotonic() - began
            final = session.final
            if final is not None or isinstance(error, BudgetError):
                session.reset()
            try:
                usable = session.execute(ORDINARY, timeout=20) == ORDINARY_ANSWER
            except Exception as raised:  # noqa: BLE001 - whatever it is, the session is not usable
                usable = False
                error = raised
            if group == "memory":
                # What it kept would be snapshotted again after every later program.
                session.reset()
            seen = f"{step.output if step else ''} {step.value if step else None!r:.2000} {error}"
            outcomes.append(
                {
                    "group": group,
                    "name": name,
                    "seconds": round(seconds, 3),
                    "kind": type(error).__name__ if error is not None else "ran",
                    "error": str(error)[:200] if error is not None else "",
                    "value": f"{step.value if step else None!r:.80}",
                    "final": final is not None,
                    "usable": usable,
                    "leaked": SECRET in seen or "root:" in seen,
                    "marked": mark.exists(),
                    "peak_mb": peak_mb(),
                }
            )
        intact = store.get_chunk(kept.id) is not None and store.get_stats()["chunk_count"] == 1
        session.close()
    try:
        listener.accept()
        called = True
    except BlockingIOError:
        called = False
    print(json.dumps({"outcomes": outcomes, "intact": intact, "called": called}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
