"""Tiers outside the GPU: fetching against recomputing."""

from __future__ import annotations

from calc.latency import LatencyReport
from ui.resources import Asked


def show(asked: Asked, latency: LatencyReport) -> None:
    """Nothing yet."""
