"""What the views of the Benchmarks page look into: the plan of a scenario, and stored runs in their places."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc.errors import InputError
from calc.messages import Message
from calc.poc.coverage import PlacedRun
from calc.poc.plan import Plan, plan
from data.placed_runs import placed_runs
from data.store import StoredRun
from ui import resources
from ui.resources import Asked


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _plan(key: str, _asked: Asked) -> Plan | Message:  # noqa: ARG001 - the key
    try:
        return plan(_asked.scenario)
    except InputError as error:
        return error.message


def plan_of(asked: Asked) -> Plan | Message:
    """The evaluation matrix of the scenario, or why there is none."""
    return _plan(asked.key, asked)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Stored runs and the same runs in their places."""

    stored: tuple[StoredRun, ...]
    placed: tuple[PlacedRun, ...]

    def run(self, run_id: str) -> StoredRun:
        """One stored run."""
        return next(one for one in self.stored if one.run_id == run_id)


@st.cache_resource(max_entries=4, show_spinner=False)
def _kept(mark: str, key: str, _asked: Asked) -> Kept:  # noqa: ARG001 - the keys
    stored, plan_found = resources.runs(), plan_of(_asked)
    if isinstance(plan_found, Message):
        return Kept(stored=stored, placed=placed_runs(stored))
    axes = plan_found.axes
    return Kept(stored=stored, placed=placed_runs(stored, axes.contexts_tokens, axes.concurrencies))


def kept(asked: Asked) -> Kept:
    """Runs in the cells of the scenario's plan; without a plan on the doubling scale."""
    return _kept(resources.store().mark(), asked.key, asked)
