"""Charts as SVG, drawn on the server without scripts or inline styles.

The drawing is stretched to the available width. Labels are text of the page, since text within the drawing would be
scaled with it and be unreadable on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rlm_mem.continuum.schema import TIERS
from rlm_mem.dashboard.spans import Span

ABOUT_TIERS: Mapping[str, str] = {
    "high": "what just happened",
    "mid": "traces and patterns that worked",
    "low": "learnings proven in several projects",
    "ultra-low": "the core, kept permanently",
}
_WIDTH, _HEIGHT = 900.0, 100.0
_LANE = 60.0
_FULL = 0.8
"""Share of a lane's height that the largest population fills."""
_NOTHING = Markup("")
_LANE_LABEL = Markup(
    '<div><dt><span class="swatch {}" aria-hidden="true"></span> {}</dt> <dd>{:,}</dd>'
    ' <dd class="about-tier">{}</dd></div>'
)
_BAR = Markup(
    '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
)
_CHART = Markup(
    '<figure class="chart">{}<svg viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="{}" aria-label="{}">'
    '{}<line class="grid" x1="0" x2="{:.0f}" y1="{:.0f}" y2="{:.0f}"/></svg>{}</figure>'
)


@dataclass(frozen=True)
class Bar:
    """One bar: label, value, value as text, and link (empty: none)."""

    label: str
    value: float
    amount: str
    href: str = ""


def bars(values: Sequence[Bar], *, title: str) -> Markup:
    """A bar chart that names the highest value.

    Args:
        values: at least one.
        title: the accessible name of the chart.
    """
    highest = max(values, key=lambda bar: bar.value)
    step = _WIDTH / len(values)
    made = []
    for number, one in enumerate(values):
        tall = max(1.5, _HEIGHT * one.value / (highest.value or 1.0)) if one.value else 0.0
        label = f"{one.label}: {one.amount}"
        bar = _BAR.format(number * step + step * 0.12, _HEIGHT - tall, step * 0.76, tall, label)
        if one.href and one.value:
            bar = Markup('<a href="{}" aria-label="{}">{}</a>').format(one.href, label, bar)
        made.append(bar)
    above = Markup("<figcaption>at most {}</figcaption>").format(highest.amount)
    role = "group" if any(bar.href for bar in values) else "img"
    return _chart(made, [bar.label for bar in values], title=title, role=role, above=above)


@dataclass(frozen=True)
class Flow:
    """Memories that moved between two tiers in one period.

    Attributes:
        at: number of the period, from 0.
        source, target: tiers; None: the memory was new, or left the tiers.
    """

    at: int
    source: str | None
    target: str | None
    number: int


def flow_chart(
    points: Sequence[tuple[str, Mapping[str, int]]], flows: Sequence[Flow], *, title: str
) -> Markup:
    """A lane per tier over time, as wide as its population, with the moves between lanes.

    Args:
        points: label and population of each period, oldest first.
        flows: the moves of each period.
        title: the accessible name of the chart.
    """
    if not points:
        return Markup("")
    names = list(TIERS)
    top = max(max(counts.get(name, 0) for name in names) for _, counts in points) or 1
    step = _WIDTH / len(points)
    middle = {name: _LANE * (number + 0.5) for number, name in enumerate(names)}
    made = [
        Markup('<line class="grid" x1="0" x2="{:.0f}" y1="{:.1f}" y2="{:.1f}"/>').format(_WIDTH, at, at)
        for at in middle.values()
    ]
    for name in names:
        upper, lower = [], []
        for number, (_, counts) in enumerate(points):
            half = _LANE * _FULL * counts.get(name, 0) / top / 2
            for x in (number * step, (number + 1) * step):
                upper.append(f"{x:.1f},{middle[name] - half:.1f}")
                lower.append(f"{x:.1f},{middle[name] + half:.1f}")
        made.append(
            Markup('<polygon class="area-{}" points="{}"/>').format(name, " ".join([*upper, *lower[::-1]]))
        )
    most = max((flow.number for flow in flows), default=1)
    for flow in flows:
        # New memories enter a lane from above; memories that leave the tiers fall out below it.
        start = middle[flow.source] if flow.source else middle[flow.target or names[0]] - _LANE * 0.5
        end = middle[flow.target] if flow.target else start + _LANE * 0.5
        left, right = flow.at * step, (flow.at + 1) * step
        kind = flow.target if flow.target else "gone"
        path = f"M{left:.1f},{start:.1f} C{right:.1f},{start:.1f} {left:.1f},{end:.1f} {right:.1f},{end:.1f}"
        label = f"{points[flow.at][0]}: {flow.number} {flow.source or 'new'} → {flow.target or 'archived'}"
        width = 1.5 + 4.5 * flow.number / max(4, most)
        made.append(
            Markup('<path class="flow-{}" d="{}" stroke-width="{:.1f}"><title>{}</title></path>').format(
                kind, path, width, label
            )
        )
    lanes = Markup("").join(
        _LANE_LABEL.format(name, name, points[-1][1].get(name, 0), ABOUT_TIERS[name]) for name in names
    )
    drawing = _chart(made, [label for label, _ in points], title=title, role="img", height=_LANE * len(names))
    return Markup('<div class="flow"><dl class="lanes">{}</dl>{}</div>').format(lanes, drawing)


def span_bars(span: Span, whole: float) -> Markup:
    """Bars of one step on the time scale of the run: writing the program, running it, model calls within it.

    Args:
        whole: duration of the run in seconds.
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


def _chart(
    made: Sequence[Markup],
    labels: Sequence[str],
    *,
    title: str,
    role: str,
    above: Markup = _NOTHING,
    height: float = _HEIGHT,
) -> Markup:
    """The chart with the first, middle and last label below it, which always fit."""
    last = len(labels) - 1
    shown = [labels[at] for at in dict.fromkeys((0, last // 2, last) if last >= 4 else (0, last))]
    axis = Markup('<div class="axis" aria-hidden="true">{}</div>').format(
        Markup("").join(Markup("<span>{}</span>").format(label) for label in shown)
    )
    ground = (_WIDTH, height, height)
    return _CHART.format(above, _WIDTH, height, role, title, Markup("").join(made), *ground, axis)
