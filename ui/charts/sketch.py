"""A picture gathered as plain data and handed to Plotly once; checking every property is left to the tests."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go


class Sketch:
    """Traces, shapes, notes and axes under Plotly's own names; ``figure()`` makes the figure of them."""

    checked = False
    """Whether Plotly checks every property: it takes five times as long as all the rest, so only tests ask for it."""

    def __init__(self) -> None:
        self._traces: list[dict[str, Any]] = []
        self._shapes: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []
        self._axes: dict[str, dict[str, Any]] = {"x": {}, "y": {}}
        self._layout: dict[str, Any] = {}

    def add_scatter(self, **trace: Any) -> None:
        """Points, joined or not."""
        self._traces.append({"type": "scatter", **trace})

    def add_bar(self, **trace: Any) -> None:
        """Bars, one for each value."""
        self._traces.append({"type": "bar", **trace})

    def add_shape(self, **shape: Any) -> None:
        """A line or rectangle without data."""
        self._shapes.append(shape)

    def add_annotation(self, **annotation: Any) -> None:
        """Words at a place."""
        self._annotations.append({"showarrow": False, **annotation})

    def update_layout(self, **layout: Any) -> None:
        """Everything around the data but the axes."""
        self._layout.update(layout)

    def update_axis(self, axis: str, **properties: Any) -> None:
        """Properties of the axis ``x`` or ``y``."""
        self._axes[axis].update(properties)

    def is_log(self, axis: str) -> bool:
        """Whether an axis is logarithmic so far."""
        return self._axes[axis].get("type") == "log"

    def figure(self) -> go.Figure:
        """The finished picture; where it is checked, a property that Plotly does not know is an error."""
        axes = {f"{name}axis": properties for name, properties in self._axes.items()}
        layout = {**self._layout, **axes, "shapes": self._shapes, "annotations": self._annotations}
        return go.Figure(data=self._traces, layout=layout, _validate=Sketch.checked)
