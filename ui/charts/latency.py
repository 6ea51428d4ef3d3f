"""Latency over load, the parts of one latency, and the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.evidence import Percentiles
from calc.latency import LatencyReport, LoadSweep
from calc.units import MILLI, TERA
from ui import format as show
from ui.charts.frame import BAR_HEIGHT, HEIGHT, Tones, frame, level, scale_axis
from ui.glossary import TERMS
from ui.text import t

DASHES = {"P50": "dot", "P95": "solid", "P99": "dash"}
"""Line style per percentile, so that hue never stands alone."""
METRICS = ("ttft", "itl", "e2e")


def axis_title(sweep: LoadSweep) -> str:
    """What the load axis counts, with its unit."""
    return t("Offered load (requests/s)") if sweep.axis == "rate" else t("Concurrency (requests in flight)")


def load_curve(
    sweep: LoadSweep, metric: str, target_s: float | None, tones: Tones, *, height: int = HEIGHT
) -> go.Figure:
    """P50, P95 and P99 of ``metric`` over load with the SLO line, the operating point, the knee and the limit."""
    scale = 1.0 if metric == "e2e" else MILLI
    figure = go.Figure()
    stats: list[Percentiles] = [getattr(report, metric) for report in sweep.reports]
    drawn: list[float] = []
    for name in DASHES:
        values = [getattr(stat, f"{name.lower()}_s") for stat in stats]
        drawn += [value / scale for value in values if value is not None]
        _percentile_line(figure, sweep.loads, values, name, metric, tones)
    _marks(figure, sweep, tones)
    term = TERMS[metric]
    frame(figure, height=height, x_title=axis_title(sweep), y_title=f"{term.label} ({term.unit})")
    scale_axis(figure, "y", drawn + ([target_s / scale] if target_s else []))
    figure.update_xaxes(rangemode="tozero")
    if target_s is not None:
        level(figure, target_s / scale, t("SLO"), tones.line)
    return figure


def _percentile_line(
    figure: go.Figure, loads: Sequence[float], values: Sequence[float | None], name: str, metric: str, tones: Tones
) -> None:
    shown, scale = (show.seconds, 1.0) if metric == "e2e" else (show.ms, MILLI)
    figure.add_scatter(
        x=list(loads),
        y=[None if value is None else value / scale for value in values],
        mode="lines+markers",
        name=f"{name} ({t('simulated')})",
        line={"color": tones.percentiles[name], "width": 2.5, "dash": DASHES[name]},
        marker={"size": 6},
        customdata=[shown(value) for value in values],
        hovertemplate=name + " %{customdata} @ %{x:,.3g}<extra></extra>",
    )


def _marks(figure: go.Figure, sweep: LoadSweep, tones: Tones) -> None:
    figure.add_vline(
        x=sweep.operating_load,
        line={"color": tones.hull, "width": 2},
        annotation_text=t("now"),
        annotation_position="top right",
    )
    if sweep.knee_load is not None:
        figure.add_vline(
            x=sweep.knee_load,
            line={"color": tones.water, "width": 2, "dash": "dot"},
            annotation_text=t("knee"),
            annotation_position="top left",
        )
    last = max(sweep.loads)
    if sweep.axis == "rate" and sweep.max_rate_per_s < last:
        figure.add_vrect(
            x0=sweep.max_rate_per_s,
            x1=last,
            fillcolor=tones.over,
            opacity=0.12,
            line_width=0,
            annotation_text=t("unstable"),
            annotation_position="bottom right",
        )


def decomposition(rows: Sequence[tuple[str, LatencyReport]], tones: Tones) -> go.Figure:
    """Mean E2E of each named report as queue + prefill + decode + network."""
    figure = go.Figure()
    parts = (
        ("T_queue", tones.line, [report.queue_s for _, report in rows]),
        ("T_prefill", tones.hull, [report.prefill_s for _, report in rows]),
        ("T_decode", tones.water, [report.decode_s for _, report in rows]),
        ("T_network", tones.runtime, [report.network_s for _, report in rows]),
    )
    for title, colour, sizes in parts:
        figure.add_bar(
            y=[name for name, _ in rows],
            x=sizes,
            name=title,
            orientation="h",
            marker={"color": colour, "line": {"width": 0}},
            customdata=[show.seconds(size) for size in sizes],
            hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
        )
    frame(figure, height=BAR_HEIGHT - 20 + 50 * (len(rows) - 1), x_title=t("Mean E2E (s)"))
    figure.update_layout(barmode="stack", bargap=0.45)
    figure.update_yaxes(autorange="reversed", ticksuffix="  ", showticklabels=len(rows) > 1)
    return figure


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
    figure = go.Figure()
    figure.add_scatter(
        x=[low, ridge, high],
        y=[low * bandwidth_bytes_per_s / TERA, peak_flops_per_s / TERA, peak_flops_per_s / TERA],
        mode="lines",
        name=t("Roof"),
        line={"color": tones.line, "width": 3},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[spot.intensity_flops_per_byte for spot in spots],
        y=[spot.achieved_flops_per_s / TERA for spot in spots],
        mode="markers",
        name=t("measured"),
        marker={"color": tones.water, "size": 11, "line": {"color": tones.hull, "width": 1}},
        text=[spot.name for spot in spots],
        hovertemplate="%{text}: %{y:.3g} TFLOP/s @ %{x:.3g} FLOP/B<extra></extra>",
    )
    figure.add_annotation(
        x=0,
        xref="paper",
        y=1,
        yref="paper",
        showarrow=False,
        yanchor="bottom",
        text=t("bandwidth {speed:gbps}, ridge {ridge:.3g} FLOP/B", speed=bandwidth_bytes_per_s, ridge=ridge),
    )
    frame(figure, height=HEIGHT, x_title=t("Arithmetic intensity (FLOP/B)"), y_title="TFLOP/s")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


__all__ = ["METRICS", "RooflineSpot", "decomposition", "load_curve", "roofline"]
