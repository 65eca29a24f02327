"""Charts: drawn as SVG on the server, without scripts and without styles of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from rlm_mem.continuum.schema import TIERS

__all__ = ["bars", "populations_chart"]

_WIDTH, _HEIGHT = 900.0, 150.0
_FOOT = 22.0
_BAR = Markup(
    '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2"><title>{}</title></rect>'
)


def bars(
    values: Sequence[tuple[str, float, str, str]],
    *,
    title: str,
    height: float = _HEIGHT,
    width: float = _WIDTH,
) -> Markup:
    """A row of bars.

    Args:
        values: label (shown below where there is room), height, text on hover, address or empty.
        title: what the chart says, for those who do not see it.
    """
    if not values:
        return Markup("")
    top = max(value for _, value, _, _ in values) or 1.0
    step = width / len(values)
    room = height - _FOOT - 8
    every = max(1, -(-len(values) * 62 // int(width)))
    made = []
    for number, (label, value, said, href) in enumerate(values):
        tall = max(1.5, room * value / top) if value else 0.0
        bar = _BAR.format(number * step + step * 0.12, 8 + room - tall, step * 0.76, tall, said)
        if href and value:
            bar = Markup('<a href="{}" aria-label="{}">{}</a>').format(href, said, bar)
        made.append(bar)
        if number % every == 0 and number * step < width - 44:
            made.append(
                Markup('<text x="{:.1f}" y="{:.1f}">{}</text>').format(number * step, height - 5, label)
            )
    ground = Markup('<line class="grid" x1="0" x2="{0:.0f}" y1="{1:.0f}" y2="{1:.0f}"/>').format(
        width, 8 + room
    )
    role = "group" if any(href for *_, href in values) else "img"
    return Markup(
        '<svg class="chart" viewBox="0 0 {:.0f} {:.0f}" role="{}" aria-label="{}">{}{}</svg>'
    ).format(width, height, role, title, ground, Markup("").join(made))


def populations_chart(
    points: Sequence[tuple[str, Mapping[str, int]]],
    *,
    title: str,
    height: float = 190.0,
    width: float = _WIDTH,
) -> Markup:
    """Stacked steps of the tiers' populations, one step for each point in time (label, tier → number)."""
    if not points:
        return Markup("")
    names = list(TIERS)[::-1]  # the core at the bottom
    top = max(sum(counts.get(name, 0) for name in names) for _, counts in points) or 1
    room = height - _FOOT - 8
    step = width / len(points)
    floors = [0.0] * len(points)
    made = []
    for name in names:
        upper, lower = [], []
        for number, (_, counts) in enumerate(points):
            base = floors[number]
            floors[number] = base + room * counts.get(name, 0) / top
            left, right = number * step, (number + 1) * step
            upper += [
                f"{left:.1f},{8 + room - floors[number]:.1f}",
                f"{right:.1f},{8 + room - floors[number]:.1f}",
            ]
            lower += [f"{left:.1f},{8 + room - base:.1f}", f"{right:.1f},{8 + room - base:.1f}"]
        path = " ".join([*upper, *lower[::-1]])
        made.append(
            Markup('<polygon class="area-{}" points="{}"><title>{}</title></polygon>').format(
                name, path, name
            )
        )
    every = max(1, -(-len(points) * 74 // int(width)))
    for number, (label, _) in enumerate(points):
        if number % every == 0 and number * step < width - 44:
            made.append(
                Markup('<text x="{:.1f}" y="{:.1f}">{}</text>').format(number * step, height - 5, label)
            )
    ground = Markup('<line class="grid" x1="0" x2="{0:.0f}" y1="{1:.0f}" y2="{1:.0f}"/>').format(
        width, 8 + room
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}{}</svg>'
    ).format(width, height, title, Markup("").join(made), ground)
