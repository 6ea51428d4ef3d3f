"""Memory as an engine measured it at one start, and what was started: evidence a deployment can carry along."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MeasuredMemory:
    """One start. A setting of ``None`` = the engine version's default was in force; a figure of ``None`` = not logged.

    Bytes and tokens are those of one GPU and one DP rank.
    """

    log_id: str
    """Hash of the log it was read from."""
    date: str
    """Day it was stored, or said to be."""
    used: bool = True
    """False = the team asked for the estimate again."""
    engine: str
    engine_version: str
    model: str
    gpu: str | None = None
    """Catalogue id; engines log only the memory."""
    gpu_memory_bytes: int | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: bool = False
    spec_method: str | None = None
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    memory_fraction: float | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    max_model_len_tokens: int | None = None
    weights_bytes: int | None = None
    activation_bytes: int | None = None
    non_torch_bytes: int | None = None
    graph_bytes: int | None = None
    """What captured graphs took."""
    graph_reserved_bytes: int | None = None
    """What was set aside for them, where the engine does so."""
    graphs_in_budget: bool | None = None
    kv_pool_bytes: int | None = None
    kv_tokens: int | None = None
    num_blocks: int | None = None
    block_size_tokens: int | None = None
