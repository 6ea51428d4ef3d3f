"""A metrics snapshot as named evidence for a decision. What the text does not say is left out, never 0."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from calc.evidence import Evidence, Provenance
from data.records import LatencyStats, MetricsSnapshot

_LATENCIES = ("ttft", "tpot", "itl", "e2e")
_STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_SINCE_START = "since the server's start"
_WINDOW = "between two scrapes"
_MOMENT = "at one moment"


def evidence(snapshot: MetricsSnapshot, *, between: bool = False) -> tuple[Evidence, ...]:
    """Every figure of the snapshot under its metric name, in base units, measured inside the server.

    ``between`` says of a snapshot without a known window that it is the difference of two scrapes all the same.
    """
    span = _SINCE_START if snapshot.window_s is None and not between else _WINDOW
    date = "" if snapshot.taken_at_s is None else datetime.fromtimestamp(snapshot.taken_at_s, UTC).isoformat()
    found = [
        *((*row, _MOMENT) for row in _gauges(snapshot)),
        *((*row, span) for row in (*_counted(snapshot), *_latencies(snapshot))),
    ]
    return tuple(
        Evidence(
            metric=metric,
            value=value,
            unit=unit,
            provenance=Provenance.MEASURED,
            source=f"{snapshot.source}, {when}",
            date=date,
        )
        for metric, value, unit, when in found
        if value is not None
    )


def _gauges(snapshot: MetricsSnapshot) -> Iterator[tuple[str, float | bool | None, str]]:
    yield "running", _each(snapshot.requests_running, snapshot), "count"
    yield "waiting", _each(snapshot.requests_waiting, snapshot), "count"
    yield "max_num_seqs", _each(snapshot.max_running, snapshot), "count"
    yield "kv_usage_mean_share", snapshot.kv_usage_share, "share"
    yield "kv_usage_max_share", snapshot.kv_usage_share, "share"
    yield "gpu_utilisation_share", _mean([gpu.busy_share for gpu in snapshot.gpus]), "share"
    yield "gpu_power_share", _mean([_ratio(gpu.power_w, gpu.power_limit_w) for gpu in snapshot.gpus]), "share"
    yield "block_tokens", _number(snapshot.settings.get("block_size")), "tokens"
    yield "kv_tokens", _kv_tokens(snapshot), "tokens"
    caching = snapshot.settings.get("enable_prefix_caching")
    yield "prefix_caching", None if caching is None else caching.lower() in ("true", "1"), "flag"
    yield "offload", True if snapshot.offload_loaded_tokens_total or snapshot.host_cache_usage_share else None, "flag"


def _counted(snapshot: MetricsSnapshot) -> Iterator[tuple[str, float | None, str]]:
    finished, lost = snapshot.requests_finished_total, snapshot.requests_aborted_total
    yield "hit_rate_share", snapshot.prefix_hit_share, "share"
    yield "preempted_share", _ratio(snapshot.preemptions_total, finished), "share"
    yield "rejected_share", None if finished is None or lost is None else _ratio(lost, finished + lost), "share"
    yield "output_tokens_per_s", snapshot.output_tokens_per_s, "tokens/s"
    if snapshot.window_s is not None:
        yield "request_rate_per_s", _ratio(finished, snapshot.window_s), "per_s"
    # While something is fetched, not over all the time: a link that is seldom used is not a slow one.
    fetched = _ratio(snapshot.offload_loaded_bytes_total, snapshot.offload_loading_s_total)
    yield "transfer_bytes_per_s", fetched, "bytes/s"


def _latencies(snapshot: MetricsSnapshot) -> Iterator[tuple[str, float | None, str]]:
    for name in _LATENCIES:
        stats: LatencyStats | None = getattr(snapshot, name)
        for statistic in _STATISTICS:
            yield f"{name}_{statistic}_s", None if stats is None else getattr(stats, f"{statistic}_s"), "s"
    for name in ("queue", "prefill", "decode"):
        stats = getattr(snapshot, name)
        yield f"{name}_s", None if stats is None else stats.mean_s, "s"


def _kv_tokens(snapshot: MetricsSnapshot) -> float | None:
    """Of one replica: as the engine says it, else blocks × block size."""
    return _each(snapshot.kv_capacity_tokens, snapshot)


def _each(total: float | None, snapshot: MetricsSnapshot) -> float | None:
    """What one replica has of a figure that is added up over the engines of the text."""
    return None if total is None else total / (snapshot.engines or 1.0)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None
