"""Hit rate over cache capacity with every GPU on it, and the working set over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from calc.reuse.growth import Growth
from calc.units import MEGA, SECONDS_PER_MINUTE
from ui import format as show
from ui.charts.frame import BAR_HEIGHT, HEIGHT, LABEL_PIXELS, Tones, frame, level, log_axis
from ui.charts.sketch import Sketch
from ui.text import t

TOP_AIR = 1.12


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve: its name, capacities in tokens, hit rates in per cent."""

    name: str
    capacities_tokens: Sequence[float]
    hits: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A GPU on the curve."""

    name: str
    capacity_tokens: float
    hit: float


def hit_curve(
    lines: Sequence[Line], ceiling: float, today: Mark | None, knee_tokens: float, others: Sequence[Mark], tones: Tones
) -> go.Figure:
    """Hit rate in per cent over the room of one cache: today upright, other GPUs as points, the ceiling as a level."""
    sketch = Sketch()
    looks = ({"color": tones.water, "width": 3}, {"color": tones.quiet, "width": 2, "dash": "dash"})
    for line, look in zip(lines, looks, strict=False):
        sketch.add_scatter(
            x=list(line.capacities_tokens), y=list(line.hits), mode="lines", name=line.name, line=look,
            hovertemplate="%{x:,.0f} " + t("tokens") + ": %{y:.1f} %<extra></extra>",
        )  # fmt: skip
    _points(sketch, others, tones)
    frame(
        sketch,
        height=HEIGHT,
        x_title=t("Room for reuse in one cache (tokens)"),
        y_title=t("Hit rate (%)"),
        top=2 * LABEL_PIXELS,
    )
    capacities = [tokens for line in lines for tokens in line.capacities_tokens]
    low, high = min(capacities), max(*capacities, *(mark.capacity_tokens for mark in others), 1.0)
    log_axis(sketch, "x", [low, high])
    sketch.update_axis("x", range=[math.log10(low), math.log10(high)])
    top = max(ceiling, *(hit for line in lines for hit in line.hits), 1.0) * TOP_AIR
    sketch.update_axis("y", range=[0, min(top, 100 * TOP_AIR)])
    level(sketch, ceiling, t("never evicts: {hit:pct}", hit=ceiling / 100), tones.quiet)
    _uprights(sketch, today, knee_tokens, (low, high), tones)
    return sketch.figure()


def _points(sketch: Sketch, marks: Sequence[Mark], tones: Tones) -> None:
    if not marks:
        return
    sketch.add_scatter(
        x=[max(1.0, mark.capacity_tokens) for mark in marks],
        y=[mark.hit for mark in marks],
        mode="markers",
        name=t("Other GPUs, same split"),
        marker={"color": tones.hull, "size": 8},
        customdata=[mark.name for mark in marks],
        hovertemplate="%{customdata}: %{y:.1f} % @ %{x:,.0f}<extra></extra>",
    )


def _uprights(sketch: Sketch, today: Mark | None, knee_tokens: float, ends: tuple[float, float], tones: Tones) -> None:
    """On a logarithmic axis a shape stands at the value and a name at its exponent."""
    wanted = [(knee_tokens, t("knee"), tones.quiet, 0)]
    if today is not None:
        wanted.append((today.capacity_tokens, t("today: {hit:pct}", hit=today.hit / 100), tones.line_text, 1))
    low, high = ends
    for tokens, text, colour, row in wanted:
        if not low < tokens < high:
            continue
        sketch.add_shape(
            type="line", yref="y domain", y0=0, y1=1, x0=tokens, x1=tokens,
            line={"color": colour, "width": 2, "dash": "dot" if row == 0 else "solid"},
        )  # fmt: skip
        before = math.log(tokens / low) > math.log(high / tokens)
        sketch.add_annotation(
            x=math.log10(tokens), y=1, yref="y domain", yanchor="bottom", yshift=row * LABEL_PIXELS,
            xanchor="right" if before else "left", text=text, font={"color": colour},
        )  # fmt: skip


def growth_curve(growth: Growth, room_tokens: float, tones: Tones) -> go.Figure:
    """Millions of distinct tokens over minutes: all so far, those of the last minutes, and the room there is."""
    sketch = Sketch()
    minutes = (growth.times_s / SECONDS_PER_MINUTE).tolist()
    window = t("used within {minutes:count} min", minutes=growth.window_s / SECONDS_PER_MINUTE)
    series = ((growth.distinct_tokens, t("all so far"), tones.hull), (growth.recent_tokens, window, tones.water))
    for values, name, colour in series:
        sketch.add_scatter(
            x=minutes, y=(values / MEGA).tolist(), mode="lines", name=name, line={"color": colour, "width": 3},
            hovertemplate="%{x:.0f} min: %{y:.2f}<extra></extra>",
        )  # fmt: skip
    frame(
        sketch,
        height=BAR_HEIGHT + LABEL_PIXELS,
        x_title=t("Time (min)"),
        y_title=t("Distinct tokens (millions)"),
        top=LABEL_PIXELS,
    )
    top = max(float(growth.distinct_tokens.max(initial=0.0)), room_tokens) / MEGA
    sketch.update_axis("y", range=[0, max(top, 1e-6) * TOP_AIR])
    level(
        sketch, room_tokens / MEGA, t("room {number}", number=show.tokens(room_tokens)), tones.line,
        text_colour=tones.line_text, left=False,
    )  # fmt: skip
    return sketch.figure()
