"""What the views of the Latency page look into, worked out once for a scenario."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calc.anatomy.gaps import BudgetTrial, GapTail, gap_tail, try_budgets
from calc.anatomy.groups import Group, classes, quarters
from calc.anatomy.hour import HourReport, play
from calc.anatomy.run import run_of
from calc.anatomy.shapes import SHAPES
from calc.anatomy.splits import Split, splits
from calc.textbook.answers import textbook
from calc.textbook.results import QueueReport
from calc.workload import OpenLoop
from ui import resources
from ui.resources import Asked


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One load point taken apart."""

    e2e: tuple[Split, ...]
    ttft: tuple[Split, ...]
    tail: GapTail
    quarters: tuple[Group, ...]
    classes: tuple[tuple[str, Group], ...]
    """By name; empty where all requests are alike."""


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _apart(key: str, _asked: Asked) -> Taken:  # noqa: ARG001 - the key
    run = run_of(_asked.scenario)
    return Taken(
        e2e=splits(run, "e2e"),
        ttft=splits(run, "ttft"),
        tail=gap_tail(run),
        quarters=quarters(run),
        classes=classes(run),
    )


def apart(asked: Asked) -> Taken:
    """The requests behind the cards, taken apart."""
    return _apart(asked.key, asked)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _budgets(key: str, _asked: Asked) -> tuple[BudgetTrial, ...]:  # noqa: ARG001 - the key
    return try_budgets(_asked.scenario)


def budgets(asked: Asked) -> tuple[BudgetTrial, ...]:
    """The scenario at other token budgets per step."""
    return _budgets(asked.key, asked)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _hour(key: str, shape: str, seed: int, _asked: Asked) -> HourReport:  # noqa: ARG001 - the key
    scenario = _asked.scenario
    plain = isinstance(scenario.workload.arrivals, OpenLoop) and shape in SHAPES
    arrivals = SHAPES[shape].at(scenario.workload.arrivals.rate_per_s) if plain else None  # type: ignore[union-attr]
    return play(scenario, arrivals=arrivals, seed=seed)


def hour(asked: Asked, shape: str, seed: int) -> HourReport:
    """An hour of the scenario's arrivals, or of a shape at their mean rate."""
    return _hour(asked.key, shape, seed, asked)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _bursty(key: str, arrival_cv2: float, _asked: Asked) -> QueueReport:  # noqa: ARG001 - the key
    return textbook(
        _asked.scenario,
        memory=resources.memory(_asked),
        latency=resources.latency(_asked),
        arrival_cv2=arrival_cv2,
    )


def queue(asked: Asked, arrival_cv2: float | None = None) -> QueueReport:
    """The textbook's answers, with the arrivals' own variability unless another is given."""
    return resources.queue(asked) if arrival_cv2 is None else _bursty(asked.key, arrival_cv2, asked)
