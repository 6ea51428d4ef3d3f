"""An hour minute by minute: percentiles against the SLO line, arrivals, waiting and KV usage."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from calc.anatomy.hour import HourReport
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import HEIGHT, Tones, frame, level, scale_axis
from ui.charts.latency import DASHES
from ui.charts.sketch import Sketch
from ui.glossary import TERMS
from ui.text import t

ARRIVALS_HEIGHT = 200
PERCENT = 100


def latencies(hour: HourReport, metric: str, target_s: float | None, tones: Tones) -> go.Figure:
    """P50, P95 and P99 of the requests that arrived in each minute; minutes that miss the SLO are washed."""
    scale, shown = (1.0, show.seconds) if metric == "e2e" else (MILLI, show.ms)
    sketch, drawn = Sketch(), list[float]()
    for name, dash in DASHES.items():
        values = getattr(hour, f"{metric}_{name.lower()}_s")
        drawn += [value / scale for value in values if value is not None]
        _line(
            sketch,
            name,
            [None if value is None else value / scale for value in values],
            [shown(value) for value in values],
            {"color": tones.percentiles[name], "width": 2.2, "dash": dash},
        )
    frame(sketch, height=HEIGHT, x_title=t("Minute"), y_title=f"{TERMS[metric].label} ({TERMS[metric].unit})")
    scale_axis(sketch, "y", drawn + ([target_s / scale] if target_s else []))
    if target_s:
        level(sketch, target_s / scale, t("SLO"), tones.line, text_colour=tones.line_text)
    for minute, over in enumerate(hour.over):
        if over:
            sketch.add_shape(
                type="rect", yref="y domain", y0=0, y1=1, x0=minute + 0.5, x1=minute + 1.5, fillcolor=tones.over,
                opacity=0.08, line={"width": 0}, layer="below",
            )  # fmt: skip
    return _minutes(sketch, hour)


def arrivals(hour: HourReport, limit_per_s: float, tones: Tones) -> go.Figure:
    """Arrivals of each minute beside the stability limit."""
    sketch = Sketch()
    sketch.add_bar(
        x=list(range(1, len(hour.offered_per_s) + 1)),
        y=list(hour.offered_per_s),
        name=t("Arrivals"),
        marker={"color": tones.hull, "line": {"width": 0}},
        customdata=[show.rate(rate) for rate in hour.offered_per_s],
        hovertemplate="%{customdata} @ %{x}<extra></extra>",
    )
    frame(sketch, height=ARRIVALS_HEIGHT, x_title=t("Minute"), y_title=t("Requests/s"), legend=False)
    level(sketch, limit_per_s, t("stability limit"), tones.quiet)
    sketch.update_layout(showlegend=False, bargap=0.15)
    return _minutes(sketch, hour)


def queue(hour: HourReport, tones: Tones) -> go.Figure:
    """Requests running and waiting."""
    sketch = Sketch()
    rows = (
        (t("running"), hour.running, {"color": tones.water, "width": 2.5, "dash": "solid"}),
        (t("waiting"), hour.waiting, {"color": tones.line, "width": 2.5, "dash": "dash"}),
    )
    for name, values, line in rows:
        _line(sketch, name, values, [show.decimal(value) for value in values], line)
    frame(sketch, height=HEIGHT, x_title=t("Minute"), y_title=t("Requests, mean of the minute"))
    sketch.update_axis("y", rangemode="tozero")
    return _minutes(sketch, hour)


def kv(hour: HourReport, tones: Tones) -> go.Figure:
    """How full the KV pool is."""
    sketch = Sketch()
    shares = hour.kv_usage_share
    line = {"color": tones.water, "width": 2.5}
    _line(sketch, t("KV usage"), [share * PERCENT for share in shares], [show.percent(share) for share in shares], line)
    frame(sketch, height=HEIGHT, x_title=t("Minute"), y_title=t("KV usage of the pool (%)"), legend=False)
    sketch.update_layout(showlegend=False)
    sketch.update_axis("y", range=[0, PERCENT * 1.02])
    return _minutes(sketch, hour)


def _line(
    sketch: Sketch, name: str, values: Sequence[float | None], texts: Sequence[str], line: dict[str, object]
) -> None:
    sketch.add_scatter(
        x=list(range(1, len(values) + 1)),
        y=list(values),
        mode="lines",
        name=name,
        line=line,
        customdata=list(texts),
        hovertemplate="%{fullData.name}: %{customdata} @ %{x}<extra></extra>",
    )


def _minutes(sketch: Sketch, hour: HourReport) -> go.Figure:
    sketch.update_axis("x", range=[0.5, len(hour.offered_per_s) + 0.5], showgrid=False)
    return sketch.figure()
