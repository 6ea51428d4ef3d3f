"""What a micro-benchmark found: times with their spread, and the rates they amount to."""

from __future__ import annotations

from dataclasses import dataclass

from calc.messages import Message
from probe.shape import LayerShape


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Of one repeated step, in seconds."""

    median_s: float
    spread_share: float | None
    """Interquartile range over the median; ``None`` from a single repetition."""
    repeats: int
    launch_bound: bool = False
    """True when the host could not queue kernels as fast as the GPU ran them: the time includes gaps."""


@dataclass(frozen=True, kw_only=True)
class PrefillPoint:
    """One prompt of ``tokens`` through the layer."""

    tokens: int
    timing: Timing
    flops_per_s: float
    """Achieved: the layer's FLOP on paper over the median time."""


@dataclass(frozen=True, kw_only=True)
class DecodePoint:
    """One token for each of ``batch`` sequences with ``context_tokens`` in the cache."""

    batch: int
    context_tokens: int
    timing: Timing
    bytes_per_s: float
    """Achieved: the least bytes the step must move over the median time."""


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """One run on one device. ``None`` and absent points were not measured."""

    device_name: str
    kind: str
    """``cuda`` or ``cpu``; CPU figures say nothing about a GPU."""
    dtype: str
    torch_version: str
    cuda_version: str | None
    shape: LayerShape
    """The layer as measured: on a CPU smaller and in another dtype than asked for."""
    prefill: tuple[PrefillPoint, ...]
    decode: tuple[DecodePoint, ...]
    matmul_flops_per_s: float | None
    """Of one large square matrix product."""
    copy_bytes_per_s: float | None
    """Read plus write of a large copy inside the device's memory."""
    started_at: str
    """UTC, ISO 8601."""
    duration_s: float
    scale_divisor: int = 1
    """Heads and MLP width were divided by this to end in time."""
    notes: tuple[Message, ...] = ()

    @property
    def scaled(self) -> bool:
        """True when a smaller layer than asked for was measured."""
        return self.scale_divisor > 1
