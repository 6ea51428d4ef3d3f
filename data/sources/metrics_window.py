"""Two scrapes of one server: what happened between them. This, not a single scrape, describes one benchmark run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from data.records import MetricsSnapshot
from data.sources.engine_metrics import COUNTERS, HISTOGRAMS
from data.sources.metrics_text import stats_of, subtract


def difference(before: MetricsSnapshot, after: MetricsSnapshot, seconds: float | None = None) -> MetricsSnapshot:
    """Counters and histograms of ``after`` minus ``before``, rates over the time between, gauges as of ``after``.

    ``seconds`` between the scrapes is needed for rates when the texts carry no time. A counter that fell means the
    server restarted (or the scrapes are swapped) and is an error, since the difference would be wrong silently.
    """
    _refuse_other_server(before, after)
    window = seconds if seconds is not None else _between(before, after)
    counted: dict[str, Any] = {field: _minus(getattr(before, field), getattr(after, field)) for field in COUNTERS}
    queries, hits = counted["prefix_queries_tokens"], counted["prefix_hits_tokens"]
    histograms = {
        name: found
        for name in HISTOGRAMS
        if name in before.histograms
        and name in after.histograms
        and (found := subtract(before.histograms[name], after.histograms[name])) is not None
    }
    latencies: dict[str, Any] = {name: stats_of(histograms.get(name)) for name in HISTOGRAMS}
    return replace(
        after,
        **counted,
        **latencies,
        prefix_hit_share=hits / queries if queries and hits is not None else None,
        prompt_tokens_per_s=_rate(counted["prompt_tokens_total"], window),
        output_tokens_per_s=_rate(counted["output_tokens_total"], window),
        histograms=histograms,
        window_s=window,
    )


def _refuse_other_server(before: MetricsSnapshot, after: MetricsSnapshot) -> None:
    if before.source != after.source or before.model != after.model:
        raise InputError(
            msg(
                "two scrapes of one server were expected, these are {before} and {after}: take both from the same one.",
                before=f"{before.source} {before.model or ''}".strip(),
                after=f"{after.source} {after.model or ''}".strip(),
            )
        )
    fallen = next((f for f in COUNTERS if (_minus(getattr(before, f), getattr(after, f)) or 0) < 0), None)
    if fallen is not None or before.started_at_s != after.started_at_s:
        raise InputError(
            msg(
                "counters fell between the scrapes ({counter}): the server restarted or the two are swapped, "
                "take both again.",
                counter=fallen or "process_start_time_seconds",
            )
        )


def _minus(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _between(before: MetricsSnapshot, after: MetricsSnapshot) -> float | None:
    span = _minus(before.taken_at_s, after.taken_at_s)
    return span if span is not None and span > 0 else None


def _rate(count: float | None, window: float | None) -> float | None:
    return count / window if count is not None and window else None
