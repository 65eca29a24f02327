"""Prices: known, unknown, and never 0 by accident."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest

from rlm_mem.models import Usage
from rlm_mem.models.providers import price

USAGE = Usage(input_tokens=1000, output_tokens=500, cached_tokens=200, reasoning_tokens=100)


@pytest.fixture(autouse=True)
def _prices() -> None:
    pytest.importorskip("genai_prices", reason="the extra llm (price data) is not installed")


@pytest.mark.parametrize(
    ("model", "provider"),
    [("gpt-4o", "openai"), ("claude-sonnet-4-5", "anthropic"), ("gemini-2.5-flash", "google")],
)
def test_well_known_models_have_a_price(model: str, provider: str) -> None:
    cost = price(model, provider, USAGE)
    assert isinstance(cost, Decimal)
    assert Decimal(0) < cost < Decimal(1)


def test_cached_input_is_cheaper_and_cache_writes_are_not() -> None:
    def cost(**tokens: int) -> Decimal:
        found = price("claude-sonnet-4-5", "anthropic", Usage(input_tokens=1000, output_tokens=10, **tokens))
        assert found is not None
        return found

    assert cost(cached_tokens=900) < cost() < cost(cache_write_tokens=900)


def test_reasoning_is_part_of_the_output_and_not_paid_twice() -> None:
    assert price("gpt-5", "openai", Usage(10, 100, 0, 0)) == price("gpt-5", "openai", Usage(10, 100, 0, 90))


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("no-such-model", "openai"),
        ("gpt-4o", "ollama"),
        ("gpt-4o", "openai-compatible"),
        ("x", "cli"),
        ("", "openai"),
    ],
)
def test_an_unknown_price_is_unpriced_and_not_zero(model: str, provider: str) -> None:
    assert price(model, provider, USAGE) is None


@pytest.mark.parametrize(
    "url", ["http://localhost:8080/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1", "http://gpu-box/v1"]
)
def test_an_own_server_is_unpriced_even_with_a_known_model_name(url: str) -> None:
    assert price("gpt-4o", "openai", USAGE, base_url=url) is None
    assert price("gpt-4o", "openai-compatible", USAGE, base_url=url) is None


def test_a_public_compatible_service_is_priced_by_its_address() -> None:
    assert price("openai/gpt-4o", "openai-compatible", USAGE, base_url="https://openrouter.ai/api/v1")


def test_estimated_usage_is_unpriced() -> None:
    assert price("gpt-4o", "openai", Usage(1000, 500, estimated=True)) is None


def test_figures_that_contradict_each_other_are_unpriced() -> None:
    assert price("gpt-4o", "openai", Usage(100, 5, cached_tokens=500)) is None


def test_the_embedded_default_costs_nothing() -> None:
    assert price("offline", "offline", USAGE) == 0


def test_without_price_data_everything_is_unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price("gpt-4o", "openai", USAGE) is None
