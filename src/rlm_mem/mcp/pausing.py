"""A pause of the hooks, during which they neither provide memories to agents nor capture anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rlm_mem.config import user_data_brain
from rlm_mem.errors import StorageError

_NO_END = "until resumed"


def _file() -> Path:
    return user_data_brain().parent / "hooks.paused"


def pause(length: timedelta | None) -> str:
    """Pause the hooks of all clients of this user; return the end of the pause in words."""
    end = _NO_END if length is None else f"{datetime.now(UTC) + length:%Y-%m-%dT%H:%M:%SZ}"
    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(end, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}; the hooks are not paused") from None
    return _in_words(end)


def resume() -> bool:
    """End the pause; return False if there was none."""
    was_paused = paused() is not None
    try:
        _file().unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{_file()} cannot be removed: {error.strerror}") from None
    return was_paused


def paused() -> str | None:
    """Return the end of the pause in words; None if there is none. An unreadable file is a pause without end."""
    try:
        end = _file().read_text(encoding="utf-8").strip()
        return _in_words(end) if end == _NO_END or datetime.now(UTC) < datetime.fromisoformat(end) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return _in_words(_NO_END)


def _in_words(end: str) -> str:
    return end if end == _NO_END else f"until {end[:16].replace('T', ' ')} UTC"
