"""Benchmarks: upload what was measured, compare runs, and see how far the model is off."""

import streamlit as st

from ui import bench_view, charts, parts, resources, state, uploading
from ui.story import words
from ui.text import t

ERRORS_PIXELS = 400  # ten rows of the error table; the rest scrolls

asked = state.current()
stored = resources.store().runs()
names = {run.run_id: bench_view.label(run) for run in stored}
wanted = [key for key in state.get("bench_chosen", list(names)[:6]) if key in names]
chosen = [run for run in stored if run.run_id in wanted]

parts.heading(t("Benchmarks"), words.describe(asked.scenario))
parts.answer(
    t(
        "{number:count} load points are stored; {chosen:count} are compared with the model.",
        number=len(stored),
        chosen=len(chosen),
    ),
    bench_view.figures(asked, stored, chosen),
    good=None if not stored else True,
)
parts.section(t("Upload"))
uploading.desk()

if stored:
    parts.section(t("Compare"))
    st.multiselect(
        t("Runs"), list(names), wanted, key="bench_chosen", format_func=lambda key: names[key], max_selections=6
    )
    metric = parts.switch(t("Metric"), words.METRIC_NAMES, "bench_metric", "ttft")
    parts.table(bench_view.rows([run.run for run in chosen]), key="bench_rows")
    left, right = st.columns(2, gap="medium")
    with left:
        figure = charts.compare_runs(
            [names[run.run_id] for run in chosen], bench_view.bars(chosen, metric), metric, parts.tones()
        )
        beside = t("Chosen runs beside each other, one bar per percentile.")
        st.caption(beside)
        parts.chart(figure, beside, "bench_compare")
    with right:
        twin = next((found for run in chosen if (found := bench_view.like(asked, run.run))), None)
        if twin is None:
            st.info(t("No chosen run states its load and lengths, so there is no curve to lay under it."))
        else:
            sweep = resources.load_sweep(twin)
            percentile = bench_view.shared_percentile(chosen, metric)
            points = bench_view.points(chosen, metric, percentile, sweep.axis)
            figure = charts.measured_over_model(sweep, points, metric, percentile, parts.tones())
            over = t("Measured {percentile} over the model's curve at the first run's lengths.", percentile=percentile)
            st.caption(over)
            parts.chart(figure, over, "bench_model")
    parts.table(bench_view.errors(asked, chosen), key="bench_errors", height=ERRORS_PIXELS)
    st.download_button(
        t("All runs as CSV"), resources.runs_csv, "runs.csv", "text/csv", key="bench_csv", on_click="ignore"
    )
parts.notes(asked.notes)
parts.computed(
    [t("error = simulated / measured − 1; the run's own lengths and load on the deployment described at the side")],
    [run.run.tool for run in chosen],
)
st.caption(words.versions(asked.scenario))
