"""A pause of the hooks: until it ends none gives memories to its agent, and nothing of what is said is captured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rlm_mem.config import user_data_brain
from rlm_mem.errors import StorageError

_NO_END = "until resumed"


def _file() -> Path:
    return user_data_brain().parent / "hooks.paused"


def pause(length: timedelta | None) -> str:
    """Pause the hooks of all clients of this user; returns until when, in words."""
    end = _NO_END if length is None else f"{datetime.now(UTC) + length:%Y-%m-%dT%H:%M:%SZ}"
    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(end, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}; the hooks are not paused") from None
    return _words(end)


def resume() -> bool:
    """End the pause; False if there was none."""
    was = paused() is not None
    try:
        _file().unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{_file()} cannot be removed: {error.strerror}") from None
    return was


def paused() -> str | None:
    """Until when the hooks are paused, in words; None: they are not. A file that cannot be read pauses without end."""
    try:
        end = _file().read_text(encoding="utf-8").strip()
        return _words(end) if end == _NO_END or datetime.now(UTC) < datetime.fromisoformat(end) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return _words(_NO_END)


def _words(end: str) -> str:
    return end if end == _NO_END else f"until {end[:16].replace('T', ' ')} UTC"
