"""Every headline figure, in reading order: what was claimed, and what it would be on the user's own scenario."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.claims import batching, capacity, compute, reload
from calc.claims.claim import Headline

_ROWS = (
    ("kv-cache", compute.kv_cache_on_t4, compute.kv_cache_on_yours),
    ("early-reuse", compute.early_reuse, compute.early_reuse_on_yours),
    ("cpu-offload", reload.cpu_offload, reload.from_memory_on_yours),
    ("cpu-offload-gh200", reload.cpu_offload_coherent, reload.from_memory_on_yours),
    ("continuous-batching", batching.continuous_batching, batching.continuous_batching_on_yours),
    ("paged-attention", capacity.paged_attention, capacity.paged_attention_on_yours),
    ("nvfp4-kv", capacity.nvfp4, capacity.nvfp4_on_yours),
    ("block-waste", capacity.block_waste, capacity.block_waste_on_yours),
    ("block-size", compute.small_blocks, compute.small_blocks_on_yours),
    ("eviction", capacity.eviction, capacity.eviction_on_yours),
    ("multi-tier", reload.several_tiers, reload.from_disk_on_yours),
)

HEADLINES: Mapping[str, Headline] = MappingProxyType(
    {code: Headline(code=code, claim=claim, yours=yours) for code, claim, yours in _ROWS}
)
"""Code → headline."""
