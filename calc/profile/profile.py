"""A log of requests summed up: when they came, how long they were, who sent them, what they shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from calc.profile.arrivals import ArrivalProfile, arrival_profile
from calc.profile.columns import LogColumns
from calc.profile.concurrency import ConcurrencyProfile, concurrency_by_little, counted_concurrency
from calc.profile.prefixes import PrefixProfile
from calc.profile.sessions import SessionGroup, SessionProfile, long_share, session_groups, session_profile
from calc.profile.spread import Spread, known, pearson, spearman, spread

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
    prefixes: PrefixProfile | None = None,
) -> LogProfile:
    """The profile of at least one request; what is told by names is counted elsewhere and handed in."""
    prompt, output = spread(columns.prompt_tokens), spread(columns.output_tokens)
    assert prompt is not None  # a log has a request
    assert output is not None
    arrivals = arrival_profile(columns.arrival_s)
    cached, share = _cached(columns)
    return LogProfile(
        requests=columns.requests,
        arrivals=arrivals,
        prompt_tokens=prompt,
        output_tokens=output,
        pearson=pearson(columns.prompt_tokens, columns.output_tokens),
        spearman=spearman(columns.prompt_tokens, columns.output_tokens),
        longer_share=MappingProxyType({n: float((columns.prompt_tokens > n).mean()) for n in LONG_PROMPTS}),
        zero_prompts=int((columns.prompt_tokens == 0).sum()),
        zero_outputs=int((columns.output_tokens == 0).sum()),
        ttft_s=spread(known(columns.ttft_s)),
        e2e_s=spread(known(columns.e2e_s)),
        itl_s=spread(known(columns.itl_s)),
        cached_tokens=cached,
        cached_share=share,
        concurrency=_concurrency(columns, arrivals, output),
        sessions=session_profile(columns),
        groups=session_groups(columns),
        long_share=long_share(columns),
        parts=MappingProxyType(dict(parts or {})),
        behaviour=behaviour or Behaviour(),
        prefixes=prefixes,
    )


def _concurrency(columns: LogColumns, arrivals: ArrivalProfile, output: Spread) -> ConcurrencyProfile | None:
    counted = None if columns.e2e_s is None else counted_concurrency(columns.arrival_s, columns.e2e_s)
    return counted or concurrency_by_little(arrivals.rate_per_s, output.mean)


def _cached(columns: LogColumns) -> tuple[int | None, float | None]:
    if columns.cached_tokens is None or not (columns.cached_tokens >= 0).any():
        return None, None
    told = columns.cached_tokens >= 0
    cached, prompt = int(columns.cached_tokens[told].sum()), int(np.sum(columns.prompt_tokens[told]))
    return cached, cached / prompt if prompt else None
