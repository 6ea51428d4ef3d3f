"""What the users send: lengths, arrivals, prefix reuse, kinds of requests and how their clients behave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from calc.errors import InputError
from calc.lengths import (
    MAX_TOKENS,
    Empirical,
    Fixed,
    FloatArray,
    IntArray,
    LengthDistribution,
    LogNormal,
    Uniform,
    check_tokens,
    sample_tokens,
)
from calc.messages import msg
from calc.room.idle import check_idle_share
from calc.targets import Prices, Slo
from calc.traffic import (
    MAX_CONCURRENCY,
    MAX_RATE_PER_S,
    MIN_RATE_PER_S,
    Arrivals,
    Closed,
    Mmpp,
    OpenLoop,
    PerMinute,
    Recorded,
)

__all__ = [
    "MAX_CONCURRENCY",
    "MAX_RATE_PER_S",
    "MAX_REQUESTS",
    "MAX_TOKENS",
    "MIN_RATE_PER_S",
    "Arrivals",
    "Clients",
    "Closed",
    "Empirical",
    "Fixed",
    "FloatArray",
    "IntArray",
    "LengthDistribution",
    "LogNormal",
    "Mmpp",
    "OpenLoop",
    "PerMinute",
    "Prices",
    "Recorded",
    "RequestClass",
    "Slo",
    "Uniform",
    "Workload",
    "longest_request_tokens",
    "sample_tokens",
]

LONGEST_SHARE = 0.9999
"""Quantile taken as the longest length of a distribution that has no end (lognormal)."""
MAX_REQUESTS = 10_000_000
"""Most requests simulated in one go."""
MAX_PREFIX_GROUPS = 1_000_000
"""Most distinct shared prefixes told apart."""
SHARES_OFF = 1e-3
"""How far the shares of the classes may be from 1: they are typed with few digits."""
ROUNDING = 1e-9
MAX_PATIENCE_S = 1e6
MAX_RETRIES = 100
MAX_PRIORITY = 1000


@dataclass(frozen=True, kw_only=True)
class RequestClass:
    """One kind of request: short or long, interactive or batch, a tenant. What is None is the workload's own."""

    name: str
    share: float
    """Of all requests (0-1)."""
    prompt_tokens: LengthDistribution | None = None
    output_tokens: LengthDistribution | None = None
    prefix_hit_share: float | None = None
    priority: int = 0
    """Lower is served first, as in vLLM; equal priorities in order of arrival."""
    max_running: int | None = None
    """Quota: most requests of this class that one replica runs at once."""

    def __post_init__(self) -> None:
        shares = (self.share, self.prefix_hit_share or 0.0)
        if not all(math.isfinite(share) and 0 <= share <= 1 for share in shares):
            raise InputError(msg("shares of class {name} must be between 0 and 1: correct them.", name=self.name))
        if self.max_running is not None and not 1 <= self.max_running <= MAX_CONCURRENCY:
            raise InputError(
                msg(
                    "the quota of class {name} must be between 1 and {limit:count} requests, got {value}.",
                    name=self.name,
                    limit=MAX_CONCURRENCY,
                    value=self.max_running,
                )
            )
        if abs(self.priority) > MAX_PRIORITY:
            raise InputError(
                msg(
                    "the priority of class {name} must be between {least} and {most}, got {value}.",
                    name=self.name,
                    least=-MAX_PRIORITY,
                    most=MAX_PRIORITY,
                    value=self.priority,
                )
            )


@dataclass(frozen=True, kw_only=True)
class Clients:
    """How clients behave beside sending: who stops reading, who gives up waiting, who tries again."""

    cancel_share: float = 0.0
    """Share of requests whose client goes away while tokens come, at a random one (0-1)."""
    patience_s: float | None = None
    """A client without a first token after this long gives up; None = waits for ever."""
    retries: int = 0
    """How often a client that gave up tries again."""
    retry_after_s: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.cancel_share <= 1:
            raise InputError(msg("cancel share must be between 0 and 1, got {value}.", value=self.cancel_share))
        if self.patience_s is not None and not 0 < self.patience_s <= MAX_PATIENCE_S:
            raise InputError(
                msg(
                    "patience must be above 0 and at most {limit:count} seconds, got {value}: leave it empty for none.",
                    limit=MAX_PATIENCE_S,
                    value=self.patience_s,
                )
            )
        if not (0 <= self.retries <= MAX_RETRIES and 0 <= self.retry_after_s <= MAX_PATIENCE_S):
            raise InputError(msg("retries must be between 0 and {limit}, their pause in seconds.", limit=MAX_RETRIES))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Load on the whole deployment (all replicas together)."""

    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    arrivals: Arrivals
    prefix_hit_share: float = 0.0
    """Share of prompt tokens found in the prefix cache (0-1)."""
    num_requests: int | None = None
    """Requests of a finite benchmark; None = steady load."""
    business_type: str = "custom"
    http: bool = True
    """True: latency as a client sees it over HTTP; False: inside the engine."""
    idle_share: float = 0.0
    """Share of open sessions whose user pauses while their context is to stay cached (0-1); it is part of KV demand."""
    idle_context_tokens: float | None = None
    """What such a session holds; None = a finished request, prompt and output."""
    offload_hit_share: float = 0.0
    """Share of prompt tokens not in the GPU's prefix cache but found in a tier outside it (0-1)."""
    classes: tuple[RequestClass, ...] = ()
    """Kinds of requests told apart; empty = all alike."""
    clients: Clients = field(default_factory=Clients)
    prefix_groups: int | None = None
    """Distinct shared prefixes (tenants, system prompts, documents): where requests of a group go decides what a
    replica's cache can find. None = every replica finds the share given."""
    source: str = ""
    """Name of the log that lengths and arrivals were measured in; empty = declared."""

    def __post_init__(self) -> None:
        check_idle_share(self.idle_share)
        if self.idle_context_tokens is not None:
            check_tokens(self.idle_context_tokens, msg("idle context"))
        if not 0.0 <= self.prefix_hit_share <= 1.0:
            raise InputError(
                msg(
                    "prefix hit share must be between 0 and 1, got {value}: 0.3 means three prompt tokens in ten.",
                    value=self.prefix_hit_share,
                )
            )
        if self.num_requests is not None and not 1 <= self.num_requests <= MAX_REQUESTS:
            raise InputError(
                msg("number of requests must be between 1 and 10,000,000, got {value}.", value=self.num_requests)
            )

        if not 0.0 <= self.offload_hit_share <= 1.0 - self.prefix_hit_share + ROUNDING:
            raise InputError(
                msg(
                    "offload hit share must be between 0 and what prefix hits leave ({left:pct}), got {value}.",
                    left=1.0 - self.prefix_hit_share,
                    value=self.offload_hit_share,
                )
            )
        if self.prefix_groups is not None and not 1 <= self.prefix_groups <= MAX_PREFIX_GROUPS:
            raise InputError(
                msg(
                    "prefix groups must be between 1 and {limit:count}, got {value}.",
                    limit=MAX_PREFIX_GROUPS,
                    value=self.prefix_groups,
                )
            )
        if self.classes and abs(sum(one.share for one in self.classes) - 1.0) > SHARES_OFF:
            raise InputError(
                msg(
                    "the shares of the request classes add up to {total:pct}: they must add up to 100 %.",
                    total=sum(one.share for one in self.classes),
                )
            )

    @property
    def idle_per_active(self) -> float:
        """Idle sessions for each request in flight."""
        return self.idle_share / (1 - self.idle_share)


def longest_request_tokens(workload: Workload, at_share: float = LONGEST_SHARE) -> int:
    """Longest prompt + output of a load, of any of its classes or in its log, in tokens.

    ``at_share``: the quantile that counts as the longest where a distribution has no end.
    """
    law = workload.arrivals
    prompts, outputs = (law.prompt_tokens, law.output_tokens) if isinstance(law, Recorded) else ((), ())
    if prompts and outputs:
        return max(map(sum, zip(prompts, outputs, strict=True)))
    kinds: tuple[Workload | RequestClass, ...] = workload.classes or (workload,)
    return math.ceil(
        max(
            (max(prompts) if prompts else _longest_tokens(kind.prompt_tokens or workload.prompt_tokens, at_share))
            + (max(outputs) if outputs else _longest_tokens(kind.output_tokens or workload.output_tokens, at_share))
            for kind in kinds
        )
    )


def _longest_tokens(lengths: LengthDistribution, at_share: float) -> float:
    return lengths.quantile(at_share if isinstance(lengths, LogNormal) else 1.0)
