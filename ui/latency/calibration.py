"""Measured runs that the model's constants are fitted to."""

from __future__ import annotations

from calc.latency import LatencyReport
from ui.resources import Asked


def show(asked: Asked, latency: LatencyReport) -> None:
    """Nothing yet."""
