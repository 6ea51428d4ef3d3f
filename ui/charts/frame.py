"""What all charts share: tones for light and dark, one frame, fixed heights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ui import palette
from ui.charts.sketch import Sketch

HEIGHT = 380
"""Pixels of a full chart; fixed, so that nothing jumps when it is redrawn."""
BAR_HEIGHT = 260
"""Pixels of a chart of one or two bars."""
CONFIG: dict[str, object] = {"displayModeBar": False, "responsive": True}
"""The tool bar speaks English only, so it stays away."""
FEW_DECADES = 3
"""Up to here every decade gets three labels."""
AIR = 1.08
"""How far an axis reaches beyond the last value."""
WIDE_RANGE = 100
"""From this ratio of largest to smallest value on, an axis is logarithmic."""


@dataclass(frozen=True, kw_only=True)
class Tones:
    """One meaning, one colour, in the light or the dark theme."""

    hull: str
    water: str
    water_text: str
    """Water strong enough to be read as text."""
    water_free: str
    runtime: str
    margin: str
    line: str
    """The load line: budget or SLO."""
    line_text: str
    """The load line's colour, strong enough to be read as text."""
    over: str
    quiet: str
    """Axes, limits, helper lines."""
    edge: str
    """Outline of pale zones."""
    text: str
    paper: str
    percentiles: Mapping[str, str]

    @staticmethod
    def of(*, dark: bool) -> Tones:
        """The tones of a theme."""
        return _DARK if dark else _LIGHT


_LIGHT = Tones(
    hull=palette.NAVY,
    water=palette.WATER,
    water_text=palette.WATER_TEXT,
    water_free=palette.WATER_LIGHT,
    runtime=palette.GREY,
    margin=palette.GREY_PALE,
    line=palette.AMBER,
    line_text=palette.AMBER_TEXT,
    over=palette.RED,
    quiet=palette.GREY_DARK,
    edge=palette.GREY_LIGHT,
    text=palette.NAVY,
    paper=palette.PAPER,
    percentiles=palette.PERCENTILE_COLOURS,
)
_DARK = Tones(
    hull=palette.DARK_HULL,
    water=palette.DARK_WATER,
    water_text=palette.DARK_WATER,
    water_free=palette.DARK_WATER_FREE,
    runtime=palette.DARK_RUNTIME,
    margin=palette.DARK_MARGIN,
    line=palette.DARK_AMBER,
    line_text=palette.DARK_AMBER,
    over=palette.DARK_RED,
    quiet=palette.DARK_QUIET,
    edge=palette.DARK_EDGE,
    text=palette.DARK_TEXT,
    paper=palette.DARK_PAPER,
    percentiles=MappingProxyType(
        {"P50": palette.DARK_WATER_DEEP, "P95": palette.DARK_WATER, "P99": palette.DARK_WATER_PALE}
    ),
)


LEGEND_PIXELS = 64
"""Room under the plot for the axis title and one or two rows of legend."""
AXIS_PIXELS = 40
"""Room under the plot for the axis title alone."""
BARE_TOP_PIXELS = 8
"""Room above a plot without labels there: half a tick label."""
LABEL_PIXELS = 20
"""Room above the plot for one row of labels of lines."""


def frame(
    sketch: Sketch, *, height: int, x_title: str, y_title: str = "", top: int = BARE_TOP_PIXELS, legend: bool = True
) -> None:
    """Margins, legend under the axis title, titles with units; colours of text and grid come from the page's theme."""
    sketch.update_layout(
        height=height,
        margin={"l": 4, "r": 12, "pad": 4, "t": top, "b": LEGEND_PIXELS if legend else AXIS_PIXELS},
        legend={
            "orientation": "h",
            "yref": "container",
            "y": 0.01,
            "yanchor": "bottom",
            "x": 0,
            "title": {"text": ""},
            "traceorder": "normal",
        },
        hovermode="closest",
        separators=".,",
        dragmode=False,
    )
    sketch.update_axis("x", title={"text": x_title, "standoff": 6}, fixedrange=True, automargin=True)
    sketch.update_axis("y", title={"text": y_title, "standoff": 14 if y_title else 0}, fixedrange=True, automargin=True)


def scale_axis(sketch: Sketch, axis: str, values: list[float]) -> None:
    """A logarithmic axis with full labels where the values span a hundredfold or more, else a linear one from 0."""
    if axis_type(values) == "linear":
        sketch.update_axis(axis, rangemode="tozero")
        return
    log_axis(sketch, axis, [value for value in values if value > 0])


def log_axis(sketch: Sketch, axis: str, values: list[float]) -> None:
    """A logarithmic axis with full labels; ``values`` are above 0."""
    ticks = log_ticks(min(values), max(values))
    labels = [f"{tick:,.10g}" for tick in ticks]
    sketch.update_axis(axis, type="log", tickvals=ticks, ticktext=labels)


def span(values: list[float]) -> tuple[float, float]:
    """Ends of an axis that holds ``values`` with some air, as numbers of the axis that ``scale_axis`` makes."""
    low, high = min(value for value in values if value > 0), max(values)
    return (0.0, high * AIR) if axis_type(values) == "linear" else (low / AIR**2, high * AIR**2)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten around [low, high]; powers of ten alone when that would crowd the axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= FEW_DECADES else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in ticks if low / 2 <= tick <= high * 2]


def axis_type(values: list[float]) -> str:
    """``log`` when the values span a hundredfold or more, else ``linear``."""
    positive = [value for value in values if value > 0]
    return "log" if positive and max(positive) / min(positive) >= WIDE_RANGE else "linear"


def level(
    sketch: Sketch, y: float, text: str, colour: str, *, text_colour: str | None = None, left: bool = True
) -> None:
    """A named horizontal line; an annotation on a logarithmic axis is placed by the exponent, a line by the value."""
    sketch.add_shape(type="line", xref="x domain", x0=0, x1=1, y0=y, y1=y, line={"color": colour, "width": 3})
    sketch.add_annotation(
        x=0 if left else 1, xref="x domain", xanchor="left" if left else "right",
        y=math.log10(y) if sketch.is_log("y") else y, yanchor="bottom", text=text,
        font={"color": text_colour or colour},
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Upright:
    """How a vertical line looks, on which side of it its name stands, and in which row above the plot."""

    colour: str
    before: bool
    row: int = 0
    dash: str = "solid"


def upright(sketch: Sketch, x: float, text: str, look: Upright) -> None:
    """A named vertical line; its name stands above the plot."""
    sketch.add_shape(
        type="line", yref="y domain", y0=0, y1=1, x0=x, x1=x, line={"color": look.colour, "width": 2, "dash": look.dash}
    )
    sketch.add_annotation(
        x=x, y=1, yref="y domain", yanchor="bottom", xanchor="right" if look.before else "left",
        yshift=look.row * LABEL_PIXELS, text=text, font={"color": look.colour},
    )  # fmt: skip
