"""Parameters of a DeepSeek-V4 layer: shared keys, grouped output, compressors, an index, and hyper-connections."""

from __future__ import annotations

from calc.hub.config import MAX_HEADS, Fields
from calc.hub.layers import Heads
from calc.hub.parts import Part, Split

OVERLAPPING_RATIO = 4
"""Compression of this ratio overlaps its windows: twice the width, and an index over the compressed keys."""
HYPER_CONNECTIONS = 2
"""One before attention, one before the experts."""


def compressed_parts(fields: Fields, heads: Heads, layer: int, name: str) -> list[Part]:
    """Attention of layer ``layer``: low-rank queries, one key per token for all heads, output in low-rank groups."""
    rank, width = fields.integer("q_lora_rank"), heads.heads * heads.head_dim
    groups, group_rank = fields.integer("o_groups", default=1), fields.integer("o_lora_rank")
    return [
        Part(elements=rank * width, split=Split.EVEN, module=f"{name}.wq_b"),
        Part(elements=heads.hidden * (rank + heads.head_dim), split=Split.NONE, module=f"{name}.wq_a"),
        # Each group projects its own heads down; then all groups together up to the hidden size.
        Part(elements=width * group_rank, split=Split.EVEN, module=f"{name}.wo_a"),
        Part(elements=groups * group_rank * heads.hidden, split=Split.EVEN, module=f"{name}.wo_b"),
        Part(elements=rank + heads.head_dim + heads.heads, split=Split.NONE),
        *_compression(fields, heads, compression_ratio(fields, layer), rank, name),
        _hyper_connections(fields, heads.hidden),
    ]


def compression_ratio(fields: Fields, layer: int) -> int:
    """Tokens that layer ``layer`` joins into one key; 0 = none."""
    ratios = fields.raw("compress_ratios")
    value = ratios[layer] if isinstance(ratios, list) and layer < len(ratios) else 0
    return value if isinstance(value, int) and value > 0 else 0


def _compression(fields: Fields, heads: Heads, ratio: int, rank: int, name: str) -> list[Part]:
    if not ratio:
        return []
    parts = [_compressor(heads.hidden, heads.head_dim, ratio)]
    if ratio == OVERLAPPING_RATIO:
        dim = fields.integer("index_head_dim")
        count = fields.integer("index_n_heads", high=MAX_HEADS)
        parts.append(Part(elements=rank * count * dim, split=Split.NONE, module=f"{name}.indexer.wq_b"))
        parts.append(Part(elements=heads.hidden * count, split=Split.NONE))
        parts.append(_compressor(heads.hidden, dim, ratio))
    return parts


def _compressor(hidden: int, dim: int, ratio: int) -> Part:
    """Keys and gates of the tokens pooled into one, a position table within the pool, and a norm."""
    width = dim * (2 if ratio == OVERLAPPING_RATIO else 1)
    return Part(elements=2 * hidden * width + ratio * width + dim, split=Split.NONE)


def _hyper_connections(fields: Fields, hidden: int) -> Part:
    """Mixing tables of the residual streams, in FP32: twice the usual bytes."""
    streams = fields.optional("hc_mult") or 0
    mixes = (2 + streams) * streams
    elements = HYPER_CONNECTIONS * (mixes * streams * hidden + mixes + 3) if streams else 0
    return Part(elements=elements, split=Split.NONE, copies=elements)


def hyper_head(fields: Fields, hidden: int) -> int:
    """Table that joins the residual streams before the output head."""
    streams = fields.optional("hc_mult") or 0
    return streams * streams * hidden + streams + 1 if streams else 0
