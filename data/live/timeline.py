"""A recording as courses over one time axis: rates and percentiles between scrapes, and what happened when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from calc.messages import Message, msg
from data.live.entry import Entry, Kind
from data.records import LatencyStats, MetricsSnapshot
from data.sources.exported import fullest_memory_bytes, fullest_memory_share, mean_busy_share, pcie_bytes_per_s
from data.sources.prometheus import Relation, difference, relation

MISSED_TURNS = 3.5
"""So many times the usual distance between two scrapes is a gap, even when no line says so."""


class Event(StrEnum):
    """What is marked on the time axis."""

    RESTART = "restart"
    GAP = "gap"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"
    PREEMPTIONS = "preemptions"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One event; a gap lasts until ``until_s``."""

    at_s: float
    event: Event
    sentence: Message
    until_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One value a scrape, ``None`` where it is not known; counters as rates since the scrape before."""

    times_s: tuple[float, ...]
    courses: Mapping[str, tuple[float | None, ...]]
    """Name of a course (see :data:`COURSES`) → its values; a course that is never known is absent."""
    marks: tuple[Mark, ...]
    step: int = 1
    """Every so many scrapes were read."""

    def course(self, name: str) -> tuple[float | None, ...]:
        """The values of a course, all unknown where it is absent."""
        return self.courses.get(name, (None,) * len(self.times_s))


def cut(line: Timeline, first_s: float, last_s: float) -> Timeline:
    """The stretch of a timeline between two moments."""
    kept = [place for place, at_s in enumerate(line.times_s) if first_s <= at_s <= last_s]
    return replace(
        line,
        times_s=tuple(line.times_s[place] for place in kept),
        courses={name: tuple(values[place] for place in kept) for name, values in line.courses.items()},
        marks=tuple(mark for mark in line.marks if first_s <= mark.at_s <= last_s),
    )


Read = Callable[[MetricsSnapshot], float | None]


def _rate(name: str) -> Read:
    def read(window: MetricsSnapshot) -> float | None:
        value: float | None = getattr(window, name)
        return value / window.window_s if value is not None and window.window_s else None

    return read


def _stat(name: str, stat: str) -> Read:
    def read(window: MetricsSnapshot) -> float | None:
        stats: LatencyStats | None = getattr(window, name)
        return None if stats is None else getattr(stats, stat)

    return read


MOMENTS: Mapping[str, Read] = {
    "kv_usage_share": lambda now: now.kv_usage_share,
    "running": lambda now: now.requests_running,
    "waiting": lambda now: now.requests_waiting,
    "gpu_busy_share": mean_busy_share,
    "gpu_memory_bytes": fullest_memory_bytes,
    "gpu_memory_share": fullest_memory_share,
    "pcie_bytes_per_s": pcie_bytes_per_s,
    "host_cache_share": lambda now: now.host_cache_usage_share,
}
"""Courses read at the moment of each scrape."""

RATES: Mapping[str, Read] = {
    "hit_share": lambda window: window.prefix_hit_share,
    "preemptions_per_s": _rate("preemptions_total"),
    "evicted_tokens_per_s": _rate("evicted_tokens_total"),
    "reloaded_tokens_per_s": _rate("offload_loaded_tokens_total"),
    "requests_per_s": _rate("requests_finished_total"),
    "output_tokens_per_s": lambda window: window.output_tokens_per_s,
    "ttft_p50_s": _stat("ttft", "p50_s"),
    "ttft_p95_s": _stat("ttft", "p95_s"),
    "ttft_p99_s": _stat("ttft", "p99_s"),
    "itl_p95_s": _stat("itl", "p95_s"),
    "e2e_p95_s": _stat("e2e", "p95_s"),
    "queue_mean_s": _stat("queue", "mean_s"),
    "cpu_cores": _rate("cpu_seconds_total"),
}
"""Courses of what happened since the scrape before."""
COURSES = (*MOMENTS, *RATES)


def timeline(entries: Sequence[Entry], step: int = 1) -> Timeline:
    """Courses and marks of a recording's lines."""
    scrapes = [entry for entry in entries if entry.snapshot is not None]
    windows = [None, *(_between(a, b) for a, b in pairwise(scrapes))][: len(scrapes)]
    drawn: dict[str, tuple[float | None, ...]] = {
        **{name: tuple(read(entry.snapshot) for entry in scrapes if entry.snapshot) for name, read in MOMENTS.items()},
        **{name: tuple(None if one is None else read(one) for one in windows) for name, read in RATES.items()},
    }
    return Timeline(
        times_s=tuple(entry.at_s for entry in scrapes),
        courses={name: values for name, values in drawn.items() if any(value is not None for value in values)},
        marks=tuple(sorted([*_said(entries), *_silent(entries), *_seen(scrapes, windows)], key=lambda m: m.at_s)),
        step=step,
    )


def _between(before: Entry, after: Entry) -> MetricsSnapshot | None:
    if before.snapshot is None or after.snapshot is None:
        return None
    if relation(before.snapshot, after.snapshot) is not Relation.FOLLOWS:
        return None
    return difference(before.snapshot, after.snapshot, after.at_s - before.at_s)


def _said(entries: Sequence[Entry]) -> list[Mark]:
    """Gaps, pauses and ends that have a line of their own."""
    marks = []
    for entry, following in zip(entries, [*entries[1:], None], strict=False):
        until = None if following is None else following.at_s
        match entry.kind:
            case Kind.GAP if entry.problem is not None:
                sentence = entry.problem.sentence("the engine")
                marks.append(Mark(at_s=entry.at_s, event=Event.GAP, sentence=sentence, until_s=until))
            case Kind.PAUSED:
                marks.append(
                    Mark(at_s=entry.at_s, event=Event.PAUSED, sentence=msg("Recording paused."), until_s=until)
                )
            case Kind.STOPPED:
                marks.append(Mark(at_s=entry.at_s, event=Event.STOPPED, sentence=msg("Recording stopped.")))
    return marks


def _silent(entries: Sequence[Entry]) -> list[Mark]:
    """Stretches without a line, such as after the recording server was killed."""
    times = [entry.at_s for entry in entries]
    distances = sorted(b - a for a, b in pairwise(times))
    if not distances:
        return []
    usual = distances[len(distances) // 2]
    return [
        Mark(at_s=a.at_s, event=Event.GAP, sentence=msg("Nothing was recorded here."), until_s=b.at_s)
        for a, b in pairwise(entries)
        if b.at_s - a.at_s > MISSED_TURNS * usual > 0 and a.kind is Kind.SCRAPE
    ]


def _seen(scrapes: Sequence[Entry], windows: Sequence[MetricsSnapshot | None]) -> list[Mark]:
    """Restarts, and windows in which requests were preempted."""
    marks = []
    for before, after, window in zip(scrapes, scrapes[1:], windows[1:], strict=False):
        if window is not None and window.preemptions_total:
            sentence = msg("{count:count} requests were preempted.", count=window.preemptions_total)
            marks.append(Mark(at_s=after.at_s, event=Event.PREEMPTIONS, sentence=sentence))
        elif window is None and before.snapshot is not None and after.snapshot is not None:
            other = relation(before.snapshot, after.snapshot) is Relation.OTHER_SERVER
            sentence = msg("Another model or engine answers from here on.") if other else RESTARTED
            marks.append(Mark(at_s=after.at_s, event=Event.RESTART, sentence=sentence))
    return marks


RESTARTED = msg("The engine restarted: its counters began again, no rate is told across it.")
