"""What every question of the Capacity and the Waste view begins with, found once for a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import streamlit as st

from calc.memory import MemoryReport
from calc.room.capacity import Mark, Room, curve, marks
from ui import resources
from ui.resources import Asked

Points: TypeAlias = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A scenario, its memory, and the pool as the engine cuts it."""

    asked: Asked
    memory: MemoryReport
    room: Room
    marks: tuple[Mark, ...]

    @cached_property
    def points(self) -> Points:
        """(length, sequences) of the capacity curve; only one of the views draws it."""
        return curve(self.room)


@st.cache_resource(
    max_entries=resources.KEPT, show_spinner=False, hash_funcs={Asked: lambda asked: asked.key, MemoryReport: repr}
)
def found_for(asked: Asked, memory: MemoryReport) -> Found:
    """Equal questions are answered from memory."""
    room = Room.of(asked.scenario.deployment, memory)
    return Found(asked=asked, memory=memory, room=room, marks=marks(room, asked.scenario.workload))
