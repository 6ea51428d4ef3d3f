"""Measured figures against predicted ones, before and after a fit."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from calc.calibrate.fit import Residual
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import AIR, HEIGHT, Tones, frame, log_axis
from ui.charts.sketch import Sketch
from ui.glossary import TERMS
from ui.text import t

SYMBOLS = {"ttft": "circle", "tpot": "diamond", "itl": "triangle-up", "e2e": "square"}
"""Marker per latency, so that hue never stands alone."""
MARKER = 10


def measured_predicted(residuals: Sequence[Residual], tones: Tones) -> go.Figure:
    """Every latency as a point: measured across, predicted up, hollow before the fit and filled after it.

    On the line both are equal.
    """
    sketch = Sketch()
    shown = [one for one in residuals if one.latency in SYMBOLS]
    ends = _ends(shown)
    sketch.add_scatter(
        x=ends, y=ends, mode="lines", name=t("equal"), line={"color": tones.line, "width": 2}, hoverinfo="skip"
    )
    for latency in SYMBOLS:
        found = [one for one in shown if one.latency == latency]
        if found:
            _points(sketch, found, "before", tones)
            _points(sketch, found, "after", tones)
    frame(sketch, height=HEIGHT, x_title=t("Measured (ms)"), y_title=t("Predicted (ms)"))
    for axis in ("x", "y"):
        log_axis(sketch, axis, list(ends))
    return sketch.figure()


def _points(sketch: Sketch, found: Sequence[Residual], state: str, tones: Tones) -> None:
    latency, before = found[0].latency, state == "before"
    placed = [(one, value) for one in found if (value := getattr(one, state)) is not None]
    sketch.add_scatter(
        x=[one.measured / MILLI for one, _ in placed],
        y=[value / MILLI for _, value in placed],
        mode="markers",
        name=t("{metric} before", metric=TERMS[latency].label) if before else TERMS[latency].label,
        marker={
            "symbol": SYMBOLS[latency] + ("-open" if before else ""),
            "size": MARKER,
            "color": tones.quiet if before else tones.water_text,
        },
        customdata=[
            t(
                "point {number}, {statistic}: measured {measured}, predicted {predicted}",
                number=one.observation + 1,
                statistic=one.statistic,
                measured=show.ms(one.measured),
                predicted=show.ms(value),
            )
            for one, value in placed
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _ends(shown: Sequence[Residual]) -> tuple[float, float]:
    """Of both axes in milliseconds."""
    values = [
        value / MILLI for one in shown for value in (one.measured, one.before, one.after) if value is not None
    ] or [1.0]
    return min(values) / AIR, max(values) * AIR
