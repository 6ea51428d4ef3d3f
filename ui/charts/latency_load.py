"""What else changes over load: requests within the SLO, goodput, KV usage, preemptions, and the parts of E2E."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.latency import LoadSweep
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import HEIGHT, LABEL_PIXELS, Tones, Upright, frame, level, upright
from ui.charts.latency import axis_title, is_unstable
from ui.charts.sketch import Sketch
from ui.text import t

PERCENT = 100
ROOM = 1.02
"""How far the load axis reaches beyond the last point."""
SMALL_HEIGHT = 320
"""Pixels of one of two charts side by side."""


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One curve over load; values as the axis counts them, ``None`` = not shown there."""

    name: str
    values: Sequence[float | None]
    colour: str
    dash: str
    texts: Sequence[str]


def attainment(sweep: LoadSweep, share: float, tones: Tones) -> go.Figure:
    """Requests within every target, beside the share the SLO asks for."""
    reached = [None if is_unstable(sweep, report) else report.slo_attainment_share for report in sweep.reports]
    line = _Line(
        name=t("SLO attainment"),
        values=[None if value is None else value * PERCENT for value in reached],
        colour=tones.water,
        dash="solid",
        texts=[show.percent(value) for value in reached],
    )
    sketch = _over_load(sweep, [line], t("Requests within every target (%)"), tones)
    sketch.update_axis("y", range=[0, PERCENT * ROOM])
    level(sketch, share * PERCENT, t("SLO"), tones.line, text_colour=tones.line_text)
    return sketch.figure()


def goodput(sweep: LoadSweep, tones: Tones) -> go.Figure:
    """Requests served per second, and those of them that meet the whole SLO."""
    good = [None if is_unstable(sweep, report) else report.goodput_per_s for report in sweep.reports]
    served = [report.request_rate_per_s for report in sweep.reports]
    lines = [
        _Line(
            name=t("Served"),
            values=served,
            colour=tones.quiet,
            dash="dot",
            texts=[show.rate(rate) for rate in served],
        ),
        _Line(
            name=t("Goodput"),
            values=good,
            colour=tones.water,
            dash="solid",
            texts=[show.rate(rate) for rate in good],
        ),
    ]
    return _over_load(sweep, lines, t("Requests/s"), tones).figure()


def kv_usage(sweep: LoadSweep, tones: Tones) -> go.Figure:
    """How full the KV pool is, on average and at most."""
    rows = (
        (t("max"), [report.kv_usage_max_share for report in sweep.reports], tones.percentiles["P99"], "dash"),
        (t("mean"), [report.kv_usage_mean_share for report in sweep.reports], tones.water, "solid"),
    )
    lines = [
        _Line(
            name=name,
            values=[share * PERCENT for share in shares],
            colour=colour,
            dash=dash,
            texts=[show.percent(share) for share in shares],
        )
        for name, shares, colour, dash in rows
    ]
    sketch = _over_load(sweep, lines, t("KV usage of the pool (%)"), tones)
    sketch.update_axis("y", range=[0, PERCENT * ROOM])
    return sketch.figure()


def preemptions(sweep: LoadSweep, tones: Tones) -> go.Figure:
    """Preemptions for each hundred requests."""
    shares = [report.preempted_share for report in sweep.reports]
    line = _Line(
        name=t("Preemptions"),
        values=[share * PERCENT for share in shares],
        colour=tones.hull,
        dash="solid",
        texts=[show.percent(share) for share in shares],
    )
    sketch = _over_load(sweep, [line], t("Preemptions per request (%)"), tones)
    sketch.update_axis("y", range=[0, max(1.0, *(share * PERCENT for share in shares)) * ROOM])
    return sketch.figure()


def _over_load(sweep: LoadSweep, lines: Sequence[_Line], y_title: str, tones: Tones) -> Sketch:
    sketch = Sketch()
    for line in lines:
        sketch.add_scatter(
            x=list(sweep.loads),
            y=list(line.values),
            mode="lines+markers",
            name=line.name,
            line={"color": line.colour, "width": 2.5, "dash": line.dash},
            marker={"size": 6},
            customdata=list(line.texts),
            hovertemplate="%{fullData.name}: %{customdata} @ %{x:,.3g}<extra></extra>",
        )
    end = max([*sweep.loads, sweep.operating_load]) * ROOM
    frame(sketch, height=SMALL_HEIGHT, x_title=axis_title(sweep), y_title=y_title, top=LABEL_PIXELS)
    sketch.update_layout(showlegend=len(lines) > 1)  # its room stays, so that neighbours' axes are level
    sketch.update_axis("x", range=[0, end], showgrid=False)
    sketch.update_axis("y", rangemode="tozero")
    if sweep.axis == "rate" and sweep.max_rate_per_s < end:
        sketch.add_shape(
            type="rect", yref="y domain", y0=0, y1=1, x0=sweep.max_rate_per_s, x1=end, line={"width": 0},
            fillcolor=tones.quiet, opacity=0.16, layer="below",
        )  # fmt: skip
    words = t("planned {load:.3g}", load=sweep.operating_load)
    look = Upright(colour=tones.hull, before=sweep.operating_load > end / 2)
    upright(sketch, sweep.operating_load, f"<b>{words}</b>", look)
    return sketch


def parts_over_load(sweep: LoadSweep, metric: str, tones: Tones) -> go.Figure:
    """Mean TTFT or E2E as queue + prefill (+ decode) + network at each load that has a steady one."""
    scale, shown = (MILLI, show.ms) if metric == "ttft" else (1.0, show.seconds)
    points = [
        (load, report)
        for load, report in zip(sweep.loads, sweep.reports, strict=True)
        if not is_unstable(sweep, report)
    ]
    parts = (
        ("T_network", tones.water_free, [report.network_s for _, report in points]),
        ("T_decode", tones.water, [report.decode_s for _, report in points]),
        ("T_prefill", tones.hull, [report.prefill_s for _, report in points]),
        ("T_queue", tones.runtime, [report.queue_s for _, report in points]),
    )
    sketch = Sketch()
    for name, colour, sizes in parts:
        if metric == "ttft" and name == "T_decode":
            continue
        sketch.add_bar(
            x=[show.decimal(load) for load, _ in points],
            y=[size / scale for size in sizes],
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            customdata=[shown(size) for size in sizes],
            hovertemplate="%{fullData.name}: %{customdata} @ %{x}<extra></extra>",
        )
    frame(
        sketch,
        height=HEIGHT,
        x_title=axis_title(sweep),
        y_title=t("Mean TTFT (ms)") if metric == "ttft" else t("Mean E2E (s)"),
    )
    sketch.update_layout(barmode="stack", bargap=0.3)
    sketch.update_axis("x", type="category")
    return sketch.figure()
