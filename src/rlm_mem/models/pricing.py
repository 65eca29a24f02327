"""Computes the cost of completions from price data of the package ``genai-prices``, without network access.

A model without a known price is *unpriced*: its cost is None, never 0, so that a sum over unpriced calls is not
mistaken for a low cost.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from rlm_mem.models.apis import APIS

if TYPE_CHECKING:
    from rlm_mem.models.base import Usage

# Built in: no model is called.
_FREE = frozenset({"offline"})


def price(model: str, provider: str, usage: Usage, *, base_url: str | None = None) -> Decimal | None:
    """The cost of ``usage`` in US dollars, or None if the price is unknown.

    Args:
        model: the model's name as the provider spells it.
        provider: as in ``Completion.provider``.
        usage: ``input_tokens`` and ``output_tokens`` include their cached and reasoning parts. Estimated
            figures are not priced: the result would look like a real charge.
        base_url: the server asked, when it is not the provider's own; a price is then looked up by its
            address alone, since a local server may call its model ``gpt-4o``.
    """
    if provider in _FREE:
        return Decimal(0)
    if usage.estimated or not model:
        return None
    try:
        from genai_prices import Usage as PricedUsage, calc_price
    except ImportError:  # without the extra there is no price data
        return None
    tokens = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        if base_url:
            return calc_price(tokens, model, provider_api_url=base_url).total_price
        api = APIS.get(provider)
        if api is None or not api.prices:
            return None
        return calc_price(tokens, model, provider_id=api.prices).total_price
    except (LookupError, ValueError):
        # LookupError: the model is not listed. ValueError: inconsistent figures, as some servers report.
        return None
