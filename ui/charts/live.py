"""A recording as five panels over one time axis: cache, resources, and three of the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import plotly.graph_objects as go

from calc.messages import Message, msg
from data.live.timeline import Event, Mark, Timeline
from ui.charts.frame import Tones
from ui.charts.sketch import Sketch
from ui.text import t

PANEL_PIXELS, HEAD_PIXELS, FOOT_PIXELS = 118, 34, 36
"""Height of a panel, of the line above it that names its curves, and of the time axis."""
PERCENT = 100
EVENTS = {
    Event.RESTART: msg("restart"),
    Event.GAP: msg("no answer"),
    Event.PAUSED: msg("paused"),
    Event.STOPPED: msg("stopped"),
}


@dataclass(frozen=True, kw_only=True)
class _Curve:
    course: str
    name: Message
    scale: float = 1.0
    dash: str = "solid"
    colour: str = "water"
    hover: str = "%{y:.1f} %"
    """How a value is written where the pointer is; formatting them all beforehand takes longer than all the rest."""


@dataclass(frozen=True, kw_only=True)
class _Panel:
    layer: Message
    curves: tuple[_Curve, ...]
    unit: str
    percent: bool = False


PANELS = (
    _Panel(
        layer=msg("Cache"), unit="%", percent=True,
        curves=(
            _Curve(course="kv_usage_share", name=msg("KV usage"), scale=PERCENT),
            _Curve(course="hit_share", name=msg("hit rate"), scale=PERCENT, dash="dash", colour="line"),
        ),
    ),
    _Panel(
        layer=msg("Resource"), unit="%", percent=True,
        curves=(
            _Curve(course="gpu_busy_share", name=msg("GPU busy"), scale=PERCENT),
            _Curve(course="gpu_memory_share", name=msg("GPU memory"), scale=PERCENT, dash="dash", colour="line"),
        ),
    ),
    _Panel(
        layer=msg("Service"), unit="",
        curves=(
            _Curve(course="running", name=msg("running"), hover="%{y:.0f}"),
            _Curve(course="waiting", name=msg("waiting"), dash="dash", colour="line", hover="%{y:.0f}"),
        ),
    ),
    _Panel(
        layer=msg("Service"), unit="s",
        curves=(
            _Curve(course="ttft_p50_s", name=msg("TTFT P50"), dash="dot", colour="P50", hover="%{y:.3f} s"),
            _Curve(course="ttft_p95_s", name=msg("TTFT P95"), colour="P95", hover="%{y:.3f} s"),
            _Curve(course="ttft_p99_s", name=msg("TTFT P99"), dash="dash", colour="P99", hover="%{y:.3f} s"),
        ),
    ),
    _Panel(
        layer=msg("Service"), unit="tok/s",
        curves=(_Curve(course="output_tokens_per_s", name=msg("output tokens"), hover="%{y:,.0f} tok/s"),),
    ),
)  # fmt: skip


def layers(line: Timeline, tones: Tones) -> go.Figure:
    """Every panel; they share the time axis, so that one moment is one upright line through all of them."""
    sketch, height = Sketch(), len(PANELS) * (PANEL_PIXELS + HEAD_PIXELS)
    seen = _breaks(line)
    for number in range(1, len(PANELS) + 1):
        _draw(sketch, line, seen, number, tones)
    _mark(sketch, line, tones)
    sketch.update_layout(
        height=height + FOOT_PIXELS,
        margin={"l": 4, "r": 12, "pad": 4, "t": 0, "b": FOOT_PIXELS},
        showlegend=False,
        hovermode="x unified",
        dragmode=False,
        separators=".,",
    )
    sketch.update_axis(
        "x", type="date", anchor=f"y{len(PANELS)}", fixedrange=True, automargin=True, showgrid=False,
        title={"text": t("Time (UTC)"), "standoff": 6}, range=_ends(line),
    )  # fmt: skip
    return sketch.figure()


def moment(at_s: float) -> str:
    """A Unix time as Plotly writes moments."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _ends(line: Timeline) -> list[str]:
    return [moment(line.times_s[0]), moment(max(line.times_s[-1], line.times_s[0] + 1))]


def _draw(sketch: Sketch, line: Timeline, seen: tuple[list[str], list[int]], number: int, tones: Tones) -> None:
    panel = PANELS[number - 1]
    axis = "y" if number == 1 else f"y{number}"
    places = 1.0 / len(PANELS)
    top = 1.0 - (number - 1) * places - places * HEAD_PIXELS / (PANEL_PIXELS + HEAD_PIXELS)
    known = [curve for curve in panel.curves if any(value is not None for value in line.course(curve.course))]
    for curve in known:
        _curve(sketch, line, seen, curve, axis, tones)
    if not known:  # an axis without a curve is not drawn at all
        sketch.add_scatter(x=_ends(line), y=[None, None], yaxis=axis, hoverinfo="skip")
        _note(sketch, top - places * 0.35, t("not exported by this engine version"), tones)
    bottom = max(0.0, top - places * PANEL_PIXELS / (PANEL_PIXELS + HEAD_PIXELS))
    properties: dict[str, object] = {"domain": [bottom, top], "fixedrange": True}
    properties |= {"range": [0, PERCENT * 1.03]} if panel.percent else {"rangemode": "tozero"}
    properties |= {"nticks": 4, "automargin": True, "anchor": "x", "zeroline": False}
    if number == 1:
        sketch.update_axis("y", **properties)
    else:
        sketch.update_layout(**{f"yaxis{number}": properties})
    _head(sketch, panel, known, top, tones)


def _curve(
    sketch: Sketch, line: Timeline, seen: tuple[list[str], list[int]], curve: _Curve, axis: str, tones: Tones
) -> None:
    times, breaks = seen
    sketch.add_scatter(
        x=times,
        y=_broken(line.course(curve.course), curve.scale, breaks),
        yaxis=axis,
        mode="lines" if len(times) > 1 else "markers",
        name=t(curve.name),
        line={"color": _colour(curve.colour, tones), "width": 2, "dash": curve.dash},
        hovertemplate=f"%{{fullData.name}}: {curve.hover}<extra></extra>",
        connectgaps=False,
    )


def _breaks(line: Timeline) -> tuple[list[str], list[int]]:
    """Moments of the scrapes and, after some, one in a stretch in which nothing was seen; and where these stand."""
    begins = [mark.at_s for mark in line.marks if mark.until_s is not None]
    times, breaks = list[str](), list[int]()
    for place, at_s in enumerate(line.times_s):
        times.append(moment(at_s))
        following = line.times_s[place + 1] if place + 1 < len(line.times_s) else None
        if following is not None and any(at_s <= begin < following for begin in begins):
            breaks.append(place)
            times.append(moment((at_s + following) / 2))
    return times, breaks


def _broken(course: Sequence[float | None], scale: float, breaks: Sequence[int]) -> list[float | None]:
    """A curve is not drawn through time in which nothing was seen."""
    values: list[float | None] = [None if value is None else value * scale for value in course]
    for place in reversed(breaks):
        values.insert(place + 1, None)
    return values


def _colour(name: str, tones: Tones) -> str:
    return tones.percentiles[name] if name in tones.percentiles else str(getattr(tones, name))


DASH_SIGNS = {"solid": "━", "dash": "╍", "dot": "┈"}


def _head(sketch: Sketch, panel: _Panel, known: Sequence[_Curve], top: float, tones: Tones) -> None:
    """The layer and its curves, each in its colour with its dash: the panel's own legend."""
    names = "  ".join(
        f'<span style="color:{_text_colour(curve.colour, tones)}">{DASH_SIGNS[curve.dash]} {t(curve.name)}</span>'
        for curve in known
    )
    unit = f" ({panel.unit})" if panel.unit else ""
    sketch.add_annotation(
        x=0, xref="paper", xanchor="left", y=top, yref="paper", yanchor="bottom", align="left",
        text=f"<b>{t(panel.layer)}</b>{unit}  {names}",
    )  # fmt: skip


def _text_colour(name: str, tones: Tones) -> str:
    strong = {"water": tones.water_text, "line": tones.line_text, "P50": tones.water_text, "P95": tones.water_text}
    return strong.get(name, _colour(name, tones))


def _note(sketch: Sketch, y: float, text: str, tones: Tones) -> None:
    sketch.add_annotation(x=0.5, xref="paper", y=y, yref="paper", text=text, font={"color": tones.quiet})


def _mark(sketch: Sketch, line: Timeline, tones: Tones) -> None:
    for mark in line.marks:
        if mark.event is Event.PREEMPTIONS:
            continue
        if mark.until_s is not None:
            _stretch(sketch, line, mark, tones)
        else:
            colour = tones.over if mark.event is Event.RESTART else tones.quiet
            _upright(sketch, mark.at_s, colour)
            _word(sketch, mark, colour, "left")
    _preempted(sketch, line, tones)


def _stretch(sketch: Sketch, line: Timeline, mark: Mark, tones: Tones) -> None:
    ends = (max(mark.at_s, line.times_s[0]), min(mark.until_s or mark.at_s, line.times_s[-1]))
    sketch.add_shape(
        type="rect", xref="x", x0=moment(ends[0]), x1=moment(ends[1]), yref="paper", y0=0, y1=1, fillcolor=tones.quiet,
        opacity=0.16, line={"width": 0}, layer="below",
    )  # fmt: skip
    _word(sketch, mark, tones.quiet, "right")


def _upright(sketch: Sketch, at_s: float, colour: str) -> None:
    sketch.add_shape(
        type="line", xref="x", x0=moment(at_s), x1=moment(at_s), yref="paper", y0=0, y1=1,
        line={"color": colour, "width": 1.5, "dash": "dot"},
    )  # fmt: skip


def _word(sketch: Sketch, mark: Mark, colour: str, anchor: str) -> None:
    word = EVENTS.get(mark.event)
    if word is not None:
        sketch.add_annotation(
            x=moment(mark.at_s), xref="x", xanchor=anchor, y=0, yref="paper", yanchor="bottom", text=t(word),
            font={"color": colour},
        )  # fmt: skip


def _preempted(sketch: Sketch, line: Timeline, tones: Tones) -> None:
    """A triangle on the KV curve at every scrape since whose predecessor requests were preempted."""
    usage = dict(zip(line.times_s, line.course("kv_usage_share"), strict=True))
    marks = [mark for mark in line.marks if mark.event is Event.PREEMPTIONS and usage.get(mark.at_s) is not None]
    if marks:
        sketch.add_scatter(
            x=[moment(mark.at_s) for mark in marks],
            y=[(usage[mark.at_s] or 0.0) * PERCENT for mark in marks],
            mode="markers",
            name=t("preemptions"),
            marker={"symbol": "triangle-down", "size": 9, "color": tones.over},
            customdata=[t(mark.sentence) for mark in marks],
            hovertemplate="%{customdata}<extra></extra>",
        )
