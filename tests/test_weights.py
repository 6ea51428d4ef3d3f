"""Weight bytes per GPU: against engines' logs, by quantisation method, and what must hold for every model and split."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import InputError
from calc.hub.module_patterns import module_set
from calc.memory import estimate_memory
from calc.model import ModelSpec
from calc.room.weights import stage_weights_bytes, weights_bytes_per_gpu
from calc.units import GIB
from data import catalogue
from data.case import read_deployment

GOLDEN = Path(__file__).parent / "golden"
LOGGED = list(csv.DictReader((GOLDEN / "logged_weights.csv").read_text(encoding="utf-8").splitlines()))
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
DENSE_AND_MIXED = (
    LLAMA_8B,
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "google/gemma-3-27b-it",
    "google/gemma-4-26B-A4B",
    "openai/gpt-oss-120b",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "ai21labs/Jamba-v0.1",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct",
)


def grouped(**weights: Any) -> dict[str, Any]:
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }


W8A8_INT8 = grouped(num_bits=8, type="int", strategy="channel", symmetric=True)
W8A8_FP8 = grouped(num_bits=8, type="float", strategy="channel", symmetric=True)
CHANGES: dict[str, dict[str, Any]] = {
    "w8a8-int8": {"quantization_config": W8A8_INT8},
    "w8a8-fp8": {"quantization_config": W8A8_FP8},
    "gptq-128": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}},
    "awq-128": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}},
    "nf4": {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
    "fbgemm-16-kv-heads": {
        "num_key_value_heads": 16,
        "quantization_config": {
            "quant_method": "fbgemm_fp8",
            "modules_to_not_convert": [
                "lm_head",
                *(f"model.layers.{i}.self_attn" for i in range(126)),
                "model.layers.0.mlp",
                "model.layers.125.mlp",
            ],
        },
    },
}


def changed(name: str, **changes: Any) -> ModelSpec:
    return ModelSpec.from_config({**catalogue.model(name).config, **changes}, name)


def quantised(**block: Any) -> ModelSpec:
    return changed(LLAMA_8B, quantization_config=block)


@pytest.mark.parametrize(
    "row", LOGGED, ids=[f"{row['model']} {row['change']} {row['tp']}x{row['pp']}" for row in LOGGED]
)
def test_weights_agree_with_what_engines_log(row: dict[str, str]) -> None:
    change = row["change"]
    if change in CHANGES or not change:
        model = changed(row["model"], **CHANGES.get(change, {}))
    else:
        model = catalogue.model(row["model"]).spec(weight_dtype=change)
    found = weights_bytes_per_gpu(model, int(row["tp"]), int(row["pp"])) / GIB
    assert found == pytest.approx(float(row["gib"]), rel=float(row["tolerance"]))


@pytest.mark.parametrize(
    ("block", "code", "bytes_per_parameter"),
    [
        # Worked by hand: payload + scale (+ zero point) over the group.
        ({"quant_method": "fp8"}, "fp8", 1 + 4 / 4096),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 1 + 4 / 128**2),
        (W8A8_INT8, "int8", 1 + 4 / 4096),
        (grouped(num_bits=4, type="int", group_size=32, symmetric=True), "int4", 0.5 + 2 / 32),
        (grouped(num_bits=4, type="int", group_size=128, symmetric=False), "int4", 0.5 + 2.5 / 128),
        (grouped(num_bits=4, type="float", group_size=16), "nvfp4", 0.5 + 1 / 16),
        (grouped(num_bits=4, type="float", group_size=32), "mxfp4", 0.5 + 1 / 32),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": 64}, "int8", 1 + 3 / 64),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "int4", 0.5 + 2.5 / 4096),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", 0.5 + 4 / 64),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", 1 + 4 / 4096),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5 + 1 / 16),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", 1 + 4 / 4096),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "fp8", 1 + 4 / 128**2),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "torchao", "quant_type": {"_type": "Float8WeightOnlyConfig"}}, "fp8", 1 + 4 / 4096),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128}, "int4", 0.5 + 2.5 / 128),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "mxfp4", 0.5 + 1 / 32),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8", 1.0),
    ],
)  # fmt: skip
def test_each_method_stores_payload_and_scales(block: dict[str, Any], code: str, bytes_per_parameter: float) -> None:
    storage = quantised(**block).storage
    assert storage.code == code
    assert storage.bytes_per_parameter == pytest.approx(bytes_per_parameter)


@pytest.mark.parametrize("method", ["hqq", "gguf", "exl2", "aqlm", "brand-new"])
def test_an_unknown_method_is_refused_by_name(method: str) -> None:
    with pytest.raises(InputError, match=method):
        quantised(quant_method=method)


def test_three_bits_are_refused() -> None:
    with pytest.raises(InputError, match="3 bits"):
        quantised(quant_method="gptq", bits=3, group_size=128)


def test_mixed_precision_without_its_layers_is_refused_and_with_them_counted() -> None:
    with pytest.raises(InputError, match="quantized_layers"):
        quantised(quant_method="modelopt", quant_algo="MIXED_PRECISION")
    layers = {
        f"model.layers.{i}.mlp.{part}_proj": {"quant_algo": "NVFP4"}
        for i in range(32)
        for part in ("gate", "up", "down")
    }
    layers |= {f"model.layers.{i}.self_attn.{part}_proj": {"quant_algo": "FP8"} for i in range(32) for part in "qkvo"}
    mixed = quantised(quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)
    mlp, attention = 32 * 3 * 4096 * 14336, 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    rest = catalogue.model(LLAMA_8B).spec().parameters - mlp - attention
    expected = mlp * (0.5 + 1 / 16) + attention * (1 + 4 / 4096) + rest * 2
    assert weights_bytes_per_gpu(mixed, 1) - mixed.rope_cache_bytes == pytest.approx(expected, rel=1e-4)


def test_two_groups_of_compressed_tensors_are_told_apart_by_their_targets() -> None:
    groups = {
        "experts": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
        "others": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float"}},
    }
    both = quantised(quant_method="compressed-tensors", config_groups=groups, ignore=["lm_head"])
    four = quantised(**grouped(num_bits=4, type="float", group_size=16))
    eight = quantised(**W8A8_FP8)
    assert weights_bytes_per_gpu(four, 1) < weights_bytes_per_gpu(both, 1) < weights_bytes_per_gpu(eight, 1)


def test_layers_named_by_auto_round_and_gptq_keep_their_own_width() -> None:
    plain = quantised(quant_method="auto-round", bits=4, group_size=128)
    wider = {f"model.layers.{i}.mlp.down_proj": {"bits": 16} for i in range(32)}
    some = quantised(quant_method="auto-round", bits=4, group_size=128, extra_config=wider)
    assert some.quantised_parameters == plain.quantised_parameters - 32 * 3 * 4096 * 14336
    dynamic = quantised(quant_method="gptq", bits=4, group_size=128, dynamic={r"-:.*self_attn.*": {}})
    assert dynamic.quantised_parameters == 32 * 3 * 4096 * 14336


def test_deepseek_v4_keeps_experts_in_four_bits_and_the_rest_in_eight() -> None:
    flash = catalogue.model("deepseek-ai/DeepSeek-V4-Flash").spec()
    # 277 billion in experts at 4.25 bits, 4.9 in FP8, the rest plain: the Hub's files hold about 160 GB with drafts.
    assert weights_bytes_per_gpu(flash, 1) == pytest.approx(157e9, rel=0.02)
    assert catalogue.model("deepseek-ai/DeepSeek-V4-Flash").spec(weight_dtype="mxfp4").storage == flash.storage


@pytest.mark.parametrize(
    ("name", "covered", "free"),
    [
        ("lm_head", "lm_head", "layers.3.mlp.down_proj"),
        ("model.layers.3.mlp", "layers.3.mlp.down_proj", "layers.30.mlp.down_proj"),
        ("model.language_model.layers.3.self_attn.q_proj", "layers.3.self_attn.q_proj", "layers.3.self_attn.o_proj"),
        ("gate", "layers.1.mlp.gate", "layers.1.mlp.gate_proj"),
        ("model.layers.*.self_attn", "layers.7.self_attn.o_proj", "layers.7.mlp.up_proj"),
        ("language_model.model.layers.1.self_attn*", "layers.1.self_attn.q_proj", "layers.11.self_attn.q_proj"),
        ("*mixer.conv1d", "layers.2.mixer.conv1d", "layers.2.mixer.in_proj"),
        ("re:.*self_attn.*", "layers.9.self_attn.q_proj", "layers.9.mlp.up_proj"),
        (r"re:.*mlp\.(gate|up|down)_proj.*", "layers.0.mlp.down_proj", "layers.0.mlp.experts.0.down_proj"),
        (r"re:^model\.layers\.\d+\.mlp\.shared_experts.*", "layers.4.mlp.shared_experts.up_proj", "layers.4.mlp.up"),
        (r"re:.*layers\.(0|1)\..*", "layers.1.mlp.up_proj", "layers.11.mlp.up_proj"),
        (r"re:model\.language_model\.layers\.[0-3]\..*", "layers.2.mlp.up_proj", "layers.4.mlp.up_proj"),
    ],
)  # fmt: skip
def test_names_globs_and_expressions_cover_what_they_say(name: str, covered: str, free: str) -> None:
    modules = module_set([name])
    assert modules.covers(covered)
    assert not modules.covers(free)


@pytest.mark.parametrize("text", ["re:(a+)+b", "re:(.*a)*", "re:.*a.*b.*c.*d", "re:[", "re:(?P<x>a)", "re:a{1,99999}"])
def test_an_intricate_expression_is_named_and_not_run(text: str) -> None:
    assert module_set([text]).unread == (text.removeprefix("re:"),)
    (note,) = quantised(quant_method="fp8", ignore=[text]).weight_notes
    assert text.removeprefix("re:") in str(note)


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.one_of(st.text(max_size=30), st.from_regex(r"re:[a-z.*+()|\[\]\\]{0,20}")), max_size=5))
def test_no_list_of_names_breaks_the_reading(names: list[str]) -> None:
    module_set(names).covers("layers.3.mlp.experts.12.down_proj")


WORDS = st.sampled_from(
    [
        "fp8",
        "gptq",
        "awq",
        "modelopt",
        "NVFP4",
        "MIXED_PRECISION",
        "compressed-tensors",
        "quark",
        "torchao",
        "fp4",
        "int",
    ]
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 300), st.floats(), WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["weights", "targets", "num_bits", "type", "group_size", "bits", "default", "weight", "dtype"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    block=st.dictionaries(
        st.sampled_from(
            ["quant_method", "quant_algo", "config_groups", "quantized_layers", "ignore", "bits", "group_size",
             "dynamic", "extra_config", "weight_block_size", "quant_type", "global_quant_config", "load_in_4bit"]
        ),
        ANYTHING,
        max_size=6,
    )
)  # fmt: skip
def test_any_description_of_a_quantisation_is_read_or_refused(block: dict[str, Any]) -> None:
    try:
        model = quantised(**block)
    except InputError:
        return
    plain = catalogue.model(LLAMA_8B).spec()
    assert 0 < weights_bytes_per_gpu(model, 1) <= 2.5 * weights_bytes_per_gpu(plain, 1)


@pytest.mark.parametrize("name", DENSE_AND_MIXED)
@pytest.mark.parametrize("pp", [1, 2])
def test_more_ranks_never_hold_more_each_nor_less_together(name: str, pp: int) -> None:
    model = catalogue.model(name).spec()
    whole = weights_bytes_per_gpu(model, 1, pp)
    previous = whole
    for tp in (2, 4, 8):
        each = weights_bytes_per_gpu(model, tp, pp)
        assert each <= previous
        assert each * tp >= whole * 0.999
        previous = each


@pytest.mark.parametrize("name", DENSE_AND_MIXED)
def test_stages_together_hold_every_layer_once_and_the_vocabulary_as_their_classes_create_it(name: str) -> None:
    model = catalogue.model(name).spec()
    (whole,) = stage_weights_bytes(model, 1, 1)
    stages = stage_weights_bytes(model, 1, 2)
    # What stages hold beyond their need: vocabulary matrices of classes that never ask for the stage, and encoders.
    matrices = 1 if model.tied_embeddings else model.vocab_copies
    again = model.rope_cache_bytes + 2 * (model.embedding_parameters * matrices + model.encoder_parameters)
    assert sum(stages) == pytest.approx(whole + again, rel=0.001)


@pytest.mark.parametrize("name", [name for name in DENSE_AND_MIXED if not name.startswith(("openai", "deepseek"))])
def test_fewer_bits_weigh_less(name: str) -> None:
    entry = catalogue.model(name)
    sizes = [weights_bytes_per_gpu(entry.spec(weight_dtype=code), 1) for code in ("fp32", "bf16", "fp8", "int4")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_experts_are_divided_over_all_ranks_and_attention_is_repeated_on_each() -> None:
    model = catalogue.model("deepseek-ai/DeepSeek-V3").spec()
    spread, alone = weights_bytes_per_gpu(model, 1, 1, True, 16), weights_bytes_per_gpu(model, 1)
    assert model.moe is not None
    experts = model.moe.experts * model.moe.expert_parameters * model.moe.moe_layers
    assert alone - spread == pytest.approx(experts * 15 / 16, rel=0.002)


def test_draft_layers_weigh_only_when_speculation_is_on() -> None:
    model = catalogue.model("deepseek-ai/DeepSeek-V3").spec()
    more = weights_bytes_per_gpu(model.with_draft_layers(1), 1) - weights_bytes_per_gpu(model, 1)
    # One layer of 11.5 billion FP8 parameters with BF16 norms and router, and the projection of two hidden states.
    assert more == pytest.approx(11.6e9, rel=0.02)


def test_the_draft_layer_of_qwen3_next_is_in_the_checkpoint_and_not_in_the_model() -> None:
    model = changed("Qwen/Qwen3-Next-80B-A3B-Instruct", num_nextn_predict_layers=1)
    # Hub API, safetensors total of Qwen3-Next-80B-A3B-Instruct.
    assert model.parameters + model.draft_parameters == 81_324_862_720


def test_gemma_4_holds_a_copy_where_keys_serve_as_values() -> None:
    model = catalogue.model("google/gemma-4-31B").spec()
    plain = model.parameters * 2 + model.rope_cache_bytes
    copies = 10 * 5376 * 4 * 512 * 2
    assert weights_bytes_per_gpu(model, 1) == pytest.approx(plain + copies, rel=1e-4)


TEXT_PART = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 10240,
    "vocab_size": 262144,
    "max_position_embeddings": 131072,
    "sliding_window": 1024,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def case(name: str) -> dict[str, Any]:
    model = {"name": name, "config": TEXT_PART}
    return {"model": model, "gpu": "h100-sxm", "engine": "vllm", "engine_version": "0.19.0", "max_model_len": 8192}


def test_the_text_part_of_a_catalogue_model_gets_the_encoder_behind_its_name() -> None:
    named = read_deployment(case("google/gemma-3-4b-it"))[0].model
    short = read_deployment(case("Gemma-3-4b-it"))[0].model
    assert short.encoder_parameters == named.encoder_parameters
    assert weights_bytes_per_gpu(named, 1) / GIB == pytest.approx(8.58, rel=0.003)
    assert "420 million" in str(named.weight_notes[0])


def test_the_text_part_of_an_unknown_model_is_counted_as_given_and_the_doubt_said() -> None:
    other = read_deployment(case("someone/else"))[0].model
    assert other.encoder_parameters == 0
    assert other.weight_doubt_bytes == pytest.approx(0.84e9, rel=0.01)
    assert "image encoder" in str(other.weight_notes[0])
    small = ModelSpec.from_config(
        {**TEXT_PART, "hidden_size": 1152, "num_attention_heads": 4, "num_key_value_heads": 1}, "1b"
    )
    assert small.weight_doubt_bytes == 0


def test_a_silent_nvfp4_config_widens_the_band_by_its_attention_and_says_so() -> None:
    silent = quantised(quant_method="modelopt", quant_algo="NVFP4")
    attention = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    assert silent.weight_doubt_bytes == pytest.approx(attention * (2 - 0.5625), rel=0.001)
    assert "attention" in str(silent.weight_notes[0])
    listed = quantised(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head"])
    assert (listed.weight_doubt_bytes, listed.weight_notes) == (0, ())


def test_a_doubt_about_weights_widens_the_band_of_the_pool() -> None:
    def width(name: str) -> float:
        low, high = estimate_memory(read_deployment(case(name))[0]).kv_pool_band_bytes
        return high - low

    assert width("someone/else") > width("google/gemma-3-4b-it") + 0.5 * GIB


@pytest.mark.parametrize(
    ("name", "elements", "tolerance"),
    [
        # Hub API, elements by dtype: F8_E4M3 680,571,043,840.
        ("deepseek-ai/DeepSeek-V3", 680_571_043_840, 0),
        # Hub API: total of the FP8 checkpoint less that of the BF16 one = scales, one per 128 × 128 elements.
        ("Qwen/Qwen3-30B-A3B-FP8", (30_533_947_392 - 30_532_122_624) * 128**2, 0),
        ("Qwen/Qwen3-235B-A22B-FP8", (235_107_904_512 - 235_093_634_560) * 128**2, 0),
        ("MiniMaxAI/MiniMax-M2.5", (228_703_644_928 - 228_689_764_864) * 128**2, 0),
        # Widths that 128 does not divide have one scale more.
        ("deepseek-ai/DeepSeek-V3.2", (685_396_921_376 - 685_355_329_792) * 128**2, 1e-4),
        ("zai-org/GLM-5-FP8", (753_910_024_032 - 753_864_139_008) * 128**2, 1e-4),
        ("moonshotai/Kimi-K2-Instruct", (1_026_470_731_056 - 1_026_408_235_864) * 128**2, 1e-4),
    ],
)
def test_as_many_elements_are_quantised_as_in_the_published_files(name: str, elements: int, tolerance: float) -> None:
    model = catalogue.model(name).spec()
    drafts = model.draft_layer.quantised if model.draft_layer else 0
    assert model.quantised_parameters + drafts == pytest.approx(elements, rel=tolerance)
