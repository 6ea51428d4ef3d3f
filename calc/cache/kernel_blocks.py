"""The block vLLM's attention kernels ask for: by kind of cache, by its format, and by generation of GPU."""

from __future__ import annotations

from calc.hardware import Gpu
from calc.model import LayerKind, ModelSpec

WIDE_BLOCK_TOKENS = 64
"""Block of sparse MLA caches; on Hopper also of FP8 caches of MLA and of other heads 512 wide (vLLM 0.32: FlashMLA,
FlashAttention 4)."""
WIDE_HEAD_DIM = 512
SPARSE_BLOCK_TOKENS = 128
"""Block of caches whose layers choose what to attend to block by block (MiniMax-M3, vLLM 0.32)."""
BLACKWELL_MLA_TOKENS = 32
"""Smallest block of the MLA kernel Blackwell prefers (vLLM 0.32 ``FLASHINFER_MLA``)."""
BLACKWELL = ("b100", "b200", "b300")
"""Names of data-centre Blackwell; GB200 and GB300 among them."""
NOT_HOPPER = (*BLACKWELL, "a100", "a800", "a10", "a30", "a40", "l4", "l20", "rtx", "t4", "v100", "gb10", "mi2", "mi3")
"""Names of GPUs that run other MLA kernels, in blocks of 16."""


def kernel_block_tokens(model: ModelSpec, gpu: Gpu, kv_dtype: str, usual_tokens: int) -> int:
    """The engine's usual block, or the larger one a kernel needs."""
    kinds = {group.kind for group in model.groups if group.sparse_index_bytes_per_token}
    if LayerKind.FULL in kinds:
        return max(SPARSE_BLOCK_TOKENS, usual_tokens)
    if kinds:
        return max(WIDE_BLOCK_TOKENS, usual_tokens)
    return max(_dense_tokens(model, gpu, kv_dtype), usual_tokens)


def _dense_tokens(model: ModelSpec, gpu: Gpu, kv_dtype: str) -> int:
    if _is_named(gpu, BLACKWELL):
        return BLACKWELL_MLA_TOKENS if any(group.kind is LayerKind.MLA for group in model.groups) else 0
    wide = max(group.head_dim for group in model.groups) >= WIDE_HEAD_DIM
    return WIDE_BLOCK_TOKENS if wide and kv_dtype == "fp8" and not _is_named(gpu, NOT_HOPPER) else 0


def _is_named(gpu: Gpu, names: tuple[str, ...]) -> bool:
    return any(name in f"{gpu.id} {gpu.name}".lower() for name in names)
