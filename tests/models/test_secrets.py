"""Keys: where they come from, and that they do not get out."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.targets import find_key, require_key
from rlm_mem.text.secrets import redact

KEYS = [
    "sk-abcdefghijklmnopqrst1234",
    "sk-proj-Ab12Cd34_Ef56-Gh78Ij90Kl",
    "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "gsk_" + "a1b2c3d4e5f6g7h8i9j0k1l2",
    "hf_" + "abcdefghijklmnopqrstuvwxyz1234",
    "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmno",
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_known_shapes_are_hidden_anywhere(key: str) -> None:
    for text in (key, f"key={key}", f'{{"key": "{key}"}}', f"(see {key}).", f"line\n{key}\nline"):
        hidden = redact(text, environ={})
        assert key not in hidden
        assert "[redacted]" in hidden


def test_headers_private_keys_and_passwords_in_addresses_are_hidden() -> None:
    assert (
        redact("Authorization: Bearer abcDEF123456789xyz", environ={}) == "Authorization: Bearer [redacted]"
    )
    assert redact("x-api-key: 0123456789abcdef", environ={}) == "x-api-key: [redacted]"
    assert redact("postgresql://me:hunter22@db/x", environ={}) == "postgresql://[redacted]@db/x"
    pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
    assert redact(f"a {pem} b", environ={}) == "a [redacted] b"


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "MY_SERVICE_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"]
)
def test_values_of_key_variables_are_hidden_whatever_their_shape(name: str) -> None:
    assert (
        redact("the value is just-some-w0rds!", environ={name: "just-some-w0rds!"})
        == "the value is [redacted]"
    )


def test_known_secrets_are_hidden_and_the_longest_goes_first() -> None:
    assert (
        redact("abcdefgh-ijkl abcdefgh", known=("abcdefgh", "abcdefgh-ijkl"), environ={})
        == "[redacted] [redacted]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Ask the sk-learn-documentation-team about risk-free tasks.",
        "desk-based-working-conditions-are-fine",
        "The token bucket holds 100 tokens; the password field is empty.",
        "See http://localhost:8080/v1 and mail a@b.org, at 10:30.",
        "Basic arithmetic and bearer bonds",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text, environ={}) == text


def test_a_short_word_in_a_token_variable_is_not_redacted() -> None:
    environ = {"BUILD_TOKEN": "developer", "X_TOKEN": "abc"}
    assert redact("a developer's abc", environ=environ) == "a developer's abc"


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text, environ={})
    assert redact(once, environ={}) == once


@pytest.mark.parametrize(
    "part", ["-----BEGIN PRIVATE KEY-----", "sk-" + "a" * 40, "a://b:", "eyJaaaaaaaa.", "Bearer ", "x" * 50]
)
def test_four_times_the_text_takes_about_four_times_the_work(part: str) -> None:
    def work(size: int) -> float:
        text = part * (size // len(part))

        def once() -> float:
            began = time.process_time()
            redact(text, environ={})
            return time.process_time() - began

        return min(once() for _ in range(3))

    # Quadratic work would be sixteen times as much; the constant stands for the clock's own grain.
    assert work(200_000) < 10 * work(50_000) + 0.05


def test_a_key_comes_from_the_environment_without_white_space() -> None:
    assert find_key("openai", {"OPENAI_API_KEY": " key-1\n"}) == "key-1"
    assert find_key("google", {"GEMINI_API_KEY": "key-2"}) == "key-2"


def test_the_key_of_openai_is_not_sent_to_other_servers() -> None:
    assert find_key("openai-compatible", {"OPENAI_API_KEY": "key-1"}) is None


def test_a_missing_key_names_the_variable() -> None:
    with pytest.raises(ModelUnavailable, match="ANTHROPIC_API_KEY is not set") as caught:
        require_key("anthropic", {})
    assert "ANTHROPIC_API_KEY" in str(caught.value.hint)


def test_a_key_can_come_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    class KeyringError(Exception):
        pass

    def get_password(service: str, name: str) -> str | None:
        if name == "ANTHROPIC_API_KEY":
            raise KeyringError
        return f"{service}/{name}"

    keyring, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    keyring.get_password = get_password  # type: ignore[attr-defined]
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert find_key("openai", {}) == "rlm-mem/OPENAI_API_KEY"
    assert find_key("openai", {"OPENAI_API_KEY": "mine"}) == "mine"
    assert find_key("anthropic", {}) is None  # a keyring that fails is as good as none
