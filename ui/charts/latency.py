"""Latency over load, the parts of one latency, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.latency import LatencyReport, LoadSweep
from calc.units import MILLI, TERA
from ui import format as show
from ui.charts.frame import (
    BAR_HEIGHT,
    HEIGHT,
    LABEL_PIXELS,
    Tones,
    Upright,
    axis_type,
    frame,
    level,
    log_axis,
    scale_axis,
    span,
    upright,
)
from ui.charts.sketch import Sketch
from ui.glossary import TERMS
from ui.text import t

DASHES = {"P50": "dot", "P95": "solid", "P99": "dash"}
"""Line style per percentile, so that hue never stands alone."""
METRICS = ("ttft", "itl", "e2e")
ROOM = 1.02
"""How far the load axis reaches beyond the last point."""
BAND_OPACITY = 0.22
KNEE_SHARE, PLANNED_SHARE = 0.42, 0.24
"""Share of a narrow picture's width that a label needs beside its line."""


def axis_title(sweep: LoadSweep) -> str:
    """What the load axis counts, with its unit."""
    return t("Offered load (requests/s)") if sweep.axis == "rate" else t("Concurrency (requests in flight)")


def load_curve(
    sweep: LoadSweep,
    metric: str,
    target_s: float | None,
    tones: Tones,
    *,
    height: int = HEIGHT,
    share: float | None = None,
) -> go.Figure:
    """P50, P95 and P99 of ``metric`` over load with the SLO line, the planned load, the knee and the limit.

    With ``share`` the 95 % band of that percentile is drawn. Points where the queue grows without end have no
    percentile: a cross at the top stands for them, and the grey part says where the limit is.
    """
    scale = 1.0 if metric == "e2e" else MILLI
    sketch = Sketch()
    stats = [None if is_unstable(sweep, report) else getattr(report, metric) for report in sweep.reports]
    drawn = _band(sketch, sweep, metric, share, tones) if share is not None else []
    for name in DASHES:
        values = [None if stat is None else getattr(stat, f"{name.lower()}_s") for stat in stats]
        drawn += [value / scale for value in values if value is not None]
        _percentile_line(sketch, sweep.loads, values, name, metric, tones)
    end = max([*sweep.loads, sweep.operating_load]) * ROOM
    sides = _Sides.of(sweep.operating_load, sweep.knee_load, end)
    term = TERMS[metric]
    frame(
        sketch,
        height=height,
        x_title=axis_title(sweep),
        y_title=f"{term.label} ({term.unit})",
        top=LABEL_PIXELS * sides.rows,
    )
    _levels(sketch, drawn, None if target_s is None else target_s / scale, tones)
    sketch.update_axis("x", range=[0, end], showgrid=False)
    _crosses(sketch, sweep, tones)
    _marks(sketch, sweep, end, sides, tones)
    return sketch.figure()


def is_unstable(sweep: LoadSweep, report: LatencyReport) -> bool:
    """Whether a point has no steady latency. Users of a closed loop wait, but their number never grows."""
    return report.saturated and sweep.axis == "rate"


def _band(sketch: Sketch, sweep: LoadSweep, metric: str, share: float, tones: Tones) -> list[float]:
    """What chance leaves open of the percentile, as a wash between two edges; gaps of ITL have none."""
    scale = 1.0 if metric == "e2e" else MILLI
    name = show.percentile_name(share)
    edges = [
        (load, getattr(bands, f"{name.lower()}_s"))
        for load, report in zip(sweep.loads, sweep.reports, strict=True)
        if not is_unstable(sweep, report) and (bands := getattr(report, f"{metric}_band", None)) is not None
    ]
    colour = tones.percentiles.get(name, tones.water)
    for side, fill in ((0, None), (1, "tonexty")) if edges else ():
        sketch.add_scatter(
            x=[load for load, _ in edges],
            y=[band[side] / scale for _, band in edges],
            mode="lines",
            name=t("95 % band of {percentile}", percentile=name),
            line={"width": 0, "color": colour},
            fill=fill,
            fillcolor=tint(colour, BAND_OPACITY),
            showlegend=side == 1,
            hoverinfo="skip",
        )
    return [second / scale for _, band in edges for second in band]


def tint(colour: str, opacity: float) -> str:
    """A colour as a wash."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _crosses(sketch: Sketch, sweep: LoadSweep, tones: Tones) -> None:
    """Loads without a steady latency, at the upper edge."""
    loads = [load for load, report in zip(sweep.loads, sweep.reports, strict=True) if is_unstable(sweep, report)]
    if not loads:
        return
    sketch.add_scatter(
        x=loads,
        y=[1.0] * len(loads),
        yaxis="y2",
        mode="markers",
        name=t("saturated"),
        marker={"color": tones.quiet, "size": 9, "symbol": "x"},
        hovertemplate=t("saturated at {limit:rate}", limit=sweep.max_rate_per_s) + "<extra></extra>",
    )
    sketch.update_layout(yaxis2={"overlaying": "y", "range": [0, 1.02], "visible": False, "fixedrange": True})


def _levels(sketch: Sketch, drawn: list[float], target: float | None, tones: Tones) -> None:
    """The latency axis, the load line across the water, and a wash over the part where the target is missed."""
    shown = drawn + ([target] if target else [])
    scale_axis(sketch, "y", shown)
    if not shown:
        return
    low, high = span(shown)
    ends = (low, high) if axis_type(shown) == "linear" else (math.log10(low), math.log10(high))
    sketch.update_axis("y", range=ends)
    if target:
        sketch.add_shape(
            type="rect", xref="x domain", x0=0, x1=1, y0=target, y1=high, fillcolor=tones.over, opacity=0.05,
            line={"width": 0}, layer="below",
        )  # fmt: skip
        level(sketch, target, t("SLO"), tones.line, text_colour=tones.line_text)


def _percentile_line(
    sketch: Sketch, loads: Sequence[float], values: Sequence[float | None], name: str, metric: str, tones: Tones
) -> None:
    shown, scale = (show.seconds, 1.0) if metric == "e2e" else (show.ms, MILLI)
    sketch.add_scatter(
        x=list(loads),
        y=[None if value is None else value / scale for value in values],
        mode="lines+markers",
        name=name,
        line={"color": tones.percentiles[name], "width": 2.5, "dash": DASHES[name]},
        marker={"size": 6},
        customdata=[shown(value) for value in values],
        hovertemplate=name + " %{customdata} @ %{x:,.3g}<extra></extra>",
    )


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """On which side of its line each label stands, and how many rows of labels that takes."""

    planned_before: bool
    knee_before: bool
    rows: int

    @staticmethod
    def of(planned: float, knee: float | None, end: float) -> _Sides:
        """Away from each other in one row where both have room, else the knee's label a row higher."""
        if knee is None:
            return _Sides(planned_before=planned > end / 2, knee_before=False, rows=1)
        if knee <= planned and knee > KNEE_SHARE * end and planned < (1 - PLANNED_SHARE) * end:
            return _Sides(planned_before=False, knee_before=True, rows=1)
        if planned < knee < (1 - KNEE_SHARE) * end and planned > PLANNED_SHARE * end:
            return _Sides(planned_before=True, knee_before=False, rows=1)
        return _Sides(planned_before=planned > end / 2, knee_before=knee > end / 2, rows=2)


def _marks(sketch: Sketch, sweep: LoadSweep, end: float, sides: _Sides, tones: Tones) -> None:
    if sweep.axis == "rate" and sweep.max_rate_per_s < end:
        sketch.add_shape(
            type="rect", yref="y domain", y0=0, y1=1, x0=sweep.max_rate_per_s, x1=end, line={"width": 0},
            fillcolor=tones.quiet, opacity=0.16, layer="below",
        )  # fmt: skip
        sketch.add_annotation(
            x=(sweep.max_rate_per_s + end) / 2,
            y=0.5,
            yref="y domain",
            textangle=-90,
            text=t("saturated at {limit:rate}", limit=sweep.max_rate_per_s),
            font={"color": tones.quiet},
        )
    if sweep.knee_load is not None:
        words = t("▲ SLO holds up to {load:.3g}", load=sweep.knee_load)
        look = Upright(colour=tones.water_text, before=sides.knee_before, row=sides.rows - 1, dash="dot")
        upright(sketch, sweep.knee_load, words, look)
    words = t("planned {load:.3g}", load=sweep.operating_load)
    upright(sketch, sweep.operating_load, f"<b>{words}</b>", Upright(colour=tones.hull, before=sides.planned_before))


def decomposition(rows: Sequence[tuple[str, LatencyReport]], tones: Tones) -> go.Figure:
    """Mean E2E of each named report as queue + prefill + decode + network."""
    sketch = Sketch()
    parts = (
        ("T_queue", tones.runtime, [report.queue_s for _, report in rows]),
        ("T_prefill", tones.hull, [report.prefill_s for _, report in rows]),
        ("T_decode", tones.water, [report.decode_s for _, report in rows]),
        ("T_network", tones.water_free, [report.network_s for _, report in rows]),
    )
    for title, colour, sizes in parts:
        sketch.add_bar(
            y=[name for name, _ in rows],
            x=sizes,
            name=title,
            orientation="h",
            marker={"color": colour, "line": {"width": 0}},
            customdata=[show.seconds(size) for size in sizes],
            hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
        )
    frame(sketch, height=BAR_HEIGHT - 60 + 70 * (len(rows) - 1), x_title=t("Mean E2E (s)"))
    sketch.update_layout(barmode="stack", bargap=0.45)
    sketch.update_axis("y", autorange="reversed", ticksuffix="  ", showticklabels=len(rows) > 1)
    return sketch.figure()


@dataclass(frozen=True, kw_only=True)
class RooflineSpot:
    """One measured kernel: arithmetic intensity and what was achieved."""

    name: str
    intensity_flops_per_byte: float
    achieved_flops_per_s: float


def roofline(
    spots: Sequence[RooflineSpot], peak_flops_per_s: float, bandwidth_bytes_per_s: float, tones: Tones
) -> go.Figure:
    """Measured spots under the roof: the lower of bandwidth · intensity and peak."""
    low = min([spot.intensity_flops_per_byte for spot in spots] + [1.0]) / 2
    ridge = peak_flops_per_s / bandwidth_bytes_per_s
    high = max([spot.intensity_flops_per_byte for spot in spots] + [ridge]) * 4
    sketch = Sketch()
    sketch.add_scatter(
        x=[low, ridge, high],
        y=[low * bandwidth_bytes_per_s / TERA, peak_flops_per_s / TERA, peak_flops_per_s / TERA],
        mode="lines",
        name=t("Roof"),
        line={"color": tones.quiet, "width": 3},
        hoverinfo="skip",
    )
    sketch.add_scatter(
        x=[spot.intensity_flops_per_byte for spot in spots],
        y=[spot.achieved_flops_per_s / TERA for spot in spots],
        mode="markers",
        name=t("measured"),
        marker={"color": tones.hull, "size": 11, "line": {"color": tones.paper, "width": 1}},
        text=[spot.name for spot in spots],
        hovertemplate="%{text}: %{y:.3g} TFLOP/s @ %{x:.3g} FLOP/B<extra></extra>",
    )
    sketch.add_annotation(
        x=0,
        xref="paper",
        y=1,
        yref="paper",
        yanchor="bottom",
        text=t("bandwidth {speed:gbps}, ridge {ridge:.3g} FLOP/B", speed=bandwidth_bytes_per_s, ridge=ridge),
    )
    frame(sketch, height=HEIGHT, x_title=t("Arithmetic intensity (FLOP/B)"), y_title="TFLOP/s", top=LABEL_PIXELS)
    reached = [spot.achieved_flops_per_s / TERA for spot in spots if spot.achieved_flops_per_s > 0]
    log_axis(sketch, "x", [low, high])
    log_axis(sketch, "y", [low * bandwidth_bytes_per_s / TERA, peak_flops_per_s / TERA, *reached])
    return sketch.figure()


__all__ = ["METRICS", "RooflineSpot", "axis_title", "decomposition", "is_unstable", "load_curve", "roofline", "tint"]
