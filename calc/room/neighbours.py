"""Two models on the same GPUs: each engine takes its fraction when it starts, and nothing moves afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.cache.kv import NULL_BLOCKS
from calc.deployment import Deployment
from calc.engine import FractionOf
from calc.memory import MemoryReport, estimate_memory
from calc.model import ModelSpec
from calc.room.capacity import Room
from calc.units import GIB

LEAST_GPU_BYTES = GIB
"""What is left for a second engine is planned as a GPU of its own; below this nothing starts."""


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One of the models that share the GPUs."""

    name: str
    fraction: float
    report: MemoryReport
    length_tokens: int
    sequences: float
    """Of ``length_tokens``, of one replica; 0 where it does not fit."""
    held_bytes: int
    """On each GPU once it runs, context and graphs outside its fraction included."""
    least_fraction: float | None
    """Smallest fraction of total memory that weights, runtime and one such sequence need; None for engines whose
    fraction is of something else."""


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Both, started one after the other."""

    first: Tenant
    second: Tenant
    fraction_of: FractionOf
    total_bytes: int
    free_bytes: int
    """When the second starts, its own context already made."""
    asked_bytes: int
    """What its fraction asks for."""

    @property
    def starts(self) -> bool:
        """Whether the second engine finds the memory that its fraction asks for."""
        return self.asked_bytes <= self.free_bytes

    @property
    def fits(self) -> bool:
        """Both run, and each holds at least one sequence."""
        return self.starts and self.left_bytes >= 0 and self.first.report.fits and self.second.report.fits

    @property
    def left_bytes(self) -> int:
        """Outside both; below 0 = one of them runs out of memory."""
        return self.total_bytes - self.first.held_bytes - self.second.held_bytes


def place_together(
    deployment: Deployment, model: ModelSpec, *, first_fraction: float, second_fraction: float, length_tokens: int
) -> Neighbours:
    """``model`` started beside ``deployment`` on the same GPUs with the same split and engine.

    vLLM multiplies the fraction by the device's total memory and refuses to start when less than that is free; SGLang
    and TensorRT-LLM multiply it by what is free at that moment, so the second takes a share of the rest.
    """
    own = replace(
        deployment, memory_fraction=first_fraction, kv_tokens=None, kv_pool_bytes_per_gpu=None, measured_memory=None
    )
    first = _tenant(own, length_tokens)
    other = _second(own, model, second_fraction)
    of_total = deployment.engine.fraction_of is FractionOf.TOTAL
    rest = own.gpu.memory_bytes - first.held_bytes
    if not of_total:
        other = replace(other, gpu=replace(own.gpu, memory_bytes=max(rest, LEAST_GPU_BYTES)))
    second = _tenant(other, length_tokens)
    free = rest - second.report.context_bytes
    return Neighbours(
        first=first,
        second=second,
        fraction_of=deployment.engine.fraction_of,
        total_bytes=own.gpu.memory_bytes,
        free_bytes=max(0, free),
        asked_bytes=int(own.gpu.memory_bytes * second_fraction) if of_total else second.report.budget_bytes,
    )


def _second(own: Deployment, model: ModelSpec, fraction: float) -> Deployment:
    """The second engine keeps its model's own length and cache format."""
    return replace(
        own,
        model=model,
        memory_fraction=fraction,
        max_model_len_tokens=None,
        kv_dtype=None,
        spec_method=None,
        spec_tokens=0,
    )


def _tenant(deployment: Deployment, length_tokens: int) -> Tenant:
    length = min(length_tokens, deployment.model.max_position_tokens)
    deployment = replace(deployment, max_model_len_tokens=min(length, deployment.max_model_len_tokens or length))
    report = estimate_memory(deployment)
    room = Room.of(deployment, report)
    return Tenant(
        name=deployment.model.name,
        fraction=deployment.memory_fraction or 0.0,
        report=report,
        length_tokens=length,
        sequences=room.sequences(length) if report.fits else 0.0,
        held_bytes=report.total_bytes - report.margin_bytes,
        least_fraction=_least_fraction(room),
    )


def _least_fraction(room: Room) -> float | None:
    report = room.report
    if room.deployment.engine.fraction_of is not FractionOf.TOTAL:
        return None
    one = room.bytes_of(room.blocks(report.max_model_len_tokens) + NULL_BLOCKS)
    return (report.weights_bytes + report.runtime_in_budget_bytes + one) / report.total_bytes
