"""Stored runs in their places of the evaluation matrix, with the numbers that strategies are compared by."""

from __future__ import annotations

from collections.abc import Sequence

from calc.poc.coverage import PlacedRun
from calc.poc.effect import STATISTIC_SHARES, Summary
from calc.poc.place import cell_of
from data.formats.judge import facts_of
from data.records import BenchmarkRun, LatencyStats
from data.store import StoredRun

METRICS = ("ttft", "tpot", "itl", "e2e")


def placed_runs(
    stored: Sequence[StoredRun], contexts_tokens: Sequence[int] = (), concurrencies: Sequence[int] = ()
) -> tuple[PlacedRun, ...]:
    """Each run where its declaration and its own numbers put it; the levels are those of the plan."""
    return tuple(_placed(one, contexts_tokens, concurrencies) for one in stored)


def _placed(stored: StoredRun, contexts: Sequence[int], concurrencies: Sequence[int]) -> PlacedRun:
    declaration = stored.declaration.declaration if stored.declaration else None
    facts = facts_of(stored.run, declaration)
    return PlacedRun(
        run_id=stored.run_id,
        facts=facts,
        place=cell_of(facts, declaration, contexts_tokens=contexts, concurrencies=concurrencies),
        usable=stored.is_evidence,
        warned=bool(stored.caveats),
        latencies=latencies_of(stored.run),
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
