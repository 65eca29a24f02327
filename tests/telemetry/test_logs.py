"""Log lines: for a person as text, for a collector one JSON object a line, and never on stdout."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem import Memory, telemetry
from rlm_mem.errors import InvalidConfig
from rlm_mem.telemetry.logs import start_logging


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    telemetry.stop()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_json_line_has_time_level_logger_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info", "json")
    logging.getLogger("rlm_mem.store").info("sync: %d added\nin all", 3, extra={"folder": "2026-02"})
    (line,) = lines(capsys)
    assert line["level"] == "info"
    assert line["logger"] == "rlm_mem.store"
    assert line["message"] == "sync: 3 added\nin all"
    assert line["folder"] == "2026-02"
    assert str(line["ts"]).endswith("Z")


def test_an_exception_is_one_line_with_its_class_and_trace(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("error", "json")
    try:
        raise ValueError("no\nsuch thing")
    except ValueError:
        logging.getLogger("rlm_mem").exception("failed")
    (line,) = lines(capsys)
    assert line["error"] == "ValueError"
    assert "no\nsuch thing" in str(line["trace"])


def test_text_that_utf8_cannot_hold_does_not_break_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info", "json")
    logging.getLogger("rlm_mem").info("half a pair: \ud800")
    assert "half a pair" in str(lines(capsys)[0]["message"])


def test_a_line_that_cannot_be_written_does_not_end_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info", "text")
    handler = logging.getLogger().handlers[-1]
    handler.handle(logging.makeLogRecord({"msg": "%d chunks", "args": ("many",)}))
    assert "Logging error" in capsys.readouterr().err


def test_lines_below_the_level_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("warning", "text")
    logging.getLogger("rlm_mem").info("unheard")
    logging.getLogger("rlm_mem").warning("heard")
    err = capsys.readouterr().err
    assert "WARNING rlm_mem: heard" in err
    assert "unheard" not in err


def test_setting_it_up_twice_writes_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info", "text")
    start_logging("info", "json")
    logging.getLogger("rlm_mem").info("once")
    assert len(lines(capsys)) == 1


def test_a_line_inside_a_span_names_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    telemetry.use(TracerProvider())
    start_logging("info", "json")
    with telemetry.operation("search"):
        logging.getLogger("rlm_mem").info("inside")
    logging.getLogger("rlm_mem").info("outside")
    inside, outside = lines(capsys)
    assert len(str(inside["trace_id"])) == 32
    assert len(str(inside["span_id"])) == 16
    assert "trace_id" not in outside


@pytest.mark.parametrize(("level", "form"), [("loud", "text"), ("info", "xml")])
def test_another_level_or_form_is_refused(level: str, form: str) -> None:
    with pytest.raises(InvalidConfig):
        start_logging(level, form)


def command(brain: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command on a brain whose index is damaged, which is worth a warning."""
    return subprocess.run(
        [sys.executable, "-m", "rlm_mem", *words, "list", "--json", "--brain", str(brain)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    brain = tmp_path / "brain"
    with Memory.open(brain) as memory:
        memory.remember("A note that is in its file.")
    (brain / "memory" / "index" / "index.sqlite").write_bytes(b"no database" * 100)
    return brain


def test_the_command_writes_json_lines_to_the_given_file(damaged: Path) -> None:
    ran = command(damaged, "--log-format", "json")
    assert ran.returncode == 0
    assert json.loads(ran.stdout)
    parsed = [json.loads(line) for line in ran.stderr.splitlines()]
    assert any(line["level"] == "warning" and "rebuilding" in line["message"] for line in parsed)


def test_the_environment_and_the_settings_of_the_brain_are_heeded(damaged: Path) -> None:
    ran = command(damaged, RLM_MEM_LOG_LEVEL="error")
    assert ran.stderr == ""
    (damaged / "memory" / "index" / "index.sqlite").write_bytes(b"no database" * 100)
    (damaged / "config.toml").write_text('[log]\nformat = "json"\n')
    ran = command(damaged, "--brain", str(damaged))
    assert json.loads(ran.stderr.splitlines()[0])["level"] == "warning"


def test_an_option_takes_precedence_over_the_environment(damaged: Path) -> None:
    ran = command(damaged, "--log-level", "ERROR", RLM_MEM_LOG_LEVEL="debug")
    assert ran.stderr == ""


def test_an_unknown_level_is_bad_input(damaged: Path) -> None:
    ran = command(damaged, "--log-level", "loud")
    assert ran.returncode == 2
    assert "--log-level" in ran.stderr
