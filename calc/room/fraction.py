"""The memory fraction an engine takes when none is given: fixed, by tensor parallelism, or from the GPU's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calc.units import MIB

if TYPE_CHECKING:
    from calc.deployment import Deployment
    from calc.engine import Reserve
    from calc.model import ModelSpec

MIN_CHUNK_TOKENS = 2048
PER_GRAPH_SEQ_BYTES = 2 * MIB
"""Kept free for each sequence of the largest captured decode batch (``memory_hook.py``)."""
PER_PREFILL_GRAPH_BYTES = 8 * MIB
MLA_PREFILL_GRAPHS_BYTES = 1536 * MIB
PREFILL_SIZES = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256))
"""Token counts captured, as (first, end, step); above 4096 every 512 up to the chunk (``cuda_graph_hook.py``)."""
LONG_PREFILL_FIRST, LONG_PREFILL_STEP = 4608, 512
TP_OF_LARGE_GRAPHS = 4
MIN_FRACTION = 0.1
"""Below this a GPU is too small for the engine's own reserve."""
DIGITS = 3
"""SGLang rounds its fraction."""


def default_fraction(deployment: Deployment, chunk_tokens: int) -> float:
    """Share of the GPU's memory the engine takes by itself.

    SGLang since 0.4.7: 1 − reserve ÷ memory, the reserve by memory class; before: a table by TP. Others: one number.
    """
    engine, total = deployment.engine, deployment.gpu.memory_bytes
    for row in engine.reserves:
        if total >= row.min_memory_bytes:
            return max(MIN_FRACTION, round(1 - _reserve_bytes(row, deployment, chunk_tokens) / total, DIGITS))
    ranks = deployment.tp * deployment.pp
    return next((share for least, share in engine.fraction_by_ranks if ranks >= least), engine.memory_fraction)


def _reserve_bytes(row: Reserve, deployment: Deployment, chunk_tokens: int) -> int:
    seqs = row.decode_graph_seqs_tp4 if deployment.tp >= TP_OF_LARGE_GRAPHS else row.decode_graph_seqs
    reserve = row.base_bytes + row.per_rank_bytes * deployment.tp * deployment.pp
    reserve += row.per_token_bytes * max(chunk_tokens, MIN_CHUNK_TOKENS) + PER_GRAPH_SEQ_BYTES * seqs
    reserve += _prefill_graphs_bytes(deployment.model, chunk_tokens) if row.prefill_graphs else 0
    return max(reserve, row.floor_bytes)


def _prefill_graphs_bytes(model: ModelSpec, chunk_tokens: int) -> int:
    if model.attention == "mla":
        return MLA_PREFILL_GRAPHS_BYTES
    sizes = [size for span in PREFILL_SIZES for size in range(*span) if size <= chunk_tokens]
    longer = len(range(LONG_PREFILL_FIRST, chunk_tokens + 1, LONG_PREFILL_STEP))
    return PER_PREFILL_GRAPH_BYTES * (len(sizes) + longer)
