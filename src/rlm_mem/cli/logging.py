"""Set-up of a command's logging, by its options, else the environment, else the settings of the brain."""

from __future__ import annotations

import os
from pathlib import Path

from rlm_mem.config import Config, LogConfig, locate
from rlm_mem.errors import InvalidConfig, RlmMemError


def configure_logging(brain: Path | str | None, level: str | None, form: str | None) -> None:
    """Set up logging if it is configured; otherwise Python's default prints warnings.

    Args:
        brain: the brain named before the command; None: the default of the command.
        level, form: values of the options; None: not given.

    Raises:
        InvalidConfig: an unknown level or format.
    """
    level, form = level and level.lower(), form and form.lower()
    named = os.environ.get("RLM_MEM_LOG_LEVEL"), os.environ.get("RLM_MEM_LOG_FORMAT")
    asked = any((level, form, *named))
    try:
        place = locate(brain)
        if not asked and (isinstance(place, str) or not (place / "config.toml").is_file()):
            return
        settings = Config.load(place).log
    except RlmMemError:
        # The command itself reports an invalid place or setting; logging uses the defaults.
        settings = LogConfig()
    if not asked and settings == LogConfig():
        return
    from rlm_mem.telemetry.logs import FORMATS, LEVELS, start_logging

    for given, known, option in ((level, LEVELS, "--log-level"), (form, FORMATS, "--log-format")):
        if given is not None and given not in known:
            raise InvalidConfig(f"{option} is {given!r:.40}", hint=f"use one of {', '.join(known)}")
    start_logging(level or settings.level, form or settings.format)
