"""What a way of reserving KV memory wastes: contiguous up to the maximum, in powers of two, in blocks of each size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from calc.cache.kv import BlockPlan
from calc.cache.lives import Lives, blocks_of, lives, power_of_two
from calc.cache.pool import plan_for
from calc.deployment import Deployment
from calc.engine import Settings, resolve
from calc.memory import MemoryReport
from calc.room.capacity import recut
from calc.workload import FloatArray, Workload

BLOCK_SIZES_TOKENS = (1, 8, 16, 32, 64, 128, 256)
"""Block sizes in use: SGLang 1, vLLM 16 to 128, TensorRT-LLM 32 and 64, DeepSeek recipes 256."""
GRID = 32
"""Lengths at which the engine's count of blocks is asked; between them it is a straight line."""


class Reservation(StrEnum):
    """How memory is set aside for a request."""

    MAX_LENGTH = "max-length"
    """One contiguous piece of the maximum length, when the request begins (before paging)."""
    POWER_OF_TWO = "power-of-two"
    """One piece of the next power of two of the request's own final length (buddy allocation)."""
    PAGED = "paged"
    """Block by block, as tokens come."""


@dataclass(frozen=True, kw_only=True)
class Waste:
    """One way of reserving, under one load: reserved = held + wasted, means over the running requests."""

    reservation: Reservation
    block_size_tokens: int
    """Of PAGED; the engine's own for the other two, which it would fill up."""
    reserved_tokens: float
    held_tokens: float
    sequences: float
    """Requests of this load that the pool of one replica holds at once, each at a random moment of its life."""

    @property
    def wasted_tokens(self) -> float:
        """Reserved and empty, per request."""
        return self.reserved_tokens - self.held_tokens

    @property
    def share(self) -> float:
        """Wasted share of what is reserved (0-1)."""
        return self.wasted_tokens / self.reserved_tokens


@dataclass(frozen=True, kw_only=True)
class WasteReport:
    """Every way of reserving under one load, the engine's own block size among them."""

    rows: tuple[Waste, ...]
    engine_block_tokens: int
    longest_tokens: int
    held_tokens: float
    """Mean cached tokens of a running request."""

    @property
    def own(self) -> Waste:
        """What the engine does."""
        return self.of(Reservation.PAGED, self.engine_block_tokens)

    def of(self, reservation: Reservation, block_size_tokens: int | None = None) -> Waste:
        """One row; the block size matters for PAGED only."""
        return next(
            row
            for row in self.rows
            if row.reservation is reservation and block_size_tokens in (None, row.block_size_tokens)
        )


def waste_of(deployment: Deployment, report: MemoryReport, workload: Workload) -> WasteReport:
    """Waste of every way of reserving, and how many requests of this load each leaves room for.

    Tokens are those of a layer that keeps everything; requests follow the engine's own count of blocks, so that
    windows and states are counted as it counts them.
    """
    seen = lives(workload, report.max_model_len_tokens)
    own = _Pool.of(deployment, report, report.block_size_tokens)
    whole = np.full_like(seen.held_tokens, seen.longest_tokens)
    rows = [
        _row(own, seen, Reservation.MAX_LENGTH, whole),
        _row(own, seen, Reservation.POWER_OF_TWO, power_of_two(seen.final_tokens, seen.longest_tokens)),
    ]
    sizes = sorted({*BLOCK_SIZES_TOKENS, report.block_size_tokens})
    pools = {(pool := _Pool.of(deployment, report, size)).block_size_tokens: pool for size in sizes}
    rows += [_row(pool, seen, Reservation.PAGED, _paged(seen, size)) for size, pool in sorted(pools.items())]
    return WasteReport(
        rows=tuple(rows),
        engine_block_tokens=own.block_size_tokens,
        longest_tokens=seen.longest_tokens,
        held_tokens=seen.mean(seen.held_tokens),
    )


def waste_share(seen: Lives, reserved_tokens: FloatArray) -> float:
    """Share of the reserved tokens that hold nothing (0-1), over all running requests together."""
    # A length of one token is reserved for a request that holds its prompt and its answer: nothing is empty then.
    return 1 - seen.mean(seen.held_tokens) / seen.mean(np.maximum(reserved_tokens, seen.held_tokens))


@dataclass(frozen=True, kw_only=True)
class WasteShares:
    """Empty share of what a load reserves (0-1), by the way of reserving; no pool is needed for these."""

    held_tokens: float
    max_length: float
    power_of_two: float
    paged: float
    """With the engine's own block."""


def waste_shares(report: MemoryReport, workload: Workload) -> WasteShares:
    """The shares alone, for a load on the settings of ``report``."""
    seen = lives(workload, report.max_model_len_tokens)
    return WasteShares(
        held_tokens=seen.mean(seen.held_tokens),
        max_length=waste_share(seen, np.full_like(seen.held_tokens, seen.longest_tokens)),
        power_of_two=waste_share(seen, power_of_two(seen.final_tokens, seen.longest_tokens)),
        paged=waste_share(seen, _paged(seen, report.block_size_tokens)),
    )


def _paged(seen: Lives, block_size_tokens: int) -> FloatArray:
    return blocks_of(seen.held_tokens, block_size_tokens) * block_size_tokens


def _row(pool: _Pool, seen: Lives, reservation: Reservation, reserved: FloatArray) -> Waste:
    return Waste(
        reservation=reservation,
        block_size_tokens=pool.block_size_tokens,
        reserved_tokens=seen.mean(reserved),
        held_tokens=seen.mean(seen.held_tokens),
        sequences=pool.sequences(seen, reserved),
    )


@dataclass(frozen=True, kw_only=True)
class _Pool:
    """The same bytes cut into blocks of one size."""

    plan: BlockPlan
    settings: Settings
    num_blocks: int
    """Over all DP ranks."""
    block_size_tokens: int
    """May be more than asked: hybrids raise it until a block holds a state."""

    @classmethod
    def of(cls, deployment: Deployment, report: MemoryReport, block_size_tokens: int) -> _Pool:
        cut = recut(deployment, report, block_size_tokens=block_size_tokens)
        settings = resolve(cut)
        plan = plan_for(cut, settings)
        return cls(
            plan=plan,
            settings=settings,
            num_blocks=math.floor(report.kv_pool_bytes / max(plan.stage_bytes_per_block)) * deployment.dp,
            block_size_tokens=settings.block_size_tokens,
        )

    def sequences(self, seen: Lives, reserved: FloatArray) -> float:
        """Pool blocks ÷ mean blocks of a running request; the engine's count is a line between multiples of a block."""
        block = self.block_size_tokens
        steps = np.unique(np.rint(np.geomspace(1, max(2, seen.longest_tokens / block), GRID)))
        counted = [self.plan.blocks_per_request(int(step) * block, self.settings.in_flight_tokens) for step in steps]
        filled = blocks_of(reserved, block)
        return self.num_blocks / seen.mean(np.interp(filled, steps, np.array(counted, dtype=np.float64)))
