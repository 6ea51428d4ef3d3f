"""How far the four steps of the evaluation are."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from calc.poc.coverage import BASELINE
from calc.poc.status import Required, Watched, status
from calc.startup.match import short_name
from data.gpu_evidence import use_of
from data.records import MetricsSnapshot
from ui import parts, resources
from ui.benchmarks.found import Kept
from ui.resources import Asked
from ui.story import about_poc
from ui.text import t


def required(asked: Asked, kept: Kept) -> tuple[Required, ...]:
    """Every figure the four steps need, and whether it is there."""
    return status(kept.ours, watched(asked, kept))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _snapshots(mark: str, model: str) -> tuple[MetricsSnapshot, ...]:  # noqa: ARG001 - the key
    """Of the scenario's model, and those of GPUs, which name none."""
    rows = (row.snapshot for row in resources.store().snapshots())
    return tuple(one for one in rows if (short_name(one.model) == model if one.model else one.gpus))


def watched(asked: Asked, kept: Kept) -> Watched:
    """What was seen beside the runs: logs of GPUs taken during baseline runs, and metrics of engine and GPUs."""
    snapshots = _snapshots(resources.store().mark(), short_name(asked.scenario.deployment.model.name))
    gpus = [gpu for one in snapshots for gpu in one.gpus]
    usable = [run for run in kept.ours if run.usable and run.cell and run.cell.strategy is BASELINE]
    baseline = [kept.run(run.run_id) for run in usable]
    used = [use_of(tied.stored.log, row.run.gpu_count) for row in baseline for tied in row.gpu_logs]
    runs = [kept.run(run.run_id).run for run in kept.ours if run.cell]
    return Watched(
        memory_peak_bytes=_most([*(one.peak_bytes for one in used), *(gpu.memory_used_bytes for gpu in gpus)]),
        compute_share=_most([*(one.busy_share for one in used), *(gpu.busy_share for gpu in gpus)]),
        gpu_hour_price=asked.scenario.prices.gpu_hour,
        hit_share=_most([*(one.prefix_hit_share for one in snapshots), *(run.prefix_hit_share for run in runs)]),
        kv_usage_share=_most([*(one.kv_usage_share for one in snapshots), *(run.kv_usage_share for run in runs)]),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


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
