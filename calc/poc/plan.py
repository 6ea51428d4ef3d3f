"""The measurements that decide: which cells of the matrix, with which load, how often, and what they cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from calc.latency import predict
from calc.memory import MemoryReport, estimate_memory
from calc.messages import Message, msg
from calc.poc.axes import Axes, axes_of
from calc.poc.cells import CacheStrategy, Cell, Repetition
from calc.poc.repetition import (
    REQUESTS_MULTIPLE,
    RepeatedLoad,
    Room,
    drawn_hit_share,
    expected_hit_share,
    load_of,
    missed_at_start_share,
    shape_of,
)
from calc.scenario import Scenario
from calc.units import SECONDS_PER_HOUR
from calc.workload import Closed, Fixed, Workload

REQUESTS_FOR_P99 = 1000
"""A P99 rests on ten requests."""
REQUESTS_FOR_P95 = 200
"""One request at a time is slow, and its tail is no queue's: a P95 is enough there."""
ROUNDS_OF_E2E = 10
"""A run lasts at least so many end-to-end times, or its start and end are most of it."""
REPEATS = 3
"""Of the cells a decision rests on: chance is only known from repeats."""
FIRST_SEED = 1000
"""Tools' own seeds are 0, 1 and 42: prompts of earlier trials must not come back."""
PACE_REQUESTS = 200
"""Simulated to time a run: a closed loop keeps its pace."""
HOST_FACTOR = 2.0
"""CPU memory for offload where none is planned, in KV pools of the GPU."""


class PlanSet(StrEnum):
    """How much of the matrix is measured; each contains the one before."""

    MINIMAL = "minimal"
    RECOMMENDED = "recommended"
    FULL = "full"


class Purpose(StrEnum):
    """Why a cell is in the plan."""

    SINGLE = "single"
    HEADLINE = "headline"
    LEVEL = "level"
    KNEE = "knee"
    PEAK = "peak"
    TAIL = "tail"
    GRID = "grid"


WHY: Mapping[Purpose, Message] = MappingProxyType(
    {
        Purpose.SINGLE: msg("One request at a time: TTFT and ITL without any queue, the floor of all others."),
        Purpose.HEADLINE: msg("The usual request at today's load with medium repetition: the gain that may be quoted."),
        Purpose.LEVEL: msg("Another level of repetition at the same load: how far the gain depends on repetition."),
        Purpose.KNEE: msg("The highest load expected to meet the SLO: sustainable concurrency."),
        Purpose.PEAK: msg("Twice that load: queueing, eviction, refusals, and P99 before the mean."),
        Purpose.TAIL: msg("Today's request rate with bursts, whatever the server does: the tail users see."),
        Purpose.GRID: msg("Completes the grid."),
    }
)


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """One load to run on one start of the server, once per seed."""

    cell: Cell
    purpose: Purpose
    smallest_set: PlanSet
    load: RepeatedLoad
    rate_per_s: float | None
    """``None`` = closed loop at the cell's concurrency."""
    burstiness: float
    seeds: tuple[int, ...]
    """One a run; the same for every strategy, so that all see the same prompts."""
    expected_hit_share: float
    """Of prompt tokens, exact numbers of prefixes."""
    drawn_hit_share: float
    """The same for tools that draw prefixes with replacement."""
    start_miss_share: float
    """Most that simultaneous first requests can take off the hit rate."""
    run_s: float
    """One run, simulated without reuse; with it no longer."""

    @property
    def name(self) -> str:
        """A file name without spaces."""
        cell, kind = self.cell, "" if self.rate_per_s is None else "-rate"
        return f"{cell.strategy}-{cell.repetition}-{cell.context_tokens}-c{cell.concurrency}{kind}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole matrix; smaller sets are parts of it."""

    axes: Axes
    cells: tuple[PlannedCell, ...]
    gpu_count: int
    memory: MemoryReport
    host_bytes: int
    """CPU memory of one replica for offload."""

    def part(self, which: PlanSet) -> tuple[PlannedCell, ...]:
        """The cells of a set, in the order in which they are best run: baseline first."""
        sizes = list(PlanSet)
        return tuple(one for one in self.cells if sizes.index(one.smallest_set) <= sizes.index(which))

    def gpu_hours(self, cells: Iterable[PlannedCell]) -> float:
        """All runs of these cells on all GPUs, starts of the server not counted."""
        return sum(one.run_s * len(one.seeds) for one in cells) * self.gpu_count / SECONDS_PER_HOUR


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """A cell to be planned, before its load is worked out."""

    cell: Cell
    purpose: Purpose
    smallest_set: PlanSet
    open_loop: bool = False


BASELINE, PREFIX, OFFLOAD, PAGED = (
    CacheStrategy.PER_REQUEST,
    CacheStrategy.PREFIX,
    CacheStrategy.OFFLOAD,
    CacheStrategy.PAGED,
)
STRATEGIES = (BASELINE, PAGED, PREFIX, OFFLOAD)
"""Measured ones, baseline first. No engine serves without any cache; the product computes that one."""
REUSING = (PREFIX, OFFLOAD)


def plan(
    scenario: Scenario, which: PlanSet = PlanSet.FULL, *, axes: Axes | None = None, first_seed: int = FIRST_SEED
) -> Plan:
    """The evaluation matrix of a scenario: strategies × repetition × its own contexts × its own concurrencies.

    Only cells of ``which`` are worked out. ``axes``: those of the scenario, if they are known.
    """
    axes, memory = axes or axes_of(scenario), estimate_memory(scenario.deployment)
    builder = _Builder(scenario, axes, memory, first_seed)
    cells = tuple(builder.planned(wish) for wish in _wishes(axes, which))
    return Plan(
        axes=axes,
        cells=tuple(sorted(cells, key=_order)),
        gpu_count=scenario.deployment.gpu_count,
        memory=memory,
        host_bytes=builder.host_bytes,
    )


def plan_notes(found: Plan) -> tuple[Message, ...]:
    """What holds for the whole plan."""
    usual = next((one for one in found.cells if one.purpose is Purpose.HEADLINE), None)
    notes = [
        msg("Not in the plan: serving without any KV cache. No engine does so; the Latency page computes it."),
        msg("Times are simulated without reuse, and leave out starting the server and loading the model."),
        msg("Conversations of several turns need your own trace replayed: these loads send single turns."),
    ]
    if usual is not None and usual.load.working_set_tokens > found.memory.kv_tokens:
        notes.insert(
            0,
            msg(
                "At medium repetition the prefixes take {wanted:tok} and the KV pool {room:tok}: many are evicted "
                "before their second use. The high level fits into any cache, so it shows no eviction.",
                wanted=usual.load.working_set_tokens,
                room=found.memory.kv_tokens,
            ),
        )
    return tuple(notes)


def _order(planned: PlannedCell) -> tuple[int, int, int, int]:
    """One start of the server after the other, baseline first, light loads first."""
    cell = planned.cell
    levels = (Repetition.MEDIUM, Repetition.LOW, Repetition.HIGH)
    return STRATEGIES.index(cell.strategy), cell.context_tokens, levels.index(cell.repetition), cell.concurrency


def _wishes(axes: Axes, which: PlanSet) -> Iterator[_Wish]:
    """Every wish once, smaller sets first; one cell may be wished closed and open, for they are different runs."""
    seen: set[tuple[Cell, bool]] = set()
    rising = (_minimal, _recommended, _full)[: list(PlanSet).index(which) + 1]
    for wish in itertools.chain.from_iterable(wishes(axes) for wishes in rising):
        if (wish.cell, wish.open_loop) not in seen:
            seen.add((wish.cell, wish.open_loop))
            yield wish


def _cell(strategy: CacheStrategy, level: Repetition, context: int, concurrency: int) -> Cell:
    return Cell(strategy=strategy, repetition=level, context_tokens=context, concurrency=concurrency)


def _minimal(axes: Axes) -> Iterator[_Wish]:
    """Does reuse pay at all: the baseline alone and under today's load, and reuse under the same."""
    usual, small = axes.contexts_tokens[0], PlanSet.MINIMAL
    yield _Wish(cell=_cell(BASELINE, Repetition.MEDIUM, usual, 1), purpose=Purpose.SINGLE, smallest_set=small)
    for strategy in (BASELINE, PREFIX):
        cell = _cell(strategy, Repetition.MEDIUM, usual, axes.operating)
        yield _Wish(cell=cell, purpose=Purpose.HEADLINE, smallest_set=small)


def _recommended(axes: Axes) -> Iterator[_Wish]:
    """Knee, long requests, other levels, offload, the peak and the tail: what a review will ask for."""
    usual, middle = axes.contexts_tokens[0], PlanSet.RECOMMENDED
    for context in axes.contexts_tokens[:2]:
        single = _cell(BASELINE, Repetition.MEDIUM, context, 1)
        yield _Wish(cell=single, purpose=Purpose.SINGLE, smallest_set=middle)
        for strategy, concurrency in itertools.product((BASELINE, *REUSING), (axes.operating, axes.knee)):
            purpose = Purpose.HEADLINE if concurrency == axes.operating else Purpose.KNEE
            cell = _cell(strategy, Repetition.MEDIUM, context, concurrency)
            yield _Wish(cell=cell, purpose=purpose, smallest_set=middle)
    for strategy, level in itertools.product((BASELINE, PREFIX), (Repetition.LOW, Repetition.HIGH)):
        cell = _cell(strategy, level, usual, axes.operating)
        yield _Wish(cell=cell, purpose=Purpose.LEVEL, smallest_set=middle)
    for strategy in (BASELINE, *REUSING):
        peak = _cell(strategy, Repetition.MEDIUM, usual, axes.peak)
        yield _Wish(cell=peak, purpose=Purpose.PEAK, smallest_set=middle)
        if axes.rate_per_s is not None and axes.operating > 1:
            tail = _cell(strategy, Repetition.MEDIUM, usual, axes.operating)
            yield _Wish(cell=tail, purpose=Purpose.TAIL, smallest_set=middle, open_loop=True)


def _full(axes: Axes) -> Iterator[_Wish]:
    grid = itertools.product(STRATEGIES, Repetition, axes.contexts_tokens, axes.concurrencies)
    for strategy, level, context, concurrency in grid:
        cell = _cell(strategy, level, context, concurrency)
        yield _Wish(cell=cell, purpose=Purpose.GRID, smallest_set=PlanSet.FULL)


class _Builder:
    """Works out loads, hit rates and times of cells, each simulation and each seed once."""

    def __init__(self, scenario: Scenario, axes: Axes, memory: MemoryReport, first_seed: int) -> None:
        self._scenario, self._axes, self._memory = scenario, axes, memory
        self._seeds = itertools.count(first_seed)
        self._taken: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._rates: dict[tuple[int, int], float] = {}
        tier = next((one for one in scenario.deployment.serving.tiers if one.capacity_bytes), None)
        pool_bytes = memory.kv_pool_bytes * scenario.deployment.gpus_per_replica
        self.host_bytes = tier.capacity_bytes if tier and tier.capacity_bytes else round(HOST_FACTOR * pool_bytes)
        self._host_tokens = memory.kv_tokens * self.host_bytes / pool_bytes if pool_bytes else 0.0

    def planned(self, wish: _Wish) -> PlannedCell:
        cell, rate = wish.cell, self._axes.rate_per_s if wish.open_loop else None
        shape = shape_of(cell.context_tokens, self._axes.output_tokens, self._memory.block_size_tokens)
        load = load_of(cell.repetition, shape, self._requests(cell))
        room = self._room(cell)
        reusing = cell.strategy in REUSING and shape.prefix_tokens >= self._memory.block_size_tokens
        hits = expected_hit_share(load, room) if reusing else 0.0
        return PlannedCell(
            cell=cell,
            purpose=wish.purpose,
            smallest_set=wish.smallest_set,
            load=load,
            rate_per_s=rate,
            burstiness=self._axes.burstiness,
            seeds=self._seeds_of(wish),
            expected_hit_share=hits,
            drawn_hit_share=drawn_hit_share(load, room) if reusing else 0.0,
            start_miss_share=missed_at_start_share(load, cell.concurrency) if reusing else 0.0,
            run_s=load.requests / (rate or self._rate_per_s(cell)),
        )

    def _requests(self, cell: Cell) -> int:
        least = REQUESTS_FOR_P95 if cell.concurrency == 1 else REQUESTS_FOR_P99
        wanted = max(least, ROUNDS_OF_E2E * cell.concurrency)
        return math.ceil(wanted / REQUESTS_MULTIPLE) * REQUESTS_MULTIPLE

    def _room(self, cell: Cell) -> Room:
        deployment = self._scenario.deployment
        tokens = self._memory.kv_tokens + (self._host_tokens if cell.strategy is OFFLOAD else 0.0)
        aware = deployment.serving.routing == "prefix-aware"
        spread = 1 if aware else deployment.replicas
        kept = tokens * deployment.replicas if aware else tokens
        return Room(kv_tokens=kept, running=cell.concurrency / spread, replicas=spread)

    def _seeds_of(self, wish: _Wish) -> tuple[int, ...]:
        """The same for all strategies of a load; never the same for two loads."""
        cell = wish.cell
        key = (cell.repetition, cell.context_tokens, cell.concurrency, wish.open_loop)
        if key not in self._taken:
            repeats = REPEATS if wish.purpose in (Purpose.HEADLINE, Purpose.TAIL) else 1
            self._taken[key] = tuple(itertools.islice(self._seeds, repeats))
        return self._taken[key]

    def _rate_per_s(self, cell: Cell) -> float:
        """Requests that a closed loop completes."""
        key = (cell.context_tokens, cell.concurrency)
        if key not in self._rates:
            workload = Workload(
                prompt_tokens=Fixed(value_tokens=cell.context_tokens),
                output_tokens=Fixed(value_tokens=self._axes.output_tokens),
                arrivals=Closed(concurrency=cell.concurrency),
                http=self._scenario.workload.http,
            )
            alone = replace(self._scenario, workload=workload)
            self._rates[key] = predict(alone, memory=self._memory, requests=PACE_REQUESTS).request_rate_per_s
        return self._rates[key]
