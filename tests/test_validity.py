"""Each validity rule against the case that made somebody write it down, and against its neighbour that is fine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from calc.checks.codes import CODES, document
from calc.checks.gpus import imbalanced, too_few_samples
from calc.checks.growth import latency_growth_ratio
from calc.checks.validity import DECLARED, RULES, RunFacts, check_repeats, check_run, check_warming, compare
from calc.evidence import Percentiles

FINE = RunFacts(
    model="m",
    request_rate_per_s=4.0,
    num_prompts=2000,
    completed=2000,
    failed=0,
    duration_s=502.0,
    input_tokens_mean=100.0,
    output_tokens_mean=201.0,
    request_throughput_per_s=3.984,
    output_token_throughput_per_s=800.8,
    total_token_throughput_per_s=1199.2,
    ttft=Percentiles(mean_s=0.1, p50_s=0.09, p95_s=0.2, p99_s=0.3),
    tpot=Percentiles(mean_s=0.01, p50_s=0.01, p99_s=0.012),
    itl=Percentiles(mean_s=0.01, p50_s=0.0095, p99_s=0.03),
    e2e=Percentiles(mean_s=2.1, p50_s=2.05, p99_s=2.6),
)
"""A run in order: open load, long enough, every figure agrees with every other."""

_CODES = (
    "prefill_above_roofline warm_cache prompts_shared coordinated_omission start_burst all_at_once rate_not_reached "
    "saturated failed_requests all_failed failures_unknown failures_in_percentiles incomplete_requests few_requests "
    "few_samples runs_differ cold_start unit_implausible no_streaming headers_only itl_is_chunk_gap buffered_stream "
    "itl_includes_ttft tpot_includes_first_token throughput_inconsistent throughput_ambiguous mixed_stages not_serving "
    "server_side cumulative_counters zero_may_be_missing no_token_metrics lengths_nominal lengths_missing "
    "model_missing needs_companion p99_missing imbalanced_gpus not_comparable"
)
CLOSED_LIST = frozenset(_CODES.split())
"""Every code a caller has to know; none is added or dropped in passing."""
KNOWN = replace(FINE, gpu="h100-sxm", gpu_count=2, engine="vllm", engine_version="0.19.0")
NONE_KNOWN = {"tpot": Percentiles(), "itl": Percentiles(), "e2e": Percentiles()}
ONLY_E2E = NONE_KNOWN | {"ttft": Percentiles(), "e2e": Percentiles(mean_s=2.1)}


def codes(**change: Any) -> dict[str, str]:
    return {finding.code: finding.severity for finding in check_run(replace(FINE, **change))}


def test_a_run_in_order_raises_nothing() -> None:
    assert codes() == {}


FIRES: list[tuple[str, str, dict[str, Any]]] = [
    ("all_failed", "E", {"completed": 0, "failed": 2000}),
    ("failed_requests", "W", {"failed": 30}),
    ("failed_requests", "E", {"failed": 300}),
    ("failed_requests", "W", {"failed": None, "success_share": 0.995}),
    ("failures_unknown", "I", {"failed": None, "num_prompts": None}),
    ("few_requests", "W", {"num_prompts": 80, "completed": 80, "duration_s": 20.1}),
    ("few_requests", "W", {"num_prompts": 640, "completed": 640, "duration_s": 160.6}),
    ("incomplete_requests", "W", {"incomplete": 60}),
    ("rate_not_reached", "W", {"schedule_delay_s": 0.4}),
    ("saturated", "W", {"latency_growth_ratio": 3.1}),
    ("start_burst", "W", {"max_concurrency": 500, "request_rate_per_s": None}),
    ("all_at_once", "I", {"request_rate_per_s": None, "request_rate_is_infinite": True}),
    ("coordinated_omission", "W", {"max_concurrency": 50}),
    ("warm_cache", "W", {"prefix_hit_share": 0.3, "reuse_declared": False}),
    ("warm_cache", "W", {"prefix_hit_share": 0.3, "dataset": "random"}),
    ("no_streaming", "E", ONLY_E2E),
    ("no_streaming", "E", {"ttft": Percentiles(mean_s=2.05), "e2e": Percentiles(mean_s=2.1)}),
    ("unit_implausible", "E", {"tpot": Percentiles(mean_s=0.00001, p50_s=0.00001)}),
    ("unit_implausible", "E", {"e2e": Percentiles(mean_s=2100.0)}),
    ("unit_implausible", "E", {"max_concurrency": 4, "request_rate_per_s": None}),
    ("itl_is_chunk_gap", "W", {"itl": Percentiles(mean_s=0.0724, p50_s=0.0723)}),
    ("buffered_stream", "W", {"itl": Percentiles(mean_s=0.0108, p50_s=0.00005)}),
    ("throughput_inconsistent", "W", {"output_token_throughput_per_s": 400.0}),
    ("throughput_inconsistent", "W", {"request_throughput_per_s": 5.0}),
    ("throughput_ambiguous", "E", {"ambiguous_throughput_per_s": 298.4}),
    ("lengths_missing", "W", {"input_tokens_mean": None}),
    ("model_missing", "I", {"model": None}),
    (
        "p99_missing",
        "I",
        {"ttft": Percentiles(mean_s=0.1, p95_s=0.2), **{k: Percentiles() for k in ("tpot", "itl", "e2e")}},
    ),
    ("prefill_above_roofline", "E", {"prefill_limit_tokens_per_s": 1000.0}),
    ("server_side", "I", {"flags": ("server_side",)}),
    ("cumulative_counters", "W", {"flags": ("cumulative_counters",)}),
]


@pytest.mark.parametrize(("code", "severity", "change"), FIRES, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(FIRES)])
def test_a_code_fires_on_its_own_case(code: str, severity: str, change: dict[str, Any]) -> None:
    assert codes(**change).get(code) == severity


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("failed_requests", {"failed": 12}),
        ("few_requests", {"num_prompts": 1000, "completed": 1000}),
        ("few_requests", NONE_KNOWN | {"num_prompts": 40, "completed": 40, "ttft": Percentiles(mean_s=0.1)}),
        ("incomplete_requests", {"incomplete": 30}),
        ("rate_not_reached", {"schedule_delay_s": 0.02}),
        ("saturated", {"latency_growth_ratio": 1.4}),
        ("saturated", {"latency_growth_ratio": 3.1, "flags": ("prompts_shared",)}),
        ("coordinated_omission", {"max_concurrency": 50, "peak_concurrency": 31}),
        ("warm_cache", {"prefix_hit_share": 0.3, "dataset": "prefix_repetition_random"}),
        ("warm_cache", {"prefix_hit_share": 0.3, "dataset": "random", "reuse_declared": True}),
        (
            "no_streaming",
            NONE_KNOWN | {"ttft": Percentiles(), "e2e": Percentiles(mean_s=2.1), "flags": ("not_serving",)},
        ),
        ("start_burst", {"max_concurrency": 400, "request_rate_per_s": None}),
        ("start_burst", {"max_concurrency": 2, "num_prompts": 8, "completed": 8}),
        ("all_at_once", {"request_rate_is_infinite": True, "num_prompts": 10, "completed": 10}),
        ("coordinated_omission", {"max_concurrency": 50, "client_queue_timed": True}),
        ("warm_cache", {"prefix_hit_share": 0.3}),
        ("no_streaming", {"ttft": Percentiles(mean_s=2.05), "output_tokens_mean": 2.0}),
        ("throughput_inconsistent", {"output_token_throughput_per_s": 820.0}),
        ("lengths_missing", {"input_tokens_mean": None, "table": True}),
        ("prefill_above_roofline", {"prefill_limit_tokens_per_s": 2000.0}),
        ("prefill_above_roofline", {"prefill_limit_tokens_per_s": 1000.0, "prefix_hit_share": 0.4}),
        ("prefill_above_roofline", {"prefill_limit_tokens_per_s": 1000.0, "reuse_declared": True}),
        ("prefill_above_roofline", {"prefill_limit_tokens_per_s": 1000.0, "flags": ("prompts_shared",)}),
    ],
)
def test_a_code_stays_silent_beside_its_threshold(code: str, change: dict[str, Any]) -> None:
    assert code not in codes(**change)


def test_a_slow_server_and_a_slow_client_are_told_apart() -> None:
    """Same lost rate: once the drain explains the time (requests pile up), once nothing does (the client is late)."""
    lost = {"request_rate_per_s": 8.0, "request_throughput_per_s": 4.0, "duration_s": 500.0}
    piled_up = codes(**lost, e2e=Percentiles(mean_s=150.0, p99_s=260.0))
    assert "saturated" in piled_up
    assert "rate_not_reached" not in piled_up
    assert "rate_not_reached" in codes(**lost)


def test_a_cold_first_request_shows_in_a_short_run_only() -> None:
    cold = {"ttft": Percentiles(mean_s=0.2155, p50_s=0.0557), "e2e": Percentiles()}
    assert "cold_start" in codes(**cold, num_prompts=8, completed=8)
    assert "cold_start" not in codes(**cold)


def test_a_mean_over_uneven_requests_is_no_wrong_unit_when_the_median_fits() -> None:
    """TPOT mean 11.1 ms, median 7.6 ms, E2E 1,432 ms: a published run with answers of 3 to 741 tokens."""
    uneven = codes(
        tpot=Percentiles(mean_s=0.0111, p50_s=0.00756),
        ttft=Percentiles(mean_s=0.0624),
        e2e=Percentiles(mean_s=1.4318),
        output_tokens_mean=186.7,
    )
    assert "unit_implausible" not in uneven


def test_a_factor_of_a_thousand_in_any_latency_is_found() -> None:
    for name in ("tpot", "e2e"):
        stats: Percentiles = getattr(FINE, name)
        for factor in (1000, 0.001):
            wrong = replace(stats, mean_s=(stats.mean_s or 0) * factor, p50_s=(stats.p50_s or 0) * factor)
            assert {"unit_implausible", "no_streaming"} & codes(**{name: wrong}).keys(), (name, factor)


def test_the_factor_that_makes_a_wrong_unit_fit_is_named() -> None:
    """Seconds labelled as milliseconds in every column, in one column, and no unit that could help."""
    small = {
        name: Percentiles(
            mean_s=(getattr(FINE, name).mean_s or 0) / 1000, p50_s=(getattr(FINE, name).p50_s or 0) / 1000
        )
        for name in ("ttft", "tpot", "itl", "e2e")
    }
    everything = check_run(replace(FINE, **small))
    assert any("Every latency x 1,000 would fit" in str(finding.text) for finding in everything)
    assert "E2E x 1,000" in _unit(e2e=small["e2e"])
    assert "TPOT / 1,000" in _unit(tpot=Percentiles(mean_s=10.0, p50_s=10.0))
    assert "Every latency x 1,000,000" in _unit(
        **{name: Percentiles(mean_s=(getattr(FINE, name).mean_s or 0) / 1e6) for name in ("ttft", "tpot", "itl", "e2e")}
    )


def test_an_e2e_off_by_less_than_a_unit_is_a_count_of_tokens_not_a_wrong_label() -> None:
    """A published run with speculation: E2E 1,284 ms, TTFT 51 ms, TPOT 10.8 ms and 63 tokens, which makes 719 ms."""
    speculated = codes(
        ttft=Percentiles(mean_s=0.0506), tpot=Percentiles(mean_s=0.0108), e2e=Percentiles(mean_s=1.2835),
        output_tokens_mean=63.0, output_token_throughput_per_s=None, total_token_throughput_per_s=None,
    )  # fmt: skip
    assert speculated == {"throughput_inconsistent": "W"} | {
        c: s for c, s in speculated.items() if c == "itl_is_chunk_gap"
    }


def _unit(**change: Any) -> str:
    return next(str(one.text) for one in check_run(replace(FINE, **change)) if one.code == "unit_implausible")


def test_the_thinnest_percentile_is_named() -> None:
    few = replace(FINE, num_prompts=150, completed=150, duration_s=37.65)
    text = next(str(one.text) for one in check_run(few) if one.code == "few_requests")
    assert "P99" in text
    assert "1,000" in text


def test_ttft_that_falls_between_equal_runs_is_a_warm_cache() -> None:
    cold = replace(FINE, ttft=Percentiles(mean_s=0.8, p50_s=0.8), input_tokens_mean=4000.0)
    warm = replace(cold, ttft=Percentiles(mean_s=0.1, p50_s=0.1))
    finding = check_warming([cold, warm])
    assert finding is not None
    assert finding.code == "warm_cache"
    assert check_warming([warm, cold]) is None, "a rising TTFT is another matter"
    assert check_warming([cold, replace(warm, request_rate_per_s=1.0)]) is None, "a lighter load explains it"
    assert check_warming([cold, replace(warm, input_tokens_mean=400.0)]) is None, "shorter prompts explain it"
    assert check_warming([replace(cold, input_tokens_mean=40.0), replace(warm, input_tokens_mean=40.0)]) is None


def test_runs_are_put_into_their_order_in_time_where_they_say_it() -> None:
    cold = replace(FINE, ttft=Percentiles(p50_s=0.8), input_tokens_mean=4000.0, started_at="20260818-021333")
    warm = replace(cold, ttft=Percentiles(p50_s=0.1), started_at="20260818-031333")
    assert check_warming([warm, cold]) is not None


def test_latency_that_rises_through_an_overloaded_run_is_a_trend_and_noise_is_none() -> None:
    """An M/D/1 queue offered 1.2 times what it can serve grows without end; at half load it does not."""
    rng = np.random.default_rng(5)
    for rate, grows in ((1.2, True), (0.5, False)):
        starts = np.cumsum(rng.exponential(1 / rate, 600))
        finished, waits = 0.0, []
        for start in starts:
            finished = max(finished, float(start)) + 1.0
            waits.append(finished - float(start))
        ratio = latency_growth_ratio(np.array(waits), starts)
        assert (ratio is not None and ratio > 2) == grows
    assert latency_growth_ratio(np.arange(1.0, 601.0), np.zeros(600)) is None, "all sent at once"
    assert latency_growth_ratio(np.array([1.0, 9.0]), np.array([0.0, 1.0])) is None


def test_gpus_that_share_unevenly_are_found() -> None:
    assert imbalanced(((0.9, 0.88, 0.93), (70e9, 69e9, 70e9))) is None
    assert imbalanced(((0.9, None), ())) is None
    assert imbalanced(((0.04, 0.01),)) is None, "both idle"
    uneven = imbalanced(((0.9, 0.4),))
    assert uneven is not None
    assert uneven.code == "imbalanced_gpus"
    assert too_few_samples(10) is None
    assert too_few_samples(3) is not None


def test_repeats_within_a_fifth_agree() -> None:
    def run(rate: float) -> RunFacts:
        return replace(FINE, request_throughput_per_s=rate)

    assert check_repeats([run(4.0), run(4.7)]) is None
    differing = check_repeats([run(4.0), run(5.0)])
    assert differing is not None
    assert differing.code == "runs_differ"
    assert check_repeats([run(4.0), replace(run(9.0), max_concurrency=64)]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"output_tokens_mean": 220.0},
        {"request_rate_per_s": None, "max_concurrency": 32},
        {"failed": 100},
        {"gpu_count": 4},
        {"gpu": "h200"},
        {"engine_version": "0.20.0"},
        {"flags": ("server_side",)},
    ],
)
def test_runs_of_other_lengths_arrivals_or_failures_are_not_compared(change: dict[str, Any]) -> None:
    found = compare(KNOWN, replace(KNOWN, **change))
    assert found is not None
    assert found.code == "not_comparable"


def test_equal_runs_may_be_compared() -> None:
    assert compare(FINE, replace(FINE, request_throughput_per_s=9.0)) is None


def test_every_code_the_source_can_raise_is_on_the_closed_list_and_none_is_missing() -> None:
    raised = set(DECLARED)
    for path in (ROOT / "calc" / "checks").glob("*.py"):
        raised |= set(re.findall(r'code="([a-z0-9_]+)"', path.read_text(encoding="utf-8")))
    assert raised == CLOSED_LIST == set(CODES)


def test_the_page_of_codes_says_what_the_rules_do() -> None:
    """Its thresholds are the rules' constants; its severities are those that rules raise."""
    assert (ROOT / "docs" / "validity.md").read_text(encoding="utf-8") == document()
    raised = [(code, severity) for code, severity, _ in FIRES]
    raised += [(code, severity) for code, (severity, _) in DECLARED.items()]
    assert not [(code, severity) for code, severity in raised if severity not in CODES[code].severity.split("/")]


def test_every_sentence_prints_with_its_numbers() -> None:
    for _, _, change in FIRES:
        for finding in check_run(replace(FINE, **change)):
            assert re.search(r"[a-z]", str(finding.text))
            assert "{" not in str(finding.text)


def test_no_rule_divides_by_an_empty_run() -> None:
    for rule in RULES:
        for facts in (RunFacts(), RunFacts(completed=0, num_prompts=0, duration_s=0.0, failed=0)):
            finding = rule(facts)
            assert finding is None or finding.code in CLOSED_LIST
