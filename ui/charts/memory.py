"""The memory hull, and how many sequences the pool holds at each length."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from calc.memory import MemoryReport
from calc.units import GIB
from ui import format as show
from ui.charts.frame import BAR_HEIGHT, HEIGHT, Tones, frame, level, scale_axis
from ui.text import t

BAR = 0.55
"""Height of a hull, as a share of its row."""


def hull(reports: Sequence[tuple[str, MemoryReport]], tones: Tones) -> go.Figure:
    """One stacked bar per named report: weights, runtime, KV in use and free, margin; overflow hatched; two lines."""
    figure = go.Figure()
    names = [name for name, _ in reports]
    for title, colour, sizes in _zones([report for _, report in reports], tones):
        _zone(figure, names, title, colour, sizes)
    _overflow(figure, reports, tones)
    frame(figure, height=BAR_HEIGHT + 60 * (len(reports) - 1), x_title=t("GiB per GPU"))
    figure.update_layout(barmode="stack", bargap=1 - BAR)
    figure.update_yaxes(autorange="reversed", ticksuffix="  ", showticklabels=len(reports) > 1)
    for row, (_, report) in enumerate(reports):
        _lines(figure, row, report, tones, labels=len({r.total_bytes for _, r in reports}) > 1 or row == 0)
    return figure


def _zones(reports: list[MemoryReport], tones: Tones) -> list[tuple[str, str, list[float]]]:
    used = [min(r.kv_demand_bytes, r.kv_pool_bytes) for r in reports]
    return [
        (t("Weights"), tones.hull, [float(r.weights_bytes) for r in reports]),
        (t("Runtime"), tones.runtime, [float(r.runtime_bytes) for r in reports]),
        (t("KV cache in use"), tones.water, [float(u) for u in used]),
        (t("KV pool free"), tones.water_free, [float(r.kv_pool_bytes - u) for r, u in zip(reports, used, strict=True)]),
        (t("Safety margin"), tones.margin, [float(max(0, r.margin_bytes)) for r in reports]),
    ]


def _zone(figure: go.Figure, names: list[str], title: str, colour: str, sizes: Sequence[float]) -> None:
    figure.add_bar(
        y=names,
        x=[size / GIB for size in sizes],
        name=title,
        orientation="h",
        marker={"color": colour, "line": {"width": 0}},
        customdata=[show.gib(size) for size in sizes],
        hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
    )


def overflow_bytes(report: MemoryReport) -> int:
    """How far the need exceeds what there is: a start that does not fit, or demand beyond the pool."""
    return report.over_bytes or max(0, report.kv_demand_bytes - report.kv_pool_bytes)


def _overflow(figure: go.Figure, reports: Sequence[tuple[str, MemoryReport]], tones: Tones) -> None:
    over = [(name, overflow_bytes(report)) for name, report in reports]
    if not any(size for _, size in over):
        return
    figure.add_bar(
        y=[name for name, _ in over],
        x=[size / GIB for _, size in over],
        name=t("Over the line"),
        orientation="h",
        marker={
            "color": tones.over,
            "pattern": {"shape": "/", "fgcolor": tones.over, "bgcolor": "rgba(0,0,0,0)", "fillmode": "overlay"},
            "line": {"color": tones.over, "width": 1.5},
        },
        text=[t("+{size:gib} over", size=size) if size else "" for _, size in over],
        textposition="inside",
        insidetextanchor="middle",
        textfont={"color": tones.text},
        hovertemplate="%{fullData.name}: %{text}<extra></extra>",
    )


def _lines(figure: go.Figure, row: int, report: MemoryReport, tones: Tones, *, labels: bool) -> None:
    lines = (
        (report.budget_bytes, tones.line, "solid", t("Budget {size:gib}", size=report.budget_bytes), "right"),
        (report.total_bytes, tones.quiet, "dot", t("GPU {size:gib}", size=report.total_bytes), "left"),
    )
    for position, colour, dash, label, anchor in lines:
        x = position / GIB
        figure.add_shape(
            type="line", x0=x, x1=x, y0=row - 0.46, y1=row + 0.46, line={"color": colour, "width": 3, "dash": dash}
        )
        if labels:
            figure.add_annotation(
                x=x, y=row - 0.46, text=label, showarrow=False, yanchor="bottom", xanchor=anchor, font={"color": colour}
            )


def capacity_curve(points: Sequence[tuple[float, float]], concurrency: float, tones: Tones) -> go.Figure:
    """Sequences the pool holds (y) at each length (x), with the planned concurrency as the load line."""
    figure = go.Figure()
    lengths, sequences = [length for length, _ in points], [held for _, held in points]
    figure.add_scatter(
        x=lengths,
        y=sequences,
        mode="lines",
        name=t("Sequences the KV pool holds"),
        line={"color": tones.water, "width": 3},
        hovertemplate="%{x:,.0f} " + t("tokens") + ": %{y:,.1f}<extra></extra>",
    )
    frame(figure, height=HEIGHT, x_title=t("Length of every sequence (tokens)"), y_title=t("Sequences per replica"))
    scale_axis(figure, "x", lengths)
    scale_axis(figure, "y", [*sequences, concurrency])
    label = t("planned concurrency {number:count}", number=concurrency)
    level(figure, concurrency, label, tones.line, dash="dash", left=False)
    return figure
