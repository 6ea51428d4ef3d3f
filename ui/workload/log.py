"""A request log or trace: what was understood of it, its profile, and making it the scenario's workload."""

from __future__ import annotations

from ui.resources import Asked


def show(asked: Asked) -> None:
    """The logs of the store, one of them in full."""
