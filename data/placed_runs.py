"""Stored runs in their places of the evaluation matrix, with the numbers that strategies are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.poc.coverage import PlacedRun
from calc.poc.effect import STATISTIC_SHARES, Summary
from calc.poc.place import cell_of
from data.formats.judge import facts_of
from data.records import BenchmarkRun, LatencyStats, RunDeclaration
from data.store import StoredRun

METRICS = ("ttft", "tpot", "itl", "e2e")


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """What is known of a stored run, before anybody asks for its place."""

    run: PlacedRun
    """Still without one."""
    declaration: RunDeclaration | None


def known_runs(stored: Sequence[StoredRun]) -> tuple[KnownRun, ...]:
    """The numbers of each run; they do not depend on a plan."""
    return tuple(_known(one) for one in stored)


def placed_runs(
    known: Sequence[KnownRun], contexts_tokens: Sequence[int] = (), concurrencies: Sequence[int] = ()
) -> tuple[PlacedRun, ...]:
    """Each run where its declaration and its own numbers put it; the levels are those of the plan."""
    levels = {"contexts_tokens": contexts_tokens, "concurrencies": concurrencies}
    return tuple(replace(one.run, place=cell_of(one.run.facts, one.declaration, **levels)) for one in known)


def _known(stored: StoredRun) -> KnownRun:
    declaration = stored.declaration.declaration if stored.declaration else None
    return KnownRun(
        run=PlacedRun(
            run_id=stored.run_id,
            facts=facts_of(stored.run, declaration),
            place=(),
            usable=stored.is_evidence,
            warned=bool(stored.caveats),
            latencies=latencies_of(stored.run),
        ),
        declaration=declaration,
    )


def latencies_of(run: BenchmarkRun) -> dict[str, Summary]:
    """Every latency a run states, with the count its percentiles rest on."""
    stated = {metric: getattr(run, metric) for metric in METRICS}
    return {metric: _summary(run, stats) for metric, stats in stated.items() if stats is not None}


def _summary(run: BenchmarkRun, stats: LatencyStats) -> Summary:
    values = {name: getattr(stats, f"{name}_s") for name in STATISTIC_SHARES}
    return Summary(
        requests=run.completed,
        mean_s=stats.mean_s,
        std_s=stats.std_s,
        percentiles_s={name: value for name, value in values.items() if value is not None},
    )
