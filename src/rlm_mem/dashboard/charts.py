"""Charts as SVG, drawn on the server without scripts or inline styles.

The drawing is stretched to the available width. Labels are text of the page, since text within the drawing would be
scaled with it and be unreadable on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from rlm_mem.continuum.schema import TIERS

if TYPE_CHECKING:
    from rlm_mem.dashboard.spans import Span

__all__ = ["Bar", "bars", "populations_chart", "span_bars"]

_WIDTH, _HEIGHT = 900.0, 100.0
_BAR = Markup(
    '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
)
_CHART = Markup(
    '<figure class="chart">{}<svg viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="{}" aria-label="{}">'
    '{}<line class="grid" x1="0" x2="{:.0f}" y1="{:.0f}" y2="{:.0f}"/></svg>{}</figure>'
)


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its value, the value as text, and its link (empty: none)."""

    label: str
    value: float
    amount: str
    href: str = ""


def bars(values: Sequence[Bar], *, title: str) -> Markup:
    """A row of bars, with the amount of the highest one.

    Args:
        title: the accessible name of the chart.
    """
    if not values:
        return Markup("")
    highest = max(values, key=lambda bar: bar.value)
    step = _WIDTH / len(values)
    made = []
    for number, one in enumerate(values):
        tall = max(1.5, _HEIGHT * one.value / (highest.value or 1.0)) if one.value else 0.0
        said = f"{one.label}: {one.amount}"
        bar = _BAR.format(number * step + step * 0.12, _HEIGHT - tall, step * 0.76, tall, said)
        if one.href and one.value:
            bar = Markup('<a href="{}" aria-label="{}">{}</a>').format(one.href, said, bar)
        made.append(bar)
    above = Markup("<figcaption>at most {}</figcaption>").format(highest.amount)
    role = "group" if any(bar.href for bar in values) else "img"
    return _drawn(made, [bar.label for bar in values], title=title, role=role, above=above)


def populations_chart(points: Sequence[tuple[str, Mapping[str, int]]], *, title: str) -> Markup:
    """Stacked steps of the tiers' populations, one step for each point in time (label, tier → number)."""
    if not points:
        return Markup("")
    names = list(TIERS)[::-1]  # the core at the bottom
    top = max(sum(counts.get(name, 0) for name in names) for _, counts in points) or 1
    step = _WIDTH / len(points)
    floors = [0.0] * len(points)
    made = []
    for name in names:
        upper, lower = [], []
        for number, (_, counts) in enumerate(points):
            base = floors[number]
            floors[number] = base + _HEIGHT * counts.get(name, 0) / top
            left, right = number * step, (number + 1) * step
            upper += [f"{x:.1f},{_HEIGHT - floors[number]:.1f}" for x in (left, right)]
            lower += [f"{x:.1f},{_HEIGHT - base:.1f}" for x in (left, right)]
        made.append(
            Markup('<polygon class="area-{}" points="{}"><title>{}</title></polygon>').format(
                name, " ".join([*upper, *lower[::-1]]), name
            )
        )
    above = Markup("<figcaption>at most {:,}</figcaption>").format(top)
    return _drawn(made, [label for label, _ in points], title=title, role="img", above=above)


def span_bars(span: Span, whole: float) -> Markup:
    """The bars of one step on the time of the whole run: writing the program, running it, asking a model within.

    Args:
        whole: seconds of the run.
    """
    scale = 1000 / (whole or 1.0)
    parts = [("bar-model", *span.model), ("bar-program", *span.program)]
    parts += [("bar-asked", *one) for one in span.asked]
    made = [
        Markup('<rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>').format(
            name,
            at * scale,
            5 if name == "bar-asked" else 0,
            max(2.0, length * scale),
            5 if name == "bar-asked" else 10,
        )
        for name, at, length in parts
        if length > 0
    ]
    return Markup(
        '<svg class="bars" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(Markup("").join(made))


def _drawn(made: Sequence[Markup], labels: Sequence[str], *, title: str, role: str, above: Markup) -> Markup:
    """The drawing with the first, middle and last label below it, which always fit."""
    last = len(labels) - 1
    shown = [labels[at] for at in dict.fromkeys((0, last // 2, last) if last >= 4 else (0, last))]
    axis = Markup('<div class="axis" aria-hidden="true">{}</div>').format(
        Markup("").join(Markup("<span>{}</span>").format(label) for label in shown)
    )
    ground = (_WIDTH, _HEIGHT, _HEIGHT)
    return _CHART.format(above, _WIDTH, _HEIGHT, role, title, Markup("").join(made), *ground, axis)
