"""What will be measured on a device, decided before anything is allocated: points, sizes and memory need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from calc.deployment import divisors
from calc.messages import Message, msg
from calc.units import GIB, MIB
from probe.shape import LayerShape


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Points and buffer sizes of one kind of device."""

    prefill_tokens: tuple[int, ...]
    decode: tuple[tuple[int, int], ...]
    """(batch, context tokens) from small to large."""
    matmul_size: int
    """Rows and columns of the square matrix product."""
    copy_bytes: int
    """Copied buffer; also read between repetitions so that weights come from memory, not from a cache."""
    kv_limit_bytes: int
    """Decode points with a larger cache are left out."""


LADDERS: Mapping[str, Ladder] = MappingProxyType(
    {
        "cuda": Ladder(
            prefill_tokens=(128, 512, 2048, 8192),
            decode=tuple((batch, context) for batch in (1, 8, 32, 128) for context in (512, 4096)),
            matmul_size=8192,
            copy_bytes=GIB,
            kv_limit_bytes=4 * GIB,
        ),
        "cpu": Ladder(
            prefill_tokens=(32, 128, 512),
            decode=((1, 256), (1, 1024), (8, 256), (8, 1024)),
            matmul_size=1024,
            copy_bytes=64 * MIB,
            kv_limit_bytes=GIB // 2,
        ),
    }
)
"""GPU: from the memory-bound to the compute-bound side of every current card (their knee is near 150-300 tokens), and
caches from a few MB to some GB per layer, past any L2 cache. CPU: what two cores finish in a few seconds."""

CPU_WEIGHTS = 32_000_000
"""Weights of the largest layer measured on a CPU; two cores at 100 GFLOP/s then prefill 512 tokens in a third of a
second."""
CPU_DTYPE = "fp32"
"""Many CPUs have no 16-bit matrix product and emulate it a hundred times slower."""
WORKSPACE_BYTES = 256 * MIB
"""For what the math libraries allocate on their own; generous."""
ACTIVATION_COPIES = 4
"""Intermediate results of a width alive at the same time, generous."""

UNFUSED_CACHE_COPIES = 3
"""torch has no fused kernel as wide as MLA's latent: attention copies the cache and keeps its scores."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one run measures."""

    kind: str
    shape: LayerShape
    scale_divisor: int
    prefill_tokens: tuple[int, ...]
    decode: tuple[tuple[int, int], ...]
    matmul_size: int
    copy_bytes: int
    notes: tuple[Message, ...]

    @property
    def memory_need_bytes(self) -> int:
        """Upper estimate of what the run allocates: weights, largest cache, activations and the two raw buffers."""
        element = self.shape.element_bytes
        widths = self.shape.hidden_size + self.shape.intermediate_size + self.shape.heads * self.shape.head_dim
        activations = ACTIVATION_COPIES * max(self.prefill_tokens, default=0) * widths * element
        cache = max((batch * context for batch, context in self.decode), default=0) * self.shape.kv_bytes_per_token
        if self.shape.latent is not None:
            cache *= UNFUSED_CACHE_COPIES
        raw = 3 * self.matmul_size**2 * element + 2 * self.copy_bytes
        return self.shape.weight_bytes + cache + activations + raw + WORKSPACE_BYTES


def plan(shape: LayerShape, kind: str, dtype: str | None = None) -> Plan:
    """The run for ``shape`` on a device of ``kind`` (``cuda`` or ``cpu``); a CPU gets a smaller layer.

    ``dtype`` is what the device can run, where that is not the shape's own; ``None`` = the usual one of its kind.
    """
    ladder = LADDERS[kind]
    asked = replace(shape, dtype=dtype or (CPU_DTYPE if kind == "cpu" else shape.dtype))
    divisor, measured = _for_cpu(asked) if kind == "cpu" else (1, asked)
    return Plan(
        kind=kind,
        shape=measured,
        scale_divisor=divisor,
        prefill_tokens=ladder.prefill_tokens,
        decode=tuple(
            (batch, context)
            for batch, context in ladder.decode
            if batch * context * measured.kv_bytes_per_token <= ladder.kv_limit_bytes
        ),
        matmul_size=ladder.matmul_size,
        copy_bytes=ladder.copy_bytes,
        notes=(*shape.notes, *_notes(shape, measured, divisor, kind)),
    )


def _for_cpu(shape: LayerShape) -> tuple[int, LayerShape]:
    """The smallest division of heads and MLP width, as tensor parallelism would, that a CPU can measure in time."""
    candidates = [(divisor, _divided(shape, divisor)) for divisor in divisors(shape.heads, shape.heads)]
    fitting = (pair for pair in candidates if pair[1].weights <= CPU_WEIGHTS)
    return next(fitting, candidates[-1])


def _divided(shape: LayerShape, divisor: int) -> LayerShape:
    heads = shape.heads // divisor
    return replace(
        shape,
        heads=heads,
        kv_heads=math.gcd(heads, max(1, shape.kv_heads // divisor)),
        intermediate_size=max(1, shape.intermediate_size // divisor),
    )


def _notes(asked: LayerShape, measured: LayerShape, divisor: int, kind: str) -> tuple[Message, ...]:
    notes = []
    if kind == "cpu":
        notes.append(msg("Measured on a CPU: these figures say nothing about a GPU."))
    if asked.dtype != measured.dtype:
        notes.append(
            msg(
                "The device measured {measured}, since it has no fast {asked}.",
                measured=measured.dtype,
                asked=asked.dtype,
            )
        )
    if divisor > 1:
        notes.append(
            msg("Heads and MLP width were divided by {divisor} so that the CPU ends in time.", divisor=divisor)
        )
    return tuple(notes)
