"""The sandbox: programs of a model run here, over a store they can only read.

``session`` is the interface (REPLSession). ``policy`` checks a program before it runs and says what is not
allowed; ``engine`` defines the boundary, ``monty`` (default) and ``cpython`` are its two implementations;
``functions`` and ``calls`` are what a program can reach; ``idioms`` and ``prelude`` let everyday Python run on
Monty; ``loop`` and ``prompts`` drive a session with a model. Nothing here writes to a store.
"""

from __future__ import annotations

from rlm_mem.sandbox.session import REPLSession
from rlm_mem.sandbox.steps import Final, HostCall, StepOutput

__all__ = ["Final", "HostCall", "REPLSession", "StepOutput"]
