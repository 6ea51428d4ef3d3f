"""Memory: what fills each GPU, and how much load the rest holds."""

import streamlit as st

from ui import charts, parts, resources, state
from ui import format as show
from ui.story import about_memory, words
from ui.text import t

asked = state.current()
memory = resources.memory(asked)
deployment = asked.scenario.deployment

parts.heading(t("Memory"), words.describe(asked.scenario))
parts.answer(
    about_memory.sentence(memory),
    [
        about_memory.fit(memory),
        about_memory.sequences(memory),
        about_memory.per_request(memory),
        about_memory.demand(memory),
    ],
    good=memory.fits and memory.kv_demand_bytes <= memory.kv_pool_bytes,
)
parts.chart(charts.hull([("", memory)], parts.tones()), about_memory.hull_alt(memory), "memory_hull")

left, right = st.columns(2, gap="medium")
with left:
    parts.section(t("Four zones"))
    parts.prose(about_memory.zones(memory))
with right:
    parts.section(t("Sequences the pool holds"))
    if memory.fits:
        points = about_memory.capacity(deployment, memory)
        figure = charts.capacity_curve(points, memory.peak_concurrency, parts.tones())
        parts.chart(figure, about_memory.capacity_alt(points), "memory_capacity")
    else:
        st.info(about_memory.sentence(memory))

parts.notes([*asked.notes, *memory.notes])
parts.computed(about_memory.formulas(deployment, memory), [deployment.engine.source, deployment.gpu.source])
st.caption(words.versions() + " · " + t("KV pool, 80 % band") + " " + show.band(memory.kv_pool_band_bytes))
