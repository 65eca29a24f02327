"""Receipts: an answer as a file that can be verified later, against the memory or a bundle of its chunks.

``making`` creates a receipt of a recorded run, ``format`` defines the file, ``verifying`` verifies it.
Programs of a receipt run only in the sandbox, like those of a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.receipts.format import Bundle as Bundle, Receipt as Receipt, check_new as check_new
    from rlm_mem.receipts.making import make_receipt as make_receipt
    from rlm_mem.receipts.signing import check_key as check_key
    from rlm_mem.receipts.verifying import (
        PartCheck as PartCheck,
        Verification as Verification,
        verify as verify,
    )

__getattr__, __all__ = loader(
    __name__,
    {
        "format": "Bundle Receipt check_new",
        "making": "make_receipt",
        "signing": "check_key",
        "verifying": "PartCheck Verification verify",
    },
)
