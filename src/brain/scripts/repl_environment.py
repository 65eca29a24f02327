"""Another documented module name for the sandbox; re-exports only."""

from __future__ import annotations

from rlm_mem.errors import MaxIterationsError, SandboxViolation, TimeoutError
from rlm_mem.recall.repl_session import REPLSession

__all__ = ["MaxIterationsError", "REPLSession", "SandboxViolation", "TimeoutError"]
