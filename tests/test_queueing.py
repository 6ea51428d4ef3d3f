"""Textbook formulas against their tables and special cases, and the simulation against the textbook."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calc.latency import predict
from calc.queueing import (
    batch_quantile,
    dispersion,
    erlang_c,
    kingman_wait_s,
    md1_wait_s,
    mg1_wait_s,
    mmc_wait_s,
    shared_batch_shares,
    vacation_wait_s,
    wait_quantile_s,
)
from calc.scenario import Scenario
from calc.simulator.arrivals import open_arrivals
from calc.textbook.answers import textbook
from calc.workload import Closed, Fixed, LogNormal, Mmpp, OpenLoop, PerMinute, Recorded
from data.case import read_case


def chat(rate_per_s: float = 12.0, **deployment: object) -> Scenario:
    """Llama-3.1-8B on one H100 with chat lengths."""
    case = {
        "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm",
        "engine": "vllm",
        "workload": {
            "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
            "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
            "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s},
        },
        **deployment,
    }
    return read_case(case)[0]


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_exponential_service_gives_mm1_and_equal_service_half_of_it(load: float) -> None:
    service_s = 2.0
    mm1 = load / (1 - load) * service_s
    assert mg1_wait_s(load / service_s, service_s, 2 * service_s**2) == pytest.approx(mm1)
    assert md1_wait_s(load / service_s, service_s) == pytest.approx(mm1 / 2)
    assert mmc_wait_s(load / service_s, service_s, 1) == pytest.approx(mm1)
    assert kingman_wait_s(load / service_s, service_s, 1.0, 1.0) == pytest.approx(mm1)


@pytest.mark.parametrize(
    ("servers", "offered", "share"),
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (5, 3.0, 0.2362), (10, 8.0, 0.4092), (100, 90.0, 0.2191)],
)
def test_erlang_c_agrees_with_its_table(servers: int, offered: float, share: float) -> None:
    assert erlang_c(servers, offered) == pytest.approx(share, rel=0.02)


def test_a_full_load_has_no_steady_state() -> None:
    assert mg1_wait_s(1.0, 1.0, 2.0) is None
    assert mmc_wait_s(4.0, 1.0, 4) is None
    assert kingman_wait_s(1.0, 1.2, 1.0, 1.0) is None
    assert erlang_c(4, 5.0) == 1.0


def test_steps_that_grow_with_the_batch_share_like_mm1() -> None:
    """t(k) = k·s: the chain is M/M/1, π(n) = (1−ρ)ρⁿ."""
    shares = shared_batch_shares(0.5, np.arange(200.0), 1.0)
    assert shares[:5] == pytest.approx([0.5 ** (n + 1) for n in range(5)])


def test_steps_of_equal_length_share_like_infinite_servers() -> None:
    """t(k) = s: the chain is M/M/∞, Poisson with mean λ·E[o]·s."""
    shares = shared_batch_shares(2.0, np.full(100, 0.5), 3.0)
    assert float((shares * np.arange(100)).sum()) == pytest.approx(3.0)


@pytest.mark.parametrize("load", [0.15, 0.4, 0.75])
def test_the_simulated_time_per_token_is_the_textbooks(load: float) -> None:
    scenario = chat(load * predict(chat()).max_rate_per_s)
    shared = {result.code: result for result in textbook(scenario).results}["decode-ps"]
    report = predict(scenario, requests=20_000)
    assert shared.holds
    assert report.tpot.mean_s == pytest.approx(shared.value_s, rel=0.05)


@pytest.mark.parametrize("changed", [{}, {"max_num_seqs": 48}, {"kv_tokens": 60_000}])
def test_the_stability_limit_is_where_the_simulation_stops_keeping_up(changed: dict[str, int]) -> None:
    limit = predict(chat(**changed)).max_rate_per_s
    below, beyond = (chat(share * limit, **changed) for share in (0.85, 1.3))
    stable, crowded = predict(below, requests=4000), predict(beyond, requests=8000)
    assert not stable.saturated
    assert stable.request_rate_per_s == pytest.approx(0.85 * limit, rel=0.05)
    assert crowded.saturated
    assert crowded.request_rate_per_s == pytest.approx(limit, rel=0.08)


@pytest.mark.parametrize(
    ("changed", "binds"), [({"max_num_seqs": 48}, "sequences"), ({"kv_tokens": 60_000}, "memory_capacity")]
)
def test_the_limit_that_binds_is_named(changed: dict[str, int], binds: str) -> None:
    assert textbook(chat(**changed)).limits.binds == binds


def test_conditions_are_judged() -> None:
    scenario = chat()
    constant = replace(
        scenario, workload=replace(scenario.workload, arrivals=OpenLoop(kind="constant", rate_per_s=12.0))
    )
    judged = {result.code: result.holds for result in textbook(constant).results}
    assert not judged["prefill-mg1"]
    equal = replace(scenario, workload=replace(scenario.workload, prompt_tokens=Fixed(value_tokens=500)))
    assert {result.code: result.holds for result in textbook(equal).results}["prefill-md1"]


@pytest.mark.parametrize("users", [1, 8, 32])
def test_a_closed_loop_is_the_fixed_point(users: int) -> None:
    report = textbook(closed_chat(users))
    assert report.rate_per_s is None
    assert [result.code for result in report.results] == ["closed-tpot", "closed-ttft", "closed-e2e"]
    for result, tolerance in zip(report.results, (0.06, 0.15, 0.06), strict=True):
        assert result.holds
        assert result.value_s == pytest.approx(result.simulated_s, rel=tolerance), result.code


def test_users_beyond_the_largest_batch_wait_for_a_place() -> None:
    """64 slots, 256 users: three quarters of a round are spent waiting (N / λ of the full batch)."""
    report = textbook(closed_chat(256, max_num_seqs=64))
    ttft, e2e = report.results[1:]
    assert ttft.value_s is not None
    assert e2e.value_s is not None
    assert ttft.value_s > 0.7 * e2e.value_s
    for result in (ttft, e2e):
        assert result.value_s == pytest.approx(result.simulated_s, rel=0.06)


def closed_chat(users: int, **deployment: object) -> Scenario:
    scenario = chat(**deployment)  # type: ignore[arg-type]
    return replace(scenario, workload=replace(scenario.workload, arrivals=Closed(concurrency=users)))


def test_a_server_that_never_goes_away_waits_like_mg1_and_one_that_does_longer() -> None:
    assert vacation_wait_s(0.5, 1.0, 2.0, 0.0, 0.0) == mg1_wait_s(0.5, 1.0, 2.0)
    # M/D/1 at one half waits 0.5 services; vacations of equal length add half of one
    assert vacation_wait_s(0.5, 1.0, 1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert vacation_wait_s(1.0, 1.0, 1.0, 1.0, 1.0) is None


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_the_wait_quantile_is_that_of_mm1(load: float) -> None:
    """P(W > x) = ρ·exp(−(1−ρ)·x/E[S]) (any queueing book)."""
    beyond = load * math.exp(-(1 - load) * (wait_quantile_s(load / 2.0, 2.0, 1.0, 1.0, 0.95) or 0) / 2.0)
    assert beyond == pytest.approx(0.05)
    assert wait_quantile_s(0.01, 2.0, 1.0, 1.0, 0.95) == 0.0
    assert wait_quantile_s(1.0, 2.0, 1.0, 1.0, 0.95) is None


def test_the_batch_quantile_is_the_distributions() -> None:
    shares = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    assert [batch_quantile(shares, share) for share in (0.05, 0.5, 0.69, 0.95)] == [0, 2, 2, 4]


COUNTED = {
    "poisson": OpenLoop(kind="poisson", rate_per_s=5.0),
    "gamma": OpenLoop(kind="gamma", rate_per_s=5.0, cv=2.0),
    "calm and rush": Mmpp(rates_per_s=(2.0, 8.0), stays_s=(30.0, 20.0)),
    "three states": Mmpp(rates_per_s=(1.0, 4.0, 12.0), stays_s=(20.0, 10.0, 15.0)),
}


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize("split", [1.0, 2.0])
def test_the_dispersion_is_that_of_counts_in_long_windows(kind: str, split: float) -> None:
    arrivals = COUNTED[kind]
    times = open_arrivals(arrivals, 400_000, split, np.random.default_rng(5))
    window_s = 1000.0
    counts = np.bincount((times / window_s).astype(np.int64))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(dispersion(arrivals, split), rel=0.35)


def test_rates_by_the_minute_disperse_minutes() -> None:
    rates = PerMinute(rates_per_s=(2.0, 6.0, 3.0, 5.0))
    times = open_arrivals(rates, 200_000, 1.0, np.random.default_rng(5))
    counts = np.bincount((times / 60).astype(np.int64))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(dispersion(rates), rel=0.1)
    log = Recorded(times_s=tuple(times[:20_000]))
    assert dispersion(log) == pytest.approx(dispersion(rates), rel=0.15)


def test_even_gaps_do_not_disperse() -> None:
    assert dispersion(OpenLoop(kind="constant", rate_per_s=3.0)) == 0
    assert dispersion(Recorded(times_s=(0.0, 1.0, 2.0, 3.0))) == 0


def prefill_server(rate_per_s: float, **changed: object) -> Scenario:
    """Prompts of about the token budget: hardly two share a step."""
    scenario = chat(rate_per_s, max_num_batched_tokens=1024, **changed)
    prompts = LogNormal(p50_tokens=6000, p95_tokens=12_000)
    return replace(scenario, workload=replace(scenario.workload, prompt_tokens=prompts))


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_a_simulated_server_that_only_prefills_waits_like_mg1(load: float) -> None:
    mean_s = {r.code: r for r in textbook(prefill_server(1.0)).results}["prefill-mg1"].utilisation_share
    assert mean_s is not None
    scenario = prefill_server(load / mean_s)
    result = {r.code: r for r in textbook(scenario).results}["prefill-mg1"]
    assert result.holds
    assert result.utilisation_share == pytest.approx(load)
    assert result.value_s == pytest.approx(result.simulated_s, rel=0.2)


def test_burstiness_can_be_given_and_moves_kingman_alone() -> None:
    usual, bursty = textbook(chat(20.0)), textbook(chat(20.0), arrival_cv2=9.0)
    assert (usual.arrival_cv2, usual.given_cv2, bursty.arrival_cv2, bursty.given_cv2) == (1.0, 1.0, 9.0, 1.0)
    before, after = ({r.code: r.value_s for r in report.results} for report in (usual, bursty))
    assert {code for code in before if before[code] != after[code]} == {"prefill-kingman", "prefill-kingman-95"}


@pytest.mark.parametrize("rate_per_s", [4.0, 12.0, 20.0])
def test_the_first_token_is_the_sum_of_its_parts(rate_per_s: float) -> None:
    scenario = chat(rate_per_s)
    report = textbook(scenario, latency=predict(scenario, requests=10_000))
    result = {r.code: r for r in report.results}["first-token"]
    assert report.first_token is not None
    assert result.value_s == report.first_token.total_s
    assert result.value_s == pytest.approx(result.simulated_s, rel=0.2)


def test_beyond_the_limit_nothing_is_put_into_numbers() -> None:
    report = textbook(chat(400.0))
    assert report.first_token is None
    assert report.utilisation_share is not None
    assert report.utilisation_share > 1
    assert not any(result.holds for result in report.results if result.code != "slots-mmc")
    assert {r.code: r.value_s for r in report.results}["slots-mmc"] is None
