"""Measured load points by strategy: latency and throughput over concurrency, and throughput per GPU against pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.units import MILLI
from ui import format as show
from ui.charts.frame import HEIGHT, Tones, frame, scale_axis
from ui.charts.sketch import Sketch
from ui.glossary import TERMS
from ui.text import t

SIZE = 11
LINE = 2
SIGNS = ("circle", "diamond", "square", "triangle-up", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""One sign and one dash a series, so that hue never stands alone."""


@dataclass(frozen=True, kw_only=True)
class LoadPoint:
    """One measured run at one concurrency."""

    name: str
    concurrency: float
    value: float
    """Seconds, or tokens per second."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one strategy, joined by their means at each concurrency."""

    name: str
    points: tuple[LoadPoint, ...]


def latency_over_load(series: Sequence[Series], metric: str, statistic: str, tones: Tones) -> go.Figure:
    """One latency statistic over requests in flight, a line per strategy."""
    scale, term = (1.0 if metric == "e2e" else MILLI), TERMS[metric]
    return _over_load(series, scale, f"{term.label} {statistic} ({term.unit})", tones)


def throughput_over_load(series: Sequence[Series], tones: Tones) -> go.Figure:
    """Output tokens per second over requests in flight, a line per strategy."""
    return _over_load(series, 1.0, t("Output tokens/s"), tones)


def _over_load(series: Sequence[Series], scale: float, y_title: str, tones: Tones) -> go.Figure:
    sketch = Sketch()
    for number, one in enumerate(series):
        _means(sketch, number, one, scale, tones)
        sketch.add_scatter(
            x=[point.concurrency for point in one.points],
            y=[point.value / scale for point in one.points],
            mode="markers",
            name=one.name,
            marker=_marker(number, tones),
            text=[point.name for point in one.points],
            customdata=[point.text for point in one.points],
            hovertemplate="%{text}<br>%{customdata} @ %{x:,.3g}<extra></extra>",
        )
    frame(sketch, height=HEIGHT, x_title=t("Requests in flight"), y_title=y_title)
    points = [point for one in series for point in one.points]
    loads = sorted({point.concurrency for point in points})
    sketch.update_axis("x", type="log", tickvals=loads, ticktext=[f"{load:,.3g}" for load in loads])
    scale_axis(sketch, "y", [point.value / scale for point in points])
    return sketch.figure()


def _means(sketch: Sketch, number: int, one: Series, scale: float, tones: Tones) -> None:
    loads = sorted({point.concurrency for point in one.points})
    values = [[p.value for p in one.points if p.concurrency == load] for load in loads]
    sketch.add_scatter(
        x=loads,
        y=[sum(at) / len(at) / scale for at in values],
        mode="lines",
        showlegend=False,
        line={"color": _colour(number, tones), "width": LINE, "dash": DASHES[number % len(DASHES)]},
        hoverinfo="skip",
    )


def pareto(series: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], tones: Tones) -> go.Figure:
    """Output tokens per second and GPU over tokens per second and user; the front is what no other run beats in both.

    Each point is (name, tokens/s per user, tokens/s per GPU).
    """
    sketch = Sketch()
    everything = [(x, y) for _, points in series for _, x, y in points]
    front = sorted(p for p in everything if not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in everything))
    sketch.add_scatter(
        x=[x for x, _ in front], y=[y for _, y in front], mode="lines", name=t("front"),
        line={"color": tones.quiet, "width": LINE}, hoverinfo="skip",
    )  # fmt: skip
    for number, (name, points) in enumerate(series):
        sketch.add_scatter(
            x=[x for _, x, _ in points],
            y=[y for _, _, y in points],
            mode="markers",
            name=name,
            marker=_marker(number, tones),
            text=[label for label, _, _ in points],
            hovertemplate="%{text}<br>%{x:,.3g} · %{y:,.3g}<extra></extra>",
        )
    frame(sketch, height=HEIGHT, x_title=t("Tokens/s per user (1 / mean TPOT)"), y_title=t("Output tokens/s per GPU"))
    scale_axis(sketch, "x", [x for x, _ in everything])
    scale_axis(sketch, "y", [y for _, y in everything])
    return sketch.figure()


def _colour(number: int, tones: Tones) -> str:
    colours = (tones.hull, tones.water, tones.line, tones.runtime, tones.quiet)
    return colours[number % len(colours)]


def _marker(number: int, tones: Tones) -> dict[str, object]:
    return {
        "color": _colour(number, tones),
        "size": SIZE,
        "symbol": SIGNS[number % len(SIGNS)],
        "line": {"color": tones.paper, "width": 1},
    }


def text_of(metric: str, value: float) -> str:
    """A latency as it is written beside its point."""
    return show.seconds(value) if metric == "e2e" else show.ms(value)
