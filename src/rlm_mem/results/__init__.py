"""What ``Memory`` returns where no other module has the type: figures, checkpoint, audit log, LIVEHUD."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.results.kinds import (
        Checkpoint as Checkpoint,
        Event as Event,
        Hud as Hud,
        RecordedChange as RecordedChange,
        Stats as Stats,
        UndoneChange as UndoneChange,
    )

Progress = Callable[[int, int], None]
"""Called at intervals during long work, with (done, total)."""

__getattr__, __all__ = loader(__name__, {"kinds": "Checkpoint Event Hud RecordedChange Stats UndoneChange"})
__all__ += ["Progress"]
