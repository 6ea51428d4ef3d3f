"""How many requests the pool holds, and what a prefix that they share adds to that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from calc.cache.kv import BlockPlan, CacheGroup
from calc.cache.lives import FinalLengths, final_lengths
from calc.cache.pool import plan_for
from calc.deployment import Deployment
from calc.engine import Settings, resolve
from calc.memory import MemoryReport
from calc.model import LayerKind
from calc.workload import Workload

CURVE_POINTS = 24
"""Lengths of the capacity curve."""
GROWING = (LayerKind.FULL, LayerKind.MLA)
"""Layers that keep every token."""
CACHING = (LayerKind.FULL, LayerKind.MLA, LayerKind.SLIDING, LayerKind.CHUNKED)
"""Layers with blocks of tokens; a hit ends where every one of their blocks does (vLLM ``HybridKVCacheCoordinator``)."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """The pool of one replica as the engine cuts it, made once for many questions."""

    deployment: Deployment
    report: MemoryReport
    settings: Settings
    plan: BlockPlan

    @classmethod
    def of(cls, deployment: Deployment, report: MemoryReport) -> Room:
        """The room that ``report`` found for ``deployment``."""
        settings = resolve(deployment)
        return cls(deployment=deployment, report=report, settings=settings, plan=plan_for(deployment, settings))

    def sequences(self, tokens: int) -> float:
        """Sequences of ``tokens`` cached tokens that one replica holds."""
        held = self.plan.sequences(self.report.num_blocks, tokens, self.settings.in_flight_tokens)
        return held * self.deployment.dp

    def blocks(self, tokens: int, *, running: bool = True) -> int:
        """Blocks of one sequence; one that is not running has nothing on its way out of a window."""
        return self.plan.blocks_per_request(tokens, self.settings.in_flight_tokens if running else 0)

    def blocks_keeping(self, kept_tokens: int, length_tokens: int) -> int:
        """Blocks of a sequence that drops tokens from its full attention layers until ``kept_tokens`` are left there.

        Windows and recurrent states stay as the model has them.
        """
        return sum(
            replace(self.plan, groups=(group,)).blocks_per_request(
                kept_tokens if group.kind in GROWING and group.window_tokens is None else length_tokens,
                self.settings.in_flight_tokens,
            )
            for group in self.plan.groups
        )

    def bytes_of(self, blocks: float) -> float:
        """Bytes of ``blocks`` blocks on one GPU of the widest pipeline stage."""
        return blocks * max(self.plan.stage_bytes_per_block)

    @property
    def pool_blocks(self) -> int:
        """Over all DP ranks of the replica."""
        return self.report.num_blocks * self.deployment.dp


def recut(deployment: Deployment, report: MemoryReport, **settings: Any) -> Deployment:
    """The deployment with other cache settings and the same bytes for its pool."""
    return replace(
        deployment,
        **{"kv_tokens": None, "measured_memory": None, "kv_pool_bytes_per_gpu": report.kv_pool_bytes, **settings},
    )


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One length of the user's own load on the capacity curve."""

    name: str
    """P50, P95 or max."""
    tokens: int
    sequences: float


def curve(room: Room) -> tuple[tuple[float, float], ...]:
    """(length, sequences one replica holds), from one block to the maximum model length."""
    low = room.report.block_size_tokens
    high = max(room.report.max_model_len_tokens, low + 1)
    ratio = (high / low) ** (1 / (CURVE_POINTS - 1))
    lengths = dict.fromkeys(round(low * ratio**step) for step in range(CURVE_POINTS))
    return tuple((length, room.sequences(length)) for length in lengths)


def marks(room: Room, workload: Workload) -> tuple[Mark, ...]:
    """P50 and P95 of prompt + output, and the maximum model length: how many sequences of each the pool holds."""
    final: FinalLengths = final_lengths(workload, room.report.max_model_len_tokens)
    lengths = {
        "P50": round(final.quantile(0.5)),
        "P95": round(final.quantile(0.95)),
        "max": room.report.max_model_len_tokens,
    }
    return tuple(Mark(name=name, tokens=size, sequences=room.sequences(size)) for name, size in lengths.items())


@dataclass(frozen=True, kw_only=True)
class SharedPrefix:
    """A prefix that a share of the requests have in common, kept once: shared + n · unique blocks."""

    prefix_tokens: int
    kept_tokens: int
    """Of the prefix, in whole blocks: only these are found again."""
    share: float
    """Of requests that begin with it."""
    length_tokens: int
    """Of every sequence, prefix included."""
    need_blocks: int
    """Of one sequence that shares nothing."""
    shared_blocks: int
    pool_blocks: int
    """Of one DP rank: each keeps the prefix once."""
    shared_bytes: float
    """What the one copy takes on each GPU."""
    without: float
    """Sequences of one replica if every request kept its own copy."""
    sequences: float
    """Sequences of one replica with the prefix kept once."""
    caching: bool
    """Whether the scenario has prefix caching on; off, nothing is shared whatever the prompts have in common."""

    @property
    def lost_tokens(self) -> int:
        """End of the prefix that fills no whole block: computed and kept by every request."""
        return self.prefix_tokens - self.kept_tokens


def share_prefix(room: Room, *, prefix_tokens: int, share: float, length_tokens: int) -> SharedPrefix:
    """Sequences of ``length_tokens`` with a prefix of ``prefix_tokens`` used by ``share`` (0-1) of them.

    n · need − shared · (n · share − 1) = pool, so n = (pool − shared) / (need − share · shared) once two or more use
    it. The last token of a prompt is always computed anew, so the prefix ends before it.
    """
    length = max(length_tokens, 1)
    steps = [group.block_size_tokens for group in room.plan.groups if group.kind in CACHING]
    kept = min(prefix_tokens, length - 1) // math.lcm(*steps) * math.lcm(*steps) if steps else 0
    need = room.blocks(length)
    shared = min(sum(_shared_blocks(group, kept, length) for group in room.plan.groups), need - 1)
    without = room.sequences(length)
    pool = room.report.num_blocks
    together = (pool - shared) / (need - share * shared)
    return SharedPrefix(
        prefix_tokens=prefix_tokens,
        kept_tokens=kept,
        share=share,
        length_tokens=length,
        need_blocks=need,
        shared_blocks=shared,
        pool_blocks=pool,
        shared_bytes=room.bytes_of(shared),
        without=without,
        sequences=max(without, together * room.deployment.dp),
        caching=room.settings.prefix_caching,
    )


def _shared_blocks(group: CacheGroup, kept: int, length: int) -> int:
    """Blocks of the prefix that a sequence of full length still reads: all in full attention, in a window the rest.

    A recurrent state is each sequence's own.
    """
    if group.window_tokens is not None:
        left = max(0, length - group.window_tokens + 1)
        return max(0, kept // group.block_size_tokens - left // group.block_size_tokens)
    return kept // group.block_size_tokens if group.kind in GROWING else 0
