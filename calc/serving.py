"""How a deployment serves beyond plain replicas: tiers outside the GPU, speculation, split prefill, routing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calc.errors import ImpossibleDeployment
from calc.messages import msg

BATCHING = ("continuous", "static")
PREEMPTION = ("recompute", "swap")
ROUTING = ("random", "round-robin", "least-loaded", "prefix-aware")
MAX_TIERS = 4
MAX_BYTES_PER_S = 1e15
MAX_ACCEPTED_TOKENS = 64.0
MAX_PREFILL_REPLICAS = 1024
MAX_TIER_BYTES = 2**60


@dataclass(frozen=True, kw_only=True)
class Tier:
    """One place outside the GPU where cached KV lies: CPU memory, local disk, remote storage."""

    name: str
    """``cpu``, ``disk`` or ``remote``; any other name is shown as it is."""
    bytes_per_s: float
    """Reading back, all transfers of one replica together."""
    latency_s: float = 0.0
    """Once per fetch, before the first byte."""
    concurrency: int = 1
    """Fetches at the same time; they share the bandwidth."""
    capacity_bytes: int | None = None
    """Per replica; None = enough for what is hit."""
    hit_share: float = 1.0
    """Part of the workload's offload hits found here (0-1); the tiers' parts add up to at most 1."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bytes_per_s) and 0 < self.bytes_per_s <= MAX_BYTES_PER_S):
            raise ImpossibleDeployment(
                msg("the bandwidth of tier {name} must be above 0: enter its GB/s.", name=self.name)
            )
        if (
            not (self.latency_s >= 0 and math.isfinite(self.latency_s) and 0 <= self.hit_share <= 1)
            or self.concurrency < 1
            or not 0 < (self.capacity_bytes or 1) <= MAX_TIER_BYTES
        ):
            raise ImpossibleDeployment(
                msg(
                    "tier {name}: latency must not be negative, concurrency and capacity at least 1, and its part of "
                    "the hits between 0 and 1.",
                    name=self.name,
                )
            )


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Strategies that change how requests run, not where the model lies."""

    batching: str = "continuous"
    """``static``: a batch starts together, waits for its longest, and only then the next one starts."""
    preemption: str = "recompute"
    """``swap``: a preempted request's blocks go to CPU memory and come back."""
    swap_bytes_per_s: float | None = None
    """One way, per replica; None = not known, then swap is refused."""
    tiers: tuple[Tier, ...] = ()
    """Where the workload's offload hits lie, fastest first; without one they are computed again."""
    accepted_tokens: float | None = None
    """Draft tokens accepted per step on average; a step yields one more. None = not measured: speculation is then
    left out of latency, with a note."""
    prefill_replicas: int = 0
    """Replicas that only prefill, of the same kind; the deployment's ``replicas`` then only decode. 0 = not split."""
    transfer_bytes_per_s: float | None = None
    """From a prefill to a decode replica; None = not known, then a split is refused."""
    transfer_s: float = 0.0
    """Once per handover: hand-shake and proxy."""
    routing: str = "random"
    """Which replica a request goes to; ``random`` = an even, independent split."""

    def __post_init__(self) -> None:
        for value, known in ((self.batching, BATCHING), (self.preemption, PREEMPTION), (self.routing, ROUTING)):
            if value not in known:
                raise ImpossibleDeployment(
                    msg("{value} is not known: choose from {known}.", value=value, known=", ".join(known))
                )
        self._check_speculation()
        self._check_links()

    def _check_speculation(self) -> None:
        if self.accepted_tokens is not None and not 0 <= self.accepted_tokens <= MAX_ACCEPTED_TOKENS:
            raise ImpossibleDeployment(
                msg(
                    "accepted draft tokens per step must be between 0 and {limit}, got {value}.",
                    limit=MAX_ACCEPTED_TOKENS,
                    value=self.accepted_tokens,
                )
            )

    def _check_links(self) -> None:
        if not 0 <= self.prefill_replicas <= MAX_PREFILL_REPLICAS:
            raise ImpossibleDeployment(
                msg(
                    "prefill replicas must be between 0 and {limit:count}, got {value}.",
                    limit=MAX_PREFILL_REPLICAS,
                    value=self.prefill_replicas,
                )
            )
        if len(self.tiers) > MAX_TIERS or sum(tier.hit_share for tier in self.tiers) > 1 + 1e-9:
            raise ImpossibleDeployment(
                msg("at most {limit} tiers, and their parts of the hits add up to at most 1.", limit=MAX_TIERS)
            )
        if self.prefill_replicas and self.transfer_bytes_per_s is None:
            raise ImpossibleDeployment(msg("split prefill needs the bandwidth between the replicas: enter its GB/s."))
        if self.preemption == "swap" and self.swap_bytes_per_s is None:
            raise ImpossibleDeployment(msg("swapping needs the bandwidth to CPU memory: enter its GB/s."))
        for rate in (self.transfer_bytes_per_s, self.swap_bytes_per_s):
            if rate is not None and not (math.isfinite(rate) and 0 < rate <= MAX_BYTES_PER_S):
                raise ImpossibleDeployment(msg("a link's bandwidth must be above 0, got {value}.", value=rate))
        if not (math.isfinite(self.transfer_s) and self.transfer_s >= 0):
            raise ImpossibleDeployment(msg("the time of a handover must not be negative."))
