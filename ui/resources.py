"""Shared objects and cached answers: the store, and the reports of a scenario keyed by its case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from calc.errors import InputError
from calc.evidence import Evidence
from calc.hardware import Gpu
from calc.judge.decide import scenario_decision
from calc.judge.decision import Decision
from calc.latency import LatencyReport, LoadSweep, predict, sweep
from calc.memory import MemoryReport, estimate_memory
from calc.messages import Message
from calc.scenario import Scenario
from calc.startup.measured import MeasuredMemory
from calc.step.view import StepView, step_view
from calc.textbook.answers import textbook
from calc.textbook.results import QueueReport
from calc.workload import Clients
from data import catalogue
from data.case import example_case, read_case
from data.case_measured import parse_measured
from data.own_hardware import gpu_of
from data.run_evidence import measured_of
from data.store import Action, AddOutcome, OwnEntry, Store, StoredRun, StoredStartupLog, default_path
from data.store.own import newest_of_each
from probe.driver import driver_report
from probe.nvml import NvmlReport
from ui import fields
from ui.measuring import Desk
from ui.text import t
from ui.visitor import signed_in

USUAL_REQUESTS = 1000
"""Simulated for one answer."""
KEPT = 128
"""Answers kept for scenarios seen before (one is a few kilobytes)."""
Changed = TypeVar("Changed")
SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"


@st.cache_resource(show_spinner=False)
def own_versions(kind: str) -> tuple[OwnEntry, ...]:
    """Every version of the team's own rows of a kind, newest first; read once, and again after each change."""
    return store().own_versions(kind)


def own_models() -> tuple[OwnEntry, ...]:
    """Models the team added."""
    return newest_of_each(own_versions("own_model"))


def own_gpus() -> tuple[OwnEntry, ...]:
    """GPUs the team added."""
    return newest_of_each(own_versions("own_gpu"))


def own_prices() -> tuple[OwnEntry, ...]:
    """Prices the team added, history included."""
    return own_versions("own_price")


@st.cache_resource(show_spinner=False)
def startup_logs() -> tuple[StoredStartupLog, ...]:
    """Start-up logs the team stored; read once, and again after each change."""
    return store().startup_logs()


@st.cache_resource(show_spinner=False)
def measured_starts() -> tuple[MeasuredMemory, ...]:
    """The starts these logs measured, newest first."""
    return tuple(parse_measured(row.measured) for row in startup_logs())


def store_log(read: Mapping[str, Any], measured: Mapping[str, Any], name: str) -> AddOutcome:
    """Store what a start-up log said; figures that no scenario could carry are refused."""
    parse_measured(measured)
    outcome = store().add_startup_log(read, measured, name=name)
    forget_logs()
    return outcome


def remove_log(log_id: str) -> Action:
    """Hide a start-up log."""
    action = store().delete("startup_log", log_id)
    forget_logs()
    return action


def restore_log(action: Action) -> None:
    """Bring a removed start-up log back."""
    store().undo(action)
    forget_logs()


def forget_logs() -> None:
    """Every session sees added or removed start-up logs in its next run."""
    startup_logs.clear()
    measured_starts.clear()


def add_own_model(name: str, entry: Mapping[str, Any], *, source: str, checked_on: str = "") -> OwnEntry:
    """Add a model of the team's own."""
    return _fresh(store().add_model(name, entry, source=source, checked_on=checked_on))


def add_own_gpu(name: str, entry: Mapping[str, Any], *, source: str, checked_on: str = "") -> OwnEntry:
    """Add a GPU of the team's own."""
    return _fresh(store().add_gpu(name, entry, source=source, checked_on=checked_on))


def add_price(gpu: str, entry: Mapping[str, Any], *, source: str, checked_on: str) -> OwnEntry:
    """Add what an hour of a GPU costs."""
    return _fresh(store().add_price(gpu, entry, source=source, checked_on=checked_on))


def remove_own(kind: str, name: str) -> tuple[Action, ...]:
    """Hide every version of an own model or GPU."""
    return _fresh(store().remove_own(kind, name))


def remove_price(entry_id: str) -> tuple[Action, ...]:
    """Hide one price; the others of its GPU stay."""
    return _fresh((store().delete("own_price", entry_id),))


def bring_back(hidden: tuple[Action, ...]) -> None:
    """Undo a removal."""
    _fresh(store().undo_all(hidden))


def _fresh(result: Changed) -> Changed:
    """Every session sees the change in its next run."""
    own_versions.clear()
    return result


def candidate_gpus() -> tuple[Gpu, ...]:
    """GPUs that a search or a lever may propose: the shipped ones and the team's own."""
    return (*catalogue.gpus().values(), *(gpu_of(row) for row in own_gpus()))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user asks now: the scenario, its case (for links, saving, scripts) and the reader's notes."""

    key: str
    """The case as canonical JSON: equal questions have equal keys."""
    case: Mapping[str, Any]
    scenario: Scenario
    notes: tuple[Message, ...]
    measured: tuple[Evidence, ...] = ()
    """Figures of the real system that the visitor handed over; they override calculated ones in the decision."""


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _ask(key: str) -> Asked:
    case = json.loads(key)
    scenario, notes = read_case(case)
    return Asked(key=key, case=case, scenario=scenario, notes=notes)


def ask(case: Mapping[str, Any]) -> Asked:
    """Read a case once; an equal one is answered from memory."""
    return _ask(json.dumps(case, sort_keys=True, ensure_ascii=False))


@st.cache_resource(show_spinner=False)
def example() -> Mapping[str, Any]:
    """The case of the worked example."""
    return example_case()


@st.cache_resource(show_spinner=False)
def example_values() -> fields.Values:
    """Widget values of the worked example; copy them before changing one."""
    return fields.to_values(example())


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The one database of this process."""
    return Store(default_path(), who=signed_in)


@st.cache_resource(max_entries=2, show_spinner=False)
def _runs(mark: str) -> tuple[StoredRun, ...]:  # noqa: ARG001 - the key
    return store().runs()


def runs() -> tuple[StoredRun, ...]:
    """Every stored load point, read again only after a change."""
    return _runs(store().mark())


def close_store() -> None:
    """Write everything out and let the file go."""
    store().close()
    store.clear()


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _latency(key: str, requests: int) -> LatencyReport:
    return predict(_ask(key).scenario, requests=requests)


@st.cache_resource(show_spinner=False)
def _compiled() -> set[tuple[bool, ...]]:
    """Kinds of simulators that have answered in this process."""
    return set()


def _await_simulator(asked: Asked) -> None:
    """Says in words what takes so long where a simulator is used for the first time on a machine."""
    serving, workload = asked.scenario.deployment.serving, asked.scenario.workload
    together = serving.routing != "random" or serving.prefill_replicas > 0
    paced, alike = serving.accepted_tokens is not None, workload.prefix_groups is not None
    told_apart = (bool(workload.classes), workload.clients != Clients(), bool(serving.tiers))
    kind = (together, paced, alike, *told_apart, serving.batching == "static", serving.preemption == "swap")
    if kind in _compiled():
        return
    several = t("Compiling the simulator for several replicas, once on this machine: about a minute …")
    with st.spinner(several if together else t("Compiling the simulator, once on this machine: about half a minute …")):
        try:
            _latency(asked.key, USUAL_REQUESTS)
        except InputError:
            return  # whoever asks for the answer is told why there is none
    _compiled().add(kind)


def latency(asked: Asked, requests: int = USUAL_REQUESTS) -> LatencyReport:
    """Simulated latency at the asked load."""
    _await_simulator(asked)
    return _latency(asked.key, requests)


def latency_or_reason(asked: Asked) -> LatencyReport | Message:
    """Simulated latency, or why there is none: it does not fit, or a figure of the GPU is not known."""
    _await_simulator(asked)
    return _latency_or_reason(asked.key)


def _latency_or_reason(key: str) -> LatencyReport | Message:
    try:
        return _latency(key, USUAL_REQUESTS)
    except InputError as error:
        return error.message


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _memory(key: str) -> MemoryReport:
    asked = _ask(key)
    report = _latency_or_reason(key)
    scenario = asked.scenario
    per_replica = report.concurrency / scenario.deployment.replicas if isinstance(report, LatencyReport) else None
    return estimate_memory(scenario.deployment, scenario.workload, peak_concurrency=per_replica)


def memory(asked: Asked) -> MemoryReport:
    """Estimated memory per GPU; demand at the simulated concurrency where that is known."""
    _await_simulator(asked)
    return _memory(asked.key)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _step(key: str) -> StepView:
    asked = _ask(key)
    return step_view(asked.scenario, _memory(key), _latency(key, USUAL_REQUESTS))


def step(asked: Asked) -> StepView:
    """What the mean step at the asked load waits for."""
    return _step(asked.key)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _textbook(key: str) -> QueueReport:
    asked = _ask(key)
    return textbook(asked.scenario, memory=_memory(key), latency=_latency(key, USUAL_REQUESTS))


def queue(asked: Asked) -> QueueReport:
    """The textbook's answers at the asked load, beside the simulation."""
    return _textbook(asked.key)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _sweep(key: str, points: int, requests: int) -> LoadSweep:
    scenario = _ask(key).scenario
    known = _latency(key, requests) if scenario.workload.num_requests is None else None
    return sweep(scenario, points=points, requests=requests, operating=known)


def load_sweep(asked: Asked, *, points: int = 5, requests: int = USUAL_REQUESTS) -> LoadSweep:
    """Simulated latency over rising load."""
    return _sweep(asked.key, points, requests)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _decision(
    key: str,
    own_gpu_ids: tuple[str, ...],  # noqa: ARG001 - part of the question's key
    measured: tuple[Evidence, ...],
) -> Decision:
    known = {one.metric: one for one in measured}
    return scenario_decision(_ask(key).scenario, candidate_gpus(), known or None)


def decision(asked: Asked) -> Decision:
    """Findings, what-ifs and the answer for the asked scenario; what was measured of its runs and engine counts."""
    _await_simulator(asked)
    measured = (*measured_of(runs(), asked.scenario), *asked.measured)
    return _decision(asked.key, tuple(row.entry_id for row in own_gpus()), measured)


@st.cache_resource(show_spinner=False)
def probe_desk() -> Desk:
    """The one place where a measurement of this server's GPU runs."""
    return Desk(store())


@st.cache_data(show_spinner=False)
def sample(name: str) -> bytes:
    """A made-up sample file, to try a page with."""
    return (SAMPLES / name).read_bytes()


def logs_csv() -> bytes:
    """Every stored start-up log, for a spreadsheet."""
    return store().export_csv("startup_log")


DRIVER_FRESH_S = 2
"""The driver is asked again after this."""


@st.cache_resource(ttl=DRIVER_FRESH_S, show_spinner=False)
def driver() -> NvmlReport:
    """What the GPU driver of this machine says."""
    return driver_report()
