"""What a search found as two pictures: throughput per GPU against pace, the tail against cost, and their fronts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import plotly.graph_objects as go

from calc.search.result import Found, SearchResult
from calc.workload import Slo
from ui import format as show
from ui.charts.frame import HEIGHT, LABEL_PIXELS, Tones, Upright, frame, level, scale_axis, upright
from ui.charts.sketch import Sketch
from ui.text import t

POINT, TODAY = 7, 15
"""Sizes of marks."""
PALE = 0.55
Place: TypeAlias = Callable[[Found], tuple[float | None, float | None]]
Label: TypeAlias = Callable[[Found], str]


def fast_front(result: SearchResult, today: Found | None, slo: Slo, tones: Tones, label: Label) -> go.Figure:
    """Output tokens per second and GPU over tokens per second and user: up and to the right is better."""
    mark = show.percentile_name(slo.percentile_share)
    sketch = Sketch()
    shown = _points(sketch, result, today, tones, (lambda one: (one.interactivity, one.per_gpu), label))
    _line(sketch, result.fast_front, tones, lambda one: (one.interactivity, one.per_gpu))
    frame(
        sketch,
        height=HEIGHT,
        x_title=t("Tokens/s per user ({mark} of TPOT)", mark=mark),
        y_title=t("Output tokens/s per GPU"),
        top=LABEL_PIXELS,
    )
    _axes(sketch, shown)
    if slo.itl_s:
        look = Upright(colour=tones.line_text, before=False)
        upright(sketch, 1 / slo.itl_s, t("ITL target"), look)
    return sketch.figure()


def cheap_front(result: SearchResult, today: Found | None, slo: Slo, tones: Tones, label: Label) -> go.Figure:
    """E2E P99 over cost per hour: down and to the left is better."""
    front = result.cheap_front
    currency = next((one.cost.currency for one in front if one.cost), "")

    def place(one: Found) -> tuple[float | None, float | None]:
        same = one.cost is not None and one.cost.currency == currency
        return (one.cost.total_per_hour if one.cost and same else None), one.tail_s

    sketch = Sketch()
    shown = _points(sketch, result, today, tones, (place, label))
    _line(sketch, front, tones, place)
    frame(
        sketch,
        height=HEIGHT,
        x_title=t("Cost per hour ({currency})", currency=currency or "–"),
        y_title=t("E2E P99 (s)"),
        top=LABEL_PIXELS,
    )
    _axes(sketch, shown)
    if slo.e2e_s:
        words = t("E2E target at {mark}", mark=show.percentile_name(slo.percentile_share))
        level(sketch, slo.e2e_s, words, tones.line, text_colour=tones.line_text, left=False)
    return sketch.figure()


def _points(
    sketch: Sketch, result: SearchResult, today: Found | None, tones: Tones, how: tuple[Place, Label]
) -> list[tuple[float, float]]:
    """What meets the SLO, what misses it, and today's scenario, told apart by colour and sign."""
    kinds = (
        (t("meets the SLO"), [one for one in result.points if one.meets], tones.water, "circle"),
        (t("misses it"), [one for one in result.points if not one.meets], tones.quiet, "x-thin-open"),
    )
    shown = []
    for title, found, colour, sign in kinds:
        shown += _marks(sketch, title, found, how, {"color": colour, "symbol": sign, "size": POINT, "opacity": PALE})
    if today is not None:
        look = {"color": tones.line, "symbol": "star", "size": TODAY, "line": {"color": tones.text, "width": 1}}
        shown += _marks(sketch, t("today's scenario"), [today], how, look)
    return shown


def _marks(
    sketch: Sketch, title: str, found: Sequence[Found], how: tuple[Place, Label], look: dict[str, object]
) -> list[tuple[float, float]]:
    place, label = how
    placed = [(x, y, one) for one in found for x, y in [place(one)] if x is not None and y is not None]
    if placed:
        sketch.add_scatter(
            x=[x for x, _, _ in placed],
            y=[y for _, y, _ in placed],
            mode="markers",
            name=title,
            marker=look,
            text=[label(one) for _, _, one in placed],
            hovertemplate="%{text}<br>%{x:,.3g} · %{y:,.3g}<extra></extra>",
        )
    return [(x, y) for x, y, _ in placed]


def _line(sketch: Sketch, front: Sequence[Found], tones: Tones, place: Place) -> None:
    placed = [(x, y) for x, y in map(place, front) if x is not None and y is not None]
    sketch.add_scatter(
        x=[x for x, _ in placed],
        y=[y for _, y in placed],
        mode="lines",
        name=t("front"),
        line={"color": tones.hull, "width": 2},
        hoverinfo="skip",
    )


def _axes(sketch: Sketch, shown: Sequence[tuple[float, float]]) -> None:
    if shown:
        scale_axis(sketch, "x", [x for x, _ in shown])
        scale_axis(sketch, "y", [y for _, y in shown])
