"""Cache layouts: rates, states and blocks of published shapes, and what must hold for every kind of layer."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc import latency
from calc.cache.formula import kv_formula, kv_formula_parts
from calc.cache.grouping import Owned, group_caches
from calc.cache.kv import kv_bytes_per_token, plan_blocks, request_bytes
from calc.cache.pool import plan_for
from calc.cache.recurrent import RecurrentState, StateKind
from calc.cache.specs import CacheRules, CacheSpec, hybrid_block_tokens, state_bytes, state_copies
from calc.deployment import Deployment
from calc.engine import resolve
from calc.errors import ImpossibleDeployment, InputError, UnknownArchitecture
from calc.memory import estimate_memory, sequences_at
from calc.model import LayerKind, ModelSpec
from calc.simulator.simulate import RequestPlan, SchedulerRules, StepCosts, simulate
from calc.units import GIB
from data import catalogue
from data.case import read_case, read_deployment, write_case

GOLDEN = Path(__file__).parent / "golden"
ROWS: list[dict[str, Any]] = json.loads((GOLDEN / "cache_layouts.json").read_text("utf-8"))
PLANS = list(csv.DictReader((GOLDEN / "vllm_block_plans.csv").read_text("utf-8").splitlines()))
BY_ID = {row["id"]: row for row in ROWS}
HYBRIDS = [row["id"] for row in ROWS if row["state_bytes"] and row["bytes_per_token"]]
PLAIN = ("meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b")
POOL_BYTES = 20 * GIB


@cache
def model(name: str, kv_dtype: str | None = None) -> ModelSpec:
    if name not in BY_ID:
        return catalogue.model(name).spec(weight_dtype=None, kv_dtype=kv_dtype)
    return ModelSpec.from_config(BY_ID[name]["config"], name, kv_dtype=kv_dtype or BY_ID[name]["kv_dtype"])


def deployment(name: str, *, engine: str = "vllm", engine_version: str | None = None, **settings: Any) -> Deployment:
    return Deployment(
        model=model(name, settings.get("kv_dtype")),
        gpu=catalogue.gpu("h100-sxm"),
        engine=catalogue.engine(engine, engine_version)[0],
        **{"kv_pool_bytes_per_gpu": POOL_BYTES, **settings},
    )


@pytest.mark.parametrize("row", ROWS, ids=list(BY_ID))
def test_a_published_shape_has_its_rate_its_state_and_its_block(row: dict[str, Any]) -> None:
    spec = model(row["id"])
    made = deployment(row["id"], tp=row["tp"])
    rate = kv_bytes_per_token(spec, spec.kv_dtype, row["tp"])
    assert rate == pytest.approx(row["bytes_per_token"], rel=row["tolerance"])
    assert state_bytes(spec, row["tp"]) == row["state_bytes"]
    assert resolve(made).block_size_tokens == row["block_tokens"]


@pytest.mark.parametrize("row", PLANS, ids=[f"{r['model']}-tp{r['tp']}pp{r['pp']}" for r in PLANS])
def test_blocks_and_groups_are_those_of_vllms_own_grouping(row: dict[str, str]) -> None:
    drafted = int(row["drafted_tokens"])
    made = deployment(
        row["model"],
        engine_version="0.32.0",
        tp=int(row["tp"]),
        pp=int(row["pp"]),
        max_model_len_tokens=int(row["max_model_len"]),
        max_num_batched_tokens=int(row["max_num_batched_tokens"]),
        prefix_caching=row["prefix_caching"] == "1",
        spec_tokens=drafted,
        kv_pool_bytes_per_gpu=int(row["pool_gib"]) * GIB,
    )
    got = estimate_memory(replace(made, model=made.model.with_draft_layers(1 if drafted else 0)))
    assert (got.num_blocks, got.num_groups) == (int(row["num_blocks"]), int(row["num_groups"]))
    assert got.max_concurrency == pytest.approx(float(row["max_concurrency"]), rel=float(row["tolerance"]))


def test_a_state_is_padded_to_its_block_by_what_the_engine_logs() -> None:
    """Qwen3.8-27B, FP8 cache, one GPU: "Padding mamba page size by 0.13%"."""
    state = next(group.state for group in model("qwen3.6-27b-tp2").groups if group.state is not None)
    page = 1568 * 2 * 4 * 256
    assert 100 * (page / state.bytes_per_gpu(1) - 1) == pytest.approx(0.13, abs=0.005)


def test_jamba_needs_an_eighth_of_the_cache_of_as_many_attention_layers() -> None:
    """arXiv 2403.19887 table 1: 4 GB of KV cache at 256K tokens, 32 GB for Mixtral."""
    spec = model("jamba-v0.1")
    assert kv_bytes_per_token(spec, "bf16", 1) * 2**18 == 4 * GIB
    assert sum(group.layers for group in spec.groups if group.kind is LayerKind.FULL) == spec.layers / 8


@pytest.mark.parametrize(
    ("kind", "caching", "drafts", "copies"),
    [
        (StateKind.GATED_DELTA_NET, False, 0, 1),
        (StateKind.GATED_DELTA_NET, True, 0, 2),
        (StateKind.GATED_DELTA_NET, True, 3, 5),
        (StateKind.KDA, True, 0, 2),
        (StateKind.MAMBA1, True, 0, 2),
        (StateKind.MAMBA2, True, 0, 3),
        (StateKind.MAMBA2, False, 2, 3),
    ],
)
def test_as_many_states_are_reserved_as_vllm_0_32_does(
    kind: StateKind, caching: bool, drafts: int, copies: int
) -> None:
    assert state_copies(kind, prefix_caching=caching, spec_tokens=drafts) == copies


def test_mamba_2_groups_are_copied_where_tp_does_not_divide_them() -> None:
    state = RecurrentState(
        kind=StateKind.MAMBA2, conv_channels=4096, conv_positions=3, conv_bytes_per_element=2,
        matrix_elements=0, matrix_bytes_per_element=4, groups=2, group_channels=256,
    )  # fmt: skip
    assert [state.conv_bytes(tp) for tp in (1, 2, 8)] == [4608 * 6, 2304 * 6, (512 + 256) * 6]


@pytest.mark.parametrize("name", [*PLAIN, *(row["id"] for row in ROWS)])
@settings(deadline=None)
@given(tokens=st.integers(1, 200_000), more=st.integers(0, 100_000), caching=st.booleans())
def test_longer_sequences_never_take_less(name: str, tokens: int, more: int, caching: bool) -> None:
    spec = model(name)
    bytes_at = [request_bytes(spec, spec.kv_dtype, 1, 1, n, prefix_caching=caching) for n in (tokens, tokens + more)]
    assert bytes_at[0] <= bytes_at[1]
    rules = CacheRules(kv_dtype=spec.kv_dtype, tp=1, block_tokens=16, prefix_caching=caching)
    plan = plan_blocks(spec, replace(rules, block_tokens=hybrid_block_tokens(spec, rules, 128)), 1)
    assert plan.blocks_per_request(tokens, 8192) <= plan.blocks_per_request(tokens + more, 8192)


@settings(deadline=None)
@given(tokens=st.integers(1, 100_000), times=st.integers(1, 9), tp=st.sampled_from([1, 2, 4, 8]))
def test_full_attention_is_linear_in_tokens(tokens: int, times: int, tp: int) -> None:
    spec = model("Qwen/Qwen3-32B")
    assert request_bytes(spec, "bf16", tp, 1, tokens * times) == times * request_bytes(spec, "bf16", tp, 1, tokens)


@pytest.mark.parametrize("name", HYBRIDS)
@settings(deadline=None)
@given(tokens=st.integers(0, 200_000), step=st.integers(1, 1000))
def test_hybrids_are_affine_a_fixed_state_and_a_rate(name: str, tokens: int, step: int) -> None:
    spec = model(name)
    start, at, beyond = (request_bytes(spec, spec.kv_dtype, 1, 1, n) for n in (0, tokens, tokens + step))
    assert start == state_bytes(spec, 1)
    assert beyond - at == pytest.approx(step * kv_bytes_per_token(spec, spec.kv_dtype, 1))


@pytest.mark.parametrize("name", HYBRIDS)
def test_an_fp8_cache_halves_attention_and_leaves_the_state(name: str) -> None:
    wide, narrow = model(name, "bf16"), model(name, "fp8")
    assert kv_bytes_per_token(wide, "bf16", 1) == 2 * kv_bytes_per_token(narrow, "fp8", 1)
    assert state_bytes(wide, 1) == state_bytes(narrow, 1)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-32B", "qwen3.6-35b-a3b"])
def test_more_tensor_parallelism_never_lowers_what_a_node_holds(name: str) -> None:
    made = [deployment(name, tp=tp, max_model_len_tokens=32768) for tp in (1, 2, 4, 8)]
    held = [estimate_memory(one).max_concurrency for one in made]
    assert held == sorted(held)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("name", [*HYBRIDS, "mamba-2.8b"])
def test_prefix_caching_and_drafts_cost_room_for_states(name: str, engine: str) -> None:
    def held(**settings: Any) -> float:
        return estimate_memory(deployment(name, engine=engine, max_model_len_tokens=2048, **settings)).max_concurrency

    assert held(prefix_caching=True) <= held(prefix_caching=False)
    assert held(prefix_caching=False, spec_tokens=4) <= held(prefix_caching=False)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("name", [*HYBRIDS, "mamba-2.8b", "gemma-3n-e4b", "deepseek-v4-flash"])
def test_no_engine_holds_more_than_its_pool(name: str, engine: str) -> None:
    made = deployment(name, engine=engine, tp=BY_ID[name]["tp"], max_model_len_tokens=2048, prefix_caching=False)
    held = estimate_memory(made).max_concurrency
    one = request_bytes(made.model, resolve(made).kv_dtype, made.tp, 1, 2048)
    assert 0 < held * one <= POOL_BYTES * 1.001


def test_shared_layers_keep_nothing_of_their_own() -> None:
    kinds = {group.kind: group.layers for group in model("gemma-3n-e4b").groups if group.kind is not LayerKind.SHARED}
    assert kinds == {LayerKind.SLIDING: 16, LayerKind.FULL: 4}


def test_a_compressed_cache_is_an_intercept_and_a_slope() -> None:
    """Beyond its windows DeepSeek-V4 grows by a few kilobytes a token; below them by the window's full records."""
    spec = model("deepseek-v4-flash")
    far = request_bytes(spec, "fp8", 8, 1, 100_000) - request_bytes(spec, "fp8", 8, 1, 99_000)
    near = request_bytes(spec, "fp8", 8, 1, 128) - request_bytes(spec, "fp8", 8, 1, 127)
    assert far == pytest.approx(1000 * 3850.25)
    assert near > 43 * 584


def test_a_draft_layer_is_an_attention_layer_with_a_cache() -> None:
    """Qwen3.6-27B with multi-token prediction: 16 → 17 attention layers; its states grow by the drafted tokens."""
    spec = model("qwen3.6-27b-tp2")
    drafted = spec.with_draft_layers(1)
    assert kv_bytes_per_token(drafted, "fp8", 2) == 17 / 16 * kv_bytes_per_token(spec, "fp8", 2)
    assert state_bytes(drafted, 2, 3) - state_bytes(spec, 2) == 48 * 5120 * 3 * 2


def test_a_draft_layer_of_compressed_caches_keeps_a_window_alone() -> None:
    spec = model("deepseek-v4-flash")
    drafted = spec.with_draft_layers(1)
    added = drafted.groups[drafted.layer_order[-1]]
    assert [cache.window_tokens for cache in added.caches] == [128]
    assert kv_bytes_per_token(drafted, "fp8", 8) == kv_bytes_per_token(spec, "fp8", 8)
    assert sum(group.layers for group in drafted.groups) == 44


def test_the_dtype_of_a_state_is_read_where_the_engine_reads_it() -> None:
    """Qwen3.5 names it ``mamba_ssm_dtype``; Granite's engine code asks nowhere and keeps the model's BF16."""
    granite = {**BY_ID["granite-4-h-small"]["config"], "mamba_ssm_cache_dtype": "float32", "mamba_ssm_dtype": "float32"}
    assert state_bytes(ModelSpec.from_config(granite), 1) == BY_ID["granite-4-h-small"]["state_bytes"]
    qwen = {**BY_ID["qwen3.6-35b-a3b"]["config"], "mamba_ssm_dtype": "bfloat16"}
    assert state_bytes(ModelSpec.from_config(qwen), 1) == 30 * (8192 * 3 * 2 + 32 * 128 * 128 * 2)


def test_a_hybrid_family_without_recurrent_layers_is_plain_attention() -> None:
    """Granite 4 Micro uses the hybrid's class with attention in every layer: its block stays the usual one."""
    config = {**BY_ID["granite-4-h-small"]["config"], "layer_types": ["attention"] * 40, "mamba_n_heads": None}
    spec = ModelSpec.from_config(config)
    assert state_bytes(spec, 1) == 0
    assert hybrid_block_tokens(spec, CacheRules(kv_dtype="bf16", tp=1, block_tokens=16), 128) == 16


def test_a_compressed_cache_in_another_format_is_refused() -> None:
    with pytest.raises(InputError, match="kept in FP8"):
        ModelSpec.from_config(BY_ID["deepseek-v4-flash"]["config"], kv_dtype="bf16")


def test_mla_beside_a_window_it_cannot_share_pages_with_keeps_every_token() -> None:
    latent = CacheSpec(kind=LayerKind.MLA, block_tokens=16, page_bytes=16 * 1152)
    local = CacheSpec(kind=LayerKind.SLIDING, block_tokens=16, page_bytes=16 * 4096, window_tokens=128)
    groups = group_caches([Owned(layer=0, spec=latent), Owned(layer=1, spec=local)], window_aware=True, packed=False)
    assert [[cache.spec.window_tokens for cache in group] for group in groups] == [[None, None]]


def test_caches_no_engine_can_unify_are_refused() -> None:
    latent = CacheSpec(kind=LayerKind.MLA, block_tokens=16, page_bytes=16 * 1152)
    state = CacheSpec(kind=LayerKind.RECURRENT, block_tokens=16, page_bytes=10**6, copies=1)
    with pytest.raises(ImpossibleDeployment, match="cannot share blocks"):
        group_caches([Owned(layer=0, spec=latent), Owned(layer=1, spec=state)], window_aware=True, packed=False)


@settings(deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["full", "local", "state"]), min_size=1, max_size=40),
    pp=st.integers(1, 4),
)
def test_every_cache_lands_in_exactly_one_group(kinds: list[str], pp: int) -> None:
    made = {
        "full": CacheSpec(kind=LayerKind.FULL, block_tokens=16, page_bytes=65536),
        "local": CacheSpec(kind=LayerKind.SLIDING, block_tokens=16, page_bytes=32768, window_tokens=512),
        "state": CacheSpec(kind=LayerKind.RECURRENT, block_tokens=16, page_bytes=60000, copies=2),
    }
    owned = [Owned(layer=i, spec=made[kind]) for i, kind in enumerate(kinds)]
    groups = group_caches(owned, window_aware=True, packed=False)
    assert sorted(cache.layer for group in groups for cache in group) == list(range(len(kinds)))
    assert len({cache.spec.page_bytes for group in groups for cache in group}) == 1
    assert all(len({cache.spec for cache in group}) == 1 for group in groups)


def test_the_formula_of_a_hybrid_names_its_fixed_part() -> None:
    made = deployment("qwen3.6-35b-a3b", tp=1)
    parts = kv_formula_parts(made)
    assert parts.layers == 10
    assert parts.state_copies * parts.state_bytes == request_bytes(made.model, "fp8", 1, 1, 0, prefix_caching=True)
    assert "10 attention layers" in str(kv_formula(made))
    assert "no cache grows" in str(kv_formula(deployment("mamba-2.8b")))


def test_what_tp_cannot_divide_is_refused() -> None:
    with_other_heads = replace(model("nemotron-3-nano"), heads=96)
    with pytest.raises(ImpossibleDeployment, match="64 recurrent heads"):
        replace(deployment("nemotron-3-nano"), model=with_other_heads, tp=3)


def test_layers_stay_with_the_cache_they_read() -> None:
    """Gemma 3n's last 15 layers read layers 18 and 19: two stages keep them together, three do not."""
    assert deployment("gemma-3n-e4b", pp=2).pp == 2
    with pytest.raises(ImpossibleDeployment, match="apart from the layers"):
        deployment("gemma-3n-e4b", pp=3)


def test_a_hybrid_needs_the_hybrid_cache_manager() -> None:
    with pytest.raises(ImpossibleDeployment, match="hybrid cache manager on"):
        estimate_memory(deployment("qwen3.6-35b-a3b", hybrid_kv=False))


TEXT = {
    "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 9728, "vocab_size": 151936, "max_position_embeddings": 40960,
}  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlavaForConditionalGeneration"], "text_config": {**TEXT, "model_type": "llama"}},
        {"architectures": ["InternVLChatModel"], "llm_config": {**TEXT, "model_type": "qwen3"}},
        {"architectures": ["Glm4vForConditionalGeneration"], "text_config": {**TEXT, "model_type": "glm4v_text"}},
        {
            "architectures": ["Qwen2_5OmniModel"],
            "thinker_config": {"text_config": {**TEXT, "model_type": "qwen2_5_omni_text"}},
        },
    ],
    ids=lambda config: str(config["architectures"][0]),
)
def test_the_language_part_of_a_larger_checkpoint_is_found(config: dict[str, Any]) -> None:
    spec = ModelSpec.from_config(config)
    assert spec.multimodal
    assert kv_bytes_per_token(spec, "bf16", 1) == 36 * 2 * 8 * 128 * 2


def test_kv_heads_are_divided_or_copied_whole() -> None:
    """Phi-4 has 40 heads and 10 KV heads: vLLM's ``llama.py`` asserts one divides the other."""
    with pytest.raises(ImpossibleDeployment, match=r"10 KV heads of .* from 1, 2, 5, 10, 20, 40"):
        deployment("microsoft/phi-4", tp=4)
    assert deployment("microsoft/phi-4", tp=20).tp == 20


@pytest.mark.parametrize(
    ("architecture", "what"),
    [
        ("RWKV6ForCausalLM", "fixed state"),
        ("WhisperForConditionalGeneration", "encoder"),
        ("LongcatFlashForCausalLM", "two"),
    ],
)
def test_what_is_not_modelled_is_refused_in_words(architecture: str, what: str) -> None:
    with pytest.raises(UnknownArchitecture, match=what):
        ModelSpec.from_config({"architectures": [architecture], "hidden_size": 64, "num_hidden_layers": 2})


# Cases


CASE = {
    "model": {"name": "hybrid", "config": BY_ID["qwen3.6-27b-tp2"]["config"]},
    "gpu": "h100-sxm",
    "tp": 2,
    "kv_dtype": "fp8",
    "max_model_len": 131072,
    "kv_pool_bytes_per_gpu": 20 * GIB,
    "speculative_config": {"method": "mtp", "num_speculative_tokens": 3},
    "disable_hybrid_kv_cache_manager": False,
    "limit_mm_per_prompt": {"image": 0},
    "extra_engine_args": {"seed": 7},
    "workload": {
        "prompt_tokens": {"distribution": "fixed", "value": 2000},
        "output_tokens": {"distribution": "fixed", "value": 200},
        "arrivals": {"kind": "poisson", "rate_per_s": 1},
        "num_requests": 200,
    },
}
KEPT = ("speculative_config", "disable_hybrid_kv_cache_manager", "limit_mm_per_prompt", "extra_engine_args")


def test_engine_arguments_of_a_case_are_kept_when_it_is_saved() -> None:
    scenario, notes = read_case(CASE)
    written = write_case(scenario)
    assert {key: written[key] for key in KEPT} == {key: CASE[key] for key in KEPT}
    assert read_case(written)[0] == scenario
    assert not any("not known here" in str(note) for note in notes)


def test_a_draft_model_of_its_own_is_told_as_not_counted() -> None:
    case = {**CASE, "speculative_config": {"method": "eagle3", "num_speculative_tokens": 3}}
    assert any("draft model" in str(note) for note in read_deployment(case)[1])


# The load on states


def test_a_hybrid_is_simulated_with_its_states() -> None:
    """A pool with room for a few states runs few requests at once, however short they are."""
    scenario, _ = read_case({**CASE, "speculative_config": None})
    deployed = replace(scenario.deployment, kv_pool_bytes_per_gpu=int(0.4 * GIB), max_model_len_tokens=4096)
    small = replace(scenario, deployment=deployed)
    memory = estimate_memory(deployed)
    report = latency.predict(replace(small, workload=replace(small.workload, num_requests=60)))
    assert report.kv_usage_max_share <= 1
    assert sequences_at(deployed, memory, 100) < 10
    fixed = sum(group.copies for group in plan_for(deployed, resolve(deployed)).groups)
    assert fixed == 3 * 2


@settings(deadline=None)
@given(fixed=st.integers(0, 6), blocks=st.integers(12, 60))
def test_no_more_requests_run_than_their_fixed_blocks_allow(fixed: int, blocks: int) -> None:
    count = 30
    plan = RequestPlan(
        prompt_tokens=np.full(count, 20, np.int64),
        output_tokens=np.full(count, 12, np.int64),
        cached_tokens=np.zeros(count, np.int64),
        start_s=np.zeros(count),
    )
    rules = SchedulerRules(
        max_tokens=512, max_seqs=64, total_blocks=blocks, block_tokens=16, fixed_blocks=fixed, prefix_caching=False
    )
    result = simulate(plan, rules, StepCosts(tokens_s=np.full(514, 0.01)))
    assert result.blocks_left == blocks
    moments = np.sort(result.admitted_s)
    running = [int(((result.admitted_s <= at) & (result.finished_s > at)).sum()) for at in moments]
    assert max(running) <= blocks // (math.ceil(20 / 16) + fixed)
