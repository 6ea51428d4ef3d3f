"""Uploaded runs: beside each other, and over the model's curve with the error stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.latency import LoadSweep
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import HEIGHT, Tones, frame, scale_axis
from ui.charts.latency import axis_title
from ui.charts.sketch import Sketch
from ui.glossary import TERMS
from ui.text import t

SYMBOLS = {"P50": "circle", "P95": "diamond", "P99": "triangle-up"}
"""Marker per percentile, so that hue never stands alone."""


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    """One uploaded load point: where on the load axis, and a latency at one percentile."""

    name: str
    load: float
    value_s: float


def compare_runs(
    names: Sequence[str], values: Sequence[tuple[str, Sequence[float | None]]], metric: str, tones: Tones
) -> go.Figure:
    """Grouped bars: per run the percentiles its file states (missing ones leave a gap, never a zero).

    On the axis runs are numbered from 1, as in the table; names would not fit and show on hover.
    """
    scale = 1.0 if metric == "e2e" else MILLI
    shown = show.seconds if metric == "e2e" else show.ms
    sketch = Sketch()
    colours = {**tones.percentiles, t("mean"): tones.runtime}
    for title, column in values:
        sketch.add_bar(
            x=[str(number) for number in range(1, len(names) + 1)],
            y=[None if value is None else value / scale for value in column],
            name=title,
            marker={"color": colours.get(title, tones.runtime), "line": {"width": 0}},
            text=list(names),
            textposition="none",
            customdata=[shown(value) for value in column],
            hovertemplate="%{x} · %{text}<br>%{fullData.name}: %{customdata}<extra></extra>",
        )
    term = TERMS[metric]
    frame(sketch, height=HEIGHT, x_title=t("Run"), y_title=f"{term.label} ({term.unit})")
    sketch.update_layout(barmode="group", bargap=0.3)
    sketch.update_axis("x", type="category")
    return sketch.figure()


def measured_over_model(
    sweep: LoadSweep, points: Sequence[MeasuredPoint], metric: str, percentile: str, tones: Tones
) -> go.Figure:
    """The model's curve of one percentile with the measured points on the same load axis."""
    scale = 1.0 if metric == "e2e" else MILLI
    shown = show.seconds if metric == "e2e" else show.ms
    curve = [getattr(getattr(report, metric), f"{percentile.lower()}_s") for report in sweep.reports]
    sketch = Sketch()
    sketch.add_scatter(
        x=list(sweep.loads),
        y=[None if value is None else value / scale for value in curve],
        mode="lines",
        name=f"{percentile} ({t('simulated')})",
        line={"color": tones.water, "width": 3},
        hovertemplate="%{y:.3g} @ %{x:,.3g}<extra></extra>",
    )
    sketch.add_scatter(
        x=[point.load for point in points],
        y=[point.value_s / scale for point in points],
        mode="markers",
        name=f"{percentile} ({t('measured')})",
        marker={
            "color": tones.hull,
            "size": 12,
            "symbol": SYMBOLS[percentile],
            "line": {"color": tones.paper, "width": 1.5},
        },
        text=[point.name for point in points],
        customdata=[shown(point.value_s) for point in points],
        hovertemplate="%{text}: %{customdata} @ %{x:,.3g}<extra></extra>",
    )
    term = TERMS[metric]
    frame(sketch, height=HEIGHT, x_title=axis_title(sweep), y_title=f"{term.label} ({term.unit})")
    loads = [*sweep.loads, *(point.load for point in points)]
    scale_axis(sketch, "x", loads)
    scale_axis(sketch, "y", [value / scale for value in (*curve, *(point.value_s for point in points)) if value])
    return sketch.figure()
