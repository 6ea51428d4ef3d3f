"""Textbook formulas against their tables and special cases, and the simulation against the textbook."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calc.latency import predict
from calc.queueing import (
    erlang_c,
    kingman_wait_s,
    md1_wait_s,
    mg1_wait_s,
    mmc_wait_s,
    shared_batch_shares,
    textbook,
)
from calc.scenario import Scenario
from calc.workload import Closed, Fixed, OpenLoop
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


@pytest.mark.parametrize("rate_per_s", [4.0, 12.0, 24.0])
def test_the_simulated_time_per_token_is_the_textbooks(rate_per_s: float) -> None:
    scenario = chat(rate_per_s)
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


def test_a_closed_loop_has_limits_but_no_textbook_wait() -> None:
    scenario = chat()
    closed = replace(scenario, workload=replace(scenario.workload, arrivals=Closed(concurrency=32)))
    report = textbook(closed)
    assert report.results == ()
    assert report.limits.max_rate_per_s > 0
