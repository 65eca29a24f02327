"""Removes an exported file once it was sent, however the request ends."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


class RemovedAfterwards:
    """Mixin of a file response that removes the file and its folder after the response.

    A background task would not run after an invalid Range header, a revoked token or a cancelled request.

    Attributes:
        path: the only file of a temporary folder.
    """

    path: Any

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the response, then remove the file."""
        try:
            await super().__call__(scope, receive, send)  # type: ignore[misc]  # of the response
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)
