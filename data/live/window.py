"""The last minutes of a recording as one snapshot and as evidence: counters between its ends, gauges over all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from calc.evidence import Evidence
from calc.messages import Message, msg
from data.live.entry import Entry, Kind
from data.records import MetricsSnapshot
from data.sources.exported import mean_busy_share
from data.sources.prometheus import Relation, difference, evidence, relation

FEWEST_SCRAPES = 2


@dataclass(frozen=True, kw_only=True)
class Window:
    """What happened between the first and the last scrape of the window."""

    snapshot: MetricsSnapshot
    """Counters and percentiles of the window, gauges of its last scrape."""
    first_s: float
    last_s: float
    scrapes: int
    kv_usage_mean_share: float | None
    kv_usage_max_share: float | None
    running_mean: float | None
    waiting_mean: float | None
    gpu_busy_share: float | None
    notes: tuple[Message, ...] = ()


def window_of(entries: Sequence[Entry], span_s: float) -> Window | None:
    """The last ``span_s`` of the lines, cut at a restart; ``None`` with fewer than two scrapes."""
    scrapes = [entry for entry in entries if entry.kind is Kind.SCRAPE and entry.snapshot is not None]
    if not scrapes:
        return None
    inside = [entry for entry in scrapes if entry.at_s >= scrapes[-1].at_s - span_s]
    kept = _since_restart(inside)
    first, last = kept[0].snapshot, kept[-1].snapshot
    if len(kept) < FEWEST_SCRAPES or first is None or last is None:
        return None
    snapshots = [entry.snapshot for entry in kept if entry.snapshot is not None]
    usage = _known(snapshots, lambda one: one.kv_usage_share)
    return Window(
        snapshot=difference(first, last, kept[-1].at_s - kept[0].at_s),
        first_s=kept[0].at_s,
        last_s=kept[-1].at_s,
        scrapes=len(kept),
        kv_usage_mean_share=_mean(usage),
        kv_usage_max_share=max(usage, default=None),
        running_mean=_mean(_known(snapshots, lambda one: one.requests_running)),
        waiting_mean=_mean(_known(snapshots, lambda one: one.requests_waiting)),
        gpu_busy_share=_mean(_known(snapshots, mean_busy_share)),
        notes=(CUT,) if len(kept) < len(inside) else (),
    )


CUT = msg("The engine restarted inside the window: only the time since then counts.")


def evidence_of(window: Window, engine: str) -> tuple[Evidence, ...]:
    """Everything the window says under the names that conditions ask for, gauges as means over it."""
    each = window.snapshot.engines or 1.0
    over = {
        "running": None if window.running_mean is None else window.running_mean / each,
        "waiting": None if window.waiting_mean is None else window.waiting_mean / each,
        "kv_usage_mean_share": window.kv_usage_mean_share,
        "kv_usage_max_share": window.kv_usage_max_share,
        "gpu_utilisation_share": window.gpu_busy_share,
    }
    source = (
        f"{window.snapshot.source} of {engine}, {window.scrapes} scrapes in {window.last_s - window.first_s:,.0f} s"
    )
    return tuple(
        replace(one, value=over.get(one.metric, one.value), source=source)
        for one in evidence(replace(window.snapshot, taken_at_s=window.last_s))
    )


def _since_restart(entries: Sequence[Entry]) -> Sequence[Entry]:
    kept = [entries[-1]]
    for before in reversed(entries[:-1]):
        if before.snapshot is None or kept[0].snapshot is None:
            continue
        if relation(before.snapshot, kept[0].snapshot) is not Relation.FOLLOWS:
            break
        kept.insert(0, before)
    return kept


def _known(snapshots: Sequence[MetricsSnapshot], read: Callable[[MetricsSnapshot], float | None]) -> list[float]:
    return list(_values(snapshots, read))


def _values(snapshots: Sequence[MetricsSnapshot], read: Callable[[MetricsSnapshot], float | None]) -> Iterator[float]:
    for one in snapshots:
        if (value := read(one)) is not None:
            yield value


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
