"""The page of integrity checks of store and tiers, with the repairs that would be made."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rlm_mem.dashboard.requests import NamespaceCache, PageRequest
from rlm_mem.dashboard.words import address
from rlm_mem.errors import RlmMemError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.continuum.files import InvalidEntry
    from rlm_mem.memory import Memory
    from rlm_mem.store.core.integrity import Repair

_SHOWN = 200


@dataclass
class _CheckState:
    """State and result of one check; ``finished`` is None while it runs."""

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
    """Runs the integrity checks in a thread, one at a time, and keeps the last result."""

    last: _CheckState | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def start(self, memory: Memory) -> None:
        """Start a check, unless one is running."""
        with self._guard:
            if self.last is not None and self.last.finished is None:
                return
            self.last = _CheckState(time.monotonic(), datetime.now(UTC))
            threading.Thread(
                target=self._run, args=(memory, self.last), name="rlm-mem-integrity", daemon=True
            ).start()

    @staticmethod
    def _run(memory: Memory, check: _CheckState) -> None:
        def progress(done: int, total: int) -> None:
            check.done, check.total = done, total

        try:
            check.repairs = memory.repair(dry_run=True, progress=progress)
            check.problems = memory.continuum.check()
        except RlmMemError as error:
            check.error = str(error)
        except Exception as error:  # noqa: BLE001 - an error in this thread would otherwise be lost
            check.error = f"{type(error).__name__}: {error}"
        check.finished = time.monotonic()


def _examinations() -> NamespaceCache[Examination]:
    return NamespaceCache(lambda _: Examination())


def integrity_page(request: PageRequest) -> Response:
    """The result of the last check."""
    check = request.state.shared(_examinations).of(request).last
    code = request.text("code", 60)
    repairs = [one for one in check.repairs if code in ("", one.finding.code)] if check else []
    return request.answer(
        "integrity.html",
        check=check,
        running=check is not None and check.finished is None,
        took=(check.finished or time.monotonic()) - check.began if check else 0.0,
        repairs=repairs[:_SHOWN],
        number=len(repairs),
        codes=Counter(one.finding.code for one in check.repairs).most_common() if check else [],
        code=code,
        here=address("/integrity", code=code),
        stats=request.memory.store.get_stats(),
    )


def start(request: PageRequest) -> Response:
    """Start a check."""
    request.action("check")
    request.state.shared(_examinations).of(request).start(request.memory)
    return request.go("/integrity")
