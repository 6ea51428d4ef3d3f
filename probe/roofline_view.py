"""Measured points against a roofline: what bounds each, and how near it comes.

Roof at intensity I (FLOP/byte) = min(peak FLOP/s, I · bytes/s); left of the knee peak / bandwidth a step waits for
memory, right of it for arithmetic (Williams, Waterman, Patterson: "Roofline", CACM 52(4), 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.evidence import Provenance
from calc.hardware import Gpu
from probe.result import ProbeResult


@dataclass(frozen=True, kw_only=True)
class Roof:
    """The two limits of a device; ``None`` = not known."""

    flops_per_s: float | None
    bytes_per_s: float | None
    provenance: Provenance
    """Measured by the probe's own matrix product and copy, or declared by the catalogue."""

    @property
    def knee_flop_per_byte(self) -> float | None:
        """Intensity at which both limits meet."""
        if self.flops_per_s is None or self.bytes_per_s is None:
            return None
        return self.flops_per_s / self.bytes_per_s

    def at(self, intensity_flop_per_byte: float) -> float | None:
        """Most FLOP/s at this intensity; ``None`` unless both limits are known."""
        if self.flops_per_s is None or self.bytes_per_s is None:
            return None
        return min(self.flops_per_s, intensity_flop_per_byte * self.bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class RooflinePoint:
    """One measured step on the chart."""

    phase: str
    """``prefill`` or ``decode``."""
    batch: int
    tokens: int
    """Prompt tokens of a prefill, context tokens of a decode."""
    seconds: float
    intensity_flop_per_byte: float
    achieved_flops_per_s: float
    achieved_bytes_per_s: float
    roof_flops_per_s: float | None
    roof_share: float | None
    """Achieved over roof; above 1 only when caches served what the paper count reads from memory."""
    bound: str | None
    """``memory`` or ``compute``: the side of the knee this step is on."""
    roof_provenance: Provenance


def roof_of(result: ProbeResult, gpu: Gpu | None = None) -> Roof:
    """The catalogue's peaks of ``gpu``, else the run's own copy and matrix product.

    A CPU run is always set against itself: a GPU's peaks would say nothing about it.
    """
    if gpu is None or result.kind == "cpu":
        return Roof(
            flops_per_s=result.matmul_flops_per_s,
            bytes_per_s=result.copy_bytes_per_s,
            provenance=Provenance.MEASURED,
        )
    return Roof(
        flops_per_s=gpu.flops_per_s.get(result.dtype),
        bytes_per_s=gpu.bandwidth_bytes_per_s,
        provenance=Provenance.DECLARED,
    )


def compare(result: ProbeResult, gpu: Gpu | None = None) -> tuple[RooflinePoint, ...]:
    """All measured points, prefill first, against :func:`roof_of`."""
    roof, shape = roof_of(result, gpu), result.shape
    points = []
    for p in result.prefill:
        cost = (shape.prefill_flops(p.tokens), shape.prefill_bytes(p.tokens))
        points.append(_point(roof, "prefill", (1, p.tokens), p.timing.median_s, cost))
    for d in result.decode:
        cost = (shape.decode_flops(d.batch, d.context_tokens), shape.decode_bytes(d.batch, d.context_tokens))
        points.append(_point(roof, "decode", (d.batch, d.context_tokens), d.timing.median_s, cost))
    return tuple(points)


def _point(roof: Roof, phase: str, size: tuple[int, int], seconds: float, cost: tuple[int, int]) -> RooflinePoint:
    (batch, tokens), (flops, moved_bytes) = size, cost
    intensity = flops / moved_bytes
    limit, knee = roof.at(intensity), roof.knee_flop_per_byte
    return RooflinePoint(
        phase=phase,
        batch=batch,
        tokens=tokens,
        seconds=seconds,
        intensity_flop_per_byte=intensity,
        achieved_flops_per_s=flops / seconds,
        achieved_bytes_per_s=moved_bytes / seconds,
        roof_flops_per_s=limit,
        roof_share=None if limit is None else flops / seconds / limit,
        bound=None if knee is None else ("memory" if intensity < knee else "compute"),
        roof_provenance=roof.provenance,
    )
