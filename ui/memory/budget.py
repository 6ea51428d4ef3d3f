"""What fills each GPU: the hull, the four zones and the sequences that fit in the rest."""

from __future__ import annotations

import streamlit as st

from calc.memory import MemoryReport
from ui import charts, parts
from ui.resources import Asked
from ui.story import about_memory
from ui.text import t


def show(asked: Asked, memory: MemoryReport) -> None:
    """The hull of one GPU, its zones as rows, and how many sequences of which length the pool holds."""
    parts.chart(charts.hull([("", memory)], parts.tones()), about_memory.hull_alt(memory), "memory_hull")
    left, right = st.columns(2, gap="medium")
    with left:
        parts.section(t("Four zones"))
        parts.prose(about_memory.zones(memory))
    with right:
        parts.section(t("Sequences the pool holds"))
        if not memory.fits:
            st.info(about_memory.sentence(memory))
            return
        points = about_memory.capacity(asked.scenario.deployment, memory)
        figure = charts.capacity_curve(points, memory.peak_concurrency, parts.tones())
        parts.chart(figure, about_memory.capacity_alt(points), "memory_capacity")
