"""The sandbox, which runs the programs of a model over a store that they can only read.

``session`` has the interface (SandboxSession), which one thread at a time uses (``occupancy``). ``policy`` checks a
program before it runs; ``engine`` defines the protocol of engines and ends running programs, ``monty`` (default) and
``cpython`` implement it; ``functions`` and ``dispatch`` provide the host functions; ``idioms`` and ``prelude`` let
everyday Python run on Monty. This package never writes to a store and uses no model: ``recall`` calls models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.sandbox.session import SandboxSession as SandboxSession
    from rlm_mem.sandbox.values import Final as Final, HostCall as HostCall, StepOutput as StepOutput

__getattr__, __all__ = loader(__name__, {"session": "SandboxSession", "values": "Final HostCall StepOutput"})
