"""The response with an exported file, which is removed however the request ends."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class ExportedFile(FileResponse):
    """Sends a file, then removes it with its folder.

    A background task would not run after an invalid Range header, a revoked token or a cancelled request.

    Args:
        file: the only file of a temporary folder.
    """

    def __init__(self, file: Path, *, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(file, filename=file.name, media_type=media_type, headers=headers)
        self._folder = file.parent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
