"""Configs that leave something out: the class's own default said aloud, or one sentence, never a silent guess."""

from __future__ import annotations

from typing import Any

import pytest

from calc.errors import PlimsollError
from calc.model import ModelSpec
from data import catalogue
from data.questions import estimate

GPU = {"name": "Large", "memory_gib": 4096}


def config(name: str, *without: str, **changed: Any) -> dict[str, Any]:
    whole = {**catalogue.model(name).config, **changed}
    for path in without:
        *parts, last = path.split(".")
        for part in parts:
            whole[part] = dict(whole[part])
        inner = whole
        for part in parts:
            inner = inner[part]
        del inner[last]
    return whole


def answer(given: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return estimate({"model": {"name": "own", "config": given}, "gpu": GPU, **settings})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Qwen/Qwen3-0.6B", "head_dim", 128),
        ("openai/gpt-oss-20b", "head_dim", 64),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "head_dim", 128),
        ("google/gemma-2-2b", "sliding_window", 4096),
        ("deepseek-ai/DeepSeek-V3.2", "index_head_dim", 128),
        ("google/gemma-3n-E4B-it", "text_config.num_kv_shared_layers", 15),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "mamba_head_dim", 64),
        ("baidu/ERNIE-4.5-21B-A3B-PT", "moe_k", 6),
    ],
)
def test_a_class_default_fills_a_silent_field_and_is_said(name: str, field: str, value: int) -> None:
    spec = ModelSpec.from_config(config(name, field), "own")
    assert spec.groups == ModelSpec.from_config(config(name), "own").groups
    said = f"The config names no {field.split('.')[-1]}: {value:,}, the default of its class, is used."
    assert said in [str(note) for note in spec.config_notes]
    assert said in answer(config(name, field))["notes"]


def test_every_catalogue_config_names_what_it_needs() -> None:
    assert [entry.id for entry in catalogue.models().values() if entry.spec().config_notes] == []


@pytest.mark.parametrize(
    ("name", "field", "named"),
    [
        ("Qwen/Qwen3-30B-A3B", "moe_intermediate_size", "moe_intermediate_size"),
        ("Qwen/Qwen3-30B-A3B", "num_experts_per_tok", "num_experts_per_tok"),
        ("deepseek-ai/DeepSeek-V3", "n_routed_experts", "n_routed_experts"),
        ("ibm-granite/granite-4.0-h-small", "layer_types", "layer_types"),
        ("MiniMaxAI/MiniMax-M1-80k", "attn_type_list", "layer_types"),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "linear_attn_config.head_dim", "head_dim"),
        ("Qwen/Qwen3-32B-FP8", "quantization_config.quant_method", "quant_method"),
    ],
)
def test_a_field_nothing_stands_in_for_is_asked_for(name: str, field: str, named: str) -> None:
    with pytest.raises(PlimsollError, match=named):
        ModelSpec.from_config(config(name, field), "own")


def test_a_silent_number_of_kv_heads_is_said() -> None:
    notes = answer(config("meta-llama/Llama-3.2-1B", "num_key_value_heads"))["notes"]
    assert any("num_key_value_heads" in note for note in notes)


def test_the_inner_width_of_jamba_is_not_that_of_its_mlp() -> None:
    silent = ModelSpec.from_config(config("ai21labs/Jamba-v0.1", "mamba_expand"), "own")
    assert silent.groups == catalogue.model("ai21labs/Jamba-v0.1").spec().groups


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("google/gemma-3n-E4B-it", {"num_hidden_layers": 1, "num_kv_shared_layers": 15}),
        ("LiquidAI/LFM2-1.2B", {"conv_L_cache": 1}),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"layers_block_type": [None], "hybrid_override_pattern": None}),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", {"hybrid_override_pattern": "-" * 56}),
        ("meta-llama/Llama-2-7b-hf", {"hidden_size": 100_000_000}),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", {"linear_attn_config": {"head_dim": 10**8, "num_heads": 32}}),
    ],
)
def test_a_config_beyond_sense_is_one_sentence(name: str, changed: dict[str, Any]) -> None:
    given = config(name)
    if "text_config" in given:
        changed = {"text_config": {**given["text_config"], **changed}}
    with pytest.raises(PlimsollError) as raised:
        answer({**given, **changed})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_a_stage_without_attention_is_refused_where_no_engine_is_known_to_serve_it(engine: str) -> None:
    case = {"model": "nvidia/NVIDIA-Nemotron-Nano-9B-v2", "gpu": GPU, "engine": engine, "pp": 8}
    with pytest.raises(PlimsollError, match="without attention layers"):
        estimate(case)


@pytest.mark.parametrize("given", [{"kv_tokens": 10**9}, {"kv_pool_bytes_per_gpu": 4 * 10**12}])
def test_a_given_pool_larger_than_its_gpu_is_taken_and_said(given: dict[str, Any]) -> None:
    case = {"model": "Qwen/Qwen3-14B", "gpu": "h100-sxm"}
    assert any("The KV pool given" in note for note in estimate({**case, **given})["notes"])
    assert not any("The KV pool given" in note for note in estimate({**case, "kv_tokens": 1000})["notes"])
