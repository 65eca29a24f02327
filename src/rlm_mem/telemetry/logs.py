"""Log lines on stderr, as text for people or as one JSON object per line for collectors.

Only the command and its servers set this up; a program that uses the package configures logging itself.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from rlm_mem.errors import InvalidConfig
from rlm_mem.telemetry import trace_ids

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

#: Standard attributes of a record; others were passed with `extra=`.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats records as JSON lines.

    The fields are ``ts``, ``level``, ``logger``, ``message``, ``process``; ``error`` and ``trace`` for an exception;
    ``trace_id`` and ``span_id`` inside a span; and those passed with ``extra=``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        ids = trace_ids()
        if ids is not None:
            line["trace_id"], line["span_id"] = ids
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["trace"] = self.formatException(record.exc_info)
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in line:
                line[name] = value
        text = json.dumps(line, ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace").decode()


class _ToStderr(logging.Handler):
    """A handler that writes to the current ``sys.stderr``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - as in logging: a closed stderr or a bad record must not abort the work
            self.handleError(record)


def start_logging(level: str, line_format: str) -> None:
    """Log to stderr from this level up, replacing the handler of an earlier call.

    Args:
        level: debug, info, warning or error.
        line_format: text or json.

    Raises:
        InvalidConfig: the level or format is unknown.
    """
    if level not in LEVELS or line_format not in FORMATS:
        raise InvalidConfig(
            f"there is no log level {level!r:.20} with format {line_format!r:.20}",
            hint=f"levels: {', '.join(LEVELS)}; formats: {', '.join(FORMATS)}",
        )
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, _ToStderr)]:
        root.removeHandler(handler)
    handler = _ToStderr()
    handler.setFormatter(
        JsonLines()
        if line_format == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    root.addHandler(handler)
    root.setLevel(level.upper())
    # Only warnings and errors of client libraries are relevant.
    for name in ("httpx", "httpcore", "openai", "anthropic", "urllib3", "asyncio", "mcp", "psycopg"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
