"""A prefix fetched against the same prefix computed again: break-even, the path of a hit, partial hits.

    break-even [bytes/s] = KV bytes per token · prefill tokens/s          (whole replica)

Above it a fetch is faster than computing. Longer prompts lower it, since attention makes prefill more than linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calc.cache.kv import request_bytes
from calc.calibrate.calibration import Calibration
from calc.calibrate.transfer import applied
from calc.deployment import Deployment
from calc.engine import Settings, resolve
from calc.serving import Tier
from calc.step.roofline import StepModel, step_model

CURVE_POINTS = 24
"""Lengths on a curve over prefix length."""
LEAST_SAVED_S = 1e-6
"""A few tokens more in a step that reads all weights anyway cost nothing that could be measured."""
SHORTEST_TOKENS = 64
"""Shortest prefix drawn: four blocks of 16."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One prompt whose first ``prefix_tokens`` were seen before."""

    prefix_tokens: int
    rest_tokens: int
    """Behind the prefix, computed in any case."""
    moved_bytes: float
    """KV of the prefix on all GPUs of the replica."""
    recompute_s: float
    """Prefill of the whole prompt."""
    rest_s: float
    """Prefill of the rest on top of the prefix."""

    @property
    def saved_s(self) -> float:
        """Prefill that the prefix costs when it is computed again."""
        return max(self.recompute_s - self.rest_s, LEAST_SAVED_S)

    @property
    def break_even_bytes_per_s(self) -> float:
        """Link speed at which fetching takes as long as computing; latency of the link left out."""
        return self.moved_bytes / self.saved_s

    @property
    def prefill_tokens_per_s(self) -> float:
        """Of the prefix."""
        return self.prefix_tokens / self.saved_s

    @property
    def bytes_per_token(self) -> float:
        """KV of one prefix token on all GPUs of the replica."""
        return self.moved_bytes / self.prefix_tokens


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """The same prompt with its prefix in a tier: the path of a hit, nothing else running."""

    tier: Tier
    hit: Hit
    lookup_s: float
    """Until the first byte."""
    transfer_s: float

    @property
    def total_s(self) -> float:
        """Look-up, transfer, rest of prefill; a colocated engine fetches before it computes the rest."""
        return self.lookup_s + self.transfer_s + self.hit.rest_s

    @property
    def speedup(self) -> float:
        """Prefill without the tier over the path of a hit; below 1 the tier makes it slower."""
        return self.hit.recompute_s / self.total_s

    @property
    def pays(self) -> bool:
        """Whether fetching is faster than computing again."""
        return self.total_s < self.hit.recompute_s


@dataclass(frozen=True, kw_only=True)
class Offload:
    """One deployment's prefill and KV sizes, made once for many prefix lengths."""

    deployment: Deployment
    settings: Settings
    model: StepModel

    @classmethod
    def of(cls, deployment: Deployment, calibration: Calibration | None = None) -> Offload:
        """At the generic constants, or at those of a calibration as far as it holds here.

        Refuses where the GPU's speed is not known.
        """
        model = step_model(deployment, efficiency=applied(calibration, deployment).efficiency, http=False)
        return cls(deployment=deployment, settings=resolve(deployment), model=model)

    def prefill_s(self, prompt_tokens: int, cached_tokens: int = 0) -> float:
        """A prompt alone on the engine, in chunks of the token budget, ``cached_tokens`` of it found."""
        if prompt_tokens <= cached_tokens:
            return 0.0
        budget = self.settings.max_num_batched_tokens
        ends = np.arange(cached_tokens + budget, prompt_tokens + budget, budget).clip(max=prompt_tokens)
        starts = np.concatenate(([cached_tokens], ends[:-1]))
        chunks = self.model.prefill_only_s(ends.astype(np.float64), starts.astype(np.float64))
        return float(chunks.sum()) - (ends.size - 1) * self.model.prefill_s

    def moved_bytes(self, tokens: int) -> float:
        """KV of ``tokens`` on all GPUs of the replica; windows keep only what they need, states come once."""
        one_stage = 1
        each = request_bytes(self.deployment.model, self.settings.kv_dtype, self.deployment.tp, one_stage, tokens)
        return each * self.deployment.tp

    def hit(self, prefix_tokens: int, rest_tokens: int) -> Hit:
        """A prompt of prefix and rest; at least one token is always computed."""
        rest = max(1, rest_tokens)
        whole = prefix_tokens + rest
        return Hit(
            prefix_tokens=prefix_tokens,
            rest_tokens=rest,
            moved_bytes=self.moved_bytes(prefix_tokens),
            recompute_s=self.prefill_s(whole),
            rest_s=self.prefill_s(whole, prefix_tokens),
        )

    def fetch(self, prefix_tokens: int, rest_tokens: int, tier: Tier) -> Fetch:
        """The path of a hit in ``tier``, alone on its link."""
        hit = self.hit(prefix_tokens, rest_tokens)
        return Fetch(tier=tier, hit=hit, lookup_s=tier.latency_s, transfer_s=hit.moved_bytes / tier.bytes_per_s)

    def partial(self, prefix_tokens: int, rest_tokens: int, tier: Tier, found_share: float) -> Fetch:
        """Only the first ``found_share`` of the prefix lies in the tier; what follows it is computed."""
        found = math.floor(found_share * prefix_tokens)
        if found == 0:
            hit = self.hit(0, prefix_tokens + rest_tokens) if prefix_tokens + rest_tokens else self.hit(0, 1)
            return Fetch(tier=tier, hit=hit, lookup_s=tier.latency_s, transfer_s=0.0)
        return self.fetch(found, prefix_tokens - found + rest_tokens, tier)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Seconds over prefix length: what computing it again adds to a prompt, and fetching it from each tier."""

    prefix_tokens: tuple[int, ...]
    recompute_s: tuple[float, ...]
    """Prefill of prefix and rest less prefill of the rest: a step that runs anyway is not counted."""
    fetch_s: tuple[tuple[float, ...], ...]
    """In the order of the tiers asked for."""
    break_even_bytes_per_s: tuple[float, ...]


def curve(offload: Offload, tiers: tuple[Tier, ...], *, rest_tokens: int, longest_tokens: int) -> Curve:
    """From a few blocks to ``longest_tokens``, at equal ratios, before a rest of ``rest_tokens``."""
    longest = max(longest_tokens, 2 * SHORTEST_TOKENS)
    lengths = sorted({round(n) for n in np.geomspace(SHORTEST_TOKENS, longest, CURVE_POINTS)})
    hits = [offload.hit(n, rest_tokens) for n in lengths]
    return Curve(
        prefix_tokens=tuple(lengths),
        recompute_s=tuple(hit.saved_s for hit in hits),
        fetch_s=tuple(tuple(tier.latency_s + hit.moved_bytes / tier.bytes_per_s for hit in hits) for tier in tiers),
        break_even_bytes_per_s=tuple(hit.break_even_bytes_per_s for hit in hits),
    )


def crossing_tokens(offload: Offload, tier: Tier, *, rest_tokens: int, longest_tokens: int) -> int | None:
    """Shortest prefix from which fetching from ``tier`` is faster; ``None`` up to ``longest_tokens``."""

    def pays(tokens: int) -> bool:
        return offload.fetch(tokens, rest_tokens, tier).pays

    low, high = 0, longest_tokens
    if not pays(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high
