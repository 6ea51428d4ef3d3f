"""Capacity under prefixes, pauses, turns, neighbours, eviction and formats: hand calculation, logs and ordering."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.cache.eviction import REPORTED_SMALLER, Budgets, Policy, evict
from calc.cache.formats import CLAIMED_NVFP4_OF_FP8, FORMATS, alignment_of, formats_of
from calc.cache.lives import NO_ATTENTION
from calc.cache.waste import waste_of
from calc.deployment import Deployment
from calc.errors import ImpossibleDeployment, InputError
from calc.memory import estimate_memory, sequences_at
from calc.model import ModelSpec
from calc.room.capacity import Room, curve, marks, share_prefix
from calc.room.neighbours import place_together
from calc.room.sessions import converse, keep_idle
from calc.scenario import Scenario
from calc.units import GIB
from calc.workload import Closed, Fixed, LogNormal, OpenLoop, Workload
from data import catalogue
from data.case import read_case, write_case

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
GEMMA = "google/gemma-3-27b-it"
RATE = 131_072
"""KV bytes per token of Llama-3.1-8B in BF16: 2 · 32 · 8 · 128 · 2."""


@cache
def made(name: str = LLAMA, engine: str = "vllm", **changes: Any) -> Deployment:
    usual: dict[str, Any] = {"max_model_len_tokens": 32_768, "kv_pool_bytes_per_gpu": 32 * GIB}
    return Deployment(
        model=catalogue.model(name).spec(),
        gpu=catalogue.gpu("h100-sxm"),
        engine=catalogue.engine(engine)[0],
        **{**usual, **changes},
    )


@cache
def room(name: str = LLAMA, **changes: Any) -> Room:
    return Room.of(made(name, **changes), estimate_memory(made(name, **changes), peak_concurrency=10))


def fixed(prompt: int = 2000, output: int = 400, **more: Any) -> Workload:
    return Workload(
        prompt_tokens=Fixed(value_tokens=prompt),
        output_tokens=Fixed(value_tokens=output),
        arrivals=OpenLoop(kind="poisson", rate_per_s=1),
        **more,
    )


# The user's own lengths


@pytest.mark.parametrize("name", [LLAMA, GEMMA, "deepseek-ai/DeepSeek-V2-Lite", "openai/gpt-oss-20b"])
def test_the_room_counts_as_the_memory_report_does(name: str) -> None:
    for tokens in (1, 100, 5_000, 32_768):
        assert room(name).sequences(tokens) == sequences_at(made(name), room(name).report, tokens)
    assert curve(room(name))[-1] == (32_768, pytest.approx(room(name).report.max_concurrency))


def test_marks_are_the_percentiles_of_prompt_and_output_together() -> None:
    middle, long, longest = marks(room(), fixed())
    assert (middle.tokens, long.tokens, longest.tokens) == (2400, 2400, 32_768)
    assert middle.sequences == pytest.approx(32 * GIB / RATE / 2400, rel=0.01)
    spread = Workload(
        prompt_tokens=LogNormal(p50_tokens=1000, p95_tokens=4000),
        output_tokens=Fixed(value_tokens=1),
        arrivals=Closed(concurrency=1),
    )
    middle, long, _ = marks(room(), spread)
    assert (middle.tokens, long.tokens) == (pytest.approx(1001, rel=0.01), pytest.approx(4001, rel=0.01))


# A prefix that requests share


def test_a_shared_prefix_is_counted_once() -> None:
    """Pool 16,384 blocks; sequences of 250 blocks of which 125 are shared: (16,384 − 125) / 125."""
    got = share_prefix(room(), prefix_tokens=2000, share=1.0, length_tokens=4000)
    assert (got.pool_blocks, got.need_blocks, got.shared_blocks) == (16_384, 250, 125)
    assert got.without == 16_384 / 250
    assert got.sequences == (16_384 - 125) / 125
    n = share_prefix(room(), prefix_tokens=2000, share=0.4, length_tokens=4000).sequences
    assert 125 + n * (0.4 * 125 + 0.6 * 250) == pytest.approx(16_384)


def test_only_whole_blocks_of_a_prefix_are_shared() -> None:
    got = share_prefix(room(), prefix_tokens=2015, share=1.0, length_tokens=4000)
    assert (got.kept_tokens, got.lost_tokens) == (2000, 15)
    assert share_prefix(room(), prefix_tokens=15, share=1.0, length_tokens=4000).sequences == 16_384 / 250


def test_every_data_parallel_rank_keeps_the_prefix() -> None:
    one = share_prefix(room(), prefix_tokens=2000, share=1.0, length_tokens=4000)
    four = share_prefix(room(dp=4), prefix_tokens=2000, share=1.0, length_tokens=4000)
    assert four.sequences == pytest.approx(4 * one.sequences)


def test_windows_share_only_what_is_still_inside() -> None:
    """Gemma-3-27B: one group of seven keeps everything; a prefix older than the window is shared there alone."""
    got = share_prefix(room(GEMMA), prefix_tokens=4096, share=1.0, length_tokens=16_384)
    assert got.shared_blocks == 4096 // 16
    near = share_prefix(room(GEMMA), prefix_tokens=4096, share=1.0, length_tokens=4097)
    assert near.shared_blocks > got.shared_blocks


@settings(deadline=None, max_examples=150)
@given(
    name=st.sampled_from([LLAMA, GEMMA, "openai/gpt-oss-20b"]),
    prefix=st.integers(0, 40_000),
    share=st.floats(0, 1),
    length=st.integers(1, 32_768),
)
def test_a_prefix_never_lowers_sequences_and_more_sharing_never_either(
    name: str, prefix: int, share: float, length: int
) -> None:
    got = share_prefix(room(name), prefix_tokens=prefix, share=share, length_tokens=length)
    assert got.sequences >= got.without
    assert got.kept_tokens + got.lost_tokens == prefix
    assert got.shared_blocks < got.need_blocks
    every = share_prefix(room(name), prefix_tokens=prefix, share=1.0, length_tokens=length)
    assert every.sequences >= got.sequences * (1 - 1e-12)


# Idle sessions


def test_idle_sessions_are_part_of_the_demand_and_not_of_the_evidence() -> None:
    """Six sessions in ten idle: 15 beside 10 active ones, each holding a finished request of 2,400 tokens."""
    plain = estimate_memory(made(), fixed(), peak_concurrency=10)
    idle = estimate_memory(made(), fixed(idle_share=0.6), peak_concurrency=10)
    assert idle.idle_kv_bytes == 15 * 2400 * RATE
    assert idle.kv_demand_bytes == plain.kv_demand_bytes + idle.idle_kv_bytes
    assert plain.idle_kv_bytes == 0
    assert any("idle" in str(note) for note in idle.notes)
    longer = estimate_memory(made(), fixed(idle_share=0.6, idle_context_tokens=4800), peak_concurrency=10)
    assert longer.idle_kv_bytes == 2 * idle.idle_kv_bytes


def test_idle_demand_leaves_the_decision_where_it_was() -> None:
    from calc.judge.decide import scenario_decision

    scenario = Scenario(deployment=made(kv_pool_bytes_per_gpu=None), workload=fixed())
    idle = replace(scenario, workload=fixed(idle_share=0.9))
    assert scenario_decision(idle).outcome == scenario_decision(scenario).outcome


@pytest.mark.parametrize("idle", [{"share": 0.6}, {"share": 0.5, "context_tokens": 12_000.0}])
def test_idle_sessions_of_a_case_come_back_as_they_were(idle: dict[str, float]) -> None:
    case = {
        "model": LLAMA,
        "gpu": "h100-sxm",
        "workload": {
            "prompt_tokens": {"distribution": "fixed", "value": 2000},
            "output_tokens": {"distribution": "fixed", "value": 400},
            "arrivals": {"kind": "closed", "concurrency": 10},
            "idle_sessions": idle,
        },
    }
    scenario, notes = read_case(case)
    assert not [note for note in notes if "idle" in str(note)]
    assert scenario.workload.idle_share == idle["share"]
    assert write_case(scenario)["workload"]["idle_sessions"] == idle
    assert read_case(write_case(scenario))[0] == scenario


@pytest.mark.parametrize("bad", [{"idle_share": 1.0}, {"idle_share": -0.1}, {"idle_context_tokens": 0}])
def test_impossible_idle_sessions_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=":"):
        fixed(**bad)


def test_an_idle_session_stays_until_the_free_blocks_went_round() -> None:
    """16,384 blocks, 10 requests of 2,200 tokens hold 1,380; 2 requests/s take 150 new blocks each."""
    got = keep_idle(room(), fixed(idle_share=0.5), request_rate_per_s=2.0, pause_s=60, link_bytes_per_s=64e9)
    assert got.idle == 10
    assert got.stays_s == pytest.approx((16_384 - 10 * 138) / (2 * 150))
    assert got.idle_bytes == 10 * 150 * 16 * RATE
    assert got.sequences_lost == 10
    assert got.resume_s == pytest.approx(2400 * RATE / 64e9)
    assert got.moved_bytes_per_s == pytest.approx(10 * 2400 * RATE / 60)
    hits = keep_idle(
        room(), fixed(idle_share=0.5, prefix_hit_share=0.6), request_rate_per_s=2.0, pause_s=60, link_bytes_per_s=None
    )
    assert hits.stays_s == pytest.approx(2 * (got.stays_s or 0)), "half of the blocks are found, so half are new"
    assert hits.resume_s is None
    assert keep_idle(room(), fixed(), request_rate_per_s=None, pause_s=60, link_bytes_per_s=1e9).stays_s is None


# Conversations


def test_a_conversation_grows_by_prompt_and_output_and_sends_all_of_it_again() -> None:
    got = converse(room(), turns=4, system_tokens=1000, new_tokens=100, output_tokens=300)
    assert [turn.context_tokens for turn in got.turns] == [1400, 1800, 2200, 2600]
    assert [turn.prompt_tokens for turn in got.turns] == [1100, 1500, 1900, 2300]
    assert [turn.resent_tokens for turn in got.turns] == [0, 1400, 1800, 2200]
    assert (got.sent_tokens, got.resent_tokens) == (6800, 5400)
    assert got.turns[-1].kv_bytes == -(-2600 // 16) * 16 * RATE
    assert got.turns[-1].sequences == 16_384 / 163


def test_a_conversation_ends_at_the_maximum_length() -> None:
    got = converse(room(), turns=200, system_tokens=1000, new_tokens=100, output_tokens=300)
    assert got.cut
    assert got.turns[-1].context_tokens <= 32_768 < got.turns[-1].context_tokens + 400
    assert not converse(room(), turns=3, system_tokens=40_000, new_tokens=1, output_tokens=1).turns


# Two models


def test_fractions_that_leave_too_little_free_stop_the_second_start() -> None:
    second = catalogue.model(LLAMA).spec()
    own = made("Qwen/Qwen3-14B", kv_pool_bytes_per_gpu=None)
    both = place_together(own, second, first_fraction=0.5, second_fraction=0.4, length_tokens=8192)
    assert both.fits
    assert both.left_bytes == both.total_bytes - both.first.held_bytes - both.second.held_bytes
    assert both.first.report.kv_pool_bytes < estimate_memory(own).kv_pool_bytes
    crowded = place_together(own, second, first_fraction=0.6, second_fraction=0.4, length_tokens=8192)
    assert not crowded.starts, "0.6 + 0.4 leave nothing for the two CUDA contexts"
    starved = place_together(own, second, first_fraction=0.3, second_fraction=0.4, length_tokens=8192)
    assert starved.starts
    assert not starved.fits


def test_the_least_fraction_is_just_enough() -> None:
    own, second = made("Qwen/Qwen3-14B", kv_pool_bytes_per_gpu=None), catalogue.model(LLAMA).spec()
    least = place_together(
        own, second, first_fraction=0.5, second_fraction=0.4, length_tokens=8192
    ).second.least_fraction
    assert least is not None
    for fraction, fits in ((least + 0.001, True), (least - 0.001, False)):
        got = place_together(own, second, first_fraction=0.5, second_fraction=fraction, length_tokens=8192)
        assert got.second.report.fits is fits


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_engines_that_take_a_share_of_what_is_free_always_start(engine: str) -> None:
    own = made("Qwen/Qwen3-14B", engine, kv_pool_bytes_per_gpu=None)
    got = place_together(
        own, catalogue.model(LLAMA).spec(), first_fraction=0.6, second_fraction=0.8, length_tokens=8192
    )
    assert got.starts
    assert got.second.report.total_bytes < got.total_bytes
    assert got.second.least_fraction is None


def test_a_second_model_that_the_split_does_not_divide_is_refused() -> None:
    with pytest.raises(ImpossibleDeployment, match="does not divide"):
        place_together(
            made(tp=8, kv_pool_bytes_per_gpu=None),
            catalogue.model("Qwen/Qwen2.5-0.5B").spec(),
            first_fraction=0.5,
            second_fraction=0.3,
            length_tokens=4096,
        )


# Eviction


def test_a_fifth_of_the_tokens_is_a_fifth_of_the_cache() -> None:
    """H2O's budget: 20 % kept, five times smaller."""
    window, scored, layers = evict(room(), 16_000, Budgets(window_tokens=2000, kept_share=0.2, full_layers_share=0.5))
    assert scored.smaller == pytest.approx(REPORTED_SMALLER[1])
    assert window.smaller == pytest.approx(8)
    assert window.sequences == sequences_at(made(), room().report, 2000)
    assert layers.smaller == pytest.approx(1 / 0.6)


def test_eviction_does_not_shrink_windows_a_second_time() -> None:
    budgets = Budgets(window_tokens=512, kept_share=0.1, full_layers_share=0.0)
    for row in evict(room(GEMMA), 32_768, budgets):
        full = row.kept_tokens // 16 + 1
        rest = room(GEMMA).blocks(32_768) - 32_768 // 16
        assert row.kv_bytes == pytest.approx(room(GEMMA).bytes_of(full + rest), rel=0.001)


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from([LLAMA, GEMMA]),
    length=st.integers(1, 32_768),
    window=st.integers(1, 40_000),
    kept=st.floats(0.01, 1),
    full=st.floats(0, 1),
)
def test_eviction_never_costs_room_and_keeping_all_changes_nothing(
    name: str, length: int, window: int, kept: float, full: float
) -> None:
    rows = evict(room(name), length, Budgets(window_tokens=window, kept_share=kept, full_layers_share=full))
    assert all(row.sequences >= row.full_sequences * (1 - 1e-9) for row in rows)
    assert all(row.sequences * row.kv_bytes == pytest.approx(row.full_sequences * row.full_kv_bytes) for row in rows)
    whole = evict(room(name), length, Budgets(window_tokens=length, kept_share=1.0, full_layers_share=full))
    assert [row.smaller for row in whole] == pytest.approx([1.0] * len(Policy))


@pytest.mark.parametrize("bad", [{"window_tokens": 0}, {"kept_share": 1.5}, {"full_layers_share": -0.1}])
def test_impossible_budgets_are_refused(bad: dict[str, float]) -> None:
    usual: dict[str, Any] = {"window_tokens": 1, "kept_share": 0.5, "full_layers_share": 0.5}
    with pytest.raises(InputError, match=":"):
        Budgets(**{**usual, **bad})


# Formats


def test_formats_take_their_bytes_scales_included() -> None:
    rows = {row.kv_dtype: row for row in formats_of(made(), room().report, 8000)}
    assert tuple(rows) == FORMATS
    assert rows["bf16"].bytes_per_token == RATE
    assert rows["int8"].bytes_per_token == 32 * 8 * 2 * (128 + 4)
    assert rows["nvfp4"].bytes_per_token / rows["fp8"].bytes_per_token == 0.5625
    assert rows["nvfp4"].bytes_per_token / rows["fp8"].bytes_per_token > CLAIMED_NVFP4_OF_FP8
    assert rows["fp8"].sequences == pytest.approx(2 * rows["bf16"].sequences, rel=1e-3)
    assert (rows["fp8"].native, rows["nvfp4"].native) == (True, False)


def test_fp8_doubles_the_logged_tokens_of_attention_as_a_start_up_log_shows() -> None:
    """Qwen3-8B: 299,344 tokens in BF16, 598,672 in FP8 with the same memory (NVIDIA-NeMo/RL pull request 1212)."""
    name = "Qwen/Qwen3-8B"
    own = made(name, kv_tokens=299_344, kv_pool_bytes_per_gpu=None)
    rows = formats_of(own, estimate_memory(own), 40_000)
    assert rows[1].sequences / rows[0].sequences == pytest.approx(598_672 / 299_344, rel=1e-4)


def test_rounding_is_a_part_of_a_block_for_plain_attention_and_more_where_layers_mix() -> None:
    plain = alignment_of(room(), 1001)
    assert plain.used_bytes + plain.rounded_bytes == 63 * 16 * RATE
    assert plain.lost_tokens == pytest.approx(63 * 16 - 1001)
    assert alignment_of(room(), 1008).lost_share == 0
    mixed = alignment_of(room(GEMMA), 16_000)
    assert mixed.groups == 7
    assert mixed.lost_share > plain.lost_share
    assert mixed.in_flight_bytes > 0


# Recurrent layers

HYBRID = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120,
    "vocab_size": 151936, "max_position_embeddings": 262144, "torch_dtype": "bfloat16", "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "decoder_sparse_step": 1, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
}  # fmt: skip
"""Qwen3-Next-80B-A3B: 12 layers of attention, 36 of gated DeltaNet."""


@cache
def hybrid() -> Room:
    own = replace(made(), model=ModelSpec.from_config(HYBRID, "Qwen3-Next"))
    return Room.of(own, estimate_memory(own, peak_concurrency=10))


def test_a_state_does_not_shrink_with_the_cache_format() -> None:
    """FP8 gave 1.84 times the sequences at 32k tokens and next to nothing at short ones on such hybrids, against 2.00
    on attention alone, by vLLM's own planner (vLLM issue 55196)."""
    gains = {}
    for length in (500, 32_768):
        plain, fp8, *_ = formats_of(hybrid().deployment, hybrid().report, length)
        gains[length] = fp8.sequences / plain.sequences
        assert 0 < plain.fixed_share < fp8.fixed_share < 1
    assert gains[32_768] == pytest.approx(1.84, abs=0.05)
    assert gains[500] < 1.2


def test_blocks_of_a_hybrid_hold_a_state_and_round_more_away() -> None:
    assert hybrid().report.block_size_tokens > 500
    lost = alignment_of(hybrid(), 1000)
    assert lost.lost_share > alignment_of(room(), 1000).lost_share
    found = waste_of(hybrid().deployment, hybrid().report, fixed())
    assert found.own.share > 0.05
    assert found.own.block_size_tokens == hybrid().report.block_size_tokens


def test_states_are_neither_shared_nor_evicted() -> None:
    got = share_prefix(hybrid(), prefix_tokens=20_000, share=1.0, length_tokens=30_000)
    assert got.shared_blocks == 20_000 // hybrid().report.block_size_tokens
    assert got.lost_tokens < hybrid().report.block_size_tokens
    states = hybrid().blocks(1) - 1
    kept = evict(hybrid(), 30_000, Budgets(window_tokens=1, kept_share=0.5, full_layers_share=0.0))[0]
    assert kept.kv_bytes == hybrid().bytes_of(states + 1)


def test_a_model_without_attention_shares_and_reserves_nothing() -> None:
    mamba = {
        "architectures": ["MambaForCausalLM"], "model_type": "mamba", "num_hidden_layers": 48, "hidden_size": 2048,
        "state_size": 16, "conv_kernel": 4, "intermediate_size": 4096, "vocab_size": 50280, "torch_dtype": "bfloat16",
        "time_step_rank": 128,
    }  # fmt: skip
    own = replace(made(), model=ModelSpec.from_config(mamba, "Mamba"))
    alone = Room.of(own, estimate_memory(own))
    got = share_prefix(alone, prefix_tokens=3000, share=1.0, length_tokens=8000)
    assert (got.kept_tokens, got.sequences) == (0, got.without)
    assert len({row.sequences for row in formats_of(own, alone.report, 8000)}) == 1
    assert alone.sequences(100) == alone.sequences(30_000)
    assert own.model.attention == NO_ATTENTION
