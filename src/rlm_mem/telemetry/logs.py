"""Log lines on stderr: as text for a person, or as one JSON object a line for a collector.

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

#: Attributes of every record; any others were passed with `extra=`.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per line: ``ts``, ``level``, ``logger``, ``message``, ``process``; ``error`` and ``trace`` of an
    exception; ``trace_id`` and ``span_id`` inside a span; and what was given with ``extra=``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line without line breaks."""
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
    """Writes to the current ``sys.stderr``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except (OSError, ValueError):  # the reader is gone: a log line must not end the work
            self.handleError(record)


def start_logging(level: str, line_format: str) -> None:
    """Send log lines of this level and above to stderr, in place of what an earlier call set up.

    Args:
        level: debug, info, warning or error.
        line_format: text or json.

    Raises:
        InvalidConfig: another level or format.
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
    # Client libraries' lines below a warning are of no interest here.
    for name in ("httpx", "httpcore", "openai", "anthropic", "urllib3", "asyncio", "mcp", "psycopg"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
