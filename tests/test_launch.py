"""The start command says what the estimate rests on, in the engine's own words, and is safe to paste."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from calc.engine import resolve
from calc.ways.launch import OPTIONS_FILE, PLACEHOLDER, Launch, launch, version_of
from data.case import read_deployment
from data.checkpoint import as_stored, launch_of
from data.questions import launch as answer

BASE = {"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm", "tp": 2, "max_model_len": 16384, "memory_fraction": 0.87}
LENGTH = {"vllm": "--max-model-len", "sglang": "--context-length", "tensorrt-llm": "--max_seq_len"}
FRACTION = {
    "vllm": "--gpu-memory-utilization",
    "sglang": "--mem-fraction-static",
    "tensorrt-llm": "--kv_cache_free_gpu_memory_fraction",
}
TP = {"vllm": "--tensor-parallel-size", "sglang": "--tp-size", "tensorrt-llm": "--tp_size"}
PP = {"vllm": "--pipeline-parallel-size", "sglang": "--pp-size", "tensorrt-llm": "--pp_size"}
ENGINES = sorted(LENGTH)
HOSTILE = (
    "$(touch pwned)",
    "a; rm -rf ~",
    "`id`",
    'it\'s "quoted"',
    "-x",
    "--port=1",
    "*",
    "~root",
    "a b",
    "!!",
    "&",
    "#c",
)


def command_of(**case: Any) -> Launch:
    deployment, _ = read_deployment({**BASE, **case})
    return launch_of(deployment)


def flags(launched: Launch) -> dict[str, str]:
    """Flag → value of the command, read back the way a shell splits it."""
    found: dict[str, str] = {}
    last = ""
    for word in shlex.split(launched.command):
        if word.startswith("--"):
            last, found[word] = word, ""
        elif last:
            found[last] = word
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_a_command_reads_back_to_the_settings_of_the_estimate(engine: str) -> None:
    deployment, _ = read_deployment({**BASE, "engine": engine, "pp": 2})
    read, settings = flags(launch_of(deployment)), resolve(deployment)
    assert int(read[LENGTH[engine]]) == settings.max_model_len_tokens == 16384
    assert float(read[FRACTION[engine]]) == settings.memory_fraction == 0.87
    assert (read[TP[engine]], read[PP[engine]]) == ("2", "2")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_left_to_the_version_is_not_written(engine: str) -> None:
    read = flags(command_of(engine=engine, tp=1))
    for name in ("kv-cache-dtype", "quantization", "dtype", "block-size", "page-size", "prefix", "radix", "async"):
        assert not [flag for flag in read if name in flag.replace("_", "-")]
    assert not {TP[engine], PP[engine]} & set(read)


VLLM_WORDS = [
    ({"kv_dtype": "fp8"}, ["--kv-cache-dtype", "fp8"]),
    ({"weight_dtype": "fp8"}, ["--quantization", "fp8"]),
    ({"weight_dtype": "fp16"}, ["--dtype", "float16"]),
    ({"enable_prefix_caching": False}, ["--no-enable-prefix-caching"]),
    ({"enable_chunked_prefill": False}, ["--no-enable-chunked-prefill"]),
    ({"enable_chunked_prefill": False, "engine_version": "0.8.5"}, ["--enable-chunked-prefill=False"]),
    ({"block_size": 32}, ["--block-size", "32"]),
    ({"max_num_seqs": 64}, ["--max-num-seqs", "64"]),
    ({"max_num_batched_tokens": 4096}, ["--max-num-batched-tokens", "4096"]),
    ({"async_scheduling": False}, ["--no-async-scheduling"]),
    ({"async_scheduling": True, "engine_version": "0.11.0"}, ["--async-scheduling"]),
    ({"dp": 4}, ["--data-parallel-size", "4"]),
    ({"kv_pool_bytes_per_gpu": 2**30}, ["--kv-cache-memory-bytes", "1073741824"]),
    ({"model": "deepseek-ai/DeepSeek-V3", "dp": 4, "ep": True}, ["--enable-expert-parallel"]),
    (
        {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}},
        ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'],
    ),
    ({"disable_hybrid_kv_cache_manager": True}, ["--disable-hybrid-kv-cache-manager"]),
]


@pytest.mark.parametrize(("asked", "words"), VLLM_WORDS, ids=lambda value: str(value)[:40])
def test_vllm_is_told_in_its_own_words(asked: dict[str, Any], words: list[str]) -> None:
    """Names as in the engine arguments of vLLM's documentation and ``config/cache.py``."""
    spoken = shlex.split(command_of(**asked).command)
    assert spoken[:2] == ["vllm", "serve"]
    at = spoken.index(words[0])
    assert spoken[at : at + len(words)] == words


SGLANG_WORDS = [
    ({"kv_dtype": "fp8"}, ["--kv-cache-dtype", "fp8_e4m3"]),
    ({"enable_prefix_caching": False}, ["--disable-radix-cache"]),
    ({"enable_chunked_prefill": False}, ["--chunked-prefill-size", "-1"]),
    ({"max_num_batched_tokens": 4096}, ["--chunked-prefill-size", "4096"]),
    ({"max_num_seqs": 48}, ["--max-running-requests", "48"]),
    ({"block_size": 64}, ["--page-size", "64"]),
    ({"weight_dtype": "fp8"}, ["--quantization", "fp8"]),
    ({"async_scheduling": False}, ["--disable-overlap-schedule"]),
    ({"kv_tokens": 100_000}, ["--max-total-tokens", "100000"]),
]


@pytest.mark.parametrize(("asked", "words"), SGLANG_WORDS, ids=lambda value: str(value)[:40])
def test_sglang_is_told_in_its_own_words(asked: dict[str, Any], words: list[str]) -> None:
    """Names as in SGLang's table of server arguments."""
    spoken = shlex.split(command_of(engine="sglang", **asked).command)
    assert spoken[:3] == ["sglang", "serve", "--model-path"]
    at = spoken.index(words[0])
    assert spoken[at : at + len(words)] == words


def test_sglang_before_its_serve_command_is_started_as_a_module() -> None:
    assert command_of(engine="sglang", engine_version="0.4.6").words[:3] == ("python", "-m", "sglang.launch_server")


def test_sglang_counts_all_gpus_as_tp_where_attention_is_data_parallel() -> None:
    read = flags(command_of(engine="sglang", model="deepseek-ai/DeepSeek-V3", tp=1, dp=8, ep=True))
    assert (read["--tp-size"], read["--dp-size"], read["--ep-size"]) == ("8", "8", "8")
    assert "--enable-dp-attention" in read


def test_tensorrt_llm_reads_from_a_file_what_has_no_flag() -> None:
    launched = command_of(
        engine="tensorrt-llm", kv_dtype="fp8", enable_prefix_caching=False, block_size=64, enable_chunked_prefill=True
    )
    assert flags(launched)["--extra_llm_api_options"] == OPTIONS_FILE
    assert launched.files[OPTIONS_FILE].splitlines() == [
        "kv_cache_config:",
        "  dtype: fp8",
        "  enable_block_reuse: false",
        "  tokens_per_block: 64",
        "enable_chunked_prefill: true",
    ]
    assert not command_of(engine="tensorrt-llm").files


MISSING = [
    ({"engine_version": "0.6.3", "dp": 2}, "data or expert parallelism"),
    ({"engine_version": "0.10.0", "kv_dtype": "bf16", "weight_dtype": "fp16"}, "known from 0.11 on"),
    ({"engine": "sglang", "kv_dtype": "nvfp4"}, "KV cache in nvfp4"),
    ({"engine": "sglang", "kv_dtype": "int8"}, "KV cache in int8"),
    ({"engine": "tensorrt-llm", "tp": 2, "dp": 2}, "data-parallel ranks"),
    ({"weight_dtype": "int4"}, "need a checkpoint stored so"),
    ({"engine": "tensorrt-llm", "weight_dtype": "fp8"}, "need a checkpoint stored so"),
    ({"engine_version": "0.9.0", "kv_pool_bytes_per_gpu": 2**30}, "not a setting of this version"),
    ({"replicas": 3}, "each of the 3 replicas"),
    ({"engine": "sglang", "speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}, "speculation"),
    ({"limit_mm_per_prompt": {"image": 2}}, "limit_mm_per_prompt"),
    ({"tp": 8, "pp": 4}, "more than one server has"),
    ({"ep": True}, "no experts"),
    ({"max_model_len": 1_000_000}, "engines refuse it by default"),
]


@pytest.mark.parametrize(("asked", "said"), MISSING, ids=lambda value: str(value)[:40])
def test_what_a_version_cannot_be_told_is_said(asked: dict[str, Any], said: str) -> None:
    assert [note for note in command_of(**asked).notes if said in str(note)]


def test_a_checkpoint_already_stored_so_needs_no_flag() -> None:
    launched = command_of(model="deepseek-ai/DeepSeek-V3", tp=8, weight_dtype="fp8")
    assert "--quantization" not in flags(launched)
    assert not launched.notes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_shell_takes_a_hostile_name_for_a_name(engine: str, name: str) -> None:
    deployment, _ = read_deployment({**BASE, "engine": engine})
    launched = launch(replace(deployment, model=replace(deployment.model, name=name)))
    script = "set -- " + launched.lines + "\nprintf '%s\\n' \"$@\""
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    words = said.splitlines()
    assert tuple(words) == launched.words == tuple(shlex.split(launched.command))
    assert (f"./{name}" if name.startswith("-") else name) in words


@pytest.mark.parametrize("name", ["a\nrm -rf ~", "a\x1b[2Jb", "a\rb", "\u202egnp.exe", "", " ", "a\x00b"])
def test_a_name_that_cannot_be_pasted_safely_is_left_to_the_reader(name: str) -> None:
    deployment, _ = read_deployment(BASE)
    launched = launch(replace(deployment, model=replace(deployment.model, name=name)))
    assert PLACEHOLDER in launched.words
    assert "\n" not in launched.command
    assert [note for note in launched.notes if "not safe to paste" in str(note)]


def test_an_own_config_is_said_to_need_its_path() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
        "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
        "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
    }  # fmt: skip
    said = answer({"model": {"name": "ours", "config": config}, "gpu": "l4"})
    assert shlex.split(said["command"])[:3] == ["vllm", "serve", "ours"]
    assert [note for note in said["notes"] if "path of its checkpoint" in note]


def test_the_same_deployment_written_in_lines_is_the_same_command() -> None:
    launched = command_of(kv_dtype="fp8")
    assert shlex.split(launched.lines.replace("\\\n", "")) == list(launched.words)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.11.0rc2", (0, 11, 0)),
        ("v0.8", (0, 8)),
        ("0.6.3.post1", (0, 6, 3)),
        ("0.19.0+cu128", (0, 19, 0)),
        ("nightly", (999,)),
    ],
)
def test_versions_compare_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_of(text)[: len(numbers)] == numbers


def test_the_checkpoint_is_the_model_without_what_the_case_overrides() -> None:
    deployment, _ = read_deployment({**BASE, "weight_dtype": "int4", "kv_dtype": "fp8"})
    stored = as_stored(deployment)
    assert (stored.storage.code, stored.kv_dtype) == ("bf16", "bf16")


def test_the_answer_of_the_command_line_is_plain_json() -> None:
    said = answer({**BASE, "replicas": 2})
    assert json.loads(json.dumps(said)) == said
    assert said["command"].startswith("vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2")
    assert said["replicas"] == 2
