"""Addresses and keys that belong to a model's name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlm_mem.config import Config, LLMConfig
from rlm_mem.errors import InvalidConfig, ModelUnavailable
from rlm_mem.models.targets import NO_KEY, resolve_target


@pytest.fixture(autouse=True)
def _libraries() -> None:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")


def settings(**llm: object) -> LLMConfig:
    return Config.load(None, environ={}, llm=llm).llm


def resolve(provider: str, rest: str, **llm: object) -> tuple[str, str | None, str]:
    target = resolve_target(provider, rest, settings(**llm))
    return target.model, target.base_url, target.key


def test_a_key_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        resolve("openai", "gpt-5")
    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    assert resolve("openai", "gpt-5") == ("gpt-5", None, "the-key")


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert resolve("openai", "m@http://localhost:1/v1") == ("m", "http://localhost:1/v1", NO_KEY)
    assert resolve("ollama", "qwen3:4b") == ("qwen3:4b", None, NO_KEY)


def test_the_address_comes_from_the_name_then_the_settings_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://c:3/v1")
    assert (
        resolve("ollama", "m@http://a:1/v1", model="ollama:m", base_url="http://b:2/v1")[1] == "http://a:1/v1"
    )
    assert resolve("ollama", "m", model="ollama:m", base_url="http://b:2/v1")[1] == "http://b:2/v1"
    assert resolve("ollama", "m")[1] == "http://c:3/v1"


def test_the_configured_address_is_not_used_for_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a key for one provider would be sent to another's server."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-key")
    assert resolve("anthropic", "claude", model="openai-compatible:m", base_url="http://b:2/v1")[1] is None


def test_a_forgotten_v1_is_added() -> None:
    assert resolve("openai-compatible", "m@http://localhost:8080")[1] == "http://localhost:8080/v1"
    assert resolve("openai-compatible", "m@http://localhost:8080/api/")[1] == "http://localhost:8080/api/"


def test_the_host_variable_of_ollama_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "gpu-box:11434")
    assert resolve("ollama", "m")[1] == "http://gpu-box:11434/v1"


@pytest.mark.parametrize(
    ("provider", "rest"),
    [
        ("openai-compatible", "m"),
        ("openai-compatible", "m@http://"),
        ("openai-compatible", "m@http://[half"),
        ("openai", ""),
        ("anthropic", "@http://x/"),
    ],
)
def test_an_incomplete_name_is_refused(provider: str, rest: str) -> None:
    with pytest.raises(InvalidConfig):
        resolve(provider, rest)


def test_a_key_is_not_part_of_the_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-key")
    assert "very-secret-key" not in repr(resolve_target("openai", "gpt-5", settings()))


def test_naming_a_model_does_not_load_its_library() -> None:
    code = """
import os, sys
os.environ["OPENAI_API_KEY"] = "k"
from rlm_mem.models import get_llm
get_llm("openai:gpt-5"); get_llm("ollama:qwen3")
print([name for name in ("pydantic_ai", "openai", "anthropic", "genai_prices") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlm_mem.models import targets

    monkeypatch.setattr(targets, "_installed", lambda _: False)
    with pytest.raises(ModelUnavailable) as caught:
        resolve("ollama", "m")
    assert caught.value.hint == "run: pip install 'rlm-mem[llm]'"


@pytest.mark.parametrize(
    "text",
    [
        'model = "cli:sh -c evil"',
        'model = "cli:claude --dangerous"',
        'model = " CLI:evil"',
        'base_url = "http://evil.example/v1"',
        'model = "openai:gpt-5@https://evil.example/v1"',
        'model = "ollama:x@http://localhost:1/v1"\nbase_url = "http://evil.example/v1"',
        'base_url = "http://localhost@evil.example/v1"',
    ],
)
def test_the_file_of_a_brain_may_not_run_commands_or_send_memories_elsewhere(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.toml").write_text(f"[llm]\n{text}\n", encoding="utf-8")
    with pytest.raises(InvalidConfig, match="may not set"):
        Config.load(tmp_path, environ={})


@pytest.mark.parametrize(
    "text",
    [
        'model = "cli:claude"',
        'model = "openai:gpt-5"',
        'base_url = "http://127.0.0.1:8080/v1"',
        'model = "offline"',
    ],
)
def test_the_file_of_a_brain_may_choose_a_model(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(f"[llm]\n{text}\n", encoding="utf-8")
    assert Config.load(tmp_path, environ={}).llm


def test_the_caller_may_configure_any_command(tmp_path: Path) -> None:
    config = Config.load(tmp_path, environ={"RLM_MEM_LLM_MODEL": "cli:sh -c anything"})
    assert config.llm.model == "cli:sh -c anything"
