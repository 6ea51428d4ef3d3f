"""Room for more: what prefixes, idle sessions, growing conversations and a second model do to the pool."""

from __future__ import annotations

from calc.memory import MemoryReport
from ui.resources import Asked


def show(asked: Asked, memory: MemoryReport) -> None:
    """Not drawn yet."""
