"""The same pool in every cache format, and what block sizes of hybrids round away."""

from __future__ import annotations

from dataclasses import dataclass

from calc.cache.kv import kv_bytes_per_token, request_bytes
from calc.deployment import Deployment
from calc.engine import resolve
from calc.memory import MemoryReport, estimate_memory, sequences_at
from calc.room.capacity import Room, recut

FORMATS = ("bf16", "fp8", "int8", "nvfp4")
"""Cache formats in the order of their size; INT8 keeps a scale per token, head and side."""
PEAK_OF = {"fp8": "fp8", "nvfp4": "fp4"}
"""Whose peak a GPU has when it computes in the format; INT8 caches are turned back to 16 bits before attention."""
CLAIMED_NVFP4_OF_FP8 = 0.5
"""As published (NVIDIA, NVFP4 KV cache, 2025); with its scales NVFP4 takes 4.5 bits, 56 % of FP8."""


@dataclass(frozen=True, kw_only=True)
class FormatRow:
    """One cache format; bytes on each GPU, sequences of one replica."""

    kv_dtype: str
    bytes_per_token: int
    of_bf16_share: float
    """Bytes of a sequence of the asked length beside BF16 (0-1)."""
    sequences: float
    fixed_share: float
    """Of a sequence's bytes in this format, what no cache format shrinks: recurrent states, index keys (0-1)."""
    native: bool | None
    """Whether the GPU computes in it; None = its peak is not known or does not matter."""


def formats_of(deployment: Deployment, report: MemoryReport, length_tokens: int) -> tuple[FormatRow, ...]:
    """Every format with the same bytes for the pool. FP8 scales are scalars per layer and not counted."""
    sizes = {code: _sequence_bytes(deployment, code, length_tokens) for code in FORMATS}
    fixed = max(0.0, 2 * sizes["fp8"] - sizes["bf16"])
    return tuple(
        _row(deployment, report, code, length_tokens, sizes[code] / sizes["bf16"], fixed / sizes[code])
        for code in FORMATS
    )


def _sequence_bytes(deployment: Deployment, kv_dtype: str, tokens: int) -> float:
    return request_bytes(
        deployment.model,
        kv_dtype,
        deployment.tp,
        deployment.pp,
        tokens,
        prefix_caching=resolve(deployment).prefix_caching,
        spec_tokens=deployment.spec_tokens,
    )


def _row(
    deployment: Deployment, report: MemoryReport, code: str, tokens: int, of_bf16: float, fixed: float
) -> FormatRow:
    other = recut(deployment, report, kv_dtype=code)
    peak, known = PEAK_OF.get(code), deployment.gpu.flops_per_s
    return FormatRow(
        kv_dtype=code,
        bytes_per_token=kv_bytes_per_token(deployment.model, code, deployment.tp, deployment.pp),
        of_bf16_share=of_bf16,
        sequences=sequences_at(other, estimate_memory(other), tokens),
        fixed_share=fixed,
        native=None if peak is None or not known else peak in known,
    )


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """What one sequence's blocks take beyond its tokens, on each GPU."""

    length_tokens: int
    block_size_tokens: int
    groups: int
    used_bytes: float
    """The tokens and states themselves."""
    rounded_bytes: float
    """Ends of blocks and padding of pages and layers."""
    in_flight_bytes: float
    """Blocks held for tokens on their way through a window."""

    @property
    def lost_share(self) -> float:
        """Of the blocks a finished sequence holds, what holds nothing (0-1)."""
        return self.rounded_bytes / (self.used_bytes + self.rounded_bytes)

    @property
    def lost_tokens(self) -> float:
        """The same in tokens of mean size at this length."""
        return self.rounded_bytes / self.used_bytes * self.length_tokens


def alignment_of(room: Room, length_tokens: int) -> Alignment:
    """Blocks of a sequence of ``length_tokens`` against the bytes it needs."""
    deployment, settings = room.deployment, room.settings
    used = _sequence_bytes(deployment, settings.kv_dtype, length_tokens)
    resting = room.bytes_of(room.blocks(length_tokens, running=False))
    return Alignment(
        length_tokens=length_tokens,
        block_size_tokens=room.report.block_size_tokens,
        groups=len(room.plan.groups),
        used_bytes=used,
        rounded_bytes=max(0.0, resting - used),
        in_flight_bytes=room.bytes_of(room.blocks(length_tokens)) - resting,
    )
