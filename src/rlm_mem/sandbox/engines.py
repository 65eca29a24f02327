"""Opens the engine that a session names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.errors import InvalidConfig

if TYPE_CHECKING:
    from rlm_mem.sandbox.engine import Engine, EngineLimits

__all__ = ["open_engine"]


def open_engine(name: str, limits: EngineLimits) -> Engine:
    """Return a new engine: ``monty`` or ``cpython``.

    Raises:
        InvalidConfig: an unknown name, or an engine that this machine cannot isolate.
    """
    # A session needs one of them, and each takes 10 to 30 ms to load.
    if name == "monty":
        from rlm_mem.sandbox.monty import MontyEngine

        return MontyEngine(limits)
    if name == "cpython":
        from rlm_mem.sandbox.cpython import CPythonEngine

        return CPythonEngine(limits)
    raise InvalidConfig(f"there is no sandbox engine {name!r:.60}", hint="use 'monty' or 'cpython'")
