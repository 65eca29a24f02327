"""What ``Memory`` returns where no other module has the type: figures, checkpoint, audit log, LIVEHUD."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.results.kinds import Checkpoint, Event, Hud, RecordedChange, Stats, UndoneChange

__all__ = ["Checkpoint", "Event", "Hud", "Progress", "RecordedChange", "Stats", "UndoneChange"]

Progress = Callable[[int, int], None]
"""Called at intervals during long work, with (done, total)."""

__getattr__ = loader(
    __name__, {"kinds": ("Checkpoint", "Event", "Hud", "RecordedChange", "Stats", "UndoneChange")}
)
