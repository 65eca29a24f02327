"""Receipts: an answer as a file that can be verified later, against the memory or a bundle of its chunks.

``making`` creates a receipt of a recorded run, ``format`` defines the file, ``verifying`` verifies it.
Programs of a receipt run only in the sandbox, like those of a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.receipts.format import Bundle, Receipt, check_new
    from rlm_mem.receipts.making import make_receipt
    from rlm_mem.receipts.signing import check_key
    from rlm_mem.receipts.verifying import PartCheck, Verification, verify

__all__ = [
    "Bundle",
    "PartCheck",
    "Receipt",
    "Verification",
    "check_key",
    "check_new",
    "make_receipt",
    "verify",
]

__getattr__ = loader(
    __name__,
    {
        "format": ("Bundle", "Receipt", "check_new"),
        "making": ("make_receipt",),
        "signing": ("check_key",),
        "verifying": ("PartCheck", "Verification", "verify"),
    },
)
