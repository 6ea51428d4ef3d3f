"""Memory against real engines: start-ups of vLLM 0.19, the block counts of vLLM 0.32, capacities in public logs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from calc.deployment import Deployment
from calc.hardware import Gpu
from calc.kv import kv_bytes_per_token
from calc.memory import MemoryReport, estimate_memory
from calc.model import ModelSpec
from calc.units import GIB
from data import catalogue
from data.case import read_deployment

GOLDEN = Path(__file__).parent / "golden"
STARTS = list(csv.DictReader((GOLDEN / "vllm_0.19_memory.csv").read_text(encoding="utf-8").splitlines()))


@cache
def spec(name: str, weight_dtype: str | None = None, kv_dtype: str | None = None) -> ModelSpec:
    return catalogue.model(name).spec(weight_dtype=weight_dtype, kv_dtype=kv_dtype)


@pytest.mark.parametrize("row", STARTS, ids=[f"{r['model']}-{r['weight_dtype']}-tp{r['tp']}" for r in STARTS])
def test_a_start_of_vllm_0_19_is_met_within_one_percent(row: dict[str, str]) -> None:
    got = _start(row)
    tolerance = float(row["tolerance"])
    assert got.weights_bytes / GIB == pytest.approx(float(row["weights_gib"]), rel=tolerance)
    assert got.kv_pool_bytes / GIB == pytest.approx(float(row["kv_gib"]), rel=tolerance)
    assert got.kv_tokens == pytest.approx(float(row["kv_tokens"]), rel=tolerance)


def test_starts_of_vllm_0_19_lie_in_the_band_four_times_in_five() -> None:
    inside = []
    for row in STARTS:
        low, high = _start(row).kv_pool_band_bytes
        inside.append(low <= float(row["kv_gib"]) * GIB <= high)
    assert mean(inside) >= 0.8


def _start(row: dict[str, str]) -> MemoryReport:
    model = spec(row["model"], row["weight_dtype"], row["kv_dtype"])
    engine = catalogue.engine("vllm", "0.19.0")[0]
    return estimate_memory(
        Deployment(
            model=model,
            gpu=catalogue.gpu("h100-sxm"),
            engine=engine,
            tp=int(row["tp"]),
            pp=int(row["pp"]),
            memory_fraction=0.95,
            max_model_len_tokens=int(row["max_model_len"]),
        )
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the real observations here")
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _case(case: dict[str, Any]) -> Deployment:
    given = case["model"]
    model = ModelSpec.from_config(
        given["config"],
        given["name"],
        weight_dtype=case.get("weight_dtype"),
        kv_dtype=case.get("kv_dtype"),
        weights_bytes_declared=given.get("weight_bytes"),
    ).with_draft_layers(1 if case.get("speculative_config") else 0)
    engine = catalogue.engine(case["engine"], case["engine_version"])[0]
    engine = replace(
        engine,
        async_scheduling=case.get("async_scheduling", engine.async_scheduling),
        hybrid_kv=engine.hybrid_kv and not case.get("disable_hybrid_kv_cache_manager", False),
    )
    gpu = case["gpu"]
    return Deployment(
        model=model,
        gpu=Gpu(id=gpu["name"], name=gpu["name"], memory_bytes=round(gpu["memory_gib"] * GIB)),
        engine=engine,
        tp=case["tp"],
        pp=case["pp"],
        dp=case.get("dp", 1),
        memory_fraction=case.get("memory_fraction"),
        max_model_len_tokens=case["max_model_len"],
        max_num_batched_tokens=case.get("max_num_batched_tokens"),
        max_num_seqs=case.get("max_num_seqs"),
        block_size_tokens=case.get("block_size"),
        kv_dtype=case["kv_dtype"],
        kv_pool_bytes_per_gpu=case.get("kv_pool_bytes_per_gpu"),
    )


def _agrees(got: MemoryReport, truth: dict[str, Any]) -> bool:
    if "refused" in truth:
        return not got.fits
    pairs = (
        (got.num_blocks, truth["num_blocks"]),
        (got.kv_tokens, truth["kv_tokens"]),
        (got.max_concurrency, truth["max_concurrency"]),
    )
    return got.fits and got.num_groups == truth["num_groups"] and all(abs(a / b - 1) < 0.005 for a, b in pairs)


def test_blocks_tokens_and_sequences_are_those_of_vllms_own_code(cases_dir: Path) -> None:
    lines = list(_lines(cases_dir / "memory" / "oracle_cases.jsonl"))
    wrong = [
        line["id"] for line in lines if not _agrees(estimate_memory(read_deployment(line["case"])[0]), line["truth"])
    ]
    assert len(lines) >= 180
    assert len(wrong) <= 0.02 * len(lines), wrong


def test_logged_starts_are_met_on_average_within_half_a_percent(cases_dir: Path) -> None:
    kv_errors, token_errors, weight_errors = [], [], []
    for line in _lines(cases_dir / "memory" / "estimate_cases.jsonl"):
        got, truth = estimate_memory(_case(line["case"])), line["truth"]
        kv_errors.append(abs(got.kv_pool_bytes / GIB / truth["kv_cache_memory_gib"] - 1))
        token_errors.append(abs(got.kv_tokens / truth["kv_cache_tokens"] - 1))
        weight_errors.append(abs(got.weights_bytes / GIB / truth["weight_memory_gib"] - 1))
    assert mean(kv_errors) < 0.005
    assert mean(token_errors) < 0.005
    # Two Gemma 3 starts are given with the text config of a checkpoint that also holds a vision encoder.
    assert max(kv_errors) < 0.04
    assert mean(weight_errors) < 0.01


LOGGED = {
    "vllm-21348-b": ("Qwen/Qwen3-235B-A22B-FP8", "auto"),
    "vllm-25350": ("Qwen/Qwen3-30B-A3B-FP8", "fp8"),
    "hfmem-60": ("openai/gpt-oss-120b", "auto"),
    "sglang-11309-new": ("deepseek-ai/DeepSeek-V3.2", "fp8"),
    "srt-trtllm-dsv3": ("deepseek-ai/DeepSeek-V3", "fp8"),
    "srt-sglang-dsr1": ("deepseek-ai/DeepSeek-R1", "fp8"),
    "sglang-glm5-dsa": ("zai-org/GLM-5", "fp8"),
    "sglang-qwen05b": ("Qwen/Qwen2.5-0.5B-Instruct", "auto"),
    "trtllm-1400": ("meta-llama/Llama-2-7b-hf", "auto"),
}


def test_logged_pools_divided_by_logged_tokens_give_the_same_rate(cases_dir: Path) -> None:
    checked = 0
    for line in _lines(cases_dir / "memory" / "logged_capacity.jsonl"):
        if line["id"] not in LOGGED:
            continue
        name, kv_dtype = LOGGED[line["id"]]
        model, seen = spec(name, kv_dtype=kv_dtype), line["observed"]
        pool_gib = seen.get("kv_size_gib") or seen["available_kv_gib"]
        rate = pool_gib * GIB / seen["kv_tokens"]
        assert kv_bytes_per_token(model, model.kv_dtype, line["tp"]) == pytest.approx(rate, rel=0.025), line["id"]
        checked += 1
    assert checked == len(LOGGED)
