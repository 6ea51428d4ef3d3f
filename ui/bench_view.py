"""Uploaded runs in words: rows, and the same load simulated beside each measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data.formats.fields import FIELDS
from data.records import BenchmarkRun, LatencyStats, ReadResult
from data.store import StoredRun
from ui import format as show
from ui import resources
from ui.charts.runs import MeasuredPoint
from ui.resources import Asked
from ui.story import words
from ui.story.words import Figure
from ui.text import t

METRICS = ("ttft", "tpot", "itl", "e2e")
PERCENTILES = ("P50", "P95", "P99")
STATS = ("mean", "p50", "p95", "p99")
FEW_REQUESTS = 100
"""Simulated when a run does not say how many requests it sent."""


def name(run: BenchmarkRun) -> str:
    """A run's load in a few words."""
    if run.max_concurrency is not None:
        return t("concurrency {number:count}", number=run.max_concurrency)
    if run.request_rate_per_s is not None:
        return show.rate(run.request_rate_per_s)
    return t("all at once") if run.request_rate_is_infinite else t("load not stated")


def label(stored: StoredRun) -> str:
    """A stored run in one line."""
    model = _short(stored.run.model) or t("model not stated")
    return " · ".join(part for part in (model, name(stored.run), stored.run.tool, stored.run_id[:6]) if part)


def statistic_name(statistic: str) -> str:
    """``p99`` → P99; the mean in the visitor's language."""
    return t("mean") if statistic == "mean" else statistic.upper() if statistic.startswith("p") else statistic


def _short(model: str | None) -> str:
    """A model's name without owner or folder."""
    return (model or "").rstrip("/").split("/")[-1]


def stat(run: BenchmarkRun, metric: str, statistic: str) -> float | None:
    """One statistic in seconds, if the file states it."""
    values: LatencyStats | None = getattr(run, metric)
    return None if values is None else getattr(values, f"{statistic}_s")


def rows(runs: Sequence[BenchmarkRun]) -> list[Mapping[str, str]]:
    """One row per load point, units in every cell."""
    return [
        {
            t("Run"): str(number),
            t("Model"): _short(run.model) or show.missing(),
            t("Load"): name(run),
            t("Completed"): show.count(run.completed),
            t("Failed"): show.count(run.failed),
            t("Prompt / output"): f"{show.decimal(run.input_tokens_mean)} / {show.decimal(run.output_tokens_mean)}",
            "TTFT P50": show.ms(stat(run, "ttft", "p50")),
            "TTFT P95": show.ms(stat(run, "ttft", "p95")),
            "TTFT P99": show.ms(stat(run, "ttft", "p99")),
            t("TTFT mean"): show.ms(stat(run, "ttft", "mean")),
            t("TPOT mean"): show.ms(stat(run, "tpot", "mean")),
            t("E2E mean"): show.seconds(stat(run, "e2e", "mean")),
            t("Output"): show.tokens_rate(run.output_token_throughput_per_s),
            t("Requests"): show.rate(run.request_throughput_per_s),
        }
        for number, run in enumerate(runs, 1)
    ]


def problems(result: ReadResult) -> list[Mapping[str, Any]]:
    """Rows not taken: line and reason."""
    return [{t("Line"): row.line, t("Why it was left out"): t(row.reason)} for row in result.problems]


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


def figures(asked: Asked, stored: Sequence[StoredRun], chosen: Sequence[StoredRun]) -> list[Figure]:
    """How much was measured, and how far the model is off."""
    names = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E"}
    return [
        Figure(label=t("Load points stored"), value=show.count(len(stored)), provenance="measured"),
        *(
            Figure(
                label=t("{metric} error, median", metric=title),
                value=show.percent(median_error(asked, chosen, metric)),
                provenance="simulated",
                help=t("Of the chosen runs: simulated against measured means, the run's own load and lengths."),
            )
            for metric, title in names.items()
        ),
    ]


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


def meaning(code: str | float) -> str:
    """A column's meaning as people write it: ``ttft.mean:ms`` → ``TTFT mean (ms)``."""
    name, _, unit = str(code).partition(":")
    metric, _, statistic = name.partition(".")
    title = t(FIELDS[metric].title) if metric in FIELDS else metric
    shown = f"{title} {statistic_name(statistic)}".strip()
    return f"{shown} ({unit})" if unit else shown
