"""Memory per GPU: published cache rates, conservation, ordering, and real engines' own allocations."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from calc.cache.formula import kv_formula, kv_formula_parts
from calc.cache.kv import kv_bytes_per_token, layers_per_stage, plan_blocks, request_bytes
from calc.cache.specs import CacheRules
from calc.deployment import Deployment
from calc.engine import resolve
from calc.memory import MemoryReport, estimate_memory, sequences_at
from calc.model import ModelSpec
from calc.room.weights import stage_weights_bytes, weights_bytes_per_gpu
from calc.units import GB, GIB, KIB, MIB
from calc.workload import Closed, Fixed, OpenLoop, Workload
from data import catalogue

GOLDEN = Path(__file__).parent / "golden"
RATES = list(csv.DictReader((GOLDEN / "kv_memory_per_token.csv").read_text(encoding="utf-8").splitlines()))
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@cache
def spec(name: str, weight_dtype: str | None = None, kv_dtype: str | None = None) -> ModelSpec:
    return catalogue.model(name).spec(weight_dtype=weight_dtype, kv_dtype=kv_dtype)


def deployment(name: str = LLAMA, *, gpu: str = "h100-sxm", version: str = "0.32.0", **settings: Any) -> Deployment:
    engine = catalogue.engine("vllm", version)[0]
    return Deployment(model=spec(name), gpu=catalogue.gpu(gpu), engine=engine, **settings)


def report(name: str = LLAMA, **settings: Any) -> MemoryReport:
    return estimate_memory(deployment(name, **settings))


# Cache bytes per token


@pytest.mark.parametrize("row", RATES, ids=[f"{r['model']}-{r['kv_dtype']}-tp{r['tp']}" for r in RATES])
def test_cache_bytes_per_token_are_the_published_ones(row: dict[str, str]) -> None:
    model = spec(row["model"], kv_dtype=row["kv_dtype"])
    counted = kv_bytes_per_token(model, model.kv_dtype, int(row["tp"]))
    assert counted == pytest.approx(float(row["expected_bytes"]), rel=float(row["tolerance"]), abs=0)


def test_28_000_tokens_of_llama_2_7b_are_about_its_weights() -> None:
    model = spec("meta-llama/Llama-2-7b-hf")
    assert kv_bytes_per_token(model, "fp16", 1) == 0.5 * MIB
    assert request_bytes(model, "fp16", 1, 1, 28_000) == pytest.approx(14e9, rel=0.05)
    assert weights_bytes_per_gpu(model, 1) == pytest.approx(13.5 * GB, rel=0.01)


def test_kv_heads_are_replicated_once_tp_exceeds_them() -> None:
    model = spec("Qwen/Qwen3-30B-A3B")
    rates = [kv_bytes_per_token(model, "bf16", tp) for tp in (1, 2, 4, 8, 16)]
    assert rates == [96 * KIB, 48 * KIB, 24 * KIB, 24 * KIB, 24 * KIB]


def test_tp_does_not_divide_a_latent_cache_but_pipeline_stages_do() -> None:
    model = spec("deepseek-ai/DeepSeek-V3")
    assert kv_bytes_per_token(model, "bf16", 1) == kv_bytes_per_token(model, "bf16", 16) == 61 * 576 * 2
    assert kv_bytes_per_token(model, "bf16", 1, 4) == 16 * 576 * 2


def test_local_layers_stop_growing_at_their_window() -> None:
    model = spec("google/gemma-3-27b-it")
    at_window, beyond = (request_bytes(model, "bf16", 1, 1, tokens) for tokens in (1024, 131072))
    full_layer = 16 * 2 * 128 * 2
    assert beyond - at_window == 10 * full_layer * (131072 - 1024)


def test_a_hybrid_model_holds_more_than_all_full_layers_would() -> None:
    aware, plain = deployment("google/gemma-3-27b-it", tp=2), deployment("google/gemma-3-27b-it", tp=2)
    plain = replace(plain, engine=replace(plain.engine, hybrid_kv=False))
    assert estimate_memory(aware).max_concurrency > 3 * estimate_memory(plain).max_concurrency


def test_the_formula_shows_the_users_numbers() -> None:
    assert str(kv_formula(deployment("meta-llama/Llama-2-7b-hf"))).startswith(
        "2 · L · H_kv · D · B = 2 · 32 · 32 · 128 · 2"
    )
    assert "61 · 788 = 48,068" in str(kv_formula(deployment("deepseek-ai/DeepSeek-V3.2", tp=8, kv_dtype="fp8")))
    mla = kv_formula_parts(deployment("deepseek-ai/DeepSeek-V3", tp=8))
    assert mla.is_mla
    assert mla.layers * mla.head_dim * mla.bytes_per_element == mla.bytes_per_token


def test_layers_over_stages_are_those_of_vllm() -> None:
    assert layers_per_stage(80, 3) == (27, 27, 26)
    assert layers_per_stage(61, 4) == (15, 15, 16, 15)
    assert all(sum(layers_per_stage(n, pp)) == n for n in (32, 61, 94) for pp in (1, 2, 3, 5, 7))


def test_gemma_3_27b_is_dealt_into_seven_groups() -> None:
    groups = plan_blocks(spec("google/gemma-3-27b-it"), CacheRules(kv_dtype="bf16", tp=1, block_tokens=16), 1).groups
    assert sorted(len(group.layers) for group in groups) == [8, 8, 9, 9, 9, 9, 10]


# Zones


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("name", [LLAMA, "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "google/gemma-3-27b-it"])
@pytest.mark.parametrize("gpus", [1, 8])
def test_the_zones_add_up_to_the_gpu(engine: str, name: str, gpus: int) -> None:
    made = replace(deployment(name, tp=gpus), engine=catalogue.engine(engine)[0])
    got = estimate_memory(made)
    assert got.weights_bytes + got.runtime_bytes + got.kv_pool_bytes + got.margin_bytes == got.total_bytes
    if got.kv_pool_bytes:
        assert got.weights_bytes + got.runtime_in_budget_bytes + got.kv_pool_bytes == got.budget_bytes


def test_what_does_not_fit_says_by_how_much() -> None:
    got = report("meta-llama/Llama-3.3-70B-Instruct")
    assert not got.fits
    assert got.kv_pool_bytes == 0
    one_sequence = (131_072 + 16) * 320 * KIB  # with the null block
    assert got.over_bytes == got.weights_bytes + got.runtime_in_budget_bytes + one_sequence - got.budget_bytes


def test_one_sequence_of_full_length_must_fit_beside_the_null_block() -> None:
    blocks, block_bytes = 8192 // 16, 16 * 131072
    exact = report(max_model_len_tokens=8192, kv_pool_bytes_per_gpu=blocks * block_bytes)
    assert not exact.fits
    assert exact.over_bytes == block_bytes
    assert report(max_model_len_tokens=8192, kv_pool_bytes_per_gpu=(blocks + 1) * block_bytes).fits


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"memory_fraction": 0.95}, {"memory_fraction": 0.8}),
        ({"tp": 2}, {"tp": 1}),
        ({"pp": 2}, {"pp": 1}),
        ({"max_num_seqs": 64}, {"max_num_seqs": 1024}),
        ({"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": 65536}),
        ({"gpu": "h200"}, {"gpu": "h100-sxm"}),
    ],
)
def test_more_memory_or_less_use_of_it_never_shrinks_the_pool(better: dict[str, Any], worse: dict[str, Any]) -> None:
    assert report(**better).kv_pool_bytes >= report(**worse).kv_pool_bytes


def test_longer_sequences_mean_fewer_of_them() -> None:
    made = deployment()
    held = [sequences_at(made, estimate_memory(made), tokens) for tokens in (1000, 8000, 64000)]
    assert held == sorted(held, reverse=True)
    assert held[1] == pytest.approx(8 * held[2], rel=0.01)


def test_fp8_cache_holds_twice_the_tokens() -> None:
    pool = 20 * GIB
    plain, small = report(kv_pool_bytes_per_gpu=pool), report(kv_pool_bytes_per_gpu=pool, kv_dtype="fp8")
    assert small.kv_tokens == pytest.approx(2 * plain.kv_tokens, rel=1e-4)


def test_data_parallel_ranks_add_their_tokens_not_their_bytes() -> None:
    one, four = report(), report(dp=4)
    assert four.kv_tokens == pytest.approx(4 * one.kv_tokens, rel=1e-6)
    assert four.kv_pool_bytes == one.kv_pool_bytes


def test_experts_spread_over_data_parallel_ranks_and_attention_does_not() -> None:
    model = spec("Qwen/Qwen3-235B-A22B")
    assert model.moe is not None
    alone, spread = weights_bytes_per_gpu(model, 1), weights_bytes_per_gpu(model, 1, 1, True, 8)
    experts = model.moe.experts * model.moe.moe_layers * model.moe.expert_parameters * 2
    assert alone - spread == pytest.approx(experts * 7 / 8, rel=0.001)


def test_stage_weights_sum_to_the_checkpoint() -> None:
    model = spec(LLAMA)
    stages = stage_weights_bytes(model, 1, 4)
    assert sum(stages) == pytest.approx(model.parameters * 2 + 4 * model.rope_cache_bytes, rel=1e-6)


def test_declared_weights_replace_the_estimate() -> None:
    declared = catalogue.model(LLAMA).spec(weights_bytes_declared=20 * GB)
    got = estimate_memory(replace(deployment(tp=2), model=declared))
    assert got.weights_bytes == 10 * GB
    assert got.weights_declared


def test_a_logged_pool_in_tokens_comes_back_as_it_was() -> None:
    for name in (LLAMA, "google/gemma-3-27b-it"):
        for version in ("0.19.0", "0.32.0"):
            got = report(name, version=version, max_model_len_tokens=8192)
            given = report(name, version=version, max_model_len_tokens=8192, kv_tokens=got.kv_tokens)
            assert given.kv_tokens == got.kv_tokens
            assert given.num_blocks == pytest.approx(got.num_blocks, rel=1e-3)


def test_peak_concurrency_is_the_users_of_a_closed_loop() -> None:
    load = Workload(
        prompt_tokens=Fixed(value_tokens=1000), output_tokens=Fixed(value_tokens=200), arrivals=Closed(concurrency=40)
    )
    got = estimate_memory(deployment(replicas=2), load)
    assert got.peak_concurrency == 20
    assert got.kv_per_request_bytes == 1200 * 131072
    assert got.kv_demand_bytes == 20 * 1100 * 131072


def test_an_open_loop_without_a_simulation_says_that_it_does_not_know() -> None:
    load = Workload(
        prompt_tokens=Fixed(value_tokens=1000),
        output_tokens=Fixed(value_tokens=200),
        arrivals=OpenLoop(kind="poisson", rate_per_s=5),
    )
    assert any("not known" in str(note) for note in estimate_memory(deployment(), load).notes)
    assert estimate_memory(deployment(), load, peak_concurrency=7.5).peak_concurrency == 7.5


def test_settings_left_open_come_from_the_engine_version_and_the_gpu() -> None:
    settings = resolve(deployment())
    assert (settings.memory_fraction, settings.max_num_batched_tokens, settings.max_num_seqs) == (0.92, 8192, 1024)
    assert settings.in_flight_tokens == 2 * 8192
    assert resolve(deployment("deepseek-ai/DeepSeek-V3", tp=8, kv_dtype="fp8")).block_size_tokens == 64
    whole = resolve(deployment(version="0.6.0", max_model_len_tokens=32768))
    assert whole.max_num_batched_tokens == 32768
    assert resolve(deployment(version="0.6.0")).max_num_batched_tokens == 2048


def test_sglang_derives_its_fraction_from_the_gpu() -> None:
    made = replace(deployment(), engine=catalogue.engine("sglang")[0])
    # 512 MiB, 1.5 a token of an 8192 chunk, 1/8 GiB a rank, 2 a sequence of 256 captured, 8 a captured prefill of 58.
    reserve_mib = 512 + 1.5 * 8192 + 128 + 2 * 256 + 8 * 58
    assert resolve(made).memory_fraction == pytest.approx(1 - reserve_mib / 1024 / 79.19, abs=0.0005)
