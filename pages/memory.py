"""Memory: what fills each GPU, and how much load the rest holds."""

import streamlit as st

from ui import format as show
from ui import parts, resources, state
from ui.memory import budget, capacity, corrections, launch, log, ways
from ui.story import about_memory, words
from ui.text import t

asked = state.current()
memory = resources.memory(asked)
deployment = asked.scenario.deployment

parts.heading(t("Memory"), words.describe(asked.scenario))
parts.answer(
    about_memory.sentence(memory),
    about_memory.figures(memory),
    good=memory.fits and memory.kv_demand_bytes <= memory.kv_pool_bytes,
)
names = {
    "budget": t("Budget"),
    "ways": t("Ways to fit more") if memory.fits else t("Ways to fit"),
    "capacity": t("Capacity"),
    "corrections": t("Waste and formats"),
    "log": t("Engine log"),
    "launch": t("Launch line"),
}
views = {
    "budget": budget,
    "ways": ways,
    "capacity": capacity,
    "corrections": corrections,
    "log": log,
    "launch": launch,
}
view = parts.switch(t("View"), names, "memory_view", "budget" if memory.fits else "ways")
views[view].show(asked, memory)

parts.notes([*asked.notes, *memory.notes])
if not memory.fits or view not in ("capacity", "corrections"):  # those two add their own formulas to these
    parts.computed(about_memory.formulas(deployment, memory), about_memory.sources(deployment))
low, high = memory.kv_pool_band_bytes
st.caption(words.versions() + (f" · {t('KV pool, 80 % band')} {show.band((low, high))}" if low < high else ""))
