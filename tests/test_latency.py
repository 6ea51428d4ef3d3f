"""Predictions: decomposition, ordering, scaling, the sweep and its knee, and measured serving points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_step import METRICS, STATISTICS
from latency_accuracy import Outcome, as_run, outcomes, recipe_of

from calc.errors import ImpossibleDeployment
from calc.latency import headroom_per_s, load_of, predict, sweep, with_load
from calc.scenario import Scenario
from calc.simulator.arrivals import lengths
from calc.step.ingress import front_share
from data.case import read_case

CHAT: dict[str, Any] = {
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
        "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
        "arrivals": {"kind": "poisson", "rate_per_s": 12},
    },
    "slo": {"ttft_ms": 300, "itl_ms": 40, "percentile": 0.95},
}


def scenario(arrivals: dict[str, Any] | None = None, load: dict[str, Any] | None = None, **more: Any) -> Scenario:
    workload = {**CHAT["workload"], **(load or {}), **({"arrivals": arrivals} if arrivals else {})}
    return read_case({**CHAT, "workload": workload, **more})[0]


ARRIVALS = {
    "poisson": {"kind": "poisson", "rate_per_s": 12},
    "constant": {"kind": "constant", "rate_per_s": 12},
    "gamma": {"kind": "gamma", "rate_per_s": 12, "cv": 2.0},
    "per-minute": {"kind": "per-minute", "rates_per_s": [6, 18, 12]},
    "closed": {"kind": "closed", "concurrency": 32},
}


@pytest.mark.parametrize("kind", ARRIVALS)
@pytest.mark.parametrize("http", [True, False])
def test_the_four_parts_add_up_to_the_end_to_end_time(kind: str, http: bool) -> None:
    report = predict(scenario(ARRIVALS[kind], http=http))
    assert report.e2e.mean_s == pytest.approx(report.queue_s + report.prefill_s + report.decode_s + report.network_s)
    assert report.ttft.mean_s == pytest.approx(report.queue_s + report.prefill_s + report.network_s)
    assert (report.network_s > 0) is http


@pytest.mark.parametrize("kind", ARRIVALS)
def test_percentiles_rise_and_lie_in_their_bands(kind: str) -> None:
    report = predict(scenario(ARRIVALS[kind]))
    for kept in (report.ttft, report.itl, report.tpot, report.e2e):
        values = [kept.p50_s, kept.p90_s, kept.p95_s, kept.p99_s]
        assert values == sorted(values)
    for kept, band in ((report.ttft, report.ttft_band), (report.tpot, report.tpot_band), (report.e2e, report.e2e_band)):
        assert band is not None
        for name in ("p50_s", "p90_s", "p95_s", "p99_s"):
            low, high = getattr(band, name)
            assert low <= getattr(kept, name) <= high


def test_the_band_of_p95_covers_the_long_run_value() -> None:
    """95 % bands of 1,000 requests, 40 seeds: at light load at least 33 cover (binomial, 1 in 1,000 fewer)."""
    light = scenario({"kind": "poisson", "rate_per_s": 1})
    truth = predict(light, requests=60_000, seed=99).ttft.p95_s
    assert truth is not None
    bands = [predict(light, seed=seed).ttft_band for seed in range(40)]
    assert sum(band is not None and band.p95_s[0] <= truth <= band.p95_s[1] for band in bands) >= 33


def test_the_band_covers_under_a_queue_too() -> None:
    """At 60 % of the limit, where counting requests as independent covers two times in three: here 4 of 5 at least."""
    busy = scenario({"kind": "poisson", "rate_per_s": 0.6 * predict(scenario()).max_rate_per_s})
    truth = predict(busy, requests=60_000, seed=99).ttft.p95_s
    assert truth is not None
    bands = [predict(busy, seed=seed).ttft_band for seed in range(40)]
    assert sum(band is not None and band.p95_s[0] <= truth <= band.p95_s[1] for band in bands) >= 32


def test_the_same_seed_gives_the_same_report_and_another_does_not() -> None:
    assert predict(scenario()) == predict(scenario())
    assert predict(scenario(), seed=2).ttft != predict(scenario(), seed=1).ttft


def test_throughput_of_an_open_loop_is_its_rate_and_littles_law_holds() -> None:
    report = predict(scenario(), requests=10_000)
    assert report.offered_rate_per_s == 12
    assert report.request_rate_per_s == pytest.approx(12, rel=0.03)
    assert report.concurrency == pytest.approx(report.request_rate_per_s * (report.e2e.mean_s or 0))


def test_a_closed_loop_keeps_its_users_in_the_system() -> None:
    report = predict(scenario({"kind": "closed", "concurrency": 48}), requests=4000)
    assert report.offered_rate_per_s is None
    assert report.concurrency == pytest.approx(48, rel=0.03)


def test_more_load_never_lowers_latency() -> None:
    reports = [predict(scenario({"kind": "poisson", "rate_per_s": rate}), requests=3000) for rate in (1, 6, 12, 20, 26)]
    for pick in (lambda r: r.ttft.mean_s, lambda r: r.tpot.mean_s, lambda r: r.e2e.p99_s):
        values = [pick(report) for report in reports]
        assert values == sorted(values)


def test_more_bandwidth_never_raises_the_gap_between_tokens() -> None:
    base = scenario()
    gpu = base.deployment.gpu
    gaps = []
    for factor in (0.5, 1, 2, 4):
        faster = replace(gpu, bandwidth_bytes_per_s=factor * (gpu.bandwidth_bytes_per_s or 0))
        gaps.append(predict(replace(base, deployment=replace(base.deployment, gpu=faster))).itl)
    for pick in (lambda kept: kept.mean_s, lambda kept: kept.p99_s):
        assert [pick(gap) for gap in gaps] == sorted((pick(gap) for gap in gaps), reverse=True)


def test_more_prefix_hits_never_raise_the_time_to_first_token() -> None:
    means = [predict(scenario(load={"prefix_hit_share": share})).ttft.mean_s for share in (0, 0.3, 0.6, 0.9)]
    assert means == sorted(means, reverse=True)


def test_hits_count_only_with_the_prefix_cache_on() -> None:
    without = predict(scenario(load={"prefix_hit_share": 0.9}, enable_prefix_caching=False))
    assert without.ttft == predict(scenario(enable_prefix_caching=False)).ttft
    assert any("Prefix caching is off" in str(note) for note in without.notes)


def test_twice_the_replicas_carry_twice_the_load_at_the_same_latency() -> None:
    one = predict(scenario({"kind": "poisson", "rate_per_s": 12}))
    two = predict(scenario({"kind": "poisson", "rate_per_s": 24}, replicas=2))
    assert two.ttft == one.ttft
    assert two.max_rate_per_s == pytest.approx(2 * one.max_rate_per_s)
    assert two.output_tokens_per_s == pytest.approx(2 * one.output_tokens_per_s)


def test_bursts_lengthen_the_queue() -> None:
    calm, poisson, bursty = (
        predict(scenario({"kind": "gamma", "rate_per_s": 24, "cv": cv}), requests=5000).ttft.p99_s for cv in (0.3, 1, 4)
    )
    assert calm is not None
    assert poisson is not None
    assert bursty is not None
    assert calm < poisson < bursty


def test_a_peak_minute_is_worse_than_its_mean_rate() -> None:
    flat = predict(scenario({"kind": "poisson", "rate_per_s": 16}), requests=8000)
    peaky = predict(scenario({"kind": "per-minute", "rates_per_s": [4, 4, 40]}), requests=8000)
    assert (peaky.ttft.p95_s or 0) > 2 * (flat.ttft.p95_s or 0)


def test_chunked_prefill_cuts_the_tail_of_the_gaps() -> None:
    long = {
        "prompt_tokens": {"distribution": "fixed", "value": 12_000},
        "arrivals": {"kind": "poisson", "rate_per_s": 1},
    }
    chunked = predict(scenario(load=long, max_num_batched_tokens=1024))
    whole = predict(scenario(load=long, enable_chunked_prefill=False))
    assert (chunked.itl.p99_s or 0) < 0.5 * (whole.itl.p99_s or 0)


def test_overload_is_a_result_with_the_rate_that_is_left() -> None:
    report = predict(scenario({"kind": "poisson", "rate_per_s": 60}), requests=3000)
    assert report.saturated
    assert report.request_rate_per_s < 35
    assert report.slo_met is False
    assert np.isfinite(report.ttft.p99_s or np.nan)


def test_a_full_pool_preempts_and_is_named() -> None:
    report = predict(scenario({"kind": "poisson", "rate_per_s": 20}, kv_tokens=20_000), requests=3000)
    assert report.preemptions > 0
    assert report.kv_usage_max_share > 0.98
    assert report.limit == report.bound == "memory_capacity"


def test_too_few_slots_are_named() -> None:
    report = predict(scenario({"kind": "poisson", "rate_per_s": 12}, max_num_seqs=8), requests=2000)
    assert report.saturated
    assert report.bound == "sequences"


def test_a_finite_benchmark_is_simulated_whole() -> None:
    report = predict(scenario(load={"num_requests": 321}))
    assert report.requests == 321


def test_users_of_a_benchmark_start_at_once_and_prefill_in_a_burst() -> None:
    """The first wave waits for its own prefills; over ten waves the mean time to first token shows it."""
    closed = {"kind": "closed", "concurrency": 64}
    steady = predict(scenario(closed))
    burst = predict(scenario(closed, load={"num_requests": 640}))
    assert (burst.ttft.p99_s or 0) > 2 * (steady.ttft.p99_s or 0)


def test_a_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ImpossibleDeployment, match="does not fit"):
        predict(scenario(model="meta-llama/Meta-Llama-3.1-70B-Instruct"))


@pytest.mark.parametrize("kind", ["poisson", "per-minute", "closed"])
def test_a_sweep_rises_and_contains_the_operating_load(kind: str) -> None:
    asked = scenario(ARRIVALS[kind])
    found = sweep(asked)
    assert found.axis == ("concurrency" if kind == "closed" else "rate")
    assert list(found.loads) == sorted(found.loads)
    assert found.operating_load in found.loads
    at_operating = found.reports[found.loads.index(found.operating_load)]
    assert at_operating == predict(asked)


def test_the_knee_meets_the_slo_and_a_tenth_more_does_not() -> None:
    asked = scenario()
    found = sweep(asked)
    assert found.knee_load is not None
    assert predict(replace(asked, workload=with_load(asked.workload, found.knee_load))).slo_met
    assert not predict(replace(asked, workload=with_load(asked.workload, 1.1 * found.knee_load))).slo_met
    assert headroom_per_s(asked, load_sweep=found) == pytest.approx(found.knee_load - load_of(asked.workload))


def test_without_a_target_there_is_no_knee_and_no_attainment() -> None:
    asked = scenario(slo=None)
    found = sweep(asked)
    assert found.knee_load is None
    assert headroom_per_s(asked, load_sweep=found) is None
    report = predict(asked)
    assert report.slo_attainment_share is None
    assert report.slo_met is None
    assert report.goodput_per_s is None


def test_an_slo_no_load_can_meet_has_no_knee() -> None:
    asked = scenario(slo={"ttft_ms": 1})
    found = sweep(asked)
    assert found.knee_load is None
    assert headroom_per_s(asked, load_sweep=found) == -12


def test_attainment_falls_with_the_target() -> None:
    shares = [predict(scenario(slo={"e2e_ms": ms})).slo_attainment_share for ms in (10, 1000, 3000, 100_000)]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


def _recorded(outcomes: list[Outcome], metric: str, statistic: str = "mean", group: str = "") -> list[float]:
    """Relative errors of one figure, over all points or over a group."""
    chosen = [row.error(metric, statistic) for row in outcomes if row.point.group.startswith(group)]
    return [error for error in chosen if error is not None]


@pytest.fixture(scope="module")
def recorded(cases_dir: Path) -> list[Outcome]:
    """Every recorded serving point beside its prediction."""
    return outcomes(cases_dir)


def _median_size(errors: list[float]) -> float:
    return float(np.median(np.abs(errors)))


@pytest.mark.parametrize(
    ("metric", "statistic", "most"),
    [("tpot_ms", "mean", 0.08), ("ttft_ms", "mean", 0.20), ("e2e_ms", "mean", 0.08), ("ttft_ms", "p99", 0.35)],
)
def test_measured_runs_are_met_in_the_median(recorded: list[Outcome], metric: str, statistic: str, most: float) -> None:
    assert _median_size(_recorded(recorded, metric, statistic)) <= most


WITHIN = {
    "blis-dense": {"tpot_ms": 0.08, "ttft_ms": 0.20, "e2e_ms": 0.08},
    "blis-moe": {"tpot_ms": 0.08, "ttft_ms": 0.20, "e2e_ms": 0.08},
    "inferencex-vllm": {"tpot_ms": 0.08, "ttft_ms": 0.20},
    "inferencex-sglang": {"tpot_ms": 0.08, "ttft_ms": 0.35},
    "inferencex-tensorrt-llm": {"tpot_ms": 0.08, "ttft_ms": 0.35},
    "recorded": {"tpot_ms": 0.08, "ttft_ms": 0.20, "e2e_ms": 0.08},
}
"""Median size of the error of means aimed at in each group."""
MISSED = {
    ("inferencex-tensorrt-llm", "ttft_ms"): "18 of 39 runs were told to hold arrivals back for 20 steps "
    "(batch_wait_timeout_iters), which no case states; with that wait added they are 5 % off",
}


@pytest.mark.parametrize(("group", "metric"), [(group, metric) for group, aims in WITHIN.items() for metric in aims])
def test_every_group_of_runs_is_met_in_the_median(
    recorded: list[Outcome], group: str, metric: str, request: pytest.FixtureRequest
) -> None:
    if (group, metric) in MISSED:
        request.applymarker(pytest.mark.xfail(reason=MISSED[group, metric], strict=True))
    assert _median_size(_recorded(recorded, metric, group=group)) <= WITHIN[group][metric]


def test_closed_loops_below_saturation_meet_their_first_token(recorded: list[Outcome]) -> None:
    below = [row for row in recorded if row.point.group.startswith("inferencex") and not row.point.saturated]
    assert _median_size(_recorded(below, "ttft_ms")) <= 0.35


KNEES = {"H200-fp8-trtllm-tp1-8k1k": 64, "H200-fp8-vllm-tp1-8k1k": 64, "B200-fp8-vllm-tp1-8k1k": 64}
"""Sweep → first concurrency at which requests waited for seconds."""


@pytest.mark.parametrize("sweep_name", KNEES)
def test_sweeps_over_long_prompts_saturate_where_they_did(
    recorded: list[Outcome], sweep_name: str, request: pytest.FixtureRequest
) -> None:
    """TTFT jumps between 32 and 64 users while TPOT rises by less than half: within 30 % on both sides."""
    if sweep_name.startswith("B200"):
        reason = "the pool holds 73 users, so 64 do not wait; 7.8 s were measured, and the pool's size is not stated"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    points = [row for row in recorded if sweep_name in row.point.id]
    assert {row.point.case["workload"]["arrivals"]["concurrency"] for row in points if row.point.saturated}
    for row in points:
        users = row.point.case["workload"]["arrivals"]["concurrency"]
        assert ((row.report.ttft.mean_s or 0) > 5) == (users >= KNEES[sweep_name])
        assert abs(row.error("ttft_ms") or 0) < 0.30
        assert abs(row.error("tpot_ms") or 0) < 0.30


RECORDINGS = [(run, metric) for run in ("RTXPRO6000-Llama", "RTXPRO6000-Qwen3", "RTX4090-Llama") for metric in METRICS]
TAILS_MISSED = {
    ("RTXPRO6000-Llama", "ttft_ms"): "P50 is a third too short, as much as chance moves it in a run of 300 requests",
    ("RTXPRO6000-Qwen3", "ttft_ms"): "the queue for 2 x 128 slots was twice as long: it hangs on a few requests",
    ("RTX4090-Llama", "ttft_ms"): "P50 and P95 are up to a fifth too long; other draws of the run move P50 by 7 %",
}


@pytest.mark.parametrize(("run", "metric"), RECORDINGS)
def test_percentiles_of_recordings_inside_the_engine_are_within_15_percent(
    recorded: list[Outcome], run: str, metric: str, request: pytest.FixtureRequest
) -> None:
    if (run, metric) in TAILS_MISSED:
        request.applymarker(pytest.mark.xfail(reason=TAILS_MISSED[run, metric], strict=True))
    (row,) = [row for row in recorded if run in row.point.id]
    for statistic in STATISTICS:
        error = row.error(metric, statistic)
        assert error is None or abs(error) <= 0.15, statistic


def test_waiting_settings_of_published_scripts_explain_late_first_tokens(recorded: list[Outcome]) -> None:
    """TensorRT-LLM on Llama-70B below TP 8: its script makes arrivals wait 20 steps; nothing does at TP 8."""
    rows = [row for row in recorded if (recipe_of(row) or "").startswith("Llama TensorRT-LLM")]
    assert len(rows) == 24
    assert _median_size(_recorded([as_run(row) for row in rows], "ttft_ms")) <= 0.08


def test_a_setting_that_holds_arrivals_back_delays_the_first_token_by_its_steps() -> None:
    """SGLang polls every 30 steps: 15 on average. Steps between tokens stay as they are."""
    plain, held = (
        predict(scenario(engine="sglang", engine_version="0.5.3", **extra))
        for extra in ({}, {"extra_engine_args": {"scheduler-recv-interval": 30}})
    )
    assert held.tpot == plain.tpot
    waited_s = (held.ttft.mean_s or 0) - (plain.ttft.mean_s or 0)
    assert waited_s == pytest.approx(15 * (plain.itl.mean_s or 0), rel=0.02)
    assert any("15 steps" in str(note) for note in held.notes)


def test_long_prompts_take_longer_on_their_way_in() -> None:
    """8,000 tokens more at a million a second: 8 ms."""
    short, long = (
        predict(scenario(load={"prompt_tokens": {"distribution": "fixed", "value": tokens}})) for tokens in (100, 8100)
    )
    assert long.network_s - short.network_s == pytest.approx(8e-3, rel=1e-3)


def test_a_front_end_that_cannot_keep_up_is_said() -> None:
    """1,000 prompts at once, one process: measured first tokens after 9.5 s, of which the GPU needs 2."""
    assert front_share(1000, 0) == pytest.approx(9.5)
    tiny = {
        "prompt_tokens": {"distribution": "fixed", "value": 20},
        "output_tokens": {"distribution": "fixed", "value": 10},
        "arrivals": {"kind": "poisson", "rate_per_s": 100},
    }
    assert any("API server" in str(note) for note in predict(scenario(load=tiny)).notes)
    assert not any("API server" in str(note) for note in predict(scenario(load=tiny, http=False)).notes)
    assert not any("API server" in str(note) for note in predict(scenario()).notes)


def test_prompts_are_found_whole_or_not_where_a_hit_share_leaves_less_than_a_question() -> None:
    """97 % of 550 tokens leave 16: no question is that short, so three prompts in a hundred are new. Of 20,000 tokens
    they leave 600: everybody's own question. Either way the share is met on average."""
    for tokens, most_new in ((550, 550), (20_000, 600)):
        load = {"prompt_tokens": {"distribution": "fixed", "value": tokens}, "prefix_hit_share": 0.97}
        prompt, _, cached = lengths(scenario(load=load).workload, 20_000, 100_000, 1)
        assert cached.sum() / prompt.sum() == pytest.approx(0.97, abs=0.005)
        assert (prompt - cached).max() == most_new


def test_a_prompt_that_cannot_be_chunked_gets_a_budget_that_lets_it_in_and_that_is_said() -> None:
    """TensorRT-LLM, 8,100 tokens against a budget of 8,192: beside 93 running ones it would wait for most to leave."""
    long = {
        "prompt_tokens": {"distribution": "fixed", "value": 8100},
        "arrivals": {"kind": "closed", "concurrency": 96},
    }
    engine = {"engine": "tensorrt-llm", "gpu": "h200", "engine_version": "1.0.0"}
    assumed = predict(scenario(load=long, **engine))
    given = predict(scenario(load=long, **engine, max_num_batched_tokens=8192))
    assert any("8,356" in str(note) for note in assumed.notes)
    assert not any("8,356" in str(note) for note in given.notes)
    assert (given.ttft.mean_s or 0) > (assumed.ttft.mean_s or 0)
