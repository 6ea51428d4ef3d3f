"""What fills each GPU: the hull and its four zones."""

from __future__ import annotations

from calc.memory import MemoryReport
from ui import charts, parts
from ui.resources import Asked
from ui.story import about_memory
from ui.text import t


def show(asked: Asked, memory: MemoryReport) -> None:  # noqa: ARG001 - every view is asked in the same way
    """The hull of one GPU, and its zones as rows."""
    parts.chart(charts.hull([("", memory)], parts.tones()), about_memory.hull_alt(memory), "memory_hull")
    parts.section(t("Four zones"))
    parts.prose(about_memory.zones(memory))
