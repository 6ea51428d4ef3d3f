"""What a prefix cache finds of a log: today's room and every GPU on the curve, sessions, limits, replicas, growth."""

from __future__ import annotations

import streamlit as st

from calc.evidence import Evidence, Provenance
from ui import parts, state
from ui.charts import reuse as charts
from ui.resources import Asked
from ui.story import about_reuse
from ui.text import t
from ui.typed.numbers import PERCENT
from ui.workload import reuse_found as found
from ui.workload import traces

WINDOW_S = 300.0
"""Of the working set: what was used within the last five minutes."""


def show(asked: Asked) -> None:
    """The curve of a chosen log and what it means for the scenario, or what a log must have."""
    logs = {log.log_id: log for log in traces.with_blocks()}
    if not logs:
        parts.section(t("Hit rate against capacity"), t("No stored log names the blocks of its prompts yet."))
        parts.bullets(about_reuse.needed())
        return
    log_id = parts.pick(t("Log"), {one: log.name for one, log in logs.items()}, "reuse_log")

    @state.fragment()
    def view() -> None:
        with st.spinner(t("Reading the log and looking into each cache …")):
            given = _given(log_id, logs[log_id].name)
            seen, options = found.seen(asked, given), found.options(asked, given)
        _curve(given, seen, options)
        today = options[0]
        _gpus(options)
        if today.candidate.room is not None:
            _sessions(asked, given, seen, today)
            _replicas(asked, given, today.candidate.free_tokens)
            _growth(asked, given, today.candidate.free_tokens * seen.caches)
        with st.expander(t("How to get a log with block hashes"), icon=":material/help:"):
            parts.bullets(about_reuse.needed())
        parts.computed(about_reuse.formulas(), about_reuse.sources())

    view()


def _given(log_id: str, name: str) -> found.Given:
    trace = traces.trace(log_id)
    st.caption(parts.escape(about_reuse.trace_line(trace, name)))
    with st.container(horizontal=True):
        answers = trace.output_tokens is not None and st.toggle(
            t("Count earlier answers"), key="reuse_answers", persist_state="session"
        )
        apart = trace.tenant is not None and st.toggle(
            t("Keep tenants apart"), key="reuse_apart", persist_state="session"
        )
    return found.Given(trace_id=log_id, name=name, trace=trace, apart=apart, answers=answers)


def _curve(given: found.Given, seen: found.Seen, options: tuple[found.GpuOption, ...]) -> None:
    today, curve = options[0], seen.curve
    room = today.candidate.room
    parts.section(t("Hit rate against capacity"))
    if room is None:
        st.info(t("The model does not fit on the scenario's GPUs: there is no room for reuse."))
    else:
        st.markdown(f"**{parts.escape(about_reuse.sentence(today.worth, curve, room))}**")
    most = max(curve.capacity_for(1.0), int(today.worth.capacity_tokens // curve.block_size_tokens), 2) * 2
    lines = [charts.Line(name=t("This deployment"), **found.drawn(curve, most))]
    if seen.caches > 1:
        lines.append(charts.Line(name=t("One cache for all"), **found.drawn(seen.alone, most)))
    marks = [charts.Mark(name=one.candidate.name, **found.place(one)) for one in options if one.candidate.room]
    own = marks[:1] if room else []
    figure = charts.hit_curve(
        lines,
        curve.ceiling_share * 100,
        own[0] if own else None,
        curve.knee() * curve.block_size_tokens,
        marks[len(own) :],
        parts.tones(),
    )
    parts.chart(figure, about_reuse.curve_alt(curve, today.worth), "reuse_curve")
    notes = [about_reuse.knee(curve)]
    notes += [about_reuse.room(room, seen.caches)] if room else []
    notes += [said] if (said := about_reuse.said_by_engine(given.trace, seen.alone.ceiling_share)) else []
    parts.remarks([*notes, *about_reuse.assumed(full_only=seen.full_only, times=seen.times, answers=given.answers)])
    if room is not None:
        _take(given, seen, today)


def _take(given: found.Given, seen: found.Seen, today: found.GpuOption) -> None:
    """One click: the scenario plans with what its own cache would have found of this log, and decisions rest on it."""
    share = today.worth.hit_share
    source = t("{name}, replayed in today's room", name=given.name)
    figures = (
        _evidence("prefix_share", seen.alone.ceiling_share, Provenance.MEASURED, given.name),
        _evidence("hit_rate_share", share, Provenance.SIMULATED, source),
    )
    rest = tuple(one for one in state.handed_over() if one.metric not in {figure.metric for figure in figures})

    @state.callback
    def take() -> None:
        state.put(hit=round(share * PERCENT, 1), **{state.MEASURED: (*rest, *figures)})

    @state.callback
    def forget() -> None:
        state.put(**{state.MEASURED: rest})

    with st.container(horizontal=True):
        label = t("Plan with a hit rate of {hit:pct}", hit=share)
        st.button(label, on_click=take, key="reuse_take", icon=":material/input:")
        if any(one.source == source for one in state.handed_over()):
            st.button(t("No longer"), on_click=forget, key="reuse_forget", icon=":material/undo:")
            st.caption(parts.escape(t("Scenario and decision go by it. Source: {source}.", source=source)))
        else:
            st.caption(t("It also tells the decision which share of prompt tokens repeats."))


def _evidence(metric: str, share: float, provenance: Provenance, source: str) -> Evidence:
    return Evidence(metric=metric, value=share, unit="share", provenance=provenance, source=source)


def _gpus(options: tuple[found.GpuOption, ...]) -> None:
    parts.section(t("Each GPU on the curve"), about_reuse.gpus_note())
    rows = [
        about_reuse.gpu_row(one.candidate.name, room, one.worth, one.alive_share, today=one.candidate.is_today)
        for one in options
        if (room := one.candidate.room) is not None
    ]
    parts.table(rows, "reuse_gpus")


def _sessions(asked: Asked, given: found.Given, seen: found.Seen, today: found.GpuOption) -> None:
    free = today.candidate.free_tokens
    parts.section(t("Sessions and time limits"))
    stay_s = found.stay(asked, given, free)
    back = seen.back
    lines = about_reuse.sessions(
        back.later_turns, given.trace.requests, back.away_s, stay_s, today.alive_share, has_room=free > 0
    )
    parts.bullets(lines)
    if advice := found.limits(asked, given, free):
        st.caption(parts.escape(about_reuse.limit_advice(advice)))
        parts.table(about_reuse.limit_rows(advice), "reuse_limits")


def _replicas(asked: Asked, given: found.Given, free_tokens: float) -> None:
    parts.section(t("More replicas"), about_reuse.dilution_note())
    shares = found.dilution(asked, given, free_tokens)
    parts.table(about_reuse.dilution_rows(found.DILUTIONS, shares), "reuse_replicas")


def _growth(asked: Asked, given: found.Given, free_tokens: float) -> None:
    """Against the room of all caches together, as the trace is that of all of them."""
    growth = found.working_set(asked, given, WINDOW_S)
    if growth is None:
        return
    parts.section(t("Growth of the working set"), about_reuse.growth_sentence(growth, free_tokens))
    figure = charts.growth_curve(growth, free_tokens, parts.tones())
    parts.chart(figure, about_reuse.growth_alt(growth), "reuse_growth")
