"""What an engine version does unless it is told otherwise. Rows live in ``data/catalogue/engines``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FractionOf(StrEnum):
    """What the engine's memory fraction multiplies."""

    TOTAL = "total"
    """vLLM: of the device's total memory, weights included."""
    STATIC = "static"
    """SGLang: weights plus pool."""
    FREE = "free"
    """TensorRT-LLM: of what is free after the weights and the profiling peak."""


class TokensMeaning(StrEnum):
    """What the engine's "KV tokens" log line counts."""

    BLOCKS_OVER_GROUPS = "blocks-over-groups"
    CONCURRENCY_TIMES_LENGTH = "concurrency-times-length"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Defaults of one engine version; every row has a source and a date."""

    id: str
    """``vllm``, ``sglang`` or ``tensorrt-llm``."""
    version: str
    released: str
    memory_fraction: float
    fraction_of: FractionOf
    block_size_tokens: int
    tokens_meaning: TokensMeaning
    graphs_in_budget: bool
    prefix_caching: bool
    chunked_prefill: bool
    async_scheduling: bool
    source: str
    checked_on: str
