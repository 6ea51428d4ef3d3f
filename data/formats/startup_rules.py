"""Lines of start-up logs: the words each begins with, and the numbers that follow. One row a line shape.

A shape is looked for by its fixed words and matched only there, over a bounded stretch without repetition inside
repetition, so that any text is read in time proportional to its length. "GB" in these logs means 2**30 bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from calc.units import GIB

VLLM, SGLANG, TRTLLM = "vllm", "sglang", "tensorrt-llm"
N = r"(-?\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,12})?)"
_G = N + r" ?Gi?B"
_V = r"v?(\d[\w.+-]{0,60})"
_SKIP = r"[^\n]{0,300}?"

LEAST, MOST, LAST, SUM_OF_RANK = "least", "most", "last", "sum"
"""Which of several lines counts: the rank with the smallest or largest figure, the latest, or all of one rank added."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One line shape: ``words`` as they stand in the log, and what follows them, one group per name in ``fields``."""

    engine: str
    words: str
    follows: str
    fields: tuple[str, ...]
    factor: float = 1
    """Of ``_bytes`` fields; others are kept as they are."""
    pick: str = MOST

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What follows the words, anchored there."""
        return re.compile(self.follows)


def _memory(engine: str, words: str, follows: str, *fields: str, pick: str = MOST) -> Rule:
    return Rule(engine=engine, words=words, follows=follows, fields=fields, factor=GIB, pick=pick)


def _plain(engine: str, words: str, follows: str, *fields: str, pick: str = LAST) -> Rule:
    return Rule(engine=engine, words=words, follows=follows, fields=fields, pick=pick)


_WEIGHTS = (
    _memory(VLLM, "oading model weights took ", _G, "weights_bytes"),
    _memory(VLLM, "Model loading took ", _G, "weights_bytes"),
    _memory(VLLM, "odel weights take", r"\s{0,8}" + _G, "weights_bytes"),
    _memory(VLLM, "weights memory: ", _G, "weights_bytes"),
    _memory(
        VLLM, "Actual usage is ", _G + r" for consumed memory \(weights \+ non-torch\)(?:, " + _G +
        r" for peak activation)?(?:,? and " + _G + r" for CUDAGraph memory)?",
        "consumed_bytes", "activation_bytes", "graph_bytes",
    ),
    _memory(
        VLLM, "Actual usage is ", _G + r" for weights?, " + _G + r" for peak activation, " + _G +
        r" for non-torch memory(?:,? and " + _G + r" for CUDAGraph memory)?",
        "weights_bytes", "activation_bytes", "non_torch_bytes", "graph_bytes",
    ),
)  # fmt: skip
_RUNTIME = (
    _memory(VLLM, "non_torch_memory", r"[\s=]{1,8}(?:takes )?" + _G, "non_torch_bytes"),
    _memory(VLLM, "non-torch forward increase memory: ", _G, "non_torch_bytes"),
    _memory(VLLM, "PyTorch activation peak memory", r"[\s=]{1,8}(?:takes )?" + _G, "activation_bytes"),
    _memory(VLLM, "torch peak memory increase: ", _G, "activation_bytes"),
    _memory(VLLM, "raph capturing finished in ", r"[\d.]{1,12} secs?, took " + _G, "graph_bytes"),
    _memory(
        VLLM, "CUDA graph pool memory: ", _G + r" \(actual\), " + _G + r" \(estimated\)",
        "graph_bytes", "graph_estimate_bytes",
    ),
    _memory(VLLM, "Estimated CUDA graph memory: ", _G, "graph_estimate_bytes"),
    _plain(VLLM, "CUDA graph memory profiling ", r"(?:is |will be )(enabled|disabled)", "graphs_in_budget"),
    _plain(VLLM, "is equivalent to --gpu-memory-utilization=", r"[\d.]{1,10} (without)", "graphs_in_budget"),
)  # fmt: skip
_BUDGET = (
    _memory(VLLM, "total_gpu_memory", r"[\s=(]{1,8}" + _G, "gpu_memory_bytes", pick=LEAST),
    _plain(VLLM, "gpu_memory_utilization", r"(?: \(|\s{1,8}|=)(0\.\d{1,6}|1\.0{1,6})(?!\d)", "memory_fraction"),
    _memory(VLLM, "the current vLLM instance can use", r"\s{1,8}" + _G, "budget_bytes", pick=LEAST),
    _memory(VLLM, "gpu_memory_utilization (", r"[\d.]{1,10}\) = " + _G, "budget_bytes", pick=LEAST),
    _plain(VLLM, "Requested memory: ", r"([01]\.\d{1,10})", "memory_fraction"),
    _memory(VLLM, "Requested memory: ", r"[01]\.\d{1,10} \(util\), " + _G, "budget_bytes", pick=LEAST),
    _plain(VLLM, "desired GPU memory utilization (", r"([01]\.\d{1,10})", "memory_fraction"),
    _plain(VLLM, "Desired GPU memory utilization is (", r"([01]\.\d{1,10})", "memory_fraction"),
    _memory(VLLM, "Desired GPU memory utilization is (", r"[01]\.\d{1,10}, " + _G, "budget_bytes", pick=LEAST),
    _memory(
        VLLM, "Free memory on device", r"(?: [\w:]{1,20})? \(" + N + "/" + _G, "free_bytes", "gpu_memory_bytes",
        pick=LEAST,
    ),
    _memory(VLLM, "total_memory=", _G, "gpu_memory_bytes", pick=LEAST),
)  # fmt: skip
_POOL = (
    _memory(VLLM, "vailable KV cache memory: ", _G, "kv_pool_bytes", pick=LEAST),
    _memory(VLLM, "available_kv_cache_memory", r"[\s=]{1,8}" + _G, "kv_pool_bytes", pick=LEAST),
    _memory(VLLM, "kv_cache_size=", _G, "kv_pool_bytes", pick=LEAST),
    _memory(VLLM, "reserved for KV Cache is ", _G, "kv_pool_bytes", pick=LEAST),
    _memory(VLLM, "reserved ", _G + " memory for KV Cache as specified", "kv_pool_bytes", pick=LEAST),
    _memory(VLLM, "explicit kv_cache_memory_bytes: ", _G, "kv_pool_bytes", pick=LEAST),
    _plain(VLLM, "# GPU blocks: ", N, "num_blocks", pick=LEAST),
    _plain(VLLM, "# cuda blocks: ", N, "num_blocks", pick=LEAST),
    _plain(VLLM, "# CUDA blocks: ", N, "num_blocks", pick=LEAST),
    _plain(VLLM, "GPU KV cache size: ", N + " tokens", "kv_tokens", pick=LEAST),
    _plain(
        VLLM, "Maximum concurrency for ", N + r" tokens per request: " + N + "x",
        "concurrency_tokens", "max_concurrency", pick=LEAST,
    ),
    _plain(VLLM, "Setting attention block size to ", N + " tokens", "block_size_tokens"),
    _plain(VLLM, "Add ", N + r" padding layers", "padding_layers", pick=MOST),
)  # fmt: skip
_VLLM_SETTINGS = (
    _plain(VLLM, "vLLM API server version", r":? ?" + _V, "version"),
    _plain(VLLM, "Initializing a", r"(?:n| V[01]) LLM engine \(" + _V + r"\)", "version"),
    _plain(VLLM, "█  version ", _V, "version"),
    _plain(VLLM, "█  model   ", r"([^\s\"']{1,300})", "model"),
    _plain(VLLM, "max_num_batched_tokens=", N, "max_num_batched_tokens"),
    _plain(VLLM, "speculative_config", r"[^\n]{0,30}?method['\"]{0,2}[:=] ?['\"](\w{1,40})", "spec_method"),
    _plain(VLLM, "Using max model len ", N, "max_model_len_tokens"),
)
_SGLANG = (
    _plain(SGLANG, "sglang==", _V, "version"),
    _plain(SGLANG, "SGLang version", r":? ?" + _V, "version"),
    _memory(SGLANG, "Init torch distributed ends.", _SKIP + "mem usage=" + _G, "non_torch_bytes"),
    _memory(SGLANG, "Load weight end.", _SKIP + "mem usage=" + _G, "weights_bytes"),
    _plain(SGLANG, "Using KV cache dtype: ", r"([\w.]{1,40})", "kv_dtype"),
    _memory(SGLANG, "uda graph end.", _SKIP + "mem usage=" + _G, "graph_bytes", pick=SUM_OF_RANK),
    _memory(SGLANG, "CUDA graph end.", _SKIP + "mem usage=" + _G, "graph_bytes", pick=SUM_OF_RANK),
    _plain(SGLANG, "KV Cache is allocated.", r" (?:dtype: [\w.]{1,40}, )?#tokens: " + N, "pool_tokens", pick=MOST),
    _memory(SGLANG, "Memory pool end. avail mem=", _G, "free_bytes", pick=LEAST),
    _plain(
        SGLANG, "max_total_num_tokens=",
        N + r"(?:, chunked_prefill_size=" + N + r")?(?:, max_prefill_tokens=\d{1,12})?(?:, max_running_requests=" + N +
        r")?(?:, context_len=" + N + r")?",
        "kv_tokens", "max_num_batched_tokens", "max_num_seqs", "max_model_len_tokens", pick=LEAST,
    ),
)  # fmt: skip
_POOL_OF_SGLANG = _memory(
    SGLANG, "KV Cache is allocated.",
    r" (?:dtype: [\w.]{1,40}, )?#tokens: \d{1,15}, (?:K size: " + _G + r", V size: " + _G + r"|KV size: " + _G + ")",
    "kv_pool_bytes", "kv_pool_bytes", "kv_pool_bytes", pick=SUM_OF_RANK,
)  # fmt: skip
"""Keys and values are logged apart, and models with local attention allocate two pools on every rank."""
_TRTLLM = (
    _plain(TRTLLM, "TensorRT-LLM version", r":? ?" + _V, "version"),
    _plain(TRTLLM, "TensorRT LLM version", r":? ?" + _V, "version"),
    _memory(TRTLLM, "Memory used after loading model weights (inside torch)", _SKIP + ": " + _G, "weights_bytes"),
    _memory(TRTLLM, "Memory dynamically allocated during inference", _SKIP + ": " + _G, "activation_bytes"),
    _memory(
        TRTLLM, "available KV cache memory when calculating max tokens: ", _G, "kv_pool_bytes", pick=LAST,
    ),
    _plain(TRTLLM, "fraction is set ", r"([01]\.\d{1,20})", "memory_fraction"),
    _memory(TRTLLM, "device total memory ", _G, "gpu_memory_bytes", pick=LEAST),
    _memory(TRTLLM, "[MemUsageChange] Allocated ", _G + r" for max tokens", "kv_pool_bytes", pick=LAST),
    _plain(
        TRTLLM, "for max tokens", r"(?: in paged KV cache)? \(" + N + r"\)", "kv_tokens", pick=LAST,
    ),
)  # fmt: skip
RULES: tuple[Rule, ...] = (
    *_WEIGHTS, *_RUNTIME, *_BUDGET, *_POOL, *_VLLM_SETTINGS, *_SGLANG, _POOL_OF_SGLANG, *_TRTLLM,
)  # fmt: skip

STARTS: tuple[tuple[str, str], ...] = (
    (VLLM, "vLLM API server version"),
    (SGLANG, "server_args=ServerArgs("),
    (TRTLLM, "TensorRT-LLM version"),
    (TRTLLM, "TensorRT LLM version"),
    (VLLM, "non-default args:"),
    (VLLM, "Initializing a"),
)
"""Words an engine begins a start with, the surest first."""
TELLS_START = frozenset({"weights_bytes", "kv_pool_bytes", "kv_tokens", "num_blocks", "graph_bytes"})
"""A log is recognised by one of these; a start has got somewhere once one is logged."""
