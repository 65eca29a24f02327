"""Automatic memory of coding agents: the namespace of a project, what a session keeps, and the context given back.

``projects`` gives each repository a namespace, ``transcripts`` reads what clients record, ``rules`` reads from a file
which sentences are kept, ``sessions`` keeps them and opens a case in the review queue, ``context``
selects what a session or a prompt is given. The hooks of each client are in ``rlm_mem.mcp.hooks``.

What captures is loaded when it is first used: most prompts are only given a context, and most commands name no project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.capture.projects import project_of
    from rlm_mem.capture.sessions import capture_messages, capture_transcript, screened

__all__ = ["capture_messages", "capture_transcript", "project_of", "screened"]

__getattr__ = loader(
    __name__,
    {
        "projects": ("project_of",),
        "sessions": ("capture_messages", "capture_transcript", "screened"),
    },
)
