"""Comparison: what strategies changed, runs beside a pinned baseline, curves over load, and the model's error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from calc.poc.cells import Repetition
from calc.poc.coverage import BASELINE, PlacedRun, gains, refusal
from ui import charts, parts, resources
from ui.benchmarks import found, twins
from ui.benchmarks.found import Kept
from ui.benchmarks.runs import label, rows
from ui.charts.poc import latency_over_load, pareto, throughput_over_load
from ui.resources import Asked
from ui.story import about_compare, about_poc, about_validity, words
from ui.text import t

ERRORS_PIXELS = 400
"""Ten rows of the error table; the rest scrolls."""
MOST_RUNS = 6
"""Compared at once: more bars cannot be told apart."""


def show(asked: Asked) -> None:
    """One of four ways to look at what is stored."""
    kept = found.kept(asked)
    if not kept.stored:
        st.info(t("Nothing is stored yet: upload a result first."))
        return
    names = {
        "gain": t("By strategy"),
        "beside": t("Beside a baseline"),
        "load": t("Over load"),
        "model": t("Against the model"),
    }
    views = {"gain": _gain, "beside": _beside, "load": _over_load, "model": _model}
    views[parts.switch(t("Look at"), names, "bench_look", "gain", linked=True)](asked, kept)


def _gain(asked: Asked, kept: Kept) -> None:  # noqa: ARG001 - same signature for all
    metric, statistic = _latency()
    changes = gains([run for run in kept.ours if run.cell is not None], metric, statistic)
    parts.section(t("What a strategy changed"), t("Against the same load without reuse, cell by cell."))
    st.markdown(f"**{parts.escape(about_compare.headline(changes, metric, statistic))}**")
    if changes:
        rows_shown = about_compare.gain_rows(changes, metric)
        st.table(rows_shown, hide_index=True, border="horizontal", width="stretch")
    parts.remarks(
        [
            t("Only the gain at medium repetition may be quoted: high repetition shows what a cache can do at most."),
            t("Intervals from a single run leave out what differs between runs: repeat a cell with another seed."),
        ]
    )


def _latency() -> tuple[str, str]:
    left, right = st.columns(2, gap="medium")
    with left:
        metric = parts.switch(t("Metric"), about_compare.metrics(), "bench_metric", "ttft")
    with right:
        statistic = parts.switch(t("Statistic"), about_compare.statistics(), "bench_statistic", "p95")
    return metric, statistic


def _beside(asked: Asked, kept: Kept) -> None:  # noqa: ARG001 - same signature for all
    stored = {run.run_id: run for run in kept.stored}
    names = {run.run_id: about_compare.run_name(run, stored[run.run_id]) for run in kept.placed}
    usual = next((at for at, run in enumerate(kept.placed) if run.cell and run.cell.strategy is BASELINE), 0)
    pinned = kept.placed_run(parts.pick(t("Baseline, pinned"), names, "bench_pinned", usual))
    st.caption(parts.escape(about_poc.place_name(pinned)))
    fitting = [run.run_id for run in kept.placed if run.run_id != pinned.run_id and refusal(pinned, run) is None]
    others = [kept.placed_run(key) for key in _chosen(names, fitting, "bench_others") if key != pinned.run_id]
    refused = about_compare.refusals(pinned, others, stored)
    alike = [run for run in others if refusal(pinned, run) is None]
    if refused:
        with st.container(border=True, gap=None):
            st.markdown(":material/compare_arrows: **" + t("Not compared with it") + "**")
            parts.bullets(refused)
    metric = parts.switch(t("Metric"), about_compare.metrics(), "bench_metric", "ttft")
    parts.table(about_compare.beside_rows(pinned, alike, stored, metric), key="bench_beside")
    shown = [stored[run.run_id] for run in (pinned, *alike)]
    figure = charts.compare_runs([names[run.run_id] for run in shown], twins.bars(shown, metric), metric, parts.tones())
    beside = t("The baseline and what may be compared with it, one bar per percentile.")
    st.caption(beside)
    parts.chart(figure, beside, "bench_compare")


def _chosen(names: Mapping[str, str], usual: Sequence[str], key: str) -> list[str]:
    return st.multiselect(
        t("Runs"), list(names), list(usual)[:MOST_RUNS], key=key, format_func=lambda code: names.get(code, code),
        max_selections=MOST_RUNS, persist_state="session",
    )  # fmt: skip


def _over_load(asked: Asked, kept: Kept) -> None:
    runs = _one_shape(kept)
    if not runs:
        st.info(t("No run has a place in the matrix yet: declare strategy and repetition of the stored ones."))
        return
    metric, statistic = _latency()
    series = about_compare.latency_series(runs, metric, statistic)
    named = about_compare.statistics()[statistic]
    left, right = st.columns(2, gap="medium")
    with left:
        said = t(
            "{metric} {statistic} over requests in flight, a line per strategy.",
            metric=words.term_label(metric),
            statistic=named,
        )
        st.caption(said)
        parts.chart(latency_over_load(series, metric, named, parts.tones()), said, "bench_latency_load")
    with right:
        said = t("Output tokens per second over requests in flight.")
        st.caption(said)
        parts.chart(
            throughput_over_load(about_compare.throughput_series(runs), parts.tones()), said, "bench_throughput_load"
        )
    said = t("Throughput per GPU against pace: up and to the right is better.")
    st.caption(said)
    points = about_compare.pareto_series(runs, asked.scenario.deployment.gpu_count)
    parts.chart(pareto(points, parts.tones()), said, "bench_pareto")


def _one_shape(kept: Kept) -> list[PlacedRun]:
    """Runs of one repetition and one context: others would make a line of unlike loads."""
    placed = [run for run in kept.ours if run.cell is not None and run.usable]
    shapes = sorted({(one.cell.repetition, one.cell.context_tokens) for one in placed if one.cell})
    if not shapes:
        return []
    names = {
        f"{level}-{context}": t("{level} repetition, {context:tok}", level=about_poc.levels()[level], context=context)
        for level, context in sorted(shapes, key=lambda shape: (shape[0] is not Repetition.MEDIUM, shape))
    }
    chosen = parts.pick(t("Load"), names, "bench_shape")
    return [run for run in placed if run.cell and f"{run.cell.repetition}-{run.cell.context_tokens}" == chosen]


def _model(asked: Asked, kept: Kept) -> None:
    names = {run.run_id: label(run) for run in kept.stored if run.is_evidence}
    parts.remarks(about_validity.left_out(kept.stored))
    ours = {run.run_id for run in kept.ours}
    wanted = _chosen(names, [key for key in names if key in ours], "bench_chosen")
    chosen = [run for run in kept.stored if run.run_id in wanted]
    parts.remarks(about_compare.of_others([run for run in chosen if run.run_id not in ours]))
    metric = parts.switch(t("Metric"), about_compare.metrics(), "bench_metric", "ttft")
    parts.table(rows([run.run for run in chosen]), key="bench_rows")
    twin = next((like for run in chosen if (like := twins.like(asked, run.run))), None)
    if twin is None:
        st.info(t("No chosen run states its load and lengths, so there is no curve to lay under it."))
    else:
        sweep = resources.load_sweep(twin)
        percentile = twins.shared_percentile(chosen, metric)
        points = twins.points(twins.of_lengths(chosen, twin), metric, percentile, sweep.axis)
        over = t(
            "Measured {percentile} of the runs with the first one's lengths over the model's curve.",
            percentile=percentile,
        )
        st.caption(over)
        parts.chart(charts.measured_over_model(sweep, points, metric, percentile, parts.tones()), over, "bench_model")
    errors = {title: twins.median_error(asked, chosen, code) for code, title in about_compare.metrics().items()}
    st.markdown(f"**{parts.escape(about_compare.errors(errors))}**")
    parts.table(twins.errors(asked, chosen), key="bench_errors", height=ERRORS_PIXELS)
    parts.computed(
        [t("error = simulated / measured − 1; the run's own lengths and load on the deployment described at the side")],
        [run.run.tool for run in chosen],
    )
