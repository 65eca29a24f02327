"""The page of a run's receipt: its verification against the present memory, and files to download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.errors import InputError

if TYPE_CHECKING:
    from rlm_mem.dashboard.requests import PageRequest


def receipt_page(request: PageRequest) -> Response:
    """The result of the verification; with ``?file=receipt`` or ``bundle``, that file."""
    run, file = request.part("run"), request.text("file", 20)
    receipt = request.memory.receipt(run, bundle=file == "bundle")
    if file in ("receipt", "bundle"):
        data = receipt.to_bytes() if receipt.bundle is None else receipt.bundle.to_bytes()
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{receipt.origin.run}.{file}"'}
        return Response(data, media_type="application/jsonl", headers=headers)
    if file:
        raise InputError("there are only two files, receipt and bundle")
    return request.page("receipt.html", receipt=receipt, found=request.memory.verify(receipt))
