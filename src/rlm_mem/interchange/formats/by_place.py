"""Formats determined by a file's path in an export or a brain folder (``brain_files.format_by_place``)."""

from __future__ import annotations

from rlm_mem.interchange.brain_files import read_brain_file
from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.history import read_history


def _claim_nothing(_head: FileHead) -> Claim:
    return Claim.NO


BRAIN_FILE = Format(
    "brain-file", _claim_nothing, read_brain_file, "tiered memories, trajectories and other files of a brain"
)
HISTORY = Format("history", _claim_nothing, read_history, "former versions of chunks, and the audit log")
