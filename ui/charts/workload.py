"""How token lengths spread."""

from __future__ import annotations

import plotly.graph_objects as go

from calc.workload import LengthDistribution
from ui.charts.frame import BAR_HEIGHT, Tones, frame, scale_axis
from ui.charts.sketch import Sketch
from ui.text import t

POINTS = 99
"""Percentiles drawn: P1 to P99."""
MARKS = {0.5: "bottom right", 0.95: "bottom center", 0.99: "bottom left"}
"""Percentiles named on the curve, and on which side of it."""


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
