"""Uploaded runs in words: one row per load point, and what a column of a table means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data.catalogue import short_name
from data.formats.fields import FIELDS
from data.records import BenchmarkRun, LatencyStats, ReadResult
from data.store import StoredRun
from ui import format as show
from ui.text import t


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
    return short_name(model or "")


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


def meaning(code: str | float) -> str:
    """A column's meaning as people write it: ``ttft.mean:ms`` → ``TTFT mean (ms)``."""
    name, _, unit = str(code).partition(":")
    metric, _, statistic = name.partition(".")
    title = t(FIELDS[metric].title) if metric in FIELDS else metric
    shown = f"{title} {statistic_name(statistic)}".strip()
    return f"{shown} ({unit})" if unit else shown
