"""Writes the made-up recording that the demonstration replays: ``python -m data.live.sample``.

Every figure comes from the simulator, request by request; no engine was measured. A calm hour, then prompts that no
longer share their beginning (the cache is not hit), then more load than the cache holds, a restart, and calm again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calc.anatomy.hour import kv_usage
from calc.anatomy.run import Run, run_of
from calc.memory import estimate_memory
from calc.scenario import Scenario
from calc.units import SECONDS_PER_MINUTE
from calc.workload import FloatArray
from data.case import example_case, read_case
from data.live.entry import Entry, Kind, Problem, Recording, Trouble
from data.live.recording_file import SUFFIX, write_recording
from data.records import GpuMetrics, Histogram, MetricsSnapshot

PATH = Path(__file__).parent.parent / "samples" / f"sample-engine{SUFFIX}"
BEGINS_AT_S = 1_793_523_600.0
"""1 November 2026, 9:00 UTC; any moment would do."""
AWAY_MINUTES = 3
"""The engine does not answer while it is restarted."""
FULL_SHARE = 0.98
"""KV usage from which the preemptions of a phase are spread over its time: the simulator tells only their sum."""
PROMPT_COUNTERS = ("prefix_queries_tokens", "prefix_hits_tokens")
MARGIN = 1.15
"""More requests are drawn than a phase lasts, so that it does not end early."""
BOUNDS: Mapping[str, tuple[float, ...]] = {
    "ttft": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, np.inf),
    "itl": (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.5, np.inf),
    "e2e": (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 240.0, np.inf),
    "queue": (0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, np.inf),
}
"""Buckets of the histograms."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of one load."""

    minutes: int
    rate_per_s: float
    hit_share: float


PHASES = (
    Phase(minutes=60, rate_per_s=1.2, hit_share=0.6),
    Phase(minutes=25, rate_per_s=1.7, hit_share=0.02),
    Phase(minutes=35, rate_per_s=2.9, hit_share=0.3),
)
AFTER = Phase(minutes=12, rate_per_s=1.2, hit_share=0.6)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Counters and histograms of a phase at one moment, since its beginning."""

    numbers: Mapping[str, Any]
    histograms: Mapping[str, Histogram]


def entries() -> Iterator[Entry]:
    """The lines of the recording."""
    minute, before = 0, None
    for phase in PHASES:
        lines = list(_played(phase, minute, before, BEGINS_AT_S - SECONDS_PER_MINUTE))
        yield from lines
        before, minute = lines[-1].snapshot, minute + phase.minutes
    away_s = BEGINS_AT_S + minute * SECONDS_PER_MINUTE
    yield Entry(at_s=away_s, kind=Kind.GAP, problem=Problem(trouble=Trouble.UNREACHABLE, detail="Connection refused"))
    yield from _played(AFTER, minute + AWAY_MINUTES, None, away_s + SECONDS_PER_MINUTE)
    yield Entry(at_s=BEGINS_AT_S + (minute + AWAY_MINUTES + AFTER.minutes) * SECONDS_PER_MINUTE, kind=Kind.STOPPED)


def _played(phase: Phase, minute: int, before: MetricsSnapshot | None, started_at_s: float) -> Iterator[Entry]:
    """One scrape a minute; counters go on from ``before``."""
    scenario = _scenario(phase)
    run = run_of(scenario, requests=int(phase.rate_per_s * phase.minutes * SECONDS_PER_MINUTE * MARGIN))
    report = estimate_memory(scenario.deployment, scenario.workload)
    used = report.total_bytes - report.margin_bytes
    for passed in range(phase.minutes):
        now_s = float((passed + 1) * SECONDS_PER_MINUTE)
        at_s = BEGINS_AT_S + (minute + passed) * SECONDS_PER_MINUTE
        snapshot = _snapshot(scenario, run, phase, now_s)
        gpus = tuple(
            replace(gpu, memory_used_bytes=used, memory_free_bytes=report.margin_bytes) for gpu in snapshot.gpus
        )
        whole = replace(snapshot, started_at_s=started_at_s, taken_at_s=at_s, gpus=gpus)
        yield Entry(at_s=at_s, kind=Kind.SCRAPE, snapshot=whole if before is None else _added(before, whole))


def _scenario(phase: Phase) -> Scenario:
    case = deepcopy(dict(example_case()))
    arrivals = {"kind": "poisson", "rate_per_s": phase.rate_per_s}
    case["workload"] = {**case["workload"], "arrivals": arrivals, "prefix_hit_share": phase.hit_share}
    return read_case(case)[0]


def _snapshot(scenario: Scenario, run: Run, phase: Phase, now_s: float) -> MetricsSnapshot:
    result, rules = run.result, run.replica.rules
    counted = _counted(run, phase, now_s)
    seconds = np.arange(now_s - SECONDS_PER_MINUTE, now_s) + 0.5
    busy = float(np.mean([_count(result.arrival_s, s) > _count(result.finished_s, s) for s in seconds]))
    admitted = _count(result.admitted_s, now_s)
    return MetricsSnapshot(
        source="vLLM /metrics",
        model=scenario.deployment.model.name,
        engines=1.0,
        requests_running=float(admitted - _count(result.finished_s, now_s)),
        requests_waiting=float(_count(result.arrival_s, now_s) - admitted),
        kv_usage_share=round(float(kv_usage(result, rules, np.array([now_s]))[0]), 4),
        kv_capacity_tokens=float(rules.total_blocks * rules.block_tokens),
        histograms=counted.histograms,
        settings={"block_size": str(rules.block_tokens), "enable_prefix_caching": "True"},
        gpus=tuple(
            GpuMetrics(gpu=str(i), name=scenario.deployment.gpu.name, busy_share=round(busy, 3))
            for i in range(scenario.deployment.gpu_count)
        ),
        **counted.numbers,
    )


def _counted(run: Run, phase: Phase, now_s: float) -> Counted:
    result = run.result
    seen, done = result.first_token_s <= now_s, result.finished_s <= now_s
    prompts = float(result.prompt_tokens[seen].sum())
    span = np.maximum(result.finished_s - result.first_token_s, 1e-9)
    made = np.clip((now_s - result.first_token_s[seen]) / span[seen], 0, 1) * (result.output_tokens[seen] - 1) + 1
    gaps = (result.finished_s - result.first_token_s) / np.maximum(result.output_tokens - 1, 1)
    waited = result.admitted_s <= now_s
    return Counted(
        numbers={
            "prompt_tokens_total": prompts,
            "prefix_queries_tokens": prompts,
            "prefix_hits_tokens": float(round(prompts * phase.hit_share)),
            "output_tokens_total": float(round(made.sum())),
            "requests_finished_total": float(done.sum()),
            "requests_aborted_total": 0.0,
            "preemptions_total": float(round(result.preemptions * _full_until(run, now_s))),
        },
        histograms={
            "ttft": _histogram("ttft", (result.first_token_s - result.arrival_s)[seen]),
            "queue": _histogram("queue", (result.admitted_s - result.arrival_s)[waited]),
            "e2e": _histogram("e2e", (result.finished_s - result.arrival_s)[done]),
            "itl": _histogram("itl", np.repeat(gaps[done], np.maximum(result.output_tokens[done] - 1, 0))),
        },
    )


def _full_until(run: Run, now_s: float) -> float:
    """Share of the simulated time with a full cache that has passed."""
    seconds = np.arange(0.0, run.result.end_s, 1.0)
    full = kv_usage(run.result, run.replica.rules, seconds) >= FULL_SHARE
    return float(full[seconds <= now_s].sum() / max(1, full.sum()))


def _count(times_s: FloatArray, now_s: float) -> int:
    return int((times_s <= now_s).sum())


def _histogram(name: str, values: FloatArray) -> Histogram:
    bounds = BOUNDS[name]
    counts = tuple(float((values <= bound).sum()) for bound in bounds)
    return Histogram(bounds=bounds, counts=counts, total=round(float(values.sum()), 3), count=float(values.size))


def _added(before: MetricsSnapshot, since: MetricsSnapshot) -> MetricsSnapshot:
    """Counters that go on where the phase before ended."""
    names = [name for name in vars(since) if name.endswith("_total") or name in PROMPT_COUNTERS]
    sums = {name: getattr(before, name) + getattr(since, name) for name in names if getattr(since, name) is not None}
    histograms = {name: _joined(before.histograms[name], one) for name, one in since.histograms.items()}
    return replace(since, histograms=histograms, **sums)


def _joined(one: Histogram, other: Histogram) -> Histogram:
    return Histogram(
        bounds=other.bounds,
        counts=tuple(a + b for a, b in zip(one.counts, other.counts, strict=True)),
        total=(one.total or 0.0) + (other.total or 0.0),
        count=(one.count or 0.0) + (other.count or 0.0),
    )


def main() -> None:
    """Write the file."""
    recording = Recording(
        recording_id="",
        engine="made-up engine",
        interval_s=float(SECONDS_PER_MINUTE),
        started_at_s=BEGINS_AT_S,
        note="made up by the simulator for demonstration; no engine was measured",
        made_up=True,
    )
    PATH.write_bytes(write_recording(recording, list(entries())))


if __name__ == "__main__":
    main()
