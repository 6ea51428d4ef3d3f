"""Models read from Hub configs: counts against published figures, layers against the families' own rules, refusals."""

from __future__ import annotations

import csv
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import InputError, UnknownArchitecture
from calc.model import LayerKind, ModelSpec
from data import catalogue

GOLDEN = Path(__file__).parent / "golden"
PUBLISHED = list(csv.DictReader((GOLDEN / "published_parameters.csv").read_text(encoding="utf-8").splitlines()))
PUBLISHED_CONFIGS = json.loads((GOLDEN / "published_configs.json").read_text(encoding="utf-8"))
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def spec(**changes: Any) -> ModelSpec:
    return ModelSpec.from_config({**LLAMA, **changes}, "test")


@pytest.mark.parametrize("row", PUBLISHED, ids=[row["model"] for row in PUBLISHED])
def test_parameters_agree_with_the_published_count(row: dict[str, str]) -> None:
    model = catalogue.model(row["model"]).spec()
    counted = model.parameters + (model.draft_parameters if row["drafts"] == "yes" else 0)
    assert counted == pytest.approx(float(row["expected"]), rel=float(row["tolerance"]))


@pytest.mark.parametrize("row", PUBLISHED_CONFIGS, ids=[row["model"] for row in PUBLISHED_CONFIGS])
def test_parameters_of_a_config_agree_with_the_published_count(row: dict[str, Any]) -> None:
    counted = ModelSpec.from_config(row["config"], row["model"]).parameters
    assert counted == pytest.approx(row["expected"], rel=row["tolerance"])


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("deepseek-ai/DeepSeek-V3", 37),
        ("Qwen/Qwen3-235B-A22B", 22),
        ("Qwen/Qwen3-30B-A3B", 3.3),
        ("openai/gpt-oss-120b", 5.1),
        ("openai/gpt-oss-20b", 3.6),
        ("moonshotai/Kimi-K2-Instruct", 32),
        ("zai-org/GLM-4.5", 32),
        ("mistralai/Mixtral-8x7B-v0.1", 12.9),
        ("XiaomiMiMo/MiMo-V2-Flash", 15),
        ("Qwen/Qwen3.5-397B-A17B", 17),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 12.7),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 3.5),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 3),
        ("ai21labs/Jamba-v0.1", 12),
        ("ibm-granite/granite-4.0-h-small", 9),
        ("deepseek-ai/DeepSeek-V4-Flash", 13),
        ("google/gemma-4-26B-A4B", 3.8),
    ],
)
def test_active_parameters_agree_with_the_model_cards(model: str, billions: float) -> None:
    # Cards count the input embedding or not; 8 % covers both.
    assert catalogue.model(model).spec().active_parameters == pytest.approx(billions * 1e9, rel=0.08)


def test_a_gqa_model_has_one_full_group() -> None:
    (group,) = spec().groups
    assert (group.kind, group.layers, group.kv_heads, group.head_dim) == (LayerKind.FULL, 32, 8, 128)


@pytest.mark.parametrize(("kv_heads", "name"), [(32, "mha"), (8, "gqa"), (1, "mqa")])
def test_attention_is_named_by_its_kv_heads(kv_heads: int, name: str) -> None:
    assert spec(num_key_value_heads=kv_heads).attention == name


def test_head_size_comes_from_the_config_before_hidden_over_heads() -> None:
    assert spec(head_dim=64).head_dim == 64
    assert spec().head_dim == 4096 // 32


def test_a_missing_kv_head_count_means_one_per_attention_head() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert ModelSpec.from_config(config, "test").kv_heads == 32


@pytest.mark.parametrize(
    ("model", "full", "local", "kind"),
    [
        ("google/gemma-2-27b", 23, 23, LayerKind.SLIDING),
        ("google/gemma-3-27b-it", 10, 52, LayerKind.SLIDING),
        ("openai/gpt-oss-120b", 18, 18, LayerKind.SLIDING),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 12, 36, LayerKind.CHUNKED),
        ("mistralai/Mistral-7B-v0.1", 0, 32, LayerKind.SLIDING),
        ("mistralai/Mistral-7B-Instruct-v0.2", 32, 0, LayerKind.SLIDING),
        ("Qwen/Qwen2.5-7B", 28, 0, LayerKind.SLIDING),
        ("google/gemma-4-31B", 10, 50, LayerKind.SLIDING),
        ("XiaomiMiMo/MiMo-V2-Flash", 9, 39, LayerKind.SLIDING),
    ],
)
def test_local_layers_follow_the_family_where_the_config_is_silent(
    model: str, full: int, local: int, kind: LayerKind
) -> None:
    layers = {group.kind: group.layers for group in catalogue.model(model).spec().groups}
    assert (layers.get(LayerKind.FULL, 0), layers.get(kind, 0)) == (full, local)


def test_mla_keeps_one_latent_per_token() -> None:
    (group,) = catalogue.model("deepseek-ai/DeepSeek-V3").spec().groups
    assert (group.kind, group.kv_heads, group.head_dim, group.v_head_dim) == (LayerKind.MLA, 1, 576, 0)


def test_a_draft_layer_adds_one_layer_that_keeps_a_cache() -> None:
    model = catalogue.model("deepseek-ai/DeepSeek-V3").spec()
    assert sum(group.layers for group in model.with_draft_layers(1).groups) == 62
    assert model.with_draft_layers(0) == model


def test_weights_are_plain_unless_the_config_or_the_user_says_otherwise() -> None:
    assert spec().storage.code == "bf16"
    assert spec(quantization_config={"quant_method": "fp8"}).storage.code == "fp8"
    assert ModelSpec.from_config(LLAMA, "test", weight_dtype="int4").storage.code == "int4"


def test_quantised_weights_do_not_change_the_cache() -> None:
    assert spec(quantization_config={"quant_method": "fp8"}).kv_dtype == "bf16"
    assert ModelSpec.from_config(LLAMA, "test", kv_dtype="fp8").kv_dtype == "fp8"
    scheme = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert spec(quantization_config=scheme).kv_dtype == "fp8"


def test_an_fp32_checkpoint_runs_in_bf16_unless_asked() -> None:
    assert spec(torch_dtype="float32").storage.code == "bf16"
    assert ModelSpec.from_config(LLAMA, "test", weight_dtype="float32").kv_dtype == "fp32"


def test_only_the_experts_of_gpt_oss_are_quantised() -> None:
    model = catalogue.model("openai/gpt-oss-20b").spec()
    assert model.moe is not None
    experts = model.moe.experts * model.moe.moe_layers * model.moe.expert_parameters
    assert model.quantised_parameters == experts


def test_modules_the_config_excludes_stay_plain() -> None:
    excluded = spec(quantization_config={"quant_method": "fp8", "ignore": ["model.layers.1.mlp", "re:.*self_attn.*"]})
    mlp = 3 * 4096 * 14336
    assert excluded.quantised_parameters == 31 * mlp


def test_a_nested_language_model_is_found_and_its_encoder_counted() -> None:
    model = catalogue.model("google/gemma-3-27b-it").spec()
    assert model.multimodal
    assert model.encoder_parameters == pytest.approx(0.417e9, rel=0.03)


@pytest.mark.parametrize(
    "model_type",
    ["rwkv", "plamo2", "deepseek_v41", "whisper"],
)
def test_families_with_another_kind_of_memory_are_refused_by_name(model_type: str) -> None:
    with pytest.raises(UnknownArchitecture, match=model_type):
        ModelSpec.from_config({**LLAMA, "architectures": [], "model_type": model_type}, "test")


def test_an_unknown_class_is_refused_even_with_familiar_fields() -> None:
    with pytest.raises(UnknownArchitecture, match="BrandNewForCausalLM"):
        spec(architectures=["BrandNewForCausalLM"])


def test_linear_attention_among_the_layers_is_refused() -> None:
    with pytest.raises(UnknownArchitecture, match="linear_attention"):
        spec(layer_types=["linear_attention"] * 32)


@pytest.mark.parametrize("field", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"])
def test_a_missing_field_is_named(field: str) -> None:
    config = {key: value for key, value in LLAMA.items() if key != field}
    with pytest.raises(InputError, match=field):
        ModelSpec.from_config(config, "test")


@pytest.mark.parametrize("value", ["32", -1, 0, math.nan, math.inf, 10**30, True, [32], 0.5])
@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size"])
def test_a_hostile_value_is_one_clear_sentence(field: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        spec(**{field: value})
    assert field.split("_")[1] in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from([entry.id for entry in catalogue.models().values()]),
    field=st.sampled_from(
        ["layer_types", "rope_scaling", "quantization_config", "sliding_window", "num_local_experts", "head_dim",
         "kv_lora_rank", "vision_config", "architectures", "text_config", "moe_layer_freq", "mlp_only_layers"]
    ),
    value=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(), max_size=3),
        st.dictionaries(
            st.sampled_from(["factor", "type", "quant_method", "bits", "config_groups", "hidden_size", "depth"]),
            st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=6)),
        ),
    ),
)  # fmt: skip
def test_any_field_may_hold_anything_without_a_crash(name: str, field: str, value: Any) -> None:
    config = {**catalogue.model(name).config, field: value}
    # Either it is a model or it is refused; anything else would surface here as a crash.
    with suppress(InputError):
        assert ModelSpec.from_config(config, "test").parameters > 0
