"""Chosen runs beside each other and over the model's curve, with the error stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from data.store import StoredRun
from ui import charts, parts, resources
from ui.benchmarks import runs, twins
from ui.resources import Asked
from ui.story import words
from ui.text import t

ERRORS_PIXELS = 400
"""Ten rows of the error table; the rest scrolls."""
MOST_RUNS = 6
"""Compared at once: more bars cannot be told apart."""


def show(asked: Asked) -> None:
    """Choose runs, then their percentiles side by side, the model's curve under them, and its error."""
    stored = resources.runs()
    if not stored:
        st.info(t("Nothing is stored yet: upload a result first."))
        return
    names = {run.run_id: runs.label(run) for run in stored}
    chosen = _chosen(stored, names)
    metric = parts.switch(t("Metric"), words.METRIC_NAMES, "bench_metric", "ttft")
    parts.table(runs.rows([run.run for run in chosen]), key="bench_rows")
    left, right = st.columns(2, gap="medium")
    with left:
        _bars(chosen, names, metric)
    with right:
        _over_model(asked, chosen, metric)
    parts.table(twins.errors(asked, chosen), key="bench_errors", height=ERRORS_PIXELS)
    parts.computed(
        [t("error = simulated / measured − 1; the run's own lengths and load on the deployment described at the side")],
        [run.run.tool for run in chosen],
    )


def _chosen(stored: Sequence[StoredRun], names: Mapping[str, str]) -> list[StoredRun]:
    wanted = st.multiselect(
        t("Runs"), list(names), list(names)[:MOST_RUNS], key="bench_chosen", format_func=lambda key: names[key],
        max_selections=MOST_RUNS, persist_state="session",
    )  # fmt: skip
    return [run for run in stored if run.run_id in wanted]


def _bars(chosen: Sequence[StoredRun], names: Mapping[str, str], metric: str) -> None:
    figure = charts.compare_runs(
        [names[run.run_id] for run in chosen], twins.bars(chosen, metric), metric, parts.tones()
    )
    beside = t("Chosen runs beside each other, one bar per percentile.")
    st.caption(beside)
    parts.chart(figure, beside, "bench_compare")


def _over_model(asked: Asked, chosen: Sequence[StoredRun], metric: str) -> None:
    twin = next((found for run in chosen if (found := twins.like(asked, run.run))), None)
    if twin is None:
        st.info(t("No chosen run states its load and lengths, so there is no curve to lay under it."))
        return
    sweep = resources.load_sweep(twin)
    percentile = twins.shared_percentile(chosen, metric)
    points = twins.points(chosen, metric, percentile, sweep.axis)
    figure = charts.measured_over_model(sweep, points, metric, percentile, parts.tones())
    over = t("Measured {percentile} over the model's curve at the first run's lengths.", percentile=percentile)
    st.caption(over)
    parts.chart(figure, over, "bench_model")
