"""The full cost: every line with its origin, what stands idle for the tail, and amounts to state."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calc.cost import cost_of
from calc.cost_lines import NOT_HARDWARE, CostLine, CostLines
from calc.cost_table import Reservation, cost_rows, reservation
from calc.errors import InputError
from calc.latency import LatencyReport, LoadSweep, headroom_per_s
from calc.messages import msg
from data.case_prices import further_json
from data.own_text import one_line
from ui import parts, pricing, resources, state
from ui.resources import Asked
from ui.story import about_cost
from ui.text import t

OWN = "own"
ONCE, MONTHLY = "once", "month"
KEY = "costs"
COLUMNS = (5, 1)


def show(asked: Asked) -> None:
    """The answer, the table, what the reservation is for, and the form."""
    scenario = asked.scenario
    memory = resources.memory(asked)
    latency = resources.latency_or_reason(asked) if memory.fits else None
    report = latency if isinstance(latency, LatencyReport) else None
    cost, rows = cost_of(scenario, report), cost_rows(scenario, report)
    parts.answer(about_cost.sentence(cost, rows), about_cost.figures(cost), good=about_cost.is_whole(cost, rows))
    parts.section(t("Every line"), pricing.origin(scenario.prices, state.today()))
    parts.prose(about_cost.table(rows, scenario.prices.currency))
    if report is not None and (found := _reservation(asked, report)) is not None:
        hint = about_cost.spare_hint(scenario, found)
        parts.section(t("What the reserved GPUs are there for"), hint)
        parts.prose(about_cost.reserved(scenario, found, cost))
    _form(scenario.prices.further, tuple(tier.name for tier in scenario.deployment.serving.tiers))
    parts.notes(pricing.remarks(scenario.prices, state.today()))
    parts.computed(about_cost.formulas(cost), [scenario.prices.source])


def _reservation(asked: Asked, report: LatencyReport) -> Reservation | None:
    sweep: LoadSweep = resources.load_sweep(asked)
    spare = headroom_per_s(asked.scenario, load_sweep=sweep)
    if spare is None:
        return None
    return reservation(report.request_rate_per_s, report.request_rate_per_s + spare, report.max_rate_per_s)


def _form(further: CostLines, tiers: tuple[str, ...]) -> None:
    """Amounts to state; each is one step, and each can be taken back."""
    parts.section(t("State an amount"), t("In the currency at the side. What is not stated is never counted as 0."))
    for line in further.lines:
        words, button = st.columns(COLUMNS, vertical_alignment="center")
        words.markdown(parts.escape(about_cost.line_name(line.name, NOT_HARDWARE)))
        button.button(t("Remove"), key=f"cost_remove_{line.name}", on_click=_remove, args=(line.name,))
    with st.form("cost_form", border=True):
        names = {code: t(label) for code, label in NOT_HARDWARE.items()} | {OWN: t("A line of our own")}
        left, middle, right = st.columns(3)
        left.selectbox(t("Line"), list(names), key="cost_name", format_func=lambda code: names.get(code, code))
        left.text_input(t("Its name, if our own"), key="cost_own")
        kinds = {MONTHLY: t("every month"), ONCE: t("paid once")}
        middle.selectbox(t("When"), list(kinds), key="cost_kind", format_func=lambda code: kinds.get(code, code))
        middle.number_input(t("Spread over months, if paid once"), 1, 600, 36, key="cost_months")
        right.number_input(t("Amount"), 0.0, None, None, key="cost_amount")
        right.text_input(t("Source"), key="cost_source")
        st.form_submit_button(t("State it"), on_click=_state_line, icon=":material/add:")
    left, right = st.columns(2)
    with left:
        _number(t("Spare replicas (N+1)"), "cost_spares", further.spare_replicas)
    with right:
        _number(t("Price of a GB of traffic between servers"), "cost_traffic", further.traffic_per_gb)
    for name in tiers:
        _number(t("Price of a GiB-month in tier {name}", name=name), f"cost_tier_{name}", dict(further.tiers).get(name))


def _number(label: str, key: str, value: float | None) -> None:
    """A number that may be left open; it starts at what is stated."""
    shown = None if value is None else float(value)
    st.number_input(label, 0.0, None, shown, key=key, on_change=_state_numbers, format="%g")


def _further() -> CostLines:
    return state.current().scenario.prices.further


def _keep(further: CostLines) -> None:
    state.put(**{KEY: further_json(further)})


@state.callback
def _state_line() -> None:
    """The form's line in place of the one with its name."""
    amount = state.get("cost_amount")
    if amount is None:
        raise InputError(msg("expected an amount, got none: enter it, 0 where it costs nothing."))
    code = state.get("cost_name")
    name = one_line(state.get("cost_own") or "", "name") if code == OWN else str(code)
    source = str(state.get("cost_source") or "").strip()
    if state.get("cost_kind") == ONCE:
        line = CostLine(name=name, amount_once=amount, months=float(state.get("cost_months")), source=source)
    else:
        line = CostLine(name=name, amount_per_month=amount, source=source)
    now = _further()
    others = tuple(one for one in now.lines if one.name != name)
    _keep(replace(now, lines=(*others, line)))


@state.callback
def _remove(name: str) -> None:
    now = _further()
    _keep(replace(now, lines=tuple(line for line in now.lines if line.name != name)))


@state.callback
def _state_numbers() -> None:
    """Spare replicas, traffic and tiers as the number boxes have them; an emptied box is not stated."""
    now = _further()
    spares, traffic = state.get("cost_spares"), state.get("cost_traffic")
    names = [tier.name for tier in state.current().scenario.deployment.serving.tiers]
    typed = {name: state.get(f"cost_tier_{name}") for name in names}
    kept = {name: price for name, price in now.tiers if name not in typed}
    priced = kept | {name: price for name, price in typed.items() if price is not None}
    _keep(
        replace(
            now,
            tiers=tuple(priced.items()),
            traffic_per_gb=traffic,
            spare_replicas=None if spares is None else round(spares),
        )
    )
