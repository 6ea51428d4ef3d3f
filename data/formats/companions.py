"""Files that belong to one run: a summary, its percentiles, its requests, and what the server saw of it.

Names only propose that two files belong together (the same folder, and the same name but for the words of their role);
what is in them decides. The summary wins: a companion adds what the summary does not say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from data.formats.document import open_document
from data.formats.json_fields import text
from data.records import BenchmarkRun, LatencyStats, ReadResult

_LATENCIES = ("ttft", "tpot", "itl", "e2e")
_COUNTS = ("completed", "failed", "max_concurrency")
"""Counts that two files of one run cannot disagree on."""
_ROLE = re.compile(
    r"benchmark_(?:summary|percentile|args|data)|(?:lifecycle|prometheus)(?:_metrics)?|"
    r"(?:stats_history|stats|failures|exceptions)|\.[a-z]+$"
)

Load = Callable[[], bytes]
Join = Callable[[BenchmarkRun, ReadResult, Load], BenchmarkRun]


@dataclass(frozen=True, kw_only=True)
class Companion:
    """Formats of the leading file, most telling first, the format of its companion, and what it adds."""

    leads: tuple[str, ...]
    format: str
    join: Join


def stem(name: str) -> str:
    """A file's name without the words of its role: what companions share."""
    return _ROLE.sub("", name.lower())


def agree(run: BenchmarkRun, other: BenchmarkRun) -> bool:
    """False when both state a count and the counts differ: they are not of one run."""
    pairs = ((getattr(run, name), getattr(other, name)) for name in _COUNTS)
    return all(one == two for one, two in pairs if one is not None and two is not None)


def _completed(run: BenchmarkRun, companion: ReadResult, load: Load) -> BenchmarkRun:  # noqa: ARG001 - as all joins
    """``run`` with every figure that only the companion states."""
    if not companion.runs:
        return run
    other = companion.runs[0]
    missing: dict[str, Any] = {
        field.name: getattr(other, field.name)
        for field in fields(run)
        if field.name not in (*_LATENCIES, "extra", "flags", "line") and getattr(run, field.name) is None
    }
    latencies: dict[str, Any] = {name: _stats(getattr(run, name), getattr(other, name)) for name in _LATENCIES}
    extra = {**other.extra, **run.extra}
    return replace(run, **missing, **latencies, extra=extra)


def _stats(stats: LatencyStats | None, other: LatencyStats | None) -> LatencyStats | None:
    if stats is None or other is None:
        return stats or other
    missing = {field.name: getattr(other, field.name) for field in fields(stats) if getattr(stats, field.name) is None}
    return replace(stats, **missing)


def _unchanged(run: BenchmarkRun, companion: ReadResult, load: Load) -> BenchmarkRun:  # noqa: ARG001 - as all joins
    return run


def _with_arguments(run: BenchmarkRun, companion: ReadResult, load: Load) -> BenchmarkRun:
    """The model, which only the arguments of evalscope name."""
    values = open_document(load(), companion.file).values
    arguments = values[0].value if values and isinstance(values[0].value, dict) else {}
    return run if run.model else replace(run, model=text(arguments, "model"))


def _with_server_side(run: BenchmarkRun, companion: ReadResult, load: Load) -> BenchmarkRun:  # noqa: ARG001 - as all
    """What only the server knows; its latencies stand under names of their own, for they do not include the network."""
    if not companion.runs:
        return run
    server = companion.runs[0]
    seen: dict[str, float | str] = {
        f"server_{name}_{field.name}": value
        for name in _LATENCIES
        if (stats := getattr(server, name)) is not None
        for field in fields(stats)
        if (value := getattr(stats, field.name)) is not None
    }
    shares = {name: getattr(server, name) or None for name in ("prefix_hit_share", "kv_usage_share")}
    found: dict[str, Any] = {name: share for name, share in shares.items() if getattr(run, name) is None}
    return replace(run, **found, extra={**run.extra, **seen})


_EVALSCOPE = ("evalscope_summary", "evalscope_summary_old", "evalscope_sqlite")
_LOCUST = ("locust_stats_csv",)
COMPANIONS: tuple[Companion, ...] = (
    Companion(leads=_EVALSCOPE, format="evalscope_percentile", join=_completed),
    Companion(leads=_EVALSCOPE[:2], format="evalscope_sqlite", join=_completed),
    Companion(leads=_EVALSCOPE, format="evalscope_args", join=_with_arguments),
    Companion(leads=_LOCUST, format="locust_failures", join=_unchanged),
    Companion(leads=_LOCUST, format="locust_exceptions", join=_unchanged),
    Companion(leads=_LOCUST, format="locust_stats_history", join=_unchanged),
    Companion(leads=("inference_perf_lifecycle",), format="inference_perf_prometheus", join=_with_server_side),
)
"""In the order in which they are joined: percentiles of the tool before those computed from its requests."""
