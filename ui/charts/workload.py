"""How token lengths spread, and how the rate of arrivals runs over time."""

from __future__ import annotations

import plotly.graph_objects as go

from calc.course import RateCourse
from calc.units import SECONDS_PER_MINUTE
from calc.workload import LengthDistribution
from ui.charts.frame import BAR_HEIGHT, LABEL_PIXELS, Tones, frame, level, scale_axis
from ui.charts.sketch import Sketch
from ui.text import t

POINTS = 99
"""Percentiles drawn: P1 to P99."""
MARKS = {0.5: "bottom right", 0.95: "bottom center", 0.99: "bottom left"}
"""Percentiles named on the curve, and on which side of it."""

LONG_S = 10 * SECONDS_PER_MINUTE
"""From here on time is shown in minutes."""
AIR = 1.15
IN_SIGHT = 2
"""A limit beyond so many times the highest rate would flatten the picture, and is told in words."""


def length_curve(distribution: LengthDistribution, tones: Tones) -> go.Figure:
    """Share of requests (y) up to each length (x), with P50, P95 and P99 marked."""
    shares = [step / (POINTS + 1) for step in range(1, POINTS + 1)]
    lengths = [distribution.quantile(share) for share in shares]
    sketch = Sketch()
    sketch.add_scatter(
        x=lengths,
        y=[share * 100 for share in shares],
        mode="lines",
        line={"color": tones.water, "width": 3},
        fill="tozeroy",
        fillcolor=tones.water_free,
        showlegend=False,
        hovertemplate="%{y:.0f} %: %{x:,.0f} " + t("tokens") + "<extra></extra>",
    )
    for share in MARKS:
        name = f"P{share * 100:g}"
        sketch.add_scatter(
            x=[distribution.quantile(share)],
            y=[share * 100],
            mode="markers+text",
            marker={"color": tones.percentiles[name], "size": 10},
            text=[f"{name} {distribution.quantile(share):,.0f}"],
            textposition=MARKS[share],
            showlegend=False,
            hoverinfo="skip",
        )
    frame(sketch, height=BAR_HEIGHT, x_title=t("Length (tokens)"), y_title=t("Requests (%)"), legend=False)
    scale_axis(sketch, "x", lengths)
    sketch.update_axis("y", range=[0, 105])
    return sketch.figure()


def rate_curve(course: RateCourse, limit_per_s: float, tones: Tones) -> go.Figure:
    """Arrivals per second over time as steps, with what the deployment can serve for ever as a line."""
    minutes = course.edges_s[-1] >= LONG_S
    unit = SECONDS_PER_MINUTE if minutes else 1
    times = [edge / unit for edge in course.edges_s]
    rates = [*course.rates_per_s, course.rates_per_s[-1]]
    sketch = Sketch()
    sketch.add_scatter(
        x=times,
        y=rates,
        mode="lines",
        line={"color": tones.water, "width": 2, "shape": "hv"},
        fill="tozeroy",
        fillcolor=tones.water_free,
        showlegend=False,
        hovertemplate="%{x:.1f}: %{y:.3g} " + t("requests/s") + "<extra></extra>",
    )
    frame(
        sketch,
        height=BAR_HEIGHT,
        x_title=t("Time (min)") if minutes else t("Time (s)"),
        y_title=t("Arrivals (requests/s)"),
        legend=False,
        top=LABEL_PIXELS,
    )
    top = max(rates) * AIR
    if limit_per_s <= IN_SIGHT * top:
        level(sketch, limit_per_s, t("can be served"), tones.line, text_colour=tones.line_text)
        top = max(top, limit_per_s * AIR)
    sketch.update_axis("y", range=[0, top])
    sketch.update_axis("x", range=[0, times[-1]])
    return sketch.figure()
