"""The budget of a GPU by engine and version: defaults, zones, what is over, and starts of other versions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from logged import public_figure, public_starts

from calc.deployment import Deployment
from calc.engine import resolve
from calc.memory import MemoryReport, estimate_memory
from calc.model import ModelSpec
from calc.units import GIB
from data import catalogue
from data.case import read_deployment


@cache
def spec(name: str) -> ModelSpec:
    return catalogue.model(name).spec()


@pytest.mark.parametrize("version", ["0.19.0", "0.21.0"])
def test_graphs_captured_outside_the_budget_are_taken_off_the_margin(version: str) -> None:
    got = estimate_memory(_small(version))
    outside = got.total_bytes - got.budget_bytes - got.context_bytes
    assert got.graphs_in_budget == (version == "0.21.0")
    assert got.margin_bytes == outside - (0 if got.graphs_in_budget else got.graph_bytes)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.3-70B-Instruct", "google/gemma-3-27b-it", "openai/gpt-oss-120b"])
def test_with_what_it_lacks_a_pool_fits_and_with_a_byte_less_it_does_not(name: str) -> None:
    short = estimate_memory(_small("0.32.0", name, kv_pool_bytes_per_gpu=GIB // 4))
    enough = GIB // 4 + short.over_bytes
    assert short.over_bytes > 0
    assert estimate_memory(_small("0.32.0", name, kv_pool_bytes_per_gpu=enough)).over_bytes == 0
    assert estimate_memory(_small("0.32.0", name, kv_pool_bytes_per_gpu=enough - 1)).over_bytes == 1


def _small(version: str, name: str = "meta-llama/Llama-3.1-8B-Instruct", **given: Any) -> Deployment:
    engine, gpu = catalogue.engine("vllm", version)[0], catalogue.gpu("h100-sxm")
    return Deployment(model=spec(name), gpu=gpu, engine=engine, **given)


DEFAULTS = [
    # engine, version, GPU, fraction, batched tokens, sequences, source
    ("vllm", "0.7.3", "h100-sxm", 0.90, 131_072, 256, "V0: a whole prompt without chunks, here switched off"),
    ("vllm", "0.8.4", "h100-sxm", 0.90, 8192, 1024, "pull request 12369: by the name H100"),
    ("vllm", "0.8.4", "a100-80-sxm", 0.90, 2048, 256, "pull request 12369"),
    ("vllm", "0.9.2", "h20-96", 0.90, 8192, 1024, "pull request 17885: from 70 GiB on"),
    ("vllm", "0.20.2", "b200", 0.90, 8192, 1024, "before pull requests 38284 and 51726"),
    ("vllm", "0.21.0", "b200", 0.92, 8192, 1024, "pull request 38284"),
    ("vllm", "0.28.0", "b200", 0.92, 16384, 1024, "pull request 51726"),
    ("vllm", "0.32.0", "a100-80-sxm", 0.92, 2048, 256, "get_batch_defaults"),
    ("sglang", "0.4.3", "h100-sxm", 0.81, 8192, 4096, "server_args.py: 0.81 from TP 8 on"),
    ("sglang", "0.4.9", "h100-sxm", 0.83, 8192, 4096, "server_args.py: 9.5 GiB and half a GiB a rank below 90 GiB"),
    ("sglang", "0.5.5", "h100-sxm", 0.817, 8192, 4096, "pull request 10975: 512 + 1.5 · 8192 + 2 · 512 + 8 · 128 MiB"),
    ("tensorrt-llm", "1.0.0", "h100-sxm", 0.90, 8192, 2048, "features/kvcache.md"),
]


@pytest.mark.parametrize(("engine", "version", "gpu", "fraction", "tokens", "seqs", "source"), DEFAULTS)
def test_defaults_are_those_of_the_version(
    engine: str, version: str, gpu: str, fraction: float, tokens: int, seqs: int, source: str
) -> None:
    chunked = False if version == "0.7.3" else None
    tp = 8 if engine == "sglang" else 1
    made = Deployment(
        model=spec("meta-llama/Llama-3.1-8B-Instruct"),
        gpu=catalogue.gpu(gpu),
        engine=catalogue.engine(engine, version)[0],
        tp=tp,
        chunked_prefill=chunked,
    )
    got = resolve(made)
    assert got.memory_fraction == pytest.approx(fraction, abs=0.002), source
    assert (got.max_num_batched_tokens, got.max_num_seqs) == (tokens, seqs), source


def test_hybrid_models_log_their_tokens_by_concurrency_since_0_21() -> None:
    """About 55,000 tokens in 0.20.0 and 525,000 in 0.21.0 from the same pool (vLLM issue 43308): here, far more too."""
    pool = 50 * GIB
    old, new = (
        estimate_memory(_small(version, "google/gemma-4-31B", kv_pool_bytes_per_gpu=pool)).kv_tokens
        for version in ("0.20.0", "0.21.0")
    )
    assert new > 5 * old


def test_sglang_takes_0_828_of_an_h100_by_itself() -> None:
    """Qwen3-32B on an H100, June 2026 (SGLang issue 29092); the prefill graphs are part of the reserve."""
    made = replace(_small("0.32.0", "Qwen/Qwen3-32B"), engine=catalogue.engine("sglang")[0])
    assert resolve(made).memory_fraction == pytest.approx(0.828, abs=0.002)


@pytest.mark.parametrize(
    ("tp", "pp", "logged_gib"), [(1, 1, 0.51), (1, 2, 1.43), (1, 4, 1.48), (2, 1, 1.51), (4, 1, 1.53)]
)
def test_what_the_gpu_holds_before_the_engine_measures_is_logged(tp: int, pp: int, logged_gib: float) -> None:
    """Llama-3.1-8B of vLLM 0.19 on H100s."""
    got = estimate_memory(_small("0.19.0", tp=tp, pp=pp))
    assert got.context_bytes / GIB == pytest.approx(logged_gib, abs=0.1)


def test_a_version_known_from_few_logs_says_so_and_has_a_wider_band() -> None:
    case = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm"}
    (old, said), (new, silent) = (read_deployment({**case, "engine_version": v}) for v in ("0.12.0", "0.19.0"))
    assert any("few public logs" in str(note) for note in said)
    assert not any("few public logs" in str(note) for note in silent)
    assert _half_width(estimate_memory(old)) > 2 * _half_width(estimate_memory(new))


def _half_width(report: MemoryReport) -> float:
    low, high = report.kv_pool_band_bytes
    return (high - low) / 2


@pytest.mark.parametrize(
    ("gpu", "switched"), [("h100-sxm", True), ("b200", True), ("h100-nvl", False), ("rtxpro6000", False)]
)
def test_collective_buffers_are_large_only_behind_an_nvlink_switch(gpu: str, switched: bool) -> None:
    made = replace(_small("0.19.0", tp=2), gpu=catalogue.gpu(gpu))
    assert (estimate_memory(made).non_torch_bytes > GIB) == switched


SPLITS = [(1, 1), (2, 1), (8, 1), (1, 2), (2, 4)]


@pytest.mark.parametrize("version", ["0.6.0", "0.8.0", "0.19.0", "0.32.0"])
@pytest.mark.parametrize(("tp", "pp"), SPLITS)
@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "google/gemma-3-27b-it"])
def test_the_pool_grows_with_memory_and_fraction_and_shrinks_with_tokens(
    version: str, tp: int, pp: int, name: str
) -> None:
    made = _small(version, name, tp=tp, pp=pp)
    more = replace(made, gpu=catalogue.gpu("h200"))
    pools = [
        estimate_memory(replace(made, memory_fraction=0.7)),
        estimate_memory(replace(made, memory_fraction=0.9, max_num_batched_tokens=65536)),
        estimate_memory(replace(made, memory_fraction=0.9)),
        estimate_memory(replace(more, memory_fraction=0.9)),
    ]
    assert pools[0].kv_pool_bytes <= pools[2].kv_pool_bytes < pools[3].kv_pool_bytes
    assert pools[1].kv_pool_bytes <= pools[2].kv_pool_bytes
    for got in pools:
        assert got.weights_bytes + got.runtime_bytes + got.kv_pool_bytes + got.margin_bytes == got.total_bytes
        assert got.kv_pool_band_bytes[0] <= got.kv_pool_bytes <= got.kv_pool_band_bytes[1]
        assert got.fits == (got.over_bytes == 0)


PUBLIC = public_starts()


@pytest.mark.parametrize("row", PUBLIC, ids=[f"{r['engine']}-{r['version']}-{r['figure']}" for r in PUBLIC])
def test_public_starts_of_other_versions_and_gpus_are_met(row: dict[str, str]) -> None:
    assert public_figure(row) == pytest.approx(float(row["logged"]), abs=float(row["tolerance"])), row["source"]
