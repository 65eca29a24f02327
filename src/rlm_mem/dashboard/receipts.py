"""The receipt of a run: its verification against the memory as it is now, and the files to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.errors import InputError

if TYPE_CHECKING:
    from rlm_mem.dashboard.visits import Visit


def receipt_page(visit: Visit) -> Response:
    """The result of verifying; with ``?file=receipt`` or ``bundle`` the file itself."""
    run, wanted = visit.part("run"), visit.text("file", 20)
    receipt = visit.memory.receipt(run, bundle=wanted == "bundle")
    if wanted in ("receipt", "bundle"):
        data = receipt.to_bytes() if receipt.bundle is None else receipt.bundle.to_bytes()
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{receipt.origin.run}.{wanted}"'}
        return Response(data, media_type="application/jsonl", headers=headers)
    if wanted:
        raise InputError("there are only two files, receipt and bundle")
    return visit.page("receipt.html", receipt=receipt, found=visit.memory.verify(receipt))
