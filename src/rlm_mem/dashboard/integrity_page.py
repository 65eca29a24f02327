"""Integrity: the checks of the store and of the tiers, and what a repair would do, with its progress."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rlm_mem.dashboard.words import address
from rlm_mem.errors import InputError, RlmMemError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.continuum.files import InvalidEntry
    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.memory import Memory
    from rlm_mem.store.core.integrity import Repair

_SHOWN = 200


@dataclass
class _Examined:
    """The state and result of one examination; ``finished`` is None while it runs."""

    began: float
    at: datetime
    done: int = 0
    total: int = 0
    finished: float | None = None
    repairs: Sequence[Repair] = ()
    problems: Sequence[InvalidEntry] = ()
    error: str = ""


@dataclass
class Examination:
    """The last examination of this server; one runs at a time, in a thread of its own."""

    look: _Examined | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def start(self, memory: Memory) -> None:
        """Begin an examination, unless one is running."""
        with self._guard:
            if self.look is not None and self.look.finished is None:
                return
            self.look = _Examined(time.monotonic(), datetime.now(UTC))
            threading.Thread(
                target=self._run, args=(memory, self.look), name="rlm-mem-integrity", daemon=True
            ).start()

    @staticmethod
    def _run(memory: Memory, look: _Examined) -> None:
        def progress(done: int, total: int) -> None:
            look.done, look.total = done, total

        try:
            look.repairs = memory.repair(dry_run=True, progress=progress)
            look.problems = memory.continuum.check()
        except RlmMemError as error:
            look.error = str(error)
        except Exception as error:  # noqa: BLE001 - an error in this thread would otherwise be lost
            look.error = f"{type(error).__name__}: {error}"
        look.finished = time.monotonic()


def integrity_page(visit: Visit, examination: Examination) -> Response:
    """The result of the last examination."""
    look = examination.look
    code = visit.text("code", 60)
    repairs = [one for one in look.repairs if code in ("", one.finding.code)] if look else []
    return visit.answer(
        "integrity.html",
        look=look,
        running=look is not None and look.finished is None,
        took=(look.finished or time.monotonic()) - look.began if look else 0.0,
        repairs=repairs[:_SHOWN],
        number=len(repairs),
        codes=Counter(one.finding.code for one in look.repairs).most_common() if look else [],
        code=code,
        here=address("/integrity", code=code),
        stats=visit.memory.store.get_stats(),
    )


def start(visit: Visit, examination: Examination) -> Response:
    """Begin an examination."""
    if visit.text("do", 20) != "check":
        raise InputError("the form has no known action")
    examination.start(visit.memory)
    return visit.go("/integrity")
