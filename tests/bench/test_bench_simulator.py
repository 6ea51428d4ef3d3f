"""Speed of the simulator on the command line's own load; run with ``pytest --benchmark-only`` on a quiet machine."""

from __future__ import annotations

from typing import Any

from calc.latency import predict, sweep
from data.case import read_case
from data.questions import BENCH_CASE

MIN_REQUESTS_PER_S = 1_000_000
MAX_SWEEP_S = 0.060
"""Five points of 1,000 requests and the knee: a slider must feel immediate."""
MAX_LONG_SWEEP_S = 0.250
"""Twelve points of 5,000 requests."""


def test_a_million_requests_a_second_with_percentiles(benchmark: Any) -> None:
    scenario, _ = read_case(BENCH_CASE)
    report = benchmark.pedantic(predict, args=(scenario,), rounds=5, warmup_rounds=1)
    assert report.requests / benchmark.stats.stats.min >= MIN_REQUESTS_PER_S


def steady() -> Any:
    case = {**BENCH_CASE, "workload": {**BENCH_CASE["workload"], "num_requests": None}, "slo": {"ttft_ms": 500}}
    return read_case(case)[0]


def test_a_sweep_answers_before_the_slider_is_let_go(benchmark: Any) -> None:
    benchmark.pedantic(sweep, args=(steady(),), rounds=5, warmup_rounds=1)
    assert benchmark.stats.stats.min <= MAX_SWEEP_S


def test_a_long_sweep_stays_within_a_quarter_of_a_second(benchmark: Any) -> None:
    benchmark.pedantic(sweep, args=(steady(),), kwargs={"points": 12, "requests": 5000}, rounds=5, warmup_rounds=1)
    assert benchmark.stats.stats.min <= MAX_LONG_SWEEP_S


MIN_TOGETHER_PER_S = 200_000


def test_replicas_together_stay_above_200_000_requests_a_second(benchmark: Any) -> None:
    """Eight replicas, each request sent to the least loaded."""
    load = {**BENCH_CASE["workload"], "arrivals": {"kind": "poisson", "rate_per_s": 96}}
    scenario, _ = read_case({**BENCH_CASE, "replicas": 8, "serving": {"routing": "least-loaded"}, "workload": load})
    report = benchmark.pedantic(predict, args=(scenario,), rounds=5, warmup_rounds=1)
    assert report.requests / benchmark.stats.stats.min >= MIN_TOGETHER_PER_S
