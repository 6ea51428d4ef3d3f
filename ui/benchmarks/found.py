"""What the views of the Benchmarks page look into: the plan of a scenario, and stored runs in their places."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc.errors import InputError
from calc.messages import Message
from calc.poc.axes import Axes, axes_of
from calc.poc.coverage import PlacedRun
from calc.poc.plan import Plan, PlanSet, plan
from data.placed_runs import KnownRun, known_runs, placed_runs
from data.run_evidence import same_deployment
from data.store import StoredFile, StoredRun
from ui import resources
from ui.resources import Asked


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _axes(key: str, _asked: Asked) -> Axes | Message:  # noqa: ARG001 - the key
    try:
        return axes_of(_asked.scenario)
    except InputError as error:
        return error.message


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _plan(key: str, which: PlanSet, _asked: Asked) -> Plan | Message:
    axes = _axes(key, _asked)
    return axes if isinstance(axes, Message) else plan(_asked.scenario, which, axes=axes)


def plan_of(asked: Asked, which: PlanSet) -> Plan | Message:
    """The evaluation matrix of the scenario up to a set, or why there is none."""
    return _plan(asked.key, which, asked)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Stored runs and the same runs in their places."""

    stored: tuple[StoredRun, ...]
    placed: tuple[PlacedRun, ...]
    """All of them, in the same order."""
    ours: tuple[PlacedRun, ...]
    """Those that can be of the scenario's deployment (model, GPUs, engine): only they fill its matrix."""

    def run(self, run_id: str) -> StoredRun:
        """One stored run."""
        return next(one for one in self.stored if one.run_id == run_id)

    def placed_run(self, run_id: str) -> PlacedRun:
        """The same in its place."""
        return next(one for one in self.placed if one.run_id == run_id)


@st.cache_resource(max_entries=2, show_spinner=False)
def _known(mark: str) -> tuple[KnownRun, ...]:  # noqa: ARG001 - the key
    return known_runs(resources.runs())


@st.cache_resource(max_entries=4, show_spinner=False)
def _kept(mark: str, key: str, _asked: Asked) -> Kept:
    stored, axes = resources.runs(), _axes(key, _asked)
    levels = ((), ()) if isinstance(axes, Message) else (axes.contexts_tokens, axes.concurrencies)
    placed = placed_runs(_known(mark), *levels)
    ours = tuple(
        run for run, row in zip(placed, stored, strict=True) if same_deployment(row.run, _asked.scenario.deployment)
    )
    return Kept(stored=stored, placed=placed, ours=ours)


def kept(asked: Asked) -> Kept:
    """Runs in the cells of the scenario's plan; without a plan on the doubling scale."""
    return _kept(resources.store().mark(), asked.key, asked)


@st.cache_resource(max_entries=2, show_spinner=False)
def _files(mark: str) -> tuple[StoredFile, ...]:  # noqa: ARG001 - the key
    return resources.store().files()


def files() -> tuple[StoredFile, ...]:
    """Stored files, newest first."""
    return _files(resources.store().mark())
