"""A search held against brute force, dominance, and the figures that ``predict`` gives for the same deployment."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from calc.deployment import Deployment
from calc.errors import InputError
from calc.hardware import Gpu
from calc.latency import predict
from calc.scenario import Scenario
from calc.search import Found, Progress, Reason, SearchResult, Space, search, usual_space
from calc.search.inverse import Population, gpus_for, highest_load, longest_context, with_prompts
from calc.search.result import REASONS
from calc.search.space import MAX_COMBINATIONS
from calc.units import GB, GIB
from calc.workload import Closed, Prices
from data import catalogue
from data.case import read_case

CASE: dict[str, Any] = {
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 1500, "p95": 4000},
        "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
        "arrivals": {"kind": "poisson", "rate_per_s": 30},
    },
    "slo": {"ttft_ms": 800, "itl_ms": 60, "percentile": 0.95},
    "prices": {"gpu_hour": 2.5, "currency": "USD"},
}
PRICES = {"l40s": Prices(gpu_hour=0.9), "a100-80-sxm": Prices(gpu_hour=1.6)}


def scenario(**changes: Any) -> Scenario:
    return read_case({**CASE, **changes})[0]


def gpus(*names: str) -> tuple[Gpu, ...]:
    return tuple(catalogue.gpu(name) for name in names)


@pytest.fixture(scope="module")
def small() -> SearchResult:
    space = Space(gpus=gpus("h100-sxm", "l40s", "a100-80-sxm", "a10"), most_gpus=12, tps=(1, 2))
    found = search(scenario(), space, prices=PRICES)
    assert found is not None
    return found


def brute_force(base: Scenario, names: tuple[str, ...], most: int, prices: dict[str, Prices]) -> dict[str, float]:
    """Price per hour of the cheapest deployment of each GPU type that meets the SLO, by trying every one."""
    best: dict[str, float] = {}
    for name, tp in itertools.product(names, (1, 2)):
        for replicas in range(1, most // tp + 1):
            deployment = replace(base.deployment, gpu=catalogue.gpu(name), tp=tp, replicas=replicas)
            try:
                report = predict(replace(base, deployment=deployment))
            except InputError:
                break
            if report.slo_met and not report.saturated:
                cost = deployment.gpu_count * (prices.get(name) or base.prices).gpu_hour  # type: ignore[operator]
                best[name] = min(cost, best.get(name, cost))
                break
    return best


def test_the_cheapest_row_is_the_cheapest_of_every_deployment_there_is(small: SearchResult) -> None:
    expected = brute_force(scenario(), ("h100-sxm", "l40s", "a100-80-sxm"), 12, PRICES)
    found: dict[str, float] = {}
    for row in small.rows:
        if row.cost is not None:
            name = row.scenario.deployment.gpu.id
            found[name] = min(row.cost.total_per_hour, found.get(name, row.cost.total_per_hour))
    assert found == pytest.approx(expected)
    assert small.rows[0].cost is not None
    assert small.rows[0].cost.total_per_hour == pytest.approx(min(expected.values()))


def test_rows_are_in_order_of_cost_and_the_unpriced_come_last_by_gpus(small: SearchResult) -> None:
    priced = [row.cost.total_per_hour for row in small.rows if row.cost is not None]
    assert priced == sorted(priced)
    known = [row.cost is not None for row in small.rows]
    assert known == sorted(known, reverse=True)
    rest = [row.gpus for row in small.rows if row.cost is None]
    assert rest == sorted(rest)
    assert all(row.meets for row in small.rows)


def test_every_row_is_what_predict_says_of_it(small: SearchResult) -> None:
    for row in small.points[:12]:
        assert predict(row.scenario) == row.latency


def test_no_point_of_a_front_is_beaten_in_both_measures(small: SearchResult) -> None:
    assert small.fast_front
    for one, other in itertools.product(small.fast_front, small.points):
        assert not _beats((-other.per_gpu, -pace(other)), (-one.per_gpu, -pace(one)))
    priced = [point for point in small.points if point.cost is not None and point.meets]
    assert small.cheap_front
    for one, other in itertools.product(small.cheap_front, priced):
        assert one.cost is not None
        assert other.cost is not None
        assert not _beats((other.cost.total_per_hour, tail(other)), (one.cost.total_per_hour, tail(one)))


def pace(one: Found) -> float:
    assert one.interactivity is not None
    return one.interactivity


def tail(one: Found) -> float:
    assert one.tail_s is not None
    return one.tail_s


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def test_whatever_is_not_an_answer_has_a_reason(small: SearchResult) -> None:
    assert small.combinations == 8
    answered = len({key(row.scenario.deployment) for row in small.rows})
    assert answered + sum(out.count for out in small.ruled_out) == small.combinations
    assert all(out.reason in REASONS and str(out.example) for out in small.ruled_out)


def key(deployment: Deployment) -> tuple[str, int, int]:
    return deployment.gpu.id, deployment.tp, deployment.pp


def test_a_gpu_without_link_figures_is_judged_alone_and_said_so() -> None:
    own = Gpu(
        id="own", name="our GPU", memory_bytes=80 * GIB, bandwidth_bytes_per_s=2000 * GB, flops_per_s={"bf16": 4e14}
    )
    found = search(scenario(workload=at_rate(1)), Space(gpus=(own,), tps=(1, 2)))
    assert found is not None
    assert {row.scenario.deployment.tp for row in found.rows} == {1}
    (out,) = found.ruled_out
    assert (out.reason, out.count) == (Reason.UNKNOWN, 1)
    assert "our GPU" in str(out.example)


def at_rate(rate_per_s: float) -> dict[str, Any]:
    return {**CASE["workload"], "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s}}


def test_impossible_deployments_are_named() -> None:
    heads = search(scenario(), Space(gpus=gpus("h100-sxm"), tps=(3,)))
    large = search(scenario(model="meta-llama/Llama-3.1-70B-Instruct"), Space(gpus=gpus("l4"), tps=(1,)))
    slow = search(scenario(slo={"itl_ms": 1}), Space(gpus=gpus("l4"), tps=(1,)))
    busy = search(scenario(workload=at_rate(3000)), Space(gpus=gpus("h100-sxm"), tps=(1,), most_gpus=8))
    for found, reason in ((heads, "split"), (large, "memory"), (slow, "itl"), (busy, "gpus")):
        assert found is not None
        assert not found.rows
        assert [out.reason for out in found.ruled_out] == [reason]


def test_a_type_without_a_price_never_takes_anothers() -> None:
    found = search(scenario(workload=at_rate(2)), Space(gpus=gpus("h200", "h100-sxm"), tps=(1,)))
    assert found is not None
    costs = {row.scenario.deployment.gpu.id: row.cost for row in found.rows}
    assert costs["h200"] is None
    assert costs["h100-sxm"] is not None
    assert any("H200" in str(note) for note in found.notes)


def test_a_stopped_search_leaves_nothing() -> None:
    told: list[Progress] = []
    space = Space(gpus=gpus("h100-sxm", "l40s", "a100-80-sxm"), tps=(1, 2, 4), batched_tokens=(None, 2048, 4096, 512))
    assert search(scenario(), space, tell=told.append, stopped=lambda: len(told) > 0) is None
    assert told


def test_progress_rises_to_the_end() -> None:
    told: list[Progress] = []
    search(scenario(workload=at_rate(2)), Space(gpus=gpus("h100-sxm", "l40s"), tps=(1, 2)), tell=told.append)
    shares = [one.share for one in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_too_many_combinations_are_cut_with_a_sentence() -> None:
    budgets = tuple(range(512, 512 + 100))
    tall = tuple(range(1, 101))
    space = Space(gpus=gpus("l4"), tps=(1,), pps=(64,), dps=tall, batched_tokens=budgets, kv_dtypes=(None, "fp8"))
    assert space.size == 20_000
    found = search(scenario(), space)
    assert found is not None
    assert found.combinations == MAX_COMBINATIONS
    assert any("20,000" in str(note) for note in found.notes)
    with pytest.raises(InputError):
        Space(gpus=gpus("l4"), batched_tokens=tuple(range(1000)))


def test_narrower_formats_carry_a_warning() -> None:
    base = scenario(workload=at_rate(2))
    found = search(base, Space(gpus=gpus("h100-sxm"), tps=(1,), kv_dtypes=(None, "fp8")))
    assert found is not None
    by_dtype = {row.scenario.deployment.kv_dtype: row.cautions for row in found.rows}
    assert by_dtype[None] == ()
    assert "fp8" in str(by_dtype["fp8"][0])


def test_a_closed_loop_is_searched_too() -> None:
    closed = {**CASE["workload"], "arrivals": {"kind": "closed", "concurrency": 64}}
    found = search(scenario(workload=closed), Space(gpus=gpus("h100-sxm"), tps=(1, 2), most_gpus=8))
    assert found is not None
    assert found.rows
    assert isinstance(found.rows[0].scenario.workload.arrivals, Closed)


def test_given_replicas_are_all_judged() -> None:
    found = search(scenario(), Space(gpus=gpus("h100-sxm"), tps=(1,), replicas=(1, 4, 6)))
    assert found is not None
    assert {row.scenario.deployment.replicas for row in found.rows} <= {4, 6}
    assert found.rows


def test_usual_choices_hold_what_the_scenario_declares_and_no_more() -> None:
    plain = usual_space(scenario(), gpus("h100-sxm"), most_gpus=8)
    assert plain.splits == (False,)
    assert len(plain.servings) == 1
    linked = scenario(serving={"transfer_gb_per_s": 50, "offload": [{"tier": "cpu", "gb_per_s": 50}]})
    space = usual_space(linked, gpus("h100-sxm"), most_gpus=8)
    assert space.splits == (False, True)
    assert [len(serving.tiers) for serving in space.servings] == [0, 1]


def test_the_highest_load_meets_the_slo_and_a_little_more_does_not() -> None:
    base = scenario()
    found = highest_load(base)
    assert found.report is not None
    assert found.report.slo_met
    more = predict(replace(base, workload=replace(base.workload, arrivals=open_at(base, found.load * 1.06))))
    assert not more.slo_met
    assert found.binds in {"ttft", "itl", "e2e", "compute", "memory_capacity", "sequences"}


def open_at(base: Scenario, rate_per_s: float) -> Any:
    return replace(base.workload.arrivals, rate_per_s=rate_per_s)  # type: ignore[call-arg]


def test_twice_the_replicas_carry_about_twice_the_load() -> None:
    one = highest_load(scenario()).load
    two = highest_load(scenario(replicas=2)).load
    assert two / one == pytest.approx(2.0, rel=0.1)


def test_users_become_requests_by_hand() -> None:
    people = Population(active_share=0.1, requests_per_minute=2, peak_factor=3)
    assert people.rate_per_s(1000) == pytest.approx(10.0)
    assert people.users(10.0) == pytest.approx(1000)
    with pytest.raises(InputError):
        Population(active_share=0, requests_per_minute=1, peak_factor=1)


def test_the_fewest_replicas_carry_the_users_and_one_less_does_not() -> None:
    base = scenario()
    found = gpus_for(base, 60.0, most_gpus=32)
    assert found.replicas is not None
    assert found.report is not None
    assert found.report.slo_met
    fewer = replace(base, deployment=replace(base.deployment, replicas=found.replicas - 1))
    assert not predict(replace(fewer, workload=replace(base.workload, arrivals=open_at(base, 60.0)))).slo_met
    assert gpus_for(base, 60.0, most_gpus=1).replicas is None


def test_the_longest_context_holds_and_a_longer_one_does_not() -> None:
    base = scenario(workload=at_rate(4))
    found = longest_context(base)
    assert found.report is not None
    assert found.report.slo_met
    assert found.factor > 1
    assert not predict(with_prompts(base, found.factor * 1.1)).slo_met


def test_strategies_that_the_scenario_declares_are_searched_and_reproduced() -> None:
    load = {
        **at_rate(8),
        "prefix_hit_share": 0.2,
        "offload_hit_share": 0.4,
        "classes": [
            {"name": "chat", "share": 0.8},
            {"name": "report", "share": 0.2, "prompt_tokens": {"distribution": "fixed", "value": 6000}},
        ],
    }
    serving = {"offload": [{"tier": "cpu", "gb_per_s": 50, "capacity_gib": 100}]}
    base = scenario(workload=load, serving=serving, slo={"ttft_ms": 4000, "itl_ms": 100})
    space = replace(usual_space(base, gpus("h100-sxm"), most_gpus=4), pps=(1,), batched_tokens=(None,))
    found = search(base, space)
    assert found is not None
    assert {len(row.scenario.deployment.serving.tiers) for row in found.rows} == {0, 1}
    assert {row.scenario.deployment.prefix_caching for row in found.rows} == {None, False}
    for point in found.points[:6]:
        assert predict(point.scenario) == point.latency
