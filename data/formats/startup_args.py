"""What an engine was started with, from the line that lists its arguments or its configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LISTS: tuple[tuple[str, str], ...] = (
    ("vllm", "args: Namespace("),
    ("vllm", "non-default args:"),
    ("vllm", "LLM engine ("),
    ("sglang", "server_args=ServerArgs("),
    ("sglang", "server_args={"),
    ("tensorrt-llm", "LLM Args:"),
)
"""Words before a list of arguments, with the engine that writes them."""
MAX_LIST_CHARACTERS = 30_000
"""A list of arguments is a few thousand; SGLang's, with every default, some fifteen thousand."""
MAX_LISTS = 24
"""Lists read of one start: the last ones. Every rank of a large deployment writes one."""
_VALUE = r"['\"]?\s{0,2}[=:]\s{0,2}(?:\[?'([^'\n]{0,400})'|\[?\\?\"([^\"\n]{0,400})\"|([^\s,'\"(){}\[\]]{1,80}))"
_CACHED = re.compile(r"models--([\w.-]{1,100}?)--([\w.-]{1,200})")
_MOST_COUNT = 10**9


def _count(text: str) -> float | None:
    digits = text.replace("_", "")
    return float(digits) if digits.isdigit() and 0 < int(digits[:12]) <= _MOST_COUNT else None


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _code(text: str) -> str | None:
    return None if text.lower() in ("none", "null", "") else text.removeprefix("torch.")


def model_name(text: str) -> str | None:
    """A model's Hub id, also out of a path into a Hub cache."""
    if text.lower() in ("none", "null", ""):
        return None
    cached = _CACHED.search(text)
    return f"{cached[1]}/{cached[2]}" if cached else text.rstrip("/")


@dataclass(frozen=True)
class Argument:
    """One argument under the names engines give it; ``read`` turns its text into a value, ``None`` = not given."""

    field: str
    names: tuple[str, ...]
    read: Callable[[str], Any]


ARGUMENTS: tuple[Argument, ...] = (
    Argument("model", ("model_path", "model", "model_tag"), model_name),
    Argument("max_model_len_tokens", ("max_model_len", "max_seq_len", "context_length"), _count),
    Argument("tp", ("tensor_parallel_size", "tp_size"), _count),
    Argument("pp", ("pipeline_parallel_size", "pp_size"), _count),
    Argument("dp", ("data_parallel_size", "dp_size"), _count),
    Argument("ep", ("enable_expert_parallel",), _flag),
    Argument("memory_fraction", ("gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"), _share),
    Argument("dtype", ("dtype",), _code),
    Argument("quantization", ("quantization",), _code),
    Argument("kv_dtype", ("kv_cache_dtype",), _code),
    Argument(
        "max_num_batched_tokens", ("max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens"), _count
    ),
    Argument("max_num_seqs", ("max_num_seqs", "max_running_requests", "max_batch_size"), _count),
    Argument("block_size_tokens", ("block_size", "page_size", "tokens_per_block"), _count),
    Argument("prefix_caching", ("enable_prefix_caching",), _flag),
    Argument("eager", ("enforce_eager", "disable_cuda_graph"), _flag),
)  # fmt: skip
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"(?<![\w.-])['\"]?{name}{_VALUE}") for argument in ARGUMENTS for name in argument.names
}


def arguments_in(window: str) -> Iterator[tuple[str, Any, str]]:
    """(field, value, words) of every argument that is given a value in a list of arguments."""
    for argument in ARGUMENTS:
        for name in argument.names:
            found = _PATTERNS[name].search(window)
            value = argument.read(next(filter(None, found.groups()), "")) if found else None
            if found and value is not None:
                yield argument.field, value, found[0].lstrip(" '\"{(")
                break
