"""During which runs a log of GPU readings was taken: somebody says so, or the times of both do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from data.catalogue import gpus_named
from data.records import BenchmarkRun, GpuLog
from data.store.records import GpuLogTie, StoredGpuLog, TiedLog

Span: TypeAlias = tuple[datetime, datetime]
END_STAMP = "%Y%m%d-%H%M%S"
"""How vLLM and those who build on it write the moment at which a run ended; others write ISO time of its start."""
LEAST_COVERED_SHARE = 0.5
"""Readings of less of a run say little of its mean."""


def span_of_run(run: BenchmarkRun) -> Span | None:
    """Begin and end of a run whose file states a time of known meaning; without a zone it is some machine's clock."""
    lasted = timedelta(seconds=run.duration_s or 0.0)
    if ended := _stamp(run.date):
        return ended - lasted, ended
    started = _iso(run.date)
    return None if started is None or started.tzinfo is None else (started, started + lasted)


def span_of_log(log: GpuLog) -> Span | None:
    """First and last reading."""
    first, last = _iso(log.first_at), _iso(log.last_at)
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return None
    return min(first, last), max(first, last)


def lasted_s(log: GpuLog) -> float | None:
    """Seconds from the first reading to the last."""
    span = span_of_log(log)
    return None if span is None else (span[1] - span[0]).total_seconds()


def overlap(log: GpuLog, run: BenchmarkRun, *, any_zone: bool = False) -> bool:
    """Whether the log covers half of the run or more.

    A clock without a zone is compared with another such clock only; ``any_zone`` takes it for UTC, as a guess.
    """
    spans = span_of_log(log), span_of_run(run)
    if spans[0] is None or spans[1] is None:
        return False
    (first, last), (begin, end) = spans[0], spans[1]
    if (first.tzinfo is None) != (begin.tzinfo is None):
        if not any_zone:
            return False
        first, last, begin, end = (_in_utc(one) for one in (first, last, begin, end))
    if begin == end:
        return first <= begin <= last
    return (min(last, end) - max(first, begin)) >= LEAST_COVERED_SHARE * (end - begin)


def other_gpu(log: GpuLog, run: BenchmarkRun) -> bool:
    """True when the log and the run name different GPUs; a name that nobody knows is no other GPU."""
    ran = {gpu.id for gpu in gpus_named(run.gpu or "")}
    seen = {gpu.id for name in log.names for gpu in gpus_named(name)}
    return bool(ran and seen and not ran & seen)


def tied_logs(
    run_id: str, run: BenchmarkRun, logs: Sequence[StoredGpuLog], ties: Mapping[tuple[str, str], GpuLogTie]
) -> tuple[TiedLog, ...]:
    """Logs taken during a run, in their order. What somebody says stands, whatever the times say."""
    found = []
    for stored in logs:
        said = ties.get((stored.gpu_log_id, run_id))
        stands = said.stands if said else overlap(stored.log, run) and not other_gpu(stored.log, run)
        if stands:
            found.append(TiedLog(stored=stored, said=said))
    return tuple(found)


@lru_cache(maxsize=4096)
def _stamp(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", END_STAMP)  # noqa: DTZ007 - the file does not say its zone
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _iso(text: str | None) -> datetime | None:
    """A date with a time; a mere day says nothing here."""
    try:
        return datetime.fromisoformat(text or "") if ":" in (text or "") else None
    except ValueError:
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
