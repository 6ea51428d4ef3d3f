"""Seconds over prefix length: computing again, and fetching from each tier; where lines cross, fetching pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.offload.fetch import Curve
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import HEIGHT, LABEL_PIXELS, Tones, frame, log_axis
from ui.charts.sketch import Sketch
from ui.text import t

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MOST_TIERS = 5
"""With recomputing six lines, as many as can be told apart."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One tier's line: its name and the length from which it is below recomputing."""

    name: str
    crossing_tokens: int | None


def fetch_curve(curve: Curve, lines: Sequence[Line], own_tokens: float | None, tones: Tones) -> go.Figure:
    """Milliseconds on logarithmic axes; a ring where fetching begins to pay, an upright at the user's own prefix."""
    sketch = Sketch()
    _line(sketch, t("Compute again"), curve, curve.recompute_s, {"color": tones.line, "width": 4})
    shades = (tones.water, tones.hull, tones.water_text, tones.runtime, tones.quiet)
    for place, (line, seconds) in enumerate(zip(lines, curve.fetch_s, strict=True)):
        if place < MOST_TIERS:
            look = {"color": shades[place], "width": 2.5, "dash": DASHES[place]}
            _line(sketch, line.name, curve, seconds, look)
            _crossing(sketch, curve, line, tones)
    frame(
        sketch,
        height=HEIGHT + 2 * LABEL_PIXELS,
        x_title=t("Prefix length (tokens)"),
        y_title=t("Time to have it in the cache (ms)"),
        top=LABEL_PIXELS,
    )
    sketch.update_layout(margin={"l": 4, "r": 12, "pad": 4, "t": LABEL_PIXELS, "b": 5 * LABEL_PIXELS})
    log_axis(sketch, "x", [float(n) for n in curve.prefix_tokens])
    drawn = [s / MILLI for seconds in (curve.recompute_s, *curve.fetch_s[:MOST_TIERS]) for s in seconds]
    log_axis(sketch, "y", drawn)
    sketch.update_axis("x", range=[math.log10(curve.prefix_tokens[0]), math.log10(curve.prefix_tokens[-1])])
    if own_tokens and curve.prefix_tokens[0] < own_tokens < curve.prefix_tokens[-1]:
        _own(sketch, curve, own_tokens, tones)
    return sketch.figure()


def _own(sketch: Sketch, curve: Curve, tokens: float, tones: Tones) -> None:
    """On a logarithmic axis a line stands at the value and its name at the exponent."""
    before = math.log(tokens / curve.prefix_tokens[0]) > math.log(curve.prefix_tokens[-1] / tokens)
    sketch.add_shape(
        type="line", yref="y domain", y0=0, y1=1, x0=tokens, x1=tokens,
        line={"color": tones.text, "width": 2, "dash": "dot"},
    )  # fmt: skip
    sketch.add_annotation(
        x=math.log10(tokens), y=1, yref="y domain", yanchor="bottom", xanchor="right" if before else "left",
        text=t("yours {number}", number=show.count(tokens)), font={"color": tones.text},
    )  # fmt: skip


def _line(sketch: Sketch, name: str, curve: Curve, seconds: Sequence[float], look: dict[str, object]) -> None:
    sketch.add_scatter(
        x=list(curve.prefix_tokens),
        y=[value / MILLI for value in seconds],
        mode="lines",
        name=name,
        line=look,
        customdata=[show.ms(value) for value in seconds],
        hovertemplate="%{fullData.name}: %{customdata} @ %{x:,.0f}<extra></extra>",
    )


def _crossing(sketch: Sketch, curve: Curve, line: Line, tones: Tones) -> None:
    crossing = line.crossing_tokens
    if crossing is None or crossing <= curve.prefix_tokens[0]:
        return
    logs = [math.log(n) for n in curve.prefix_tokens]
    at = math.log(crossing)
    after = next(i for i, value in enumerate(logs) if value >= at)
    part = (at - logs[after - 1]) / (logs[after] - logs[after - 1])
    low, high = curve.recompute_s[after - 1], curve.recompute_s[after]
    sketch.add_scatter(
        x=[crossing],
        y=[low * (high / low) ** part / MILLI],
        mode="markers",
        showlegend=False,
        marker={"symbol": "circle-open", "size": 12, "color": tones.text, "line": {"width": 2}},
        hovertemplate=t("{name} pays from {number} tokens", name=line.name, number=show.count(crossing))
        + "<extra></extra>",
    )
