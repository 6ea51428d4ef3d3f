"""Prefix reuse of a trace under the asked deployment, worked out once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import streamlit as st

from calc.errors import InputError
from calc.hardware import Gpu
from calc.latency import LatencyReport, predict
from calc.memory import MemoryReport, at_peak, estimate_memory
from calc.messages import Message
from calc.reuse.answers import with_answers
from calc.reuse.curve import HitCurve, curves_with_limits, hit_curve
from calc.reuse.found import found_rows
from calc.reuse.growth import Growth, growth
from calc.reuse.returns import Returns, alive_shares, returns, stay_s
from calc.reuse.routing import Routing, curve_of_owners, dealt
from calc.reuse.trace import BlockTrace, IntArray
from calc.reuse.views import coarser, full_blocks_only, of_owner, told_apart
from calc.reuse.worth import USUAL_LIMITS_S, LimitAdvice, Room, Worth, limit_advice, room_of, worths
from calc.scenario import Scenario
from calc.step.roofline import StepModel, step_model
from ui import resources
from ui.resources import Asked

FULL_BLOCKS_ONLY = ("vllm", "vllm-ascend")
"""Engines that cache a block only once it is full; SGLang's tree matches single tokens."""
MAX_CACHES = 64
"""More caches than this are drawn as so many: each is a curve of its own."""
SIMULATED = 1000
"""Requests simulated for the concurrency of each GPU."""
DILUTIONS = (1, 2, 4, 8)
KEPT = 8
"""Traces with their curves kept in memory: a large one takes a gigabyte."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A trace and what the user assumes of it."""

    trace_id: str
    name: str
    trace: BlockTrace
    apart: bool
    """Tenants do not find each other's blocks."""
    answers: bool
    """Blocks of earlier answers are found."""

    @property
    def key(self) -> tuple[str, bool, bool]:
        """What tells questions apart."""
        return self.trace_id, self.apart, self.answers


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The trace as the asked engine's caches see it, and its curves."""

    trace: BlockTrace
    owner: IntArray
    """Which cache has each request."""
    caches: int
    """DP ranks of all replicas: each has a pool of its own."""
    curve: HitCurve
    alone: HitCurve
    """One cache that sees every request; equal to the curve where there is one."""
    times: int
    """Blocks of the trace in one of the engine's, where those are larger."""
    full_only: bool
    back: Returns


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One GPU in place of the scenario's, at the same split, under the planned load."""

    name: str
    is_today: bool
    room: Room | None = None
    """None = the model does not fit."""
    carries: bool | None = None
    """Whether it carries the planned load; None = not known."""
    model: StepModel | None = None
    reason: Message | None = None
    """Why something is not known."""

    @property
    def free_tokens(self) -> float:
        """Left for reuse in each cache."""
        return self.room.free_tokens if self.room else 0.0


@dataclass(frozen=True, kw_only=True)
class GpuOption:
    """A candidate on the curve."""

    candidate: Candidate
    worth: Worth
    alive_share: float | None
    """Of later turns, whose blocks are all still there; None = the trace has no later turns."""


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _seen(key: tuple[str, bool, bool], scenario_key: str, _given: Given, _asked: Asked) -> Seen:  # noqa: ARG001 - the key
    deployment = _asked.scenario.deployment
    block = resources.memory(_asked).block_size_tokens
    times = max(1, math.ceil(block / _given.trace.block_size_tokens))
    full_only = deployment.engine.id in FULL_BLOCKS_ONLY
    trace = coarser(_given.trace, times) if times > 1 else _given.trace
    trace = with_answers(trace) if _given.answers else trace
    trace = full_blocks_only(trace) if full_only else trace
    if _given.apart and trace.tenant is not None:
        trace = told_apart(trace, trace.tenant + 1)
    caches = min(MAX_CACHES, deployment.replicas * deployment.dp)
    owner = dealt(trace, caches, routing_of(_asked.scenario))
    alone = hit_curve(trace)
    return Seen(
        trace=trace,
        owner=owner,
        caches=caches,
        curve=alone if caches == 1 else curve_of_owners(trace, owner, caches),
        alone=alone,
        times=times,
        full_only=full_only,
        back=returns(trace),
    )


def seen(asked: Asked, given: Given) -> Seen:
    """Curves of a trace under the asked deployment."""
    return _seen(given.key, asked.key, given, asked)


def routing_of(scenario: Scenario) -> Routing:
    """Every routing that does not look at prefixes spreads them as round-robin does."""
    return "prefix-aware" if scenario.deployment.serving.routing == "prefix-aware" else "round-robin"


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _options(
    key: tuple[str, bool, bool],  # noqa: ARG001 - the key
    scenario_key: str,  # noqa: ARG001 - the key
    own_gpu_ids: tuple[str, ...],  # noqa: ARG001 - the key
    _seen: Seen,
    _asked: Asked,
) -> tuple[GpuOption, ...]:
    today = _asked.scenario.deployment.gpu
    others = [gpu for gpu in resources.candidate_gpus() if gpu.name != today.name]
    found = [_candidate(_asked.scenario, gpu) for gpu in others]
    able = sorted((one for one in found if one.room and one.carries is not False), key=lambda one: -one.free_tokens)
    chosen = [_candidate(_asked.scenario, today, is_today=True), *able]
    capacities = [one.free_tokens for one in chosen]
    trace = _seen.trace
    rows = found_rows(trace, _seen.owner, [int(tokens // trace.block_size_tokens) for tokens in capacities])
    values = worths(trace, _seen.curve, rows, capacities, [one.model for one in chosen])
    alive = alive_shares(trace, _seen.back, rows)
    return tuple(
        GpuOption(candidate=one, worth=value, alive_share=share)
        for one, value, share in zip(chosen, values, alive, strict=True)
    )


def options(asked: Asked, given: Given) -> tuple[GpuOption, ...]:
    """Today's GPU first, then every other that holds the model and carries the load at the same split."""
    own = tuple(row.entry_id for row in resources.own_gpus())
    return _options(given.key, asked.key, own, seen(asked, given), asked)


def _candidate(scenario: Scenario, gpu: Gpu, *, is_today: bool = False) -> Candidate:
    changed = scenario if is_today else _with_gpu(scenario, gpu)
    if isinstance(changed, Message):
        return Candidate(name=gpu.name, is_today=is_today, reason=changed)
    memory = estimate_memory(changed.deployment, changed.workload)
    if not memory.fits:
        return Candidate(name=gpu.name, is_today=is_today, carries=False)
    latency, model, reason = _timed(changed)
    return Candidate(
        name=gpu.name,
        is_today=is_today,
        room=room_of(changed.deployment, _at_load(changed, memory, latency)),
        carries=None if latency is None else not latency.saturated,
        model=model,
        reason=reason,
    )


def _with_gpu(scenario: Scenario, gpu: Gpu) -> Scenario | Message:
    """The same split on another GPU; what was measured of today's says nothing of it."""
    try:
        deployment = replace(
            scenario.deployment, gpu=gpu, measured_memory=None, kv_pool_bytes_per_gpu=None, kv_tokens=None
        )
    except InputError as error:
        return error.message
    return replace(scenario, deployment=deployment, calibration=None)


def _timed(scenario: Scenario) -> tuple[LatencyReport | None, StepModel | None, Message | None]:
    try:
        return predict(scenario, requests=SIMULATED), step_model(scenario.deployment), None
    except InputError as error:
        return None, None, error.message


def _at_load(scenario: Scenario, memory: MemoryReport, latency: LatencyReport | None) -> MemoryReport:
    if latency is None:
        return memory
    return at_peak(memory, scenario.deployment, scenario.workload, latency.concurrency / scenario.deployment.replicas)


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _stay(key: tuple[str, bool, bool], scenario_key: str, free_tokens: float, _seen: Seen) -> float | None:  # noqa: ARG001 - the key
    part = _seen.trace if _seen.caches == 1 else of_owner(_seen.trace, _seen.owner, 0)
    return stay_s(part, int(free_tokens // part.block_size_tokens))


def stay(asked: Asked, given: Given, free_tokens: float) -> float | None:
    """How long an unused block stays in a cache of this capacity; of several caches the first stands for all."""
    return _stay(given.key, asked.key, free_tokens, seen(asked, given))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _dilution(key: tuple[str, bool, bool], scenario_key: str, free_tokens: float, _seen: Seen) -> list[list[float]]:  # noqa: ARG001 - the key
    rows = []
    for count in DILUTIONS:
        ways: tuple[Routing, ...] = ("round-robin", "prefix-aware")
        curves = [curve_of_owners(_seen.trace, dealt(_seen.trace, count, way), count) for way in ways]
        rows.append([curve.hit_share(free_tokens) for curve in curves])
    return rows


def dilution(asked: Asked, given: Given, free_tokens: float) -> list[list[float]]:
    """Hit rates of 1, 2, 4 and 8 caches of this capacity each: round-robin and prefix-aware."""
    return _dilution(given.key, asked.key, free_tokens, seen(asked, given))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _limits(key: tuple[str, bool, bool], scenario_key: str, free_tokens: float, _seen: Seen) -> LimitAdvice | None:  # noqa: ARG001 - the key
    if _seen.trace.arrival_s is None:
        return None
    return limit_advice(USUAL_LIMITS_S, curves_with_limits(_seen.trace, USUAL_LIMITS_S), _seen.alone, free_tokens)


def limits(asked: Asked, given: Given, free_tokens: float) -> LimitAdvice | None:
    """Time limits in one cache of this capacity that sees every request; None without times."""
    return _limits(given.key, asked.key, free_tokens, seen(asked, given))


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _growth(key: tuple[object, ...], window_s: float, _trace: BlockTrace) -> Growth | None:  # noqa: ARG001 - the key
    return None if _trace.arrival_s is None else growth(_trace, window_s)


def working_set(asked: Asked, given: Given, window_s: float) -> Growth | None:
    """Distinct content over time; None without times."""
    found = seen(asked, given)
    return _growth((*given.key, found.times, found.full_only), window_s, found.trace)


class Drawn(TypedDict):
    """Points of a line."""

    capacities_tokens: list[float]
    hits: list[float]


def drawn(curve: HitCurve, most_blocks: int, points: int = 240) -> Drawn:
    """Capacities in tokens and hit rates in per cent, close enough to draw on a logarithmic axis."""
    blocks = np.unique(np.geomspace(1, max(2, most_blocks), points).astype(np.int64))
    return {
        "capacities_tokens": (blocks * curve.block_size_tokens).tolist(),
        "hits": (curve.hit_shares(blocks) * 100).tolist(),
    }


class Place(TypedDict):
    """Where a GPU stands on the curve."""

    capacity_tokens: float
    hit: float


def place(option: GpuOption) -> Place:
    """Capacity in tokens and hit rate in per cent."""
    return {"capacity_tokens": option.worth.capacity_tokens, "hit": option.worth.hit_share * 100}
