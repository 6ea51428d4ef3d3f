"""Levers: each changes one thing, moves the figures the way physics says, and says why when it does not apply."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from calc.judge.actions import ACTIONS, actions_for
from calc.judge.decision import Outcome, WhatIf
from calc.judge.lever_changes import CHANGES, in_fp8
from calc.judge.lever_loads import scaled
from calc.judge.levers import AS_IS, what_ifs
from calc.judge.trials import needed_hit_share, try_out
from calc.latency import load_of
from calc.scenario import Scenario
from calc.workload import Empirical, Fixed, LogNormal, Uniform
from data import catalogue
from data.case import example_case, read_case

GPUS = tuple(catalogue.gpus().values())


def scenario(rate_per_s: float = 5.0, **given: Any) -> Scenario:
    case = {
        "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm",
        "max_model_len": 8192,
        "workload": {
            "prompt_tokens": {"distribution": "lognormal", "p50": 500, "p95": 1500},
            "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
            "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s},
        },
        "slo": {"ttft_ms": 1000, "itl_ms": 50, "percentile": 0.95},
        "prices": {"gpu_hour": 2.5, "currency": "USD"},
    }
    return read_case(case | given)[0]


def pulled(asked: Scenario, **given: Any) -> Mapping[str, WhatIf]:
    return {row.lever: row for row in what_ifs(asked, GPUS, requests=300, **given)}


@pytest.fixture(scope="module")
def light() -> Mapping[str, WhatIf]:
    return pulled(scenario(5), reusable_share=0.6)


@pytest.fixture(scope="module")
def heavy() -> Mapping[str, WhatIf]:
    return pulled(scenario(60))


def test_the_scenario_as_it_is_comes_first_and_every_lever_once(light: Mapping[str, WhatIf]) -> None:
    assert tuple(light) == (AS_IS, *CHANGES)
    assert set(CHANGES) <= set(ACTIONS)


def test_a_lever_changes_its_own_setting_and_nothing_else(light: Mapping[str, WhatIf]) -> None:
    before = light[AS_IS].scenario
    after = light["fp8-kv"].scenario
    assert before is not None
    assert after is not None
    assert after.deployment.kv_dtype == "fp8"
    assert after.workload == before.workload
    assert after.slo == before.slo


def test_kv_in_half_the_bytes_holds_twice_the_tokens(light: Mapping[str, WhatIf]) -> None:
    before, after = light[AS_IS].memory, light["fp8-kv"].memory
    assert before is not None
    assert after is not None
    assert after.kv_tokens == pytest.approx(2 * before.kv_tokens, rel=0.01)


def test_two_replicas_carry_about_twice_the_load() -> None:
    one = try_out(scenario(5), 300, steps=5)
    two = try_out(scenario(5, replicas=2), 300, steps=5)
    assert one.limit_load is not None
    assert two.limit_load == pytest.approx(2 * one.limit_load, rel=0.15)


def test_replicas_are_as_many_as_carry_the_load_with_headroom(heavy: Mapping[str, WhatIf]) -> None:
    row = heavy["more-replicas"]
    assert heavy[AS_IS].carries is False
    assert row.carries
    assert row.scenario is not None
    assert row.limit_load is not None
    assert row.limit_load * 0.8 >= load_of(row.scenario.workload)


def test_weights_in_fp8_equal_the_catalogue_read_in_fp8() -> None:
    for name in ("Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B"):
        entry = catalogue.model(name)
        ours = in_fp8(entry.spec(), "fp8")
        read = entry.spec(weight_dtype="fp8")
        assert (ours.layer_weights, ours.quantised_parameters) == (read.layer_weights, read.quantised_parameters)


def test_hits_shorten_ttft_and_halved_prompts_too(light: Mapping[str, WhatIf]) -> None:
    def ttft(lever: str) -> float:
        latency = light[lever].latency
        assert latency is not None
        assert latency.ttft.p50_s is not None
        return latency.ttft.p50_s

    assert ttft("prefix-cache") < ttft(AS_IS)
    assert ttft("shorter-prompts") < ttft(AS_IS)


def test_prefix_reuse_needs_a_known_share(heavy: Mapping[str, WhatIf]) -> None:
    row = heavy["prefix-cache"]
    assert row.scenario is None
    assert "not known" in str(row.note)
    assert (row.latency, row.meets_slo, row.cost_per_million_tokens) == (None, None, None)


def test_the_hit_share_needed_is_enough_and_hardly_more_than_enough() -> None:
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": 6000},
        "output_tokens": {"distribution": "fixed", "value": 100},
        "arrivals": {"kind": "poisson", "rate_per_s": 7.5},
    }
    asked = scenario(workload=workload)
    needed = needed_hit_share(asked)
    assert needed is not None
    assert 0.05 < needed < 0.95
    enough = scenario(workload=workload | {"prefix_hit_share": min(needed + 0.1, 1.0)})
    too_few = scenario(workload=workload | {"prefix_hit_share": max(needed - 0.2, 0.0)})
    assert try_out(enough, 300).carries
    assert not try_out(too_few, 300).carries


def test_hits_declared_beside_a_cache_that_is_off_are_what_could_be_reused() -> None:
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": 6000},
        "output_tokens": {"distribution": "fixed", "value": 100},
        "arrivals": {"kind": "poisson", "rate_per_s": 7.5},
        "prefix_hit_share": 0.85,
    }
    rows = pulled(scenario(workload=workload, enable_prefix_caching=False))
    assert rows[AS_IS].carries is False
    assert rows["prefix-cache"].carries


def test_a_small_model_split_over_a_slow_link_serves_more_as_replicas() -> None:
    rows = pulled(scenario(8, gpu="l40s", tp=4, slo={"ttft_ms": 500, "itl_ms": 60, "percentile": 0.95}))
    before, after = rows[AS_IS], rows["replicas-instead-of-tp"]
    assert before.scenario is not None
    assert after.scenario is not None
    assert after.scenario.deployment.gpu_count == before.scenario.deployment.gpu_count
    assert before.carries is False
    assert after.carries


def test_no_hit_share_cures_slow_decoding() -> None:
    assert needed_hit_share(scenario(slo={"itl_ms": 0.2, "percentile": 0.95})) is None


@pytest.mark.parametrize(
    ("lever", "given", "reason"),
    [
        ("chunked-prefill", {}, "on already"),
        ("raise-max-seqs", {}, "not reached"),
        ("lower-max-seqs", {}, "not full"),
        ("fp8-kv", {"kv_dtype": "fp8"}, "fp8 already"),
        ("fp8-weights", {"weight_dtype": "fp8"}, "fp8 already"),
        ("more-gpus", {"tp": 8}, "cannot grow"),
        ("shorter-context", {}, "fits"),
        ("bigger-gpu", {"gpu": "mi355x"}, "No larger GPU"),
    ],
)
def test_a_lever_that_does_not_apply_says_why(lever: str, given: dict[str, Any], reason: str) -> None:
    row = pulled(scenario(5, **given))[lever]
    assert row.scenario is None
    assert reason in str(row.note)


def test_what_does_not_fit_is_first_made_to_fit() -> None:
    rows = pulled(scenario(2, model="meta-llama/Llama-3.3-70B-Instruct"))
    assert rows[AS_IS].carries is False
    assert rows[AS_IS].meets_slo is False
    assert rows["raise-batched-tokens"].scenario is None
    wider = rows["more-gpus"]
    assert wider.carries
    assert wider.scenario is not None
    assert wider.scenario.deployment.tp in (2, 4, 8)


def test_a_length_limit_beyond_the_pool_is_lowered_to_what_requests_need() -> None:
    rows = pulled(scenario(1, gpu="rtx4090", max_model_len=131072))
    before = rows[AS_IS].memory
    assert before is not None
    assert not before.fits
    row = rows["shorter-context"]
    assert row.memory is not None
    assert row.memory.fits


def test_a_measured_pool_says_nothing_about_another_gpu() -> None:
    rows = pulled(scenario(5, kv_tokens=100_000))
    before = rows[AS_IS].memory
    assert before is not None
    assert before.kv_tokens == 100_000
    changed = rows["bigger-gpu"].memory
    assert changed is not None
    assert changed.kv_tokens > 500_000


def test_another_gpu_has_no_price_until_somebody_states_it(light: Mapping[str, WhatIf]) -> None:
    row = light["bigger-gpu"]
    assert row.scenario is not None
    assert row.scenario.deployment.gpu.id == "h200"
    assert row.cost_per_million_tokens is None
    assert light[AS_IS].cost_per_hour == 2.5


def test_a_larger_gpu_is_never_a_slower_one(light: Mapping[str, WhatIf]) -> None:
    for gpu in ("l4", "a100-80-sxm", "h100-sxm"):
        row = pulled(scenario(0.5, gpu=gpu))["bigger-gpu"]
        assert row.scenario is not None
        old, new = catalogue.gpu(gpu), row.scenario.deployment.gpu
        assert new.memory_bytes > old.memory_bytes
        assert (new.bandwidth_bytes_per_s or 0) >= (old.bandwidth_bytes_per_s or 0)


def test_a_finite_benchmark_is_judged_as_a_steady_service() -> None:
    workload = {
        "prompt_tokens": {"distribution": "fixed", "value": 500},
        "output_tokens": {"distribution": "fixed", "value": 200},
        "arrivals": {"kind": "poisson", "rate_per_s": 5},
        "num_requests": 50,
    }
    row = pulled(scenario(workload=workload))[AS_IS]
    assert row.scenario is not None
    assert row.scenario.workload.num_requests is None


@pytest.mark.parametrize(
    "lengths",
    [
        Fixed(value_tokens=1000),
        Uniform(low_tokens=100, high_tokens=900),
        LogNormal(p50_tokens=500, p95_tokens=1500),
        Empirical(quantiles=((0.0, 100), (0.5, 400), (1.0, 4000))),
    ],
)
def test_half_the_length_has_half_the_mean(lengths: Any) -> None:
    assert scaled(lengths, 0.5).mean() == pytest.approx(lengths.mean() / 2)


def test_the_published_remedies_are_all_there() -> None:
    assert len(actions_for(Outcome.OPTIMISE_CACHE)) >= 7
    assert len(actions_for(Outcome.RE_ARCHITECT)) >= 8
    quality = {action.code for action in ACTIONS.values() if action.caution and "quality" in str(action.caution)}
    assert {"fp8-kv", "fp8-weights", "shorter-prompts", "fitting-model", "cut-history"} <= quality


def test_all_levers_together_take_a_fraction_of_a_second() -> None:
    asked = read_case(example_case())[0]
    what_ifs(asked, GPUS)
    begun_s = time.process_time()
    what_ifs(asked, GPUS)
    assert time.process_time() - begun_s < 0.6  # 0.2 s on an idle core; shared cores double it
