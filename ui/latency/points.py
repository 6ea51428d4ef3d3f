"""Measured points for a fit: uploaded runs of this model, or figures typed into a small table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from calc.latency import load_of
from calc.startup.match import short_name
from calc.units import KILO
from calc.workload import Closed
from data.case_calibration import KEY
from data.records import BenchmarkRun
from data.store import StoredRun
from ui import format as show
from ui import parts, resources
from ui.benchmarks import twins
from ui.benchmarks.runs import label
from ui.resources import Asked
from ui.story import about_validity, words
from ui.text import t

LATENCIES = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
TYPED = {"ttft_mean": "TTFT", "tpot_mean": "TPOT", "e2e_mean": "E2E", "ttft_p95": "TTFT P95"}
"""Columns of the typed table beside the load, and their heads."""
FIRST_CHOSEN = 8
"""Runs chosen at first."""
EMPTY_ROWS = 3
MOST_CHARACTERS = 120

Points = list[dict[str, Any]]


def from_runs(asked: Asked) -> Points:
    """Runs of the scenario's model, chosen by the visitor."""
    fitting = matching(asked)
    runs = [one for one in fitting if one.is_evidence]
    parts.remarks(about_validity.left_out(fitting))
    if not runs:
        st.info(t("No stored run names this model and its load and lengths: upload one, or type figures."))
        parts.link("benchmarks", t("Upload benchmark runs"))
        return []
    names = {one.run_id: label(one) for one in runs}
    chosen = st.multiselect(
        t("Runs of this deployment"), list(names), list(names)[:FIRST_CHOSEN], key="calibration_runs",
        format_func=lambda run_id: names.get(run_id, run_id), persist_state="session",
    )  # fmt: skip
    st.caption(t("Choose only runs of the deployment at the side: a file seldom names TP and engine settings."))
    return [point for one in runs if one.run_id in chosen and (point := _point_of(asked, one))]


def matching(asked: Asked) -> Sequence[StoredRun]:
    """Stored runs of the scenario's model that state load, lengths and a latency."""
    model = short_name(asked.scenario.deployment.model.name)
    return [
        one
        for one in resources.runs()
        if one.run.model
        and short_name(one.run.model.rstrip("/")) == model
        and any(getattr(one.run, latency) for latency in LATENCIES)
        and twins.like(asked, one.run) is not None
    ]


def _point_of(asked: Asked, stored: StoredRun) -> dict[str, Any] | None:
    twin = twins.like(asked, stored.run)
    if twin is None:
        return None
    return {
        "case": _without(twin.case),
        "measured": _measured(stored.run),
        "source": f"{stored.run.tool} {stored.run_id[:6]}",
        "date": words.day(stored.run.date or stored.uploaded_at),
    }


def _measured(run: BenchmarkRun) -> dict[str, Any]:
    """The latencies of a run in milliseconds."""
    found: dict[str, Any] = {}
    for latency in LATENCIES:
        stats = getattr(run, latency)
        known = {name.removesuffix("_s"): value for name, value in (asdict(stats) if stats else {}).items()}
        kept = {name: known[name] * KILO for name in STATISTICS if known.get(name)}
        if kept:
            found[f"{latency}_ms"] = kept
    return found


def typed(asked: Asked) -> Points:
    """Figures typed by the visitor, at loads of the scenario's own kind."""
    closed = isinstance(asked.scenario.workload.arrivals, Closed)
    left, right = st.columns(2)
    source = left.text_input(
        t("Where the figures are from"), key="calibration_source", max_chars=MOST_CHARACTERS, persist_state="session"
    )
    day = right.date_input(t("Measured on"), value=None, key="calibration_day", persist_state="session")
    head = t("Concurrency") if closed else t("Requests/s")
    number = st.column_config.NumberColumn
    rows = st.data_editor(
        [{"load": None, **dict.fromkeys(TYPED)} for _ in range(EMPTY_ROWS)],
        key=f"calibration_table_{'closed' if closed else 'open'}",
        num_rows="dynamic",
        hide_index=True,
        width="stretch",
        column_config={
            "load": number(head, min_value=0.0),
            **{key: number(f"{title} (ms)", min_value=0.0) for key, title in TYPED.items()},
        },
    )
    st.caption(
        t(
            "One row a load, milliseconds; empty cells were not measured. Model, GPU, engine, lengths and the kind of "
            "arrivals are those at the side."
        )
    )
    told = {"source": source.strip() or t("typed figures"), "date": day.isoformat() if day else ""}
    return [point | told for row in rows if (point := _typed_point(asked, row, closed=closed))]


def _typed_point(asked: Asked, row: Mapping[str, Any], *, closed: bool) -> dict[str, Any] | None:
    load, measured = row.get("load"), _typed_figures(row)
    if not load or not measured:
        return None
    case = _without(asked.case)
    arrivals = case["workload"]["arrivals"]
    at = {"kind": "closed", "concurrency": max(1, round(load))} if closed else _open(arrivals, float(load))
    return {"case": {**case, "workload": {**case["workload"], "arrivals": at}}, "measured": measured}


def _open(arrivals: Mapping[str, Any], rate_per_s: float) -> dict[str, Any]:
    """The scenario's own law where it has one rate, else Poisson."""
    law = arrivals if "rate_per_s" in arrivals else {"kind": "poisson"}
    return {**law, "rate_per_s": rate_per_s}


def _typed_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in TYPED:
        latency, statistic = key.split("_")
        if row.get(key):
            found.setdefault(f"{latency}_ms", {})[statistic] = float(row[key])
    return found


def _without(case: Mapping[str, Any]) -> dict[str, Any]:
    """A case without what a measured point does not need."""
    return {key: value for key, value in case.items() if key not in (KEY, "name", "slo", "prices")}


def names(points: Points) -> list[str]:
    """Each point by its number and load."""
    return [f"{number} · {_load(point)}" for number, point in enumerate(points, 1)]


def _load(point: Mapping[str, Any]) -> str:
    workload = resources.ask(point["case"]).scenario.workload
    if isinstance(workload.arrivals, Closed):
        return t("concurrency {number:count}", number=workload.arrivals.concurrency)
    return show.rate(load_of(workload))
