"""The several caches of a DeepSeek-V4 layer: a window, compressed keys, an index over them, compressor states."""

from __future__ import annotations

from dataclasses import dataclass

from calc.errors import UnknownArchitecture
from calc.hub.config import Fields
from calc.messages import msg
from calc.model import LayerGroup, LayerKind, SideCache

BLOCK_TOKENS = 256
"""Tokens of one block of compressed keys (vLLM 0.32 ``DeepseekV4IndexerBackend``)."""
WINDOW_BLOCK_TOKENS = 64
ALIGN_BYTES = 576
"""Pages of the FP8 layout are padded to a multiple of this (vLLM ``models/deepseek_v4``)."""
SCALE_BYTES = 8
"""FP8 scales of one record."""
ROPE_BYTES = 2
"""The rotary part stays in BF16."""
STATE_BYTES = 4
"""Compressor states are FP32, keys and scores side by side."""
INDEX_SCALE_GROUP, INDEX_SCALE_BYTES = 128, 4
INDEXED_RATIO = 4
"""Layers compressed this much choose what to attend to by an index; their compressor overlaps two spans."""
STATE_BLOCK_TOKENS = {4: 4, 128: 8}
"""Block of the compressor's running state by ratio."""


@dataclass(frozen=True, kw_only=True)
class _Widths:
    head_dim: int
    rope_dim: int
    index_dim: int
    window_tokens: int

    @property
    def record_bytes(self) -> int:
        """One key: FP8 without position, BF16 rotary part, scales. 512 wide: 448 + 128 + 8 = 584."""
        return self.head_dim - self.rope_dim + self.rope_dim * ROPE_BYTES + SCALE_BYTES


def compressed_layers(fields: Fields, layers: int) -> list[LayerGroup]:
    """One group per ratio in ``compress_ratios``; 0 and 1 keep the window alone."""
    ratios = fields.listing("compress_ratios", layers)
    if ratios is None:
        raise UnknownArchitecture(msg("the config has no compress_ratios: use the model's full config.json."))
    widths = _Widths(
        head_dim=fields.integer("head_dim"),
        rope_dim=fields.integer("qk_rope_head_dim"),
        index_dim=fields.integer("index_head_dim"),
        window_tokens=fields.integer("sliding_window"),
    )
    return [_layer(widths, ratio) for ratio in ratios]


def _layer(widths: _Widths, ratio: object) -> LayerGroup:
    caches = [
        SideCache(
            bytes_per_record=widths.record_bytes,
            window_tokens=widths.window_tokens,
            block_tokens=WINDOW_BLOCK_TOKENS,
            align_bytes=ALIGN_BYTES,
        )
    ]
    if ratio not in (0, 1):
        caches += _compressed(widths.record_bytes, widths.head_dim, ratio)
    if ratio == INDEXED_RATIO:
        scales = widths.index_dim // INDEX_SCALE_GROUP * INDEX_SCALE_BYTES
        caches += _compressed(widths.index_dim + scales, widths.index_dim, ratio)
    return LayerGroup(
        kind=LayerKind.MLA, layers=1, kv_heads=1, head_dim=widths.head_dim, v_head_dim=0, caches=tuple(caches)
    )


def _compressed(record_bytes: int, width: int, ratio: object) -> list[SideCache]:
    """Records of ``ratio`` tokens each, and the state of the span still being compressed."""
    if not isinstance(ratio, int) or ratio not in STATE_BLOCK_TOKENS:
        raise UnknownArchitecture(
            msg("compress ratio {ratio} is not known: engines compress 4 or 128 tokens into one.", ratio=ratio)
        )
    spans = 2 if ratio == INDEXED_RATIO else 1
    return [
        SideCache(bytes_per_record=record_bytes, tokens_per_record=ratio, align_bytes=ALIGN_BYTES),
        SideCache(
            bytes_per_record=spans * width * 2 * STATE_BYTES,
            window_tokens=spans * ratio,
            block_tokens=STATE_BLOCK_TOKENS[ratio],
            align_bytes=ALIGN_BYTES,
        ),
    ]
