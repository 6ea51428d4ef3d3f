"""Requests told apart: short and long, classes, and an hour of the user's own rates."""

from __future__ import annotations

from calc.latency import LatencyReport
from ui import parts
from ui.resources import Asked
from ui.story import about_latency


def show(asked: Asked, latency: LatencyReport) -> None:
    """What all requests together meet."""
    parts.table(about_latency.percentiles(latency, asked.scenario.slo), key="latency_requests")
