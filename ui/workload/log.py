"""A request log or trace: choose it, see what was understood, load it, read its profile, make it the workload."""

from __future__ import annotations

import streamlit as st

from calc.lengths import Empirical
from calc.profile.profile import LogProfile
from data.logs.workload import GROUPS, PER_MINUTE, TENANTS, TRACE
from data.store.logs import StoredLog
from ui import charts, parts, state
from ui.charts import request_log as pictures
from ui.fields_load import LOG_SOURCE, source_text, workload_values
from ui.resources import Asked
from ui.story import about_log, about_workload
from ui.text import t
from ui.typed.trace import MAX_SCREEN_ARRIVALS
from ui.workload import log_given, logs_found

REMOVED, USED = "_log_removed", "_log_used"
LEAST_CHART_MINUTES = 2


def show(asked: Asked) -> None:
    """What can be given, what is stored, and the chosen log in full."""
    log_given.show()
    stored = {log.log_id: log for log in logs_found.logs()}
    if state.get(REMOVED):
        st.button(t("Bring the removed log back"), key="log_undo", icon=":material/undo:", on_click=_undo)
    if not stored:
        st.info(t("No log is stored yet: give one above, or a trace in one of the formats named there."))
        return
    names = {log_id: about_log.stored(log) for log_id, log in stored.items()}
    parts.section(t("Profile"))
    if state.get("log_chosen") not in names:
        state.put(log_chosen=next(iter(names)))
    chosen = stored[parts.pick(t("Log"), names, "log_chosen")]
    st.caption(parts.escape(" · ".join(about_log.stored_facts(chosen))))
    with st.spinner(t("Summing up the log …")):
        profile = logs_found.profile(chosen.log_id)
    _profile(chosen, profile)
    _use(asked, chosen, profile)
    _problems(chosen)
    st.button(t("Remove this log"), key="log_remove", icon=":material/delete:", on_click=_remove, args=(chosen.log_id,))
    parts.computed(about_log.formulas(), [])


def _profile(chosen: StoredLog, profile: LogProfile) -> None:
    arrivals = profile.arrivals
    parts.answer(about_log.sentence(profile), about_log.figures(profile), good=None if arrivals.ticked else True)
    if warnings := about_log.warnings(profile):
        parts.bullets(warnings)
    if arrivals.minutes >= LEAST_CHART_MINUTES:
        _over_time(profile)
    _lengths(chosen)
    parts.table(about_log.lengths(profile), "log_lengths")
    parts.section(t("Session groups"))
    parts.table(about_log.groups(profile), "log_groups")
    parts.bullets(about_log.facts(profile))
    for kind, title in about_log.part_titles().items():
        if kind in profile.parts:
            told = profile.parts[kind]
            parts.section(title, about_log.parts_sentence(told))
            parts.chart(pictures.shares(told, parts.tones()), about_log.parts_sentence(told), f"log_{kind}")
    parts.notes(chosen.notes)


def _over_time(profile: LogProfile) -> None:
    arrivals, at_once = profile.arrivals, profile.concurrency
    parts.section(t("Requests per minute"))
    per_minute = pictures.over_time(
        arrivals.per_minute.tolist(), t("Requests per minute"), arrivals.mean_per_minute, parts.tones()
    )
    parts.chart(per_minute, about_log.minutes_alt(profile), "log_minutes")
    if at_once is not None and len(at_once.peak_per_minute) >= LEAST_CHART_MINUTES:
        parts.section(t("Concurrency over time"), t("Most requests open at once in each minute."))
        figure = pictures.over_time(at_once.peak_per_minute, t("Requests open"), at_once.mean, parts.tones())
        parts.chart(figure, t("Most requests open at once: {most:count}.", most=at_once.max or 0), "log_concurrency")


def _lengths(chosen: StoredLog) -> None:
    case = logs_found.workload(chosen.log_id, PER_MINUTE, "").case
    for column, key, title in zip(
        st.columns(2, gap="medium"), ("prompt_tokens", "output_tokens"), (t("Prompt lengths"), t("Output lengths")),
        strict=True,
    ):  # fmt: skip
        lengths = Empirical(quantiles=tuple((share, tokens) for share, tokens in case[key]["quantiles"]))
        with column:
            parts.section(title)
            parts.chart(charts.length_curve(lengths, parts.tones()), about_workload.lengths_alt(lengths), f"log_{key}")


def _use(asked: Asked, chosen: StoredLog, profile: LogProfile) -> None:
    parts.section(t("As the scenario's workload"))
    if profile.arrivals.rate_per_s is None:
        st.info(t("All requests of this log came at one moment: it tells no rate, so it cannot be a scenario's load."))
        return
    ways = {PER_MINUTE: t("Rate of each minute")}
    if 1 < chosen.requests <= MAX_SCREEN_ARRIVALS and profile.arrivals.duration_s:
        ways[TRACE] = t("The times as they were")
    kinds = {"": t("All alike")}
    if len(profile.groups) > 1:
        kinds[GROUPS] = t("Session groups")
    if (tenants := profile.parts.get("tenant")) and tenants.count > 1:
        kinds[TENANTS] = t("Tenants")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way = parts.switch(t("Arrivals"), ways, "log_way", PER_MINUTE) if len(ways) > 1 else PER_MINUTE
        kind = parts.switch(t("Kinds of requests"), kinds, "log_kind", "") if len(kinds) > 1 else ""
    st.button(
        t("Use as the scenario's workload"), key="log_use", type="primary", icon=":material/input:", on_click=_take,
        args=(chosen.log_id, way if way in ways else PER_MINUTE, kind if kind in kinds else ""),
    )  # fmt: skip
    if asked.scenario.workload.source == chosen.name:
        st.success(t("The scenario's workload is this log."), icon=":material/check:")
        parts.notes(state.get(USED) or ())


def _problems(chosen: StoredLog) -> None:
    if chosen.problems:
        with st.expander(t("Rows left out"), icon=":material/rule:"):
            rows = [{t("Line"): str(row["line"]), t("Reason"): t(row["reason"])} for row in chosen.problems]
            parts.table(rows, "log_problems")


@state.callback
def _take(log_id: str, way: str, kind: str) -> None:
    """Lengths, arrivals, hits, kinds and clients of the log; what it does not say stays as it is at the side."""
    workload = logs_found.workload(log_id, way, kind)
    values = workload_values(workload.case)
    kept = {"preset", "offload_hit", "idle_share", "idle_context", "prefix_groups", LOG_SOURCE}
    kept |= set() if "prefix_hit_share" in workload.case else {"hit"}
    taken = {key: value for key, value in values.items() if key not in kept}
    state.put(**taken)
    state.put(**{LOG_SOURCE: source_text(state.values(), workload.case["source"]), USED: workload.notes})


@state.callback
def _remove(log_id: str) -> None:
    state.put(**{REMOVED: logs_found.remove(log_id)})


@state.callback
def _undo() -> None:
    logs_found.bring_back(state.get(REMOVED))
    state.put(**{REMOVED: None})
