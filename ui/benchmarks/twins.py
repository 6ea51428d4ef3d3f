"""The same load simulated beside each measured run, and how far off the simulation is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calc.checks.several import LENGTH_TOLERANCE
from data.records import BenchmarkRun
from data.store import StoredRun
from ui import format as show
from ui import resources
from ui.benchmarks.runs import label, name, stat, statistic_name
from ui.charts.runs import MeasuredPoint
from ui.resources import Asked
from ui.story import words
from ui.text import t

PERCENTILES = ("P50", "P95", "P99")
STATS = ("mean", "p50", "p95", "p99")
FEW_REQUESTS = 100
"""Simulated when a run does not say how many requests it sent."""


def like(asked: Asked, run: BenchmarkRun) -> Asked | None:
    """The scenario's deployment under the run's own load; ``None`` when the run does not state load or lengths."""
    arrivals = _arrivals(run)
    if arrivals is None or not run.input_tokens_mean or not run.output_tokens_mean:
        return None
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": max(1.0, run.input_tokens_mean)},
        "output_tokens": {"distribution": "fixed", "value": max(1.0, run.output_tokens_mean)},
        "arrivals": arrivals,
        "num_requests": run.completed or run.num_prompts or FEW_REQUESTS,
        "prefix_hit_share": run.prefix_hit_share or 0.0,
    }
    return resources.ask({**asked.case, "workload": workload})


def of_lengths(chosen: Sequence[StoredRun], twin: Asked) -> list[StoredRun]:
    """The runs whose mean lengths are those of a curve, within 5 %."""
    workload = twin.scenario.workload
    wanted = (workload.prompt_tokens.mean(), workload.output_tokens.mean())

    def fits(run: BenchmarkRun) -> bool:
        means = (run.input_tokens_mean, run.output_tokens_mean)
        return all(mean and abs(mean / want - 1) <= LENGTH_TOLERANCE for mean, want in zip(means, wanted, strict=True))

    return [one for one in chosen if fits(one.run)]


def _arrivals(run: BenchmarkRun) -> Mapping[str, Any] | None:
    if run.max_concurrency is not None:
        return {"kind": "closed", "concurrency": run.max_concurrency}
    if run.request_rate_per_s is not None:
        return {"kind": "poisson", "rate_per_s": run.request_rate_per_s}
    if run.request_rate_is_infinite and run.num_prompts:
        return {"kind": "closed", "concurrency": run.num_prompts}
    return None


def errors(asked: Asked, chosen: Sequence[StoredRun]) -> list[Mapping[str, str]]:
    """Measured against simulated, per run and statistic, with the error."""
    table = []
    for number, stored in enumerate(chosen, 1):
        twin = like(asked, stored.run)
        report = resources.latency(twin) if twin else None
        for metric in ("ttft", "tpot", "e2e"):
            for statistic in ("mean", "p50", "p99"):
                measured = stat(stored.run, metric, statistic)
                simulated = getattr(getattr(report, metric), f"{statistic}_s") if report else None
                if measured:
                    table.append(_error_row(f"{number} · {name(stored.run)}", metric, statistic, measured, simulated))
    return table


def _error_row(run: str, metric: str, statistic: str, measured: float, simulated: float | None) -> Mapping[str, str]:
    error = None if simulated is None else simulated / measured - 1
    return {
        t("Run"): run,
        t("Metric"): f"{words.term_label(metric)} {statistic_name(statistic)}",
        t("Measured"): words.latency_text(metric, measured),
        t("Simulated"): words.latency_text(metric, simulated),
        t("Error"): show.missing() if error is None else f"{error:+.0%}",
    }


def median_error(asked: Asked, chosen: Sequence[StoredRun], metric: str) -> float | None:
    """Median absolute error of the metric's mean (or P50) over the chosen runs."""
    found = []
    for stored in chosen:
        twin = like(asked, stored.run)
        for statistic in ("mean", "p50"):
            measured = stat(stored.run, metric, statistic)
            if twin and measured:
                simulated = getattr(getattr(resources.latency(twin), metric), f"{statistic}_s")
                found += [abs(simulated / measured - 1)] if simulated is not None else []
                break
    return sorted(found)[len(found) // 2] if found else None


def points(chosen: Sequence[StoredRun], metric: str, percentile: str, axis: str) -> list[MeasuredPoint]:
    """Measured points on the load axis of a sweep; runs that lack the load or the percentile stay away."""
    found = []
    for stored in chosen:
        run = stored.run
        load = (
            run.max_concurrency if axis == "concurrency" else (run.request_rate_per_s or run.request_throughput_per_s)
        )
        value = stat(run, metric, percentile.lower())
        if load is not None and value is not None:
            found.append(MeasuredPoint(name=label(stored), load=float(load), value_s=value))
    return found


def shared_percentile(chosen: Sequence[StoredRun], metric: str) -> str:
    """The percentile that most of the runs state, P50 first."""
    counts = {name: sum(stat(one.run, metric, name.lower()) is not None for one in chosen) for name in PERCENTILES}
    return max(counts, key=lambda name: counts[name])


def bars(chosen: Sequence[StoredRun], metric: str) -> list[tuple[str, list[float | None]]]:
    """One series per statistic that at least one run states."""
    series = [(statistic_name(statistic), [stat(one.run, metric, statistic) for one in chosen]) for statistic in STATS]
    return [(title, values) for title, values in series if any(value is not None for value in values)]
