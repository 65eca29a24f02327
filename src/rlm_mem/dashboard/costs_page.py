"""The page of costs: spending of recalls and reasonings by day, model and operation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from markupsafe import Markup

from rlm_mem.dashboard.charts import Bar, bars
from rlm_mem.dashboard.words import address, money
from rlm_mem.models.base import Usage

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.requests import PageRequest
    from rlm_mem.recall.costing import CostLine

_PERIODS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (0, "everything"))
_MIN_DAYS, _MAX_DAYS = 7, 90
"""Limits for the number of days in the chart, so that bars are neither blocks nor too thin."""


def costs_page(request: PageRequest) -> Response:
    """Spending of a period, in total and by day."""
    days = request.number("days", 30, 0, 10_000)
    today = request.memory.store.clock().astimezone(UTC).date()
    since = today - timedelta(days - 1) if days else None
    lines = request.memory.costs(since=since.isoformat() if since else None)
    priced = [line.cost for line in lines if line.cost is not None]
    return request.answer(
        "costs.html",
        lines=lines[::-1],
        days=days,
        periods=_PERIODS,
        total=sum(priced, Decimal(0)) if priced else None,
        unpriced=sum(line.unpriced_calls for line in lines),
        calls=sum(line.calls for line in lines),
        runs=sum(line.runs for line in lines),
        usage=sum((line.usage for line in lines), Usage()),
        chart=_chart(lines, since, today),
        chart_title=_title(lines),
        here=address("/costs", days=days),
        live="recalls",
    )


def _title(lines: Sequence[CostLine]) -> str:
    return "Dollars by day" if any(line.cost for line in lines) else "Tokens by day"


def _chart(lines: Sequence[CostLine], since: date | None, today: date) -> Markup:
    """A chart of dollars per day, or of tokens if no call had a price."""
    if not lines:
        return Markup("")
    first = since or date.fromisoformat(lines[0].day)
    first = max(first, today - timedelta(_MAX_DAYS - 1))
    in_money = any(line.cost for line in lines)
    first = min(first, today - timedelta(_MIN_DAYS - 1))
    values = []
    for number in range((today - first).days + 1):
        name = (first + timedelta(number)).isoformat()
        of_day = [line for line in lines if line.day == name]
        dollars = sum((line.cost for line in of_day if line.cost is not None), Decimal(0))
        tokens = sum(line.usage.total_tokens for line in of_day)
        if in_money:
            values.append(Bar(name, float(dollars), money(dollars)))
        else:
            values.append(Bar(name, float(tokens), f"{tokens:,} tokens"))
    return bars(values, title=_title(lines))
