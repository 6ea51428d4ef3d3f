"""The catalogue: every row usable and sourced, names forgiving, engine versions chosen in words."""

from __future__ import annotations

import csv
import re
from datetime import date
from pathlib import Path

import pytest

from calc.cache.kv import kv_bytes_per_token
from calc.engine import FractionOf, batch_defaults
from calc.errors import UnknownName
from calc.hardware import Gpu
from calc.units import GIB
from calc.workload import Closed
from data import catalogue
from data.case import read_deployment

GOLDEN = Path(__file__).parent / "golden"
CONFIDENCES = ("high", "medium", "low")
SIZE_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:[._]\d+)?)[bB](?![a-zA-Z0-9])")
SIZE_TOLERANCE = 0.08
ROUNDED_NAMES = {
    "Llama-3.2-1B": 1.24,
    "Qwen2-7B": 7.62,
    "Qwen2.5-7B": 7.62,
    "Qwen2.5-Coder-7B": 7.62,
    "DeepSeek-R1-Distill-Qwen-7B": 7.62,
    "DeepSeek-R1-Distill-Qwen-1.5B": 1.78,
    "Qwen2-VL-7B": 8.29,
    "Qwen2.5-VL-7B": 8.29,
    "Qwen3-VL-2B": 2.13,
    "Qwen3-VL-4B": 4.44,
    "Qwen3-VL-8B": 8.77,
    "gemma-2b": 2.51,
    "gemma-7b": 8.54,
    "gemma-2-2b": 2.61,
    "granite-3.1-2b": 2.53,
    "granite-3.1-3b-a800m": 3.30,
    "Llama-4-Scout-17B-16E": 108.6,
    "Llama-4-Maverick-17B-128E": 401.6,
    "OLMoE-1B-7B": 6.92,
    "internlm2-7b": 7.74,
    "internlm2_5-7b": 7.74,
    "internlm3-8b": 8.80,
    "MiMo-7B": 7.62,
    "Ministral-3-3B": 3.85,
    "Ministral-3-8B": 8.92,
}
"""Billions of parameters of the checkpoints whose name rounds, leaves the encoder out or counts active ones."""
SIZES_NOT_IN_NAMES = {
    "microsoft/Phi-3.5-MoE-instruct": 41.9,
    "tencent/Hunyuan-A13B-Instruct": 80.4,
    "mistralai/Mixtral-8x7B-v0.1": 46.7,
    "mistralai/Mixtral-8x22B-v0.1": 140.6,
    "openai/gpt-oss-20b": 20.9,
    "openai/gpt-oss-120b": 116.8,
    "deepseek-ai/DeepSeek-V2-Lite": 15.7,
    "deepseek-ai/DeepSeek-V2": 236,
    "deepseek-ai/DeepSeek-V3": 671,
    "moonshotai/Kimi-K2-Instruct": 1026,
    "zai-org/GLM-4.5-Air": 107,
    "zai-org/GLM-4.5": 355,
    "MiniMaxAI/MiniMax-M2": 229,
    "MiniMaxAI/MiniMax-M1-80k": 456,
    "ai21labs/Jamba-v0.1": 51.6,
    "ibm-granite/granite-4.0-h-small": 32,
}
"""Billions of parameters stated on the model cards."""
FAMILIES = (
    "Llama-2", "Meta-Llama-3-", "Llama-3.1", "Llama-3.2", "Llama-3.3", "Llama-4", "CodeLlama", "Qwen2-", "Qwen2-VL",
    "Qwen2.5-", "Qwen2.5-VL", "Qwen2.5-Coder", "Qwen3-", "Qwen3-VL", "Qwen3-Coder", "Qwen3-Next", "Qwen3.5",
    "Qwen3.6", "QwQ", "DeepSeek-V2", "DeepSeek-V3", "DeepSeek-R1", "DeepSeek-V3.1", "DeepSeek-V3.2", "DeepSeek-V4",
    "DeepSeek-R1-Distill", "Kimi-K2-", "Kimi-K2.5", "Kimi-Linear", "glm-4", "GLM-4.5", "GLM-4.6", "GLM-4.7",
    "GLM-5", "gpt-oss", "Mistral-7B", "Mixtral", "Mistral-Small", "Mistral-Large", "Mistral-Nemo", "Devstral",
    "Magistral", "Ministral", "gemma-2-", "gemma-3-", "gemma-3n", "gemma-4", "Phi-3-", "Phi-3.5", "phi-4",
    "MiniMax-M1", "MiniMax-M2", "MiniMax-M2.5", "Llama-3_3-Nemotron", "Nemotron-H", "NVIDIA-Nemotron-3", "Yi-",
    "Baichuan2", "internlm2_5", "internlm3", "ERNIE-4.5", "Hunyuan", "Seed-OSS", "Step-3", "MiMo", "c4ai-command-r",
    "c4ai-command-a", "granite-3", "granite-4", "falcon", "Falcon-H1", "OLMo-2", "Olmo-3", "EXAONE-4", "SmolLM3",
    "Jamba", "LFM2", "starcoder2", "InternVL",
)  # fmt: skip
GPUS = (
    "h20-96", "h20-141", "l20", "l40s", "a10", "a30", "t4", "v100-32", "a800-80", "h800", "a100-40-sxm",
    "a100-80-sxm", "h100-sxm", "h100-pcie", "h100-nvl", "h200", "b200", "b300", "gb200", "gb300", "rtx4090",
    "rtx5090", "rtx6000ada", "rtxpro6000", "gb10", "mi210", "mi250x", "mi300x", "mi325x", "mi355x", "gaudi2",
    "gaudi3", "ascend-910b", "ascend-910b2", "ascend-910b4", "ascend-910c",
)  # fmt: skip
KV_BYTES = {
    "meta-llama/Llama-2-7b-hf": 524_288,
    "meta-llama/Llama-2-70b-hf": 327_680,
    "meta-llama/Meta-Llama-3-8B": 131_072,
    "meta-llama/Llama-3.3-70B-Instruct": 327_680,
    "meta-llama/Meta-Llama-3.1-405B": 516_096,
    "Qwen/Qwen2.5-72B-Instruct": 327_680,
    "Qwen/Qwen2.5-7B": 57_344,
    "Qwen/Qwen3-32B": 262_144,
    "mistralai/Mixtral-8x7B-v0.1": 131_072,
    "openai/gpt-oss-120b": 73_728,
    "zai-org/GLM-4.5": 376_832,
    "deepseek-ai/DeepSeek-V3": 70_272,
    "moonshotai/Kimi-K2-Instruct": 70_272,
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": 16_384,
    "ai21labs/Jamba-v0.1": 16_384,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 24_576,
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": 200_704,
}
"""BF16, one GPU. DeepSeek-V3, Qwen2.5-72B and Llama-3.1-405B: DeepSeek's hardware paper (70.272, 327.680, 516.096 KB);
Llama 2 and 3: vLLM and LMCache documents (0.5 MiB, 128 and 320 KiB); the rest 2 · attending layers · KV heads · width
· 2 with the layer counts their papers and cards state."""


def test_there_are_enough_models_and_gpus() -> None:
    published = {
        row["model"]
        for row in csv.DictReader((GOLDEN / "published_parameters.csv").read_text(encoding="utf-8").splitlines())
    }
    assert len(published & set(catalogue.models())) >= 60
    assert len(catalogue.gpus()) >= 35


@pytest.mark.parametrize("name", catalogue.models())
def test_every_model_can_be_read_and_says_where_it_is_from(name: str) -> None:
    entry = catalogue.models()[name]
    assert entry.spec().parameters > 0
    assert entry.source.strip()
    assert date.fromisoformat(entry.checked_on)
    assert entry.confidence in CONFIDENCES


def test_no_model_stands_twice() -> None:
    lowered = [name.lower() for name in catalogue.models()]
    assert len(lowered) == len(set(lowered))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_families_people_ask_for_are_there(family: str) -> None:
    assert any(entry.name.startswith(family) for entry in catalogue.models().values())


def size_of_name(name: str) -> float | None:
    """Billions of parameters a model's name promises."""
    rounded = [stem for stem in ROUNDED_NAMES if name.startswith(stem)]
    if rounded:
        return ROUNDED_NAMES[max(rounded, key=len)]
    found = SIZE_IN_NAME.search(name)
    return None if found is None else float(found[1].replace("_", "."))


def test_parameters_are_as_many_as_the_name_says() -> None:
    sizes = {entry.id: size_of_name(entry.name) for entry in catalogue.models().values()} | SIZES_NOT_IN_NAMES
    known = {name: size for name, size in sizes.items() if size is not None}
    counted = {name: catalogue.model(name).spec().parameters / 1e9 for name in known}
    off = {
        name: (counted[name], size) for name, size in known.items() if abs(counted[name] / size - 1) > SIZE_TOLERANCE
    }
    assert not off
    assert len(known) > 200


def test_active_parameters_are_as_many_as_the_name_says() -> None:
    found = {entry.id: re.search(r"-A(\d+(?:\.\d+)?)B", entry.name) for entry in catalogue.models().values()}
    for name, active in ((name, float(match[1])) for name, match in found.items() if match):
        # Names round to whole billions, and some leave the head out.
        assert catalogue.model(name).spec().active_parameters / 1e9 == pytest.approx(active, rel=0.12, abs=0.6), name


@pytest.mark.parametrize(("name", "expected"), KV_BYTES.items())
def test_a_token_takes_the_published_bytes_of_cache(name: str, expected: int) -> None:
    assert kv_bytes_per_token(catalogue.model(name).spec(), "bf16", 1) == expected


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("Qwen/Qwen3-32B-FP8", 8),
        ("Qwen/Qwen3-32B-AWQ", 4),
        ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int4", 4),
        ("nvidia/Qwen3-235B-A22B-NVFP4", 4),
        ("RedHatAI/Qwen3-32B-quantized.w4a16", 4),
        ("nvidia/DeepSeek-V3.1-NVFP4", 4),
        ("zai-org/GLM-5-FP8", 8),
    ],
)
def test_quantised_checkpoints_store_most_of_their_weights_small(name: str, bits: int) -> None:
    model = catalogue.model(name).spec()
    assert model.quantised_parameters > 0.75 * model.parameters
    # Scales add at most an eighth of a byte; what stays in BF16 is the rest.
    assert bits / 8 <= model.storage.bytes_per_parameter < bits / 8 + 0.125


@pytest.mark.parametrize("gpu", catalogue.gpus().values(), ids=catalogue.gpus())
def test_every_gpu_has_plausible_figures_and_a_source(gpu: Gpu) -> None:
    assert 4 * GIB < gpu.memory_bytes < 320 * GIB
    assert gpu.source
    assert date.fromisoformat(gpu.checked_on)
    assert gpu.bandwidth_bytes_per_s is not None
    assert 100e9 < gpu.bandwidth_bytes_per_s < 10e12
    assert all(1e12 < peak < 20e15 for peak in gpu.flops_per_s.values())
    assert gpu.confidence in CONFIDENCES


def test_every_gpu_row_says_where_its_memory_is_from() -> None:
    rows = list(csv.DictReader((Path(catalogue.__file__).parent / "gpus.csv").read_text(encoding="utf-8").splitlines()))
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["memory_source"].strip() and row["memory_from"] in ("driver", "derived") for row in rows)
    assert all(0.9 < float(row["memory_gib"]) / float(row["nominal_memory_gb"]) <= 1 for row in rows)


@pytest.mark.parametrize("name", GPUS)
def test_the_accelerators_people_ask_for_are_there(name: str) -> None:
    assert name in catalogue.gpus()


@pytest.mark.parametrize("gpu", catalogue.gpus().values(), ids=catalogue.gpus())
def test_peaks_are_dense_and_links_one_way(gpu: Gpu) -> None:
    peaks = gpu.flops_per_s
    base = peaks.get("bf16") or peaks["fp16"]
    # Half the width at most doubles the rate (twice that where FP16 accumulates at half rate): sparse would be 4 times.
    assert peaks.get("fp8", base) / base <= 2.03
    assert peaks.get("fp4", base) / base <= 8.01
    if gpu.nvlink_bytes_per_s is not None:
        assert gpu.nvlink_bytes_per_s <= 900e9


def test_h100_figures_are_those_of_the_data_sheet() -> None:
    gpu = catalogue.gpu("H100-SXM")
    assert gpu.memory_bytes == pytest.approx(79.19 * GIB, rel=1e-6)
    assert gpu.bandwidth_bytes_per_s == 3350e9
    assert gpu.flops_per_s["bf16"] == 989e12
    assert gpu.nvlink_bytes_per_s == 450e9
    assert gpu.pcie_bytes_per_s == 64e9


def test_unknown_figures_stay_unknown() -> None:
    assert "bf16" not in catalogue.gpu("t4").flops_per_s
    assert "fp8" not in catalogue.gpu("a100-80-sxm").flops_per_s
    assert catalogue.gpu("l40s").nvlink_bytes_per_s is None


def test_memory_no_driver_showed_is_marked() -> None:
    assert catalogue.gpu("a100-80-pcie").memory_is_declared
    assert not catalogue.gpu("h100-sxm").memory_is_declared


def test_names_may_be_written_in_any_case_and_short() -> None:
    assert catalogue.model("QWEN/qwen3-8b").id == "Qwen/Qwen3-8B"
    assert catalogue.model("qwen3-8b").id == "Qwen/Qwen3-8B"


def test_a_wrong_name_offers_the_closest() -> None:
    with pytest.raises(UnknownName, match="Qwen/Qwen3-8B"):
        catalogue.model("Qwen/Qwen3-8")
    with pytest.raises(UnknownName, match="h100-sxm"):
        catalogue.gpu("h100-smx")
    with pytest.raises(UnknownName, match="vllm"):
        catalogue.engine("vlm")


def test_rows_of_an_engine_stand_in_order_and_have_sources() -> None:
    for code in ("vllm", "sglang", "tensorrt-llm"):
        rows = [row for row in catalogue.engines() if row.id == code]
        assert [row.released for row in rows] == sorted(row.released for row in rows)
        assert all(row.source and date.fromisoformat(row.checked_on) for row in rows)


def test_a_version_between_rows_takes_the_older_row_and_says_so() -> None:
    row, notes = catalogue.engine("vllm", "0.20.2")
    assert row.version == "0.19.0"
    assert "0.20.2" in str(notes[0])
    assert catalogue.engine("vllm", "0.19.0") == (row, ())


@pytest.mark.parametrize("name", ["nightly", "main", "latest"])
def test_a_version_without_a_number_is_the_newest_and_an_empty_one_no_version(name: str) -> None:
    newest, no_notes = catalogue.engine("vllm")
    row, notes = catalogue.engine("vllm", name)
    assert row == newest
    assert str(notes[0]) == f"vllm {name} has no row of its own: the defaults of {newest.version} are used."
    assert catalogue.engine("vllm", "") == (newest, no_notes)


def test_versions_compare_as_numbers() -> None:
    assert catalogue.engine("vllm", "0.9.2")[0].version == "0.9.0"
    assert catalogue.engine("vllm", "v0.11.1rc2")[0].version == "0.11.0"


def test_without_a_version_the_date_decides() -> None:
    assert catalogue.engine("vllm", on_date="2026-04-10")[0].version == "0.19.0"
    assert catalogue.engine("vllm")[0].version == "0.32.0"
    assert catalogue.engine("vllm", on_date="2020-01-01")[1]


def test_defaults_that_changed_between_versions_differ() -> None:
    old, new = catalogue.engine("vllm", "0.19.0")[0], catalogue.engine("vllm", "0.32.0")[0]
    assert (old.memory_fraction, new.memory_fraction) == (0.90, 0.92)
    assert (old.graphs_in_budget, new.graphs_in_budget) == (False, True)
    assert catalogue.engine("tensorrt-llm")[0].fraction_of is FractionOf.FREE


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ("b200", (16384, 1024)),
        ("h100-sxm", (8192, 1024)),
        ("a100-80-sxm", (2048, 256)),
        ("a10", (2048, 256)),
    ],
)
def test_vllm_batch_defaults_follow_the_memory_class(gpu: str, expected: tuple[int, int]) -> None:
    assert batch_defaults(catalogue.engine("vllm", "0.32.0")[0], catalogue.gpu(gpu)) == expected


def test_the_five_business_types_are_complete() -> None:
    presets = catalogue.presets()
    assert list(presets) == ["online-service", "knowledge-rag", "agent", "code-completion", "offline-batch"]
    for preset in presets.values():
        assert preset.key_metrics
        assert len(preset.questions) >= 3
        assert preset.source
        assert preset.workload.business_type == preset.id
    assert isinstance(presets["offline-batch"].workload.arrivals, Closed)


def test_a_recalled_model_and_a_derived_memory_are_said_to_be_so() -> None:
    case = {"model": "bigcode/starcoder2-15b", "gpu": "a100-80-pcie"}
    _, notes = read_deployment(case)
    assert any("recalled" in str(note) for note in notes)
    assert any("derived" in str(note) for note in notes)


def test_a_model_read_from_a_source_needs_no_remark() -> None:
    _, notes = read_deployment({"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm", "tp": 2})
    assert notes == ()
