"""The memory hull, and how many sequences the pool holds at each length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import plotly.graph_objects as go

from calc.cache.waste import Waste
from calc.memory import MemoryReport
from calc.room.capacity import Mark
from calc.units import GIB
from ui import format as show
from ui.charts.frame import BAR_HEIGHT, HEIGHT, LABEL_PIXELS, LEGEND_PIXELS, Tones, frame, level, log_axis
from ui.charts.sketch import Sketch
from ui.glossary import MARKS
from ui.text import t

BAR = 0.5
"""Height of a hull, as a share of its row."""
ROOM = 1.01
"""How far the axis reaches beyond the longest bar."""
PERCENT = 100
BESIDE_PIXELS = 4
"""Between a line and its name."""
EARLY_SHARE = 0.4
"""A budget line left of this share of the picture carries its name on the right."""


def hull(reports: Sequence[tuple[str, MemoryReport]], tones: Tones) -> go.Figure:
    """One bar per named report: zones up to the budget line, what lies over it hatched, the margin to the GPU's end."""
    sketch = Sketch()
    names = [name for name, _ in reports]
    stacks = [_stack(report) for _, report in reports]
    titles = {
        "weights": (t("Weights"), tones.hull),
        "runtime": (t("Runtime"), tones.runtime),
        "used": (t("KV cache in use"), tones.water),
        "free": (t("KV pool free"), tones.water_free),
        "margin": (t("Safety margin"), tones.margin),
    }
    for key, (title, colour) in titles.items():
        edge = tones.edge if key == "margin" else colour
        _zone(sketch, names, title, colour, edge, [stack[key] for stack in stacks])
    outside = [stack["outside"] for stack in stacks]
    _zone(sketch, names, t("Runtime"), tones.runtime, tones.runtime, outside, named=False)
    _overflow(sketch, reports, tones)
    frame(sketch, height=BAR_HEIGHT + 60 * (len(reports) - 1), x_title=t("GiB per GPU"), top=LABEL_PIXELS)
    sketch.update_layout(barmode="overlay", bargap=1 - BAR)
    sketch.update_axis("y", range=[len(reports) - 0.5, -0.5], ticksuffix="  ", showticklabels=len(reports) > 1)
    sketch.update_axis("x", range=[0, ROOM * max(_end_bytes(report) for _, report in reports) / GIB], showgrid=False)
    for row, (_, report) in enumerate(reports):
        _lines(sketch, row, report, tones, labels=len({r.total_bytes for _, r in reports}) > 1 or row == 0)
    return sketch.figure()


def _stack(report: MemoryReport) -> Mapping[str, tuple[int, int]]:
    """Where each zone begins and how long it is, in bytes: cut at the budget, for what is over it is drawn apart."""
    used = min(report.kv_demand_bytes, report.kv_pool_bytes)
    outside = max(report.runtime_bytes - report.runtime_in_budget_bytes, 0)
    zones, at = {}, 0
    for key, size in (
        ("weights", report.weights_bytes),
        ("runtime", report.runtime_in_budget_bytes),
        ("used", used),
        ("free", report.kv_pool_bytes - used),
    ):
        inside = min(size, max(report.budget_bytes - at, 0))
        zones[key] = (at, inside)
        at += inside
    begin = report.budget_bytes + outside
    return zones | {
        "outside": (report.budget_bytes, outside),
        "margin": (begin, max(report.total_bytes - begin, 0)),
    }


def _end_bytes(report: MemoryReport) -> int:
    return max(report.total_bytes, report.budget_bytes + overflow_bytes(report))


def _zone(
    sketch: Sketch, names: list[str], title: str, colour: str, edge: str, spans: Sequence[tuple[int, int]],
    *, named: bool = True,
) -> None:  # fmt: skip
    sketch.add_bar(
        y=names,
        base=[begin / GIB for begin, _ in spans],
        x=[size / GIB for _, size in spans],
        name=title,
        showlegend=named and any(size for _, size in spans),
        orientation="h",
        marker={"color": colour, "line": {"width": 1, "color": edge}},
        customdata=[show.gib(size) for _, size in spans],
        hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
    )


def overflow_bytes(report: MemoryReport) -> int:
    """How far the need exceeds what there is: a start that does not fit, or demand beyond the pool."""
    return report.over_bytes or max(0, report.kv_demand_bytes - report.kv_pool_bytes)


def _overflow(sketch: Sketch, reports: Sequence[tuple[str, MemoryReport]], tones: Tones) -> None:
    over = [(name, overflow_bytes(report)) for name, report in reports]
    if not any(size for _, size in over):
        return
    labels = [t("+{size:gib} over", size=size) if size else "" for _, size in over]
    sketch.add_bar(
        y=[name for name, _ in over],
        base=[report.budget_bytes / GIB for _, report in reports],
        x=[size / GIB for _, size in over],
        name=t("Over the line"),
        orientation="h",
        marker={
            "color": tones.over,
            "pattern": {"shape": "/", "fgcolor": tones.over, "bgcolor": tones.paper, "fillmode": "overlay"},
            "line": {"color": tones.over, "width": [1.5 if size else 0 for _, size in over]},
        },
        customdata=labels,
        hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
    )
    for row, (label, (_, report)) in enumerate(zip(labels, reports, strict=True)):
        if label:
            sketch.add_annotation(
                x=(report.budget_bytes + overflow_bytes(report) / 2) / GIB, y=row, text=f"<b>{label}</b>",
                font={"color": tones.over}, bgcolor=tones.paper, borderpad=3,
            )  # fmt: skip


def _lines(sketch: Sketch, row: int, report: MemoryReport, tones: Tones, *, labels: bool) -> None:
    budget, end = report.budget_bytes / GIB, report.total_bytes / GIB
    for x, up, down, colour, dash in ((end, 0.28, 0.42, tones.quiet, "dot"), (budget, 0.42, 0.28, tones.line, "solid")):
        sketch.add_shape(
            type="line", x0=x, x1=x, y0=row - up, y1=row + down, line={"color": colour, "width": 3, "dash": dash}
        )
    if not labels:
        return
    early = report.budget_bytes < EARLY_SHARE * _end_bytes(report)
    sketch.add_annotation(
        x=budget, y=row - 0.44, text="<b>" + t("Budget {size:gib}", size=report.budget_bytes) + "</b>",
        yanchor="bottom", xanchor="left" if early else "right", font={"color": tones.line_text},
    )  # fmt: skip
    sketch.add_annotation(
        x=end, y=row + 0.28, text=t("GPU {size:gib}", size=report.total_bytes),
        yanchor="top", xanchor="right", xshift=-BESIDE_PIXELS, font={"color": tones.quiet},
    )  # fmt: skip


Points: TypeAlias = Sequence[tuple[float, float]]
"""(length in tokens, sequences)."""


def room_curve(
    points: Points, changed: tuple[str, Points] | None, marks: Sequence[Mark], limits: Mapping[str, float], tones: Tones
) -> go.Figure:
    """Sequences the pool holds (y) at each length (x): now, and as ``changed``, on logarithmic axes.

    ``marks`` are the user's own lengths, ``limits`` the named counts the load or the scheduler asks for.
    """
    sketch = Sketch()
    _curve(sketch, t("Now"), points, {"color": tones.water, "width": 3})
    if changed:
        _curve(sketch, *changed, {"color": tones.hull, "width": 3, "dash": "dash"})
    sketch.add_scatter(
        x=[mark.tokens for mark in marks],
        y=[mark.sequences for mark in marks],
        mode="markers+text",
        marker={"color": tones.water_text, "size": 10},
        text=[f"{t(MARKS[mark.name])} {show.decimal(mark.sequences)}" for mark in marks],
        textposition=["bottom left"] * len(marks),
        showlegend=False,
        hoverinfo="skip",
    )
    frame(
        sketch,
        height=HEIGHT,
        x_title=t("Length of every sequence (tokens)"),
        y_title=t("Sequences per replica"),
        legend=changed is not None,
    )
    sketch.update_layout(showlegend=changed is not None)
    log_axis(sketch, "x", [length for length, _ in points])
    positive = {name: number for name, number in limits.items() if number > 0}
    counts = [count for _, count in (*points, *(changed[1] if changed else ())) if count > 0]
    log_axis(sketch, "y", [*counts, *positive.values()])
    for left, (name, number) in zip((False, True), positive.items(), strict=False):
        level(sketch, number, f"{name} {show.decimal(number)}", tones.quiet, left=left)
    return sketch.figure()


def _curve(sketch: Sketch, name: str, points: Points, line: Mapping[str, object]) -> None:
    sketch.add_scatter(
        x=[length for length, _ in points],
        y=[held for _, held in points],
        mode="lines",
        name=name,
        line=line,
        hovertemplate="%{x:,.0f} " + t("tokens") + ": %{y:,.1f}<extra></extra>",
    )


BAR_PIXELS = 30
"""Of one row of a bar chart with many."""
NUMBER_ROOM = 1.18
"""How far the axis reaches beyond 100 % for the numbers beside the bars."""


def waste_bars(rows: Sequence[tuple[str, Waste]], tones: Tones) -> go.Figure:
    """One bar per way of reserving, all as long as what is reserved (100 %): held and wasted."""
    sketch = Sketch()
    names = [name for name, _ in rows]
    parts = (
        (t("Tokens held"), tones.water, [1 - row.share for _, row in rows]),
        (t("Reserved and empty"), tones.margin, [row.share for _, row in rows]),
    )
    for name, colour, shares in parts:
        sketch.add_bar(
            y=names,
            x=[share * PERCENT for share in shares],
            name=name,
            orientation="h",
            marker={"color": colour, "line": {"width": 1, "color": tones.edge}},
            hovertemplate="%{y}: %{x:.3g} % (%{fullData.name})<extra></extra>",
        )
    for index, (_, row) in enumerate(rows):
        sketch.add_annotation(
            x=PERCENT,
            y=index,
            xanchor="left",
            text="<b>" + show.percent(row.share) + "</b>",
            font={"color": tones.text},
        )
    frame(sketch, height=BAR_PIXELS * len(rows) + 2 * LEGEND_PIXELS, x_title=t("Share of what is reserved (%)"))
    sketch.update_layout(barmode="stack", bargap=1 - BAR)
    sketch.update_axis("y", autorange="reversed", ticksuffix="  ")
    sketch.update_axis("x", range=[0, NUMBER_ROOM * PERCENT], tickvals=list(range(0, PERCENT + 1, 20)), showgrid=False)
    return sketch.figure()
