"""Strategies: each changes its own setting, moves figures the way it must, says its condition, and stacks honestly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from calc.judge.decision import Verdict
from calc.scenario import Scenario
from calc.serving import Tier
from calc.strategies.figures import Figures, figures
from calc.strategies.small_gain import checks, gains_little
from calc.strategies.strategy import Assumed, Goal, Ground
from calc.strategies.table import NO_CACHE, STRATEGIES
from calc.strategies.what_if import combine, compare, stack_warnings
from calc.strategies.worth import Worth, is_it_worth_it
from calc.units import GB
from data import catalogue
from data.case import example_case, read_case


def scenario(**given: Any) -> Scenario:
    return read_case({**example_case(), **given})[0]


def small(rate_per_s: float = 4.0, **given: Any) -> Scenario:
    case = {
        "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm",
        "max_model_len": 8192,
        "workload": {
            "prompt_tokens": {"distribution": "lognormal", "p50": 1000, "p95": 3000},
            "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
            "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s},
            "prefix_hit_share": 0.4,
        },
        "slo": {"ttft_ms": 1000, "itl_ms": 50, "percentile": 0.95},
    }
    return read_case(case | given)[0]


@pytest.fixture(scope="module")
def today() -> Figures:
    return figures(small())


def both(asked: Scenario, code: str, assumed: Assumed | None = None) -> tuple[Figures, Figures]:
    """Without and with."""
    found = compare(asked, code, assumed)
    assert found.without is not None, found.note
    assert found.with_it is not None, found.note
    return found.without, found.with_it


def test_the_table_covers_every_strategy_asked_for() -> None:
    """Cache within a request, prefix, paging, offload, formats, eviction, batching, split, blocks, speculation,
    weights, model routing, chunks and budget, routing between replicas."""
    assert set(STRATEGIES) >= {
        "per-request-kv", "prefix-cache", "paged-kv", "offload", "fp8-kv", "nvfp4-kv", "eviction",
        "continuous-batching", "split-prefill", "block-size", "speculation", "fp8-weights", "model-routing",
        "chunked-prefill", "larger-budget", "smaller-budget", "least-loaded", "prefix-routing",
    }  # fmt: skip


def test_every_strategy_says_its_benefit_cost_source_and_goal() -> None:
    for row in STRATEGIES.values():
        assert all(str(text) for text in (row.name, row.benefit, row.cost, row.source))
        assert set(row.goals) <= set(Goal)
        assert row.goals


def test_what_touches_answers_warns_of_it() -> None:
    assert {code for code, row in STRATEGIES.items() if row.quality is not None} == {
        "fp8-kv", "nvfp4-kv", "eviction", "fp8-weights", "model-routing",
    }  # fmt: skip


@pytest.mark.parametrize("code", list(STRATEGIES))
def test_every_strategy_answers_on_the_worked_example(code: str) -> None:
    found = compare(scenario(), code)
    assert str(found.condition.statement)
    assert (found.with_it is None) == (found.without is None)
    assert found.with_it is not None or found.note is not None


def test_prefix_hits_shorten_ttft_and_raise_the_load() -> None:
    without, with_it = both(small(), "prefix-cache")
    assert (with_it.ttft_s or 0) < (without.ttft_s or 0)
    assert (with_it.max_load or 0) > (without.max_load or 0)


def test_paging_holds_more_and_carries_more() -> None:
    without, with_it = both(scenario(), "paged-kv")
    assert (with_it.max_rate_per_s or 0) > 2 * (without.max_rate_per_s or 0)


def test_narrow_kv_doubles_what_the_pool_holds() -> None:
    without, with_it = both(small(), "fp8-kv")
    assert (with_it.held_requests or 0) == pytest.approx(2 * (without.held_requests or 0), rel=0.02)


def test_eviction_to_a_fifth_holds_five_times_as_many() -> None:
    without, with_it = both(small(), "eviction", Assumed(kept_share=0.2))
    assert (with_it.held_requests or 0) == pytest.approx(5 * (without.held_requests or 0), rel=0.1)


def test_without_a_cache_every_token_computes_the_history() -> None:
    without, with_it = both(small(), NO_CACHE)
    assert (without.itl_s or 0) > 2 * (with_it.itl_s or 0)
    assert without.ttft_s == with_it.ttft_s
    assert (without.max_rate_per_s or 0) < (with_it.max_rate_per_s or 0)


def test_static_batches_carry_less() -> None:
    without, with_it = both(small(), "continuous-batching")
    assert (with_it.max_load or 0) > (without.max_load or 0)


def test_speculation_shortens_tokens_at_low_load_and_not_when_nothing_is_accepted() -> None:
    quiet = small(0.5)
    without, with_it = both(quiet, "speculation", Assumed(spec_tokens=3, accepted_tokens=2.0))
    _, useless = both(quiet, "speculation", Assumed(spec_tokens=3, accepted_tokens=0.0))
    assert (with_it.tpot_s or 0) < 0.7 * (without.tpot_s or 0)
    assert (useless.tpot_s or 0) >= (without.tpot_s or 0)


def test_a_fast_tier_shortens_ttft_and_is_named_with_its_assumption() -> None:
    found = compare(small(), "offload", Assumed(offload_hit_share=0.4))
    assert found.note is not None
    assert found.with_it is not None
    assert found.without is not None
    assert (found.with_it.ttft_s or 0) < (found.without.ttft_s or 0)
    assert found.condition.verdict is Verdict.MET


def test_a_tier_below_break_even_does_not_meet_its_condition() -> None:
    asked = small()
    slow = replace(
        asked.deployment,
        serving=replace(asked.deployment.serving, tiers=(Tier(name="remote", bytes_per_s=0.5 * GB),)),
    )
    assert compare(replace(asked, deployment=slow), "offload").condition.verdict is Verdict.NOT_MET


def test_splitting_prefill_off_keeps_the_number_of_gpus() -> None:
    asked = small(8.0)
    four = replace(asked, deployment=replace(asked.deployment, replicas=4))
    without, with_it = both(four, "split-prefill")
    assert with_it.gpu_count == without.gpu_count == 4
    assert with_it.scenario.deployment.serving.prefill_replicas >= 1


def test_a_lone_gpu_cannot_be_split() -> None:
    found = compare(small(), "split-prefill")
    assert found.with_it is None
    assert found.note is not None


def test_routing_to_a_small_model_needs_fewer_gpus_under_much_load() -> None:
    asked = scenario()
    busy = replace(
        asked,
        workload=replace(asked.workload, arrivals=replace(asked.workload.arrivals, rate_per_s=10.0)),  # type: ignore[arg-type]
    )
    chosen = Assumed(routed_share=0.5, small_model=catalogue.model("Qwen/Qwen3-8B").spec())
    without, with_it = both(busy, "model-routing", chosen)
    assert with_it.gpu_count < without.gpu_count


def test_routing_without_a_chosen_model_asks_for_one() -> None:
    found = compare(scenario(), "model-routing")
    assert found.with_it is None
    assert found.condition.verdict is Verdict.UNKNOWN


def test_several_strategies_are_computed_together_not_added_up() -> None:
    found = combine(scenario(), ("fp8-kv", "fp8-weights"))
    assert found.after is not None
    assert found.e2e_ratio is not None
    assert found.expected_e2e_ratio is not None
    assert found.after.scenario.deployment.kv_dtype == "fp8"
    assert found.after.scenario.deployment.weight_dtype == "fp8"
    assert (found.after.e2e_s or 0) < (found.before.e2e_s or 0)
    assert found.e2e_ratio != pytest.approx(found.expected_e2e_ratio, abs=1e-6)


def test_stacking_warns_of_what_is_put_at_risk_twice() -> None:
    assert len(stack_warnings(("fp8-kv", "fp8-weights"))) == 2  # answers, and ways back
    assert stack_warnings(("prefix-cache",)) == ()


def test_a_scenario_that_does_not_fit_says_what_closes_the_gap() -> None:
    tight = scenario(model="meta-llama/Llama-3.1-70B-Instruct", tp=2, gpus=2)
    found = compare(tight, "fp8-weights")
    assert found.without is not None
    assert found.with_it is not None
    assert not found.without.fits
    assert found.with_it.fits
    assert found.condition.verdict is Verdict.MET


def verdicts(asked: Scenario) -> Mapping[str, Verdict]:
    found = figures(asked)
    return {check.code: check.judged.verdict for check in checks(Ground.of(asked, found.latency))}


def test_short_prompts_and_changing_prompts_gain_little() -> None:
    load = {
        "prompt_tokens": {"distribution": "fixed", "value": 60},
        "output_tokens": {"distribution": "fixed", "value": 20},
        "arrivals": {"kind": "poisson", "rate_per_s": 1.0},
    }
    found = verdicts(small(workload=load))
    assert found["short-prompts"] is found["changing-prompts"] is Verdict.MET
    assert found["tight-memory"] is Verdict.NOT_MET


def test_local_attention_is_seen() -> None:
    assert verdicts(small(model="google/gemma-3-12b-it"))["local-attention"] is Verdict.MET
    assert verdicts(small())["local-attention"] is Verdict.NOT_MET


def test_what_the_gpu_finds_itself_leaves_nothing_for_a_tier() -> None:
    load = example_case()["workload"] | {"prefix_hit_share": 0.95}
    asked = scenario(workload=load)
    assert "gpu-holds-it" in {check.code for check in gains_little(Ground.of(asked))}


def test_long_shared_prompts_are_worth_it_and_short_ones_limited() -> None:
    answers = {answer.use.code: answer for answer in is_it_worth_it(Ground.of(scenario()))}
    assert answers["chat"].worth is answers["agent"].worth is answers["saas"].worth is Worth.YES
    assert answers["short"].worth is Worth.LIMITED


def test_a_pool_of_less_than_two_requests_calls_for_caution() -> None:
    tiny = replace(scenario(), deployment=replace(scenario().deployment, kv_tokens=33_000))
    answers = {answer.use.code: answer.worth for answer in is_it_worth_it(Ground.of(tiny))}
    assert answers["chat"] is Worth.YES  # five of them fit
    tinier = replace(tiny, deployment=replace(tiny.deployment, kv_tokens=12_000, max_model_len_tokens=9000))
    assert {a.use.code: a.worth for a in is_it_worth_it(Ground.of(tinier))}["agent"] is Worth.CAUTION


def test_todays_figures_are_those_of_the_latency_page(today: Figures) -> None:
    from calc.latency import predict

    report = predict(small(), requests=1000)
    assert today.ttft_s == report.ttft.p95_s
    assert today.max_load is not None
    assert today.max_load <= report.max_rate_per_s
