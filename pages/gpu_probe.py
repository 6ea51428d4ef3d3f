"""GPU probe: what the driver says, and what this machine's GPU really does on the scenario's layer."""

import streamlit as st

from probe.roofline_view import compare, roof_of
from ui import charts, measuring, parts, resources, state
from ui.story import words
from ui.text import t

asked = state.current()
deployment = asked.scenario.deployment
desk = resources.probe_desk()
result = measuring.latest(resources.store())

parts.heading(
    t("GPU probe"), t("What can this machine's GPU really do on one layer of {model}?", model=deployment.model.name)
)
parts.answer(
    measuring.verdict(result, deployment.gpu),
    measuring.figures(result),
    good=True if result and result.kind == "cuda" else None,
)


def begin() -> None:
    """The button stands on the page: pressed inside the fragment, it would start no ticking."""
    st.caption(
        t(
            "Takes up to {cap:s} and a copy of one layer in memory; it runs in a process of its own.",
            cap=measuring.TIME_CAP_S,
        )
    )
    st.button(
        t("Measure"), key="probe_start", type="primary", icon=":material/play_arrow:", on_click=desk.begin,
        args=(asked.scenario,),
    )  # fmt: skip
    if desk.problem is not None:
        st.warning(t(desk.problem))


@state.fragment(run_every=1.0)
def progress() -> None:
    """How far the run is, with its cancel; when it is over, the page shows what came of it."""
    now = desk.look()
    if now is None or now.done:
        st.rerun()
    else:
        st.progress(now.progress_share, t(now.step))
        st.button(t("Cancel"), key="probe_cancel", on_click=desk.cancel, icon=":material/stop:")


if desk.run is None:
    begin()
else:
    progress()

if result is not None:
    points, roof = compare(result, deployment.gpu), roof_of(result, deployment.gpu)
    parts.section(t("Against the roofline"))
    if roof.flops_per_s is not None and roof.bytes_per_s is not None:
        figure = charts.roofline(measuring.spots(points), roof.flops_per_s, roof.bytes_per_s, parts.tones())
        parts.chart(figure, t("Measured steps under the roofline, listed in the table below."), "probe_roofline")
    parts.table(measuring.rows(points), key="probe_rows")
    parts.notes(result.notes)

parts.section(t("This machine's GPUs"))
report = resources.driver()
if report.reason is not None:
    st.info(t(report.reason), icon=":material/developer_board_off:")
else:
    parts.table(measuring.gpu_rows(report.gpus), key="probe_gpus")
    st.caption(t("Driver {version}, read {when}", version=report.driver_version, when=report.sampled_at))
parts.computed(
    [t("achieved FLOP/s = FLOP of the layer on paper / median time; roof = min(peak, bandwidth · FLOP per byte)")],
    ["Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009", deployment.gpu.source],
)
st.caption(words.versions())
