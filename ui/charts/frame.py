"""What all charts share: tones for light and dark, one frame, fixed heights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import plotly.graph_objects as go

from ui import palette

HEIGHT = 380
"""Pixels of a full chart; fixed, so that nothing jumps when it is redrawn."""
BAR_HEIGHT = 250
"""Pixels of a chart of one or two bars."""
CONFIG: dict[str, object] = {"displayModeBar": False, "responsive": True}
"""The tool bar speaks English only, so it stays away."""
WIDE_RANGE = 100
"""From this ratio of largest to smallest value on, an axis is logarithmic."""


@dataclass(frozen=True, kw_only=True)
class Tones:
    """One meaning, one colour, in the light or the dark theme."""

    hull: str
    water: str
    water_free: str
    runtime: str
    margin: str
    line: str
    """The load line: budget or SLO."""
    over: str
    quiet: str
    """Axes, limits, helper lines."""
    text: str
    percentiles: Mapping[str, str]

    @staticmethod
    def of(*, dark: bool) -> Tones:
        """The tones of a theme."""
        return _DARK if dark else _LIGHT


_LIGHT = Tones(
    hull=palette.NAVY,
    water=palette.WATER,
    water_free=palette.WATER_LIGHT,
    runtime=palette.GREY,
    margin=palette.GREY_PALE,
    line=palette.AMBER,
    over=palette.RED,
    quiet=palette.GREY,
    text=palette.NAVY,
    percentiles=palette.PERCENTILE_COLOURS,
)
_DARK = Tones(
    hull=palette.DARK_HULL,
    water=palette.DARK_WATER,
    water_free=palette.DARK_WATER_FREE,
    runtime=palette.GREY,
    margin=palette.DARK_MARGIN,
    line=palette.DARK_AMBER,
    over=palette.DARK_RED,
    quiet=palette.GREY,
    text=palette.DARK_TEXT,
    percentiles=MappingProxyType(
        {"P50": palette.DARK_WATER_DEEP, "P95": palette.DARK_WATER, "P99": palette.DARK_WATER_PALE}
    ),
)


def frame(figure: go.Figure, *, height: int, x_title: str, y_title: str = "") -> go.Figure:
    """Margins, legend under the plot, axis titles with units; colours of text and grid come from the page's theme."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 16, "t": 34, "b": 8},
        legend={"orientation": "h", "y": -0.28, "x": 0, "yanchor": "top", "title": None},
        hovermode="closest",
        separators=".,",
        dragmode=False,
    )
    figure.update_xaxes(title=x_title, fixedrange=True, automargin=True)
    figure.update_yaxes(title=y_title, fixedrange=True, automargin=True)
    return figure


def axis_type(values: list[float]) -> str:
    """``log`` when the values span a hundredfold or more, else ``linear``."""
    positive = [value for value in values if value > 0]
    return "log" if positive and max(positive) / min(positive) >= WIDE_RANGE else "linear"
