"""Automatic memory of coding agents: namespaces of projects, capture of sessions, and the context given back.

``projects`` gives each repository a namespace, ``project_files`` syncs it with its files for agents, ``transcripts``
reads what clients record, ``rules`` selects sentences by a file of patterns, ``sessions`` stores them and opens a
case in the review queue, ``context`` and ``actions`` select the memories given to a session, a prompt or an action, and
``told`` records them. The hooks of each client
are in ``rlm_mem.mcp.hooks``.

Modules that capture are loaded at first use: most prompts only need a context, and most commands no project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.capture.project_files import bring_in_step as bring_in_step
    from rlm_mem.capture.projects import project_of as project_of
    from rlm_mem.capture.sessions import (
        capture_messages as capture_messages,
        capture_transcript as capture_transcript,
        is_waiting as is_waiting,
        screened as screened,
    )

__getattr__, __all__ = loader(
    __name__,
    {
        "project_files": "bring_in_step",
        "projects": "project_of",
        "sessions": "capture_messages capture_transcript is_waiting screened",
    },
)
