"""The launch line of the scenario."""

from __future__ import annotations

from calc.memory import MemoryReport
from ui.resources import Asked


def show(asked: Asked, memory: MemoryReport) -> None:
    """Not drawn yet."""
