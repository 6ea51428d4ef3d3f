"""The launch line of the scenario."""

from __future__ import annotations

import streamlit as st

from calc.memory import MemoryReport
from calc.ways.launch import Launch
from data.checkpoint import launch_of
from ui import parts, resources
from ui.resources import Asked
from ui.story import about_launch, about_memory
from ui.text import t


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False, hash_funcs={Asked: lambda asked: asked.key})
def _launch(asked: Asked) -> Launch:
    return launch_of(asked.scenario.deployment)


def show(asked: Asked, memory: MemoryReport) -> None:
    """The command to copy, the file it reads if any, and what to mind."""
    launch = _launch(asked)
    parts.section(t("Launch line"), about_launch.sentence(asked.scenario.deployment))
    if not memory.fits:
        st.warning(about_memory.sentence(memory))
    st.code(launch.lines, language="bash", wrap_lines=True)
    for name, text in launch.files.items():
        st.caption(t("It reads {file}:", file=name))
        st.code(text, language="yaml")
    notes = about_launch.notes(launch)
    if notes:
        parts.bullets(notes)
