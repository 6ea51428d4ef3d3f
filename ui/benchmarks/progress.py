"""How far the four steps of the evaluation are."""

from __future__ import annotations

import streamlit as st

from calc.poc.status import Required, Watched, status
from calc.startup.match import short_name
from data.records import MetricsSnapshot
from ui import parts, resources
from ui.benchmarks.found import Kept
from ui.resources import Asked
from ui.story import about_poc
from ui.text import t


def required(asked: Asked, kept: Kept) -> tuple[Required, ...]:
    """Every figure the four steps need, and whether it is there."""
    return status(kept.ours, watched(asked))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _snapshots(mark: str, model: str) -> tuple[MetricsSnapshot, ...]:  # noqa: ARG001 - the key
    """Of the scenario's model, and those of GPUs, which name none."""
    rows = (row.snapshot for row in resources.store().snapshots())
    return tuple(one for one in rows if (short_name(one.model) == model if one.model else one.gpus))


def watched(asked: Asked) -> Watched:
    """What was seen beside the runs: the newest metrics of the engine and of GPUs that are stored."""
    snapshots = _snapshots(resources.store().mark(), short_name(asked.scenario.deployment.model.name))
    gpus = [gpu for one in snapshots for gpu in one.gpus]
    used = [gpu.memory_used_bytes for gpu in gpus if gpu.memory_used_bytes is not None]
    busy = [gpu.busy_share for gpu in gpus if gpu.busy_share is not None]
    hits = [one.prefix_hit_share for one in snapshots if one.prefix_hit_share is not None]
    usage = [one.kv_usage_share for one in snapshots if one.kv_usage_share is not None]
    return Watched(
        memory_peak_bytes=max(used, default=None),
        compute_share=max(busy, default=None),
        gpu_hour_price=asked.scenario.prices.gpu_hour,
        hit_share=next(iter(hits), None),
        kv_usage_share=max(usage, default=None),
    )


def show(asked: Asked, kept: Kept) -> None:
    """The four steps in one table, and every missing figure with where it comes from."""
    needed = required(asked, kept)
    done = sum(one.measured for one in needed)
    parts.section(
        t("Four steps"),
        t("{done:count} of {all:count} figures of the evaluation are there.", done=done, all=len(needed)),
    )
    parts.prose(about_poc.steps(needed))
    if done < len(needed):
        with st.expander(t("Where the missing figures come from"), icon=":material/checklist:"):
            parts.prose(about_poc.missing_rows(needed))
