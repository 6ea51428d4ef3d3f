"""Which cells have evidence, which are missing or contradict themselves; and strategies against the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from calc.checks.run_facts import RunFacts, achieved_per_s
from calc.checks.several import REPEAT_TOLERANCE, compare
from calc.messages import Message, msg
from calc.poc.cells import CacheStrategy, Cell, Repetition
from calc.poc.effect import Effect, Summary, effect
from calc.poc.place import Gap, concurrency_of

BASELINE = CacheStrategy.PER_REQUEST


@dataclass(frozen=True, kw_only=True)
class PlacedRun:
    """One stored run: its numbers, where it belongs, and whether they count."""

    run_id: str
    facts: RunFacts
    place: Cell | tuple[Gap, ...]
    """The cell it fills, or what it lacks for one."""
    usable: bool = True
    """False: something has to be cleared up before its numbers count."""
    warned: bool = False
    """A finding that is more than information goes with its numbers."""
    latencies: Mapping[str, Summary] = field(default_factory=dict)
    """By metric: ``ttft``, ``tpot``, ``itl``, ``e2e``."""

    @property
    def cell(self) -> Cell | None:
        """Its place, if it has one."""
        return self.place if isinstance(self.place, Cell) else None


class CellState(StrEnum):
    """What is known of a cell."""

    MISSING = "missing"
    MEASURED = "measured"
    WARNED = "warned"
    """Measured, and every run has a warning."""
    DOUBTFUL = "doubtful"
    """Only runs that cannot be used as they stand."""
    CONTRADICTING = "contradicting"


@dataclass(frozen=True, kw_only=True)
class CellEvidence:
    """A cell with the runs that fill it."""

    cell: Cell
    state: CellState
    runs: tuple[PlacedRun, ...] = ()
    why: Message | None = None
    """Of a contradiction."""

    @property
    def usable(self) -> tuple[PlacedRun, ...]:
        """Runs whose numbers count."""
        return tuple(run for run in self.runs if run.usable)

    @property
    def warned(self) -> int:
        """Runs with a finding that is more than information."""
        return sum(run.warned for run in self.runs)


def evidence_of(cells: Iterable[Cell], runs: Iterable[PlacedRun]) -> tuple[CellEvidence, ...]:
    """Every cell once, planned ones first, then those that only runs fill."""
    by_cell: dict[Cell, list[PlacedRun]] = {cell: [] for cell in cells}
    for run in runs:
        if run.cell is not None:
            by_cell.setdefault(run.cell, []).append(run)
    return tuple(_evidence(cell, found) for cell, found in by_cell.items())


def _evidence(cell: Cell, runs: Sequence[PlacedRun]) -> CellEvidence:
    usable = [run for run in runs if run.usable]
    why = contradiction(usable)
    if not runs:
        state = CellState.MISSING
    elif not usable:
        state = CellState.DOUBTFUL
    elif why is not None:
        state = CellState.CONTRADICTING
    else:
        state = CellState.WARNED if all(run.warned for run in usable) else CellState.MEASURED
    return CellEvidence(cell=cell, state=state, runs=tuple(runs), why=why)


def contradiction(runs: Sequence[PlacedRun]) -> Message | None:
    """Runs of one cell that may be compared, yet reach throughputs more than a fifth apart."""
    for number, one in enumerate(runs):
        for other in runs[number + 1 :]:
            rates = [achieved_per_s(run.facts) for run in (one, other)]
            if None in rates or compare(one.facts, other.facts) is not None:
                continue
            low, high = sorted(rate for rate in rates if rate is not None)
            if high > (1 + REPEAT_TOLERANCE) * low:
                return msg("runs of this cell reach {low:rate} and {high:rate}: find out what differed.",
                           low=low, high=high)  # fmt: skip
    return None


def _load_unknown(run: PlacedRun) -> bool:
    facts = run.facts
    return None in (facts.input_tokens_mean, facts.output_tokens_mean, run.cell or concurrency_of(facts))


def refusal(a: PlacedRun, b: PlacedRun) -> Message | None:
    """Why two runs must not be set side by side: what differs beside the strategy; ``None`` = nothing."""
    if not (a.usable and b.usable):
        return msg("a check refuses one of the runs, and nobody has confirmed it.")
    if any(_load_unknown(run) for run in (a, b)):
        return msg("its load or its lengths are not known, so nobody can tell whether the loads are alike.")
    finding = compare(a.facts, b.facts)
    if finding is not None:
        return finding.text
    levels = [run.cell.repetition if run.cell else None for run in (a, b)]
    if None not in levels and levels[0] is not levels[1]:
        return msg("prompts of one run repeat more than those of the other: compare runs of one level of repetition.")
    users = [run.cell.concurrency if run.cell else concurrency_of(run.facts) for run in (a, b)]
    if None not in users and users[0] != users[1]:
        return msg("the runs keep {a:count} and {b:count} requests in flight: compare runs of the same load.",
                   a=users[0], b=users[1])  # fmt: skip
    return None


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a strategy changed in one cell against the baseline under the very same load."""

    cell: Cell
    effect: Effect | None
    """``None`` = a side has no runs, or none that states it, or they must not be compared."""
    refused: Message | None = None
    """Why runs were there and are not compared."""


def gains(runs: Sequence[PlacedRun], metric: str, statistic: str, baseline: CacheStrategy = BASELINE) -> list[Gain]:
    """Every cell of another strategy that has runs, medium repetition first: it is the gain that may be quoted."""
    filled = [one for one in evidence_of((), runs) if one.usable and one.cell.strategy is not baseline]
    order = (Repetition.MEDIUM, Repetition.LOW, Repetition.HIGH)
    filled.sort(
        key=lambda one: (
            order.index(one.cell.repetition), one.cell.context_tokens, one.cell.concurrency, one.cell.strategy,
        )
    )  # fmt: skip
    return [_gain(one, runs, metric, statistic, baseline) for one in filled]


def _alike(first: PlacedRun, run: PlacedRun) -> bool:
    return compare(first.facts, run.facts) is None


def _gain(found: CellEvidence, runs: Sequence[PlacedRun], metric: str, statistic: str, baseline: CacheStrategy) -> Gain:
    twin = replace(found.cell, strategy=baseline)
    before = [run for run in runs if run.cell == twin and run.usable]
    if not before:
        return Gain(cell=found.cell, effect=None, refused=msg("the baseline of this cell is not measured."))
    groups = [([run for run in before if _alike(first, run)], [run for run in found.usable if _alike(first, run)])
              for first in before]  # fmt: skip
    best = max(groups, key=lambda sides: (min(map(len, sides)), len(sides[0]) + len(sides[1])))
    if not best[1]:
        finding = compare(before[0].facts, found.usable[0].facts)
        return Gain(cell=found.cell, effect=None, refused=finding.text if finding else None)
    sides = [[run.latencies[metric] for run in side if metric in run.latencies] for side in best]
    return Gain(cell=found.cell, effect=effect(sides[0], sides[1], statistic) if all(sides) else None)
