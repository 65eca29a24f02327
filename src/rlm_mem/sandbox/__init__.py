"""The sandbox: programs of a model run here, over a store they can only read.

``session`` is the interface (SandboxSession) and opens the engine. ``policy`` checks a program before it runs and names
what is not allowed; ``engine`` defines the boundary and ends what runs, ``monty`` (default) and ``cpython`` are its two
implementations; ``functions`` and ``dispatch`` are what a program can reach; ``idioms`` and ``prelude`` let everyday
Python run on Monty. Nothing here writes to a store or uses a model: ``recall`` calls models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.sandbox.session import SandboxSession
    from rlm_mem.sandbox.values import Final, HostCall, StepOutput

__all__ = ["Final", "HostCall", "SandboxSession", "StepOutput"]

__getattr__ = loader(
    __name__,
    {
        "session": ("SandboxSession",),
        "values": ("Final", "HostCall", "StepOutput"),
    },
)
