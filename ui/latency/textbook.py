"""Queueing theory beside the simulation: limits, formulas, and the conditions under which each holds."""

from __future__ import annotations

from calc.latency import LatencyReport
from ui import parts, resources
from ui.resources import Asked
from ui.story import about_latency
from ui.text import t


def show(asked: Asked, latency: LatencyReport) -> None:  # noqa: ARG001 - every view is asked in the same way
    """Stability limits, then one row per formula."""
    parts.section(t("Textbook queue beside the simulation"))
    queue, deployment = resources.queue(asked), asked.scenario.deployment
    parts.prose(about_latency.limits(queue, deployment.replicas * deployment.dp))
    if queue.results:
        parts.prose(about_latency.textbook_rows(queue))
