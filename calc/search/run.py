"""A search from start to end: rule out by arithmetic, simulate what is left, put it in order.

The simulator releases Python's lock, so two threads use two cores. What is found does not depend on their timing: work
is dealt in fixed batches, and only a whole batch decides what the next one may leave out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.search.climb import Climb, climb
from calc.search.floors import Drawn
from calc.search.inverse import headroom_of
from calc.search.result import Found, Reason, RuledOut, SearchResult, ranked
from calc.search.screen import Out, Ready, screened
from calc.search.space import MAX_COMBINATIONS, Combination, Space
from calc.workload import Prices

WORKERS = 2
"""Threads; more would wait for Python's lock."""
BATCH = 32
"""Combinations dealt at once."""
DEARER = 4.0
"""Combinations whose GPUs alone cost this many times the cheapest answer are not simulated."""
LARGER = 8
"""Nor those of a type without a price that take this many times the GPUs of its smallest answer, and more."""
HEADROOMS = 10
"""Rows, from the cheapest on, whose highest load is worked out."""
SCREEN_SHARE, CLIMB_SHARE = 0.3, 0.6
"""Parts of the work that arithmetic and simulation are; the rest is the highest load of the first rows."""
HEADROOM_STEPS = 5
"""Halvings of the bracket around the highest load of a row: to a thirtieth of it."""
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a search is."""

    share: float
    """0-1."""
    combinations: int
    """To look at."""
    simulated: int
    """Deployments simulated so far."""
    met: int
    """Of these, how many meet the SLO."""


def _silent(_: Progress) -> None:
    return


def _never() -> bool:
    return False


def search(
    scenario: Scenario,
    space: Space,
    *,
    prices: Mapping[str, Prices] | None = None,
    tell: Callable[[Progress], None] = _silent,
    stopped: Callable[[], bool] = _never,
) -> SearchResult | None:
    """Deployments that carry the scenario's load within its SLO, cheapest first; ``None`` when it was stopped.

    ``prices``: by GPU id, of types other than the scenario's; a type without one is ranked by its GPUs alone.
    """
    chosen = list(space.combinations(scenario))
    bench = _Bench(scenario=scenario, space=space, prices=prices or {}, tell=tell, stopped=stopped, total=len(chosen))
    with ThreadPoolExecutor(WORKERS) as threads:
        outcomes = bench.screen(threads, chosen)
        climbs = bench.simulate(threads, [one for one in outcomes if isinstance(one, Ready)])
        rows = bench.with_headroom(threads, _rows(climbs, scenario))
    if stopped():
        return None
    out = [one for one in outcomes if isinstance(one, Out)] + bench.left_out
    points = tuple(one for climbed in climbs for one in climbed.found if not one.latency.saturated)
    known = {id(row.latency): row for row in rows}
    return SearchResult(
        rows=rows,
        points=tuple(known.get(id(one.latency), one) for one in points),
        ruled_out=_counts([*out, *_missed(climbs)]),
        combinations=len(chosen),
        simulated=bench.simulated,
        feasible=len(rows),
        notes=_notes(scenario, space, rows),
    )


@dataclass(kw_only=True)
class _Bench:
    """One search at work."""

    scenario: Scenario
    space: Space
    prices: Mapping[str, Prices]
    tell: Callable[[Progress], None]
    stopped: Callable[[], bool]
    total: int
    simulated: int = 0
    met: int = 0

    def __post_init__(self) -> None:
        self.drawn = Drawn(self.scenario.workload)
        self.left_out: list[Out] = []

    def screen(self, threads: ThreadPoolExecutor, chosen: Sequence[Combination]) -> list[Ready | Out]:
        """Arithmetic, every combination."""

        def one(combination: Combination) -> Ready | Out:
            return screened(self.scenario, combination, self.space, self.prices, self.drawn)

        outcomes: list[Ready | Out] = []
        for batch in _batched(chosen, BATCH):
            if self.stopped():
                return []
            outcomes += threads.map(one, batch)
            self._tell(SCREEN_SHARE * len(outcomes) / self.total)
        return outcomes

    def simulate(self, threads: ThreadPoolExecutor, ready: Sequence[Ready]) -> list[Climb]:
        """The cheapest first; what costs several times the best answer so far is left out."""
        order = sorted(ready, key=lambda one: (one.least_per_hour is None, one.least_per_hour or one.least_gpus))
        climbs: list[Climb] = []
        best: dict[str, float] = {}  # per hour by currency, GPUs by type
        for batch in _batched(order, BATCH):
            if self.stopped():
                return []
            kept = [one for one in batch if not _is_dear(one, best)]
            self.left_out += [_dear(one) for one in batch if _is_dear(one, best)]
            for climbed in threads.map(lambda one: climb(one, self.stopped), kept):
                climbs.append(climbed)
                self._note(climbed, best)
            done = (len(climbs) + len(self.left_out)) / len(order)
            self._tell(SCREEN_SHARE + CLIMB_SHARE * done)
        return climbs

    def with_headroom(self, threads: ThreadPoolExecutor, rows: tuple[Found, ...]) -> tuple[Found, ...]:
        """The first rows with the load they could carry beside today's."""

        def one(row: Found) -> Found:
            if self.stopped():
                return row
            return replace(row, headroom_per_s=headroom_of(row.scenario, row.latency, steps=HEADROOM_STEPS))

        first = rows[:HEADROOMS]
        known: list[Found] = []
        for row in threads.map(one, first):
            known.append(row)
            self._tell(SCREEN_SHARE + CLIMB_SHARE + (1 - SCREEN_SHARE - CLIMB_SHARE) * len(known) / len(first))
        if not first:
            self._tell(1.0)
        return (*known, *rows[HEADROOMS:])

    def _note(self, climbed: Climb, best: dict[str, float]) -> None:
        self.simulated += len(climbed.counts)
        for found in (one for one in climbed.found if one.meets):
            self.met += 1
            kind = found.cost.currency if found.cost else found.scenario.deployment.gpu.id
            taken = found.cost.total_per_hour if found.cost else float(found.gpus)
            best[kind] = min(taken, best.get(kind, taken))

    def _tell(self, share: float) -> None:
        self.tell(Progress(share=share, combinations=self.total, simulated=self.simulated, met=self.met))


def _batched(items: Sequence[Asked], size: int) -> Iterable[Sequence[Asked]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_dear(one: Ready, best: Mapping[str, float]) -> bool:
    if one.least_per_hour is None:
        return one.least_gpus > LARGER * best.get(one.scenario.deployment.gpu.id, math.inf)
    return one.least_per_hour > DEARER * best.get(one.scenario.prices.currency, math.inf)


def _dear(one: Ready) -> Out:
    deployment = one.scenario.deployment
    return Out(
        reason=Reason.DEARER,
        example=msg("{gpus:count} × {gpu}.", gpus=one.least_gpus, gpu=deployment.gpu.name),
    )


def _rows(climbs: Sequence[Climb], scenario: Scenario) -> tuple[Found, ...]:
    """Of each combination the fewest replicas that meet the targets; all that do where their number was given."""
    met = [
        found
        for climbed in climbs
        for found in (climbed.found if climbed.ready.given else [climbed.fewest])
        if found is not None and found.meets
    ]
    return ranked(met, scenario.prices.currency)


def _missed(climbs: Sequence[Climb]) -> list[Out]:
    """Combinations none of whose replica counts meets the targets."""
    return [
        Out(
            reason=Reason.MISSED,
            example=msg(
                "{what}: missed with up to {most:count} replicas.",
                what=f"{climbed.ready.scenario.deployment.gpu.name} TP {climbed.ready.scenario.deployment.tp}",
                most=max(climbed.counts),
            ),
        )
        for climbed in climbs
        if climbed.counts and climbed.fewest is None
    ]


def _counts(out: Sequence[Out]) -> tuple[RuledOut, ...]:
    counts = Counter(one.reason for one in out)
    first = {one.reason: one.example for one in reversed(out)}
    return tuple(
        RuledOut(reason=reason, count=counts[reason], example=first[reason]) for reason in Reason if counts[reason]
    )


def _notes(scenario: Scenario, space: Space, rows: Sequence[Found]) -> tuple[Message, ...]:
    notes = []
    if space.size > MAX_COMBINATIONS:
        notes.append(
            msg(
                "{asked:count} combinations were asked for; the {limit:count} with the fewest GPUs per replica were "
                "looked at: shorten a list to see the others.",
                asked=space.size,
                limit=MAX_COMBINATIONS,
            )
        )
    if scenario.workload.num_requests is not None:
        notes.append(msg("The search judges this load as steady: the number of requests of a benchmark is not used."))
    if not any((scenario.slo.ttft_s, scenario.slo.itl_s, scenario.slo.e2e_s)):
        notes.append(msg("No target is set: every stable deployment counts as good enough."))
    unpriced = sorted({row.scenario.deployment.gpu.name for row in rows if row.cost is None})
    if unpriced:
        notes.append(
            msg(
                "No price is known for {gpus}: ranked after the priced ones, by the number of GPUs.",
                gpus=", ".join(unpriced),
            )
        )
    return tuple(notes)
