"""Measured runs that the model's constants are fitted to, and what that changes."""

from __future__ import annotations

import json

import streamlit as st

from calc.calibrate.constants import constants_of
from calc.calibrate.fit import Fit
from calc.errors import StoreError
from calc.latency import LatencyReport
from calc.messages import Message
from data.case_calibration import calibration_text, parse_calibration
from ui import measuring, parts, resources, state
from ui.charts.calibration import measured_predicted
from ui.latency import fitted, points
from ui.resources import Asked
from ui.story import about_calibration
from ui.text import t

POINTS, REMOVED = "calibration_points", "calibration_removed"


def show(asked: Asked, latency: LatencyReport) -> None:
    """What is in use, where measured points come from, the fit to them, and the stored calibrations."""
    _in_force(asked, latency)
    parts.section(t("Fit to measurements"), t("One or more measured loads of the deployment at the side."))
    sources = {"runs": t("Uploaded runs"), "typed": t("Typed figures"), "probe": t("GPU probe")}
    source = parts.switch(t("Measured by"), sources, "calibration_from", "runs")
    if source == "probe":
        _probe(asked)
    else:
        chosen = points.from_runs(asked) if source == "runs" else points.typed(asked)
        if chosen:
            st.button(
                t("Fit {number:count} points", number=len(chosen)), key="calibration_fit", type="primary",
                icon=":material/tune:", on_click=_take, args=(source, json.dumps(chosen)),
            )  # fmt: skip
        taken_from, kept = state.get(POINTS) or ("", "")
        if taken_from == source:
            _fitted(asked, json.loads(kept))
    _stored(asked)


def _in_force(asked: Asked, latency: LatencyReport) -> None:
    calibration = asked.scenario.calibration
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{parts.escape(about_calibration.in_force(calibration, latency.calibration))}**")
        if calibration is not None:
            st.button(t("Stop using it"), key="calibration_stop", icon=":material/undo:", on_click=_stop)


@state.callback
def _take(source: str, chosen: str) -> None:
    state.put(**{POINTS: (source, chosen)})


@state.callback
def _stop() -> None:
    state.put(calibration="")


def _probe(asked: Asked) -> None:
    """The newest measurement of this machine's GPU."""
    result = measuring.latest(resources.store())
    if result is None or result.kind == "cpu":
        st.info(t("No GPU has been measured on this machine: the GPU probe does it."))
        parts.link("gpu_probe", t("Measure this machine's GPU"))
        return
    _told(asked, fitted.fit_probe(asked, result), [])


def _fitted(asked: Asked, chosen: points.Points) -> None:
    with st.spinner(t("Fitting …")):
        found = fitted.fit(chosen)
    _told(asked, found, chosen)


def _told(asked: Asked, found: Fit | Message, chosen: points.Points) -> None:
    """A fit in words, picture and rows, or why there is none."""
    if isinstance(found, Message):
        st.error(t(found), icon=":material/error:")
        return
    constants = constants_of(found.factors, asked.scenario.deployment, http=asked.scenario.workload.http)
    st.success(f"**{parts.escape(about_calibration.headline(found))}**", icon=":material/tune:")
    with st.container(horizontal=True):
        st.button(
            t("Use it"), key="calibration_use", type="primary", icon=":material/check:", on_click=_use,
            args=(calibration_text(found.calibration),),
        )  # fmt: skip
        st.button(t("Store it"), key="calibration_store", icon=":material/save:", on_click=_store,
                  args=(asked, found, chosen))  # fmt: skip
    told = [about_calibration.in_words(one) for one in constants if one.identified]
    parts.bullets(told or [t("No constant could be told apart from what is assumed.")])
    parts.remarks(
        [
            about_calibration.left_out(found),
            about_calibration.unidentified(found, constants),
            about_calibration.valid_for(found.calibration),
        ]
    )
    if found.residuals:
        parts.chart(
            measured_predicted(found.residuals, parts.tones()), about_calibration.alt(found), "calibration_chart"
        )
        parts.table(about_calibration.residual_rows(found, points.names(chosen)), key="calibration_residuals")
    with st.expander(t("Every constant, and how it is fitted"), icon=":material/list:"):
        parts.table(about_calibration.constant_rows(constants), key="calibration_constants")
        parts.bullets(about_calibration.formulas())


@state.callback
def _use(text: str) -> None:
    state.put(calibration=text)


@state.callback
def _store(asked: Asked, found: Fit, chosen: points.Points) -> None:
    fitted.store(asked, found, chosen)


def _stored(asked: Asked) -> None:
    try:
        kept = fitted.stored()
    except StoreError as error:
        st.error(t(error.message), icon=":material/error:")
        return
    if state.get(REMOVED):
        st.button(t("Bring the removed calibration back"), key="calibration_restore", icon=":material/undo:",
                  on_click=_restore)  # fmt: skip
    if not kept:
        return
    used = asked.scenario.calibration
    in_use = next((row.calibration_id for row in kept if used and parse_calibration(row.calibration) == used), None)
    parts.section(t("Stored calibrations"))
    parts.table(about_calibration.stored_rows(kept, in_use), key="calibration_kept")
    texts = {row.calibration_id: calibration_text(parse_calibration(row.calibration)) for row in kept}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = parts.pick(t("Stored calibration"), about_calibration.stored_names(kept), "calibration_chosen")
        st.button(t("Use this one"), key="calibration_use_stored", icon=":material/check:", on_click=_use,
                  args=(texts.get(chosen, ""),))  # fmt: skip
        st.button(t("Remove"), key="calibration_remove", icon=":material/delete:", on_click=_remove, args=(chosen,))


@state.callback
def _remove(calibration_id: str) -> None:
    state.put(**{REMOVED: fitted.remove(calibration_id)})


@state.callback
def _restore() -> None:
    fitted.restore(state.get(REMOVED))
    state.put(**{REMOVED: None})
