"""A log of requests summed up: when they came, how long they were, who sent them, what they shared."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from calc.lengths import IntArray
from calc.profile.arrivals import ArrivalProfile, arrival_profile
from calc.profile.columns import LogColumns
from calc.profile.concurrency import ConcurrencyProfile, concurrency_by_little, counted_concurrency
from calc.profile.prefixes import PrefixProfile
from calc.profile.sessions import SessionGroup, SessionProfile, long_share, session_groups, session_profile
from calc.profile.spread import Spread, known, pearson, spearman, spread, spread_of_counts

WORKERS = 2
"""Threads of one profile: arithmetic on columns lets others run."""
LONG_PROMPTS = (4096, 8192, 32768, 4000, 8000, 32000)
"""Prompt lengths above which shares are told: powers of two, as context windows are sold, and round thousands."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A tenant, a model or a business line: its share of requests and of tokens."""

    name: str
    requests: int
    share: float
    prompt_tokens_share: float
    output_tokens_share: float


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The largest parts of a log, and how many there are."""

    count: int
    largest: tuple[Part, ...]
    """By requests, falling."""

    def top_share(self, number: int) -> float:
        """Share of requests of the ``number`` largest."""
        return sum(part.requests for part in self.largest[:number]) / self.requests if self.requests else 0.0

    requests: int
    """Requests that name a part."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Shares of requests (0-1) by what became of them; ``None`` = the log does not say."""

    streaming_share: float | None = None
    failed_share: float | None = None
    cancelled_share: float | None = None
    retried_share: float | None = None
    same_system_prompt_share: float | None = None
    """Of requests with the most frequent system prompt."""
    system_prompts: int | None = None
    """Distinct ones."""
    mean_retries: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cached:
    """Prompt tokens found in the prefix cache, over the requests that tell."""

    tokens: int
    prompt_tokens: int
    beyond: int = 0
    """Requests with more of them than their prompt has, counted here alone."""

    @property
    def share(self) -> float | None:
        """Hit rate (0-1)."""
        return self.tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass(frozen=True, kw_only=True)
class LogProfile:
    """``None`` = the log does not say, never 0."""

    requests: int
    arrivals: ArrivalProfile
    prompt_tokens: Spread
    output_tokens: Spread
    pearson: float | None
    spearman: float | None
    """Of prompt and output tokens."""
    longer_share: Mapping[int, float]
    """Share of prompts longer than so many tokens."""
    zero_prompts: int
    zero_outputs: int
    ttft_s: Spread | None
    e2e_s: Spread | None
    itl_s: Spread | None
    """Over requests, each with its own mean gap."""
    cached_tokens: int | None
    cached_share: float | None
    """Cached over prompt tokens of the requests that tell."""
    cached_beyond: int
    """Requests that name more cached than prompt tokens; they count in neither."""
    concurrency: ConcurrencyProfile | None
    sessions: SessionProfile | None
    groups: tuple[SessionGroup, ...]
    long_share: float
    """Of conversations (without sessions: requests) with a prompt of more than 8,192 tokens."""
    parts: Mapping[str, Parts] = field(default_factory=lambda: MappingProxyType({}))
    """``tenant``, ``model``, ``business_line`` → shares, those that the log has."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    prefixes: PrefixProfile | None = None

    def token_rate_per_s(self, tokens: Spread) -> float | None:
        """Tokens per second over the log."""
        return tokens.total / self.arrivals.duration_s if self.arrivals.duration_s else None


def log_profile(
    columns: LogColumns,
    *,
    parts: Mapping[str, Parts] | None = None,
    behaviour: Behaviour | None = None,
    cached: Cached | None = None,
    prefixes: PrefixProfile | None = None,
) -> LogProfile:
    """The profile of at least one request; what is told by names is counted elsewhere and handed in.

    The four parts that take longest do not need each other and share the processors.
    """
    with ThreadPoolExecutor(WORKERS) as pool:
        arrivals = pool.submit(arrival_profile, columns.arrival_s)
        open_at_once = pool.submit(_counted_concurrency, columns)
        sessions = pool.submit(session_profile, columns)
        groups = pool.submit(session_groups, columns)
        durations = {name: pool.submit(spread, known(getattr(columns, name))) for name in ("ttft_s", "e2e_s", "itl_s")}
        often, prompt = _counted(columns.prompt_tokens)
        output = spread(columns.output_tokens)
        assert output is not None  # a log has a request
        return LogProfile(
            requests=columns.requests,
            prompt_tokens=prompt,
            output_tokens=output,
            pearson=pearson(columns.prompt_tokens, columns.output_tokens),
            spearman=spearman(columns.prompt_tokens, columns.output_tokens),
            longer_share=MappingProxyType({n: float(often[n + 1 :].sum() / columns.requests) for n in LONG_PROMPTS}),
            zero_prompts=int(often[0]),
            zero_outputs=int((columns.output_tokens == 0).sum()),
            long_share=long_share(columns),
            cached_tokens=cached.tokens if cached and cached.share is not None else None,
            cached_share=cached.share if cached else None,
            cached_beyond=cached.beyond if cached else 0,
            arrivals=arrivals.result(),
            concurrency=open_at_once.result() or concurrency_by_little(arrivals.result().rate_per_s, output.mean),
            sessions=sessions.result(),
            groups=groups.result(),
            parts=MappingProxyType(dict(parts or {})),
            behaviour=behaviour or Behaviour(),
            prefixes=prefixes,
            **{name: job.result() for name, job in durations.items()},
        )


def _counted_concurrency(columns: LogColumns) -> ConcurrencyProfile | None:
    return None if columns.e2e_s is None else counted_concurrency(columns.arrival_s, columns.e2e_s)


def _counted(tokens: IntArray) -> tuple[IntArray, Spread]:
    """How often each length stands in the log, and how lengths spread; a length has a bound, so this stays small."""
    often = np.bincount(tokens)
    return often, spread_of_counts(often)
