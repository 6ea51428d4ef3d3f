"""What each request of a load is: its class, lengths, hits, cancelling and acceptance, drawn from seeded streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from calc.serving import Tier
from calc.simulator.contract import BoolArray
from calc.workload import (
    Closed,
    FloatArray,
    IntArray,
    LengthDistribution,
    Recorded,
    RequestClass,
    Workload,
    sample_tokens,
)

KEPT_LENGTHS, KEPT_STREAMS = 16_384, 64
"""Lengths drawn at once, and how many such draws are kept: 8 MB at most."""
KEPT_REQUESTS = 4096
"""Requests drawn at once, as many as the means of a load are taken from."""
ANY_TIME = Closed(concurrency=1)
"""Arrivals of a draw that does not depend on them."""
OUTPUT, PROMPT, FOUND, CANCEL, TIER, PACE, CLASS, LOG = range(1, 9)
"""Streams of a seed; 0 is that of arrivals."""
QUESTION_TOKENS = 48
"""Three blocks of 16: a share of hits that leaves less than this of a prompt says that most prompts were seen before as
a whole and the others not at all; a question of its own would be longer."""
STREAMS_PER_CLASS = 16
SEARCH_ROUNDS = 60
"""Bisections for an acceptance probability: to the last bit."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One entry per request."""

    prompt: IntArray
    output: IntArray
    """Tokens that are made: of a cancelled request those before its client left."""
    cached: IntArray
    class_index: IntArray | None = None
    cancelled: BoolArray | None = None

    def __getitem__(self, part: slice) -> Drawn:
        """Some of the requests."""
        return Drawn(
            prompt=self.prompt[part],
            output=self.output[part],
            cached=self.cached[part],
            class_index=None if self.class_index is None else self.class_index[part],
            cancelled=None if self.cancelled is None else self.cancelled[part],
        )


def draw(
    workload: Workload,
    count: int,
    longest_tokens: int,
    seed: int,
    *,
    reuse: bool = True,
    logged: IntArray | None = None,
) -> Drawn:
    """``count`` requests, none of prompt + output beyond ``longest_tokens``; ``logged`` = their places in a log."""
    if count > KEPT_REQUESTS or isinstance(workload.arrivals, Recorded):
        return _draw(workload, count, longest_tokens, seed, reuse, logged)
    return _kept_requests(replace(workload, arrivals=ANY_TIME, num_requests=None), longest_tokens, seed, reuse)[:count]


@lru_cache(KEPT_STREAMS)
def _kept_requests(workload: Workload, longest_tokens: int, seed: int, reuse: bool) -> Drawn:
    """Kept: loads of one workload differ in when requests come, not in what they are."""
    drawn = _draw(workload, KEPT_REQUESTS, longest_tokens, seed, reuse, None)
    for column in (drawn.prompt, drawn.output, drawn.cached, drawn.class_index, drawn.cancelled):
        if column is not None:
            column.flags.writeable = False
    return drawn


def _draw(
    workload: Workload, count: int, longest_tokens: int, seed: int, reuse: bool, logged: IntArray | None
) -> Drawn:
    index = _class_index(workload.classes, count, seed)
    output = _of_classes(workload, "output_tokens", index, count, max(1, longest_tokens - 1), (seed, OUTPUT))
    prompt = _of_classes(workload, "prompt_tokens", index, count, longest_tokens, (seed, PROMPT))
    if isinstance(workload.arrivals, Recorded):
        prompt, output = _as_logged(workload.arrivals, logged, prompt, output, seed)
    output = np.minimum(output, max(1, longest_tokens - 1))
    prompt = np.maximum(1, np.minimum(prompt, longest_tokens - output))
    cached = _found(prompt, _hit_share(workload, index) if reuse else 0.0, seed)
    cancelled = None
    if workload.clients.cancel_share > 0:
        rng = np.random.default_rng((seed, CANCEL))
        cancelled = (rng.random(count) < workload.clients.cancel_share) & (output > 1)
        until = 1 + np.floor(rng.random(count) * (output - 1)).astype(np.int64)
        output = np.where(cancelled, until, output)
    return Drawn(
        prompt=prompt,
        output=output,
        cached=cached,
        class_index=index,
        cancelled=cancelled,
    )


def _class_index(classes: tuple[RequestClass, ...], count: int, seed: int) -> IntArray | None:
    if not classes:
        return None
    edges = np.cumsum([one.share for one in classes])
    drawn = np.random.default_rng((seed, CLASS)).random(count) * edges[-1]
    index: IntArray = np.minimum(np.searchsorted(edges, drawn, side="right"), len(classes) - 1).astype(np.int64)
    return index


def _of_classes(
    workload: Workload, field: str, index: IntArray | None, count: int, longest: int, stream: tuple[int, int]
) -> IntArray:
    """Lengths of all requests: each class has a stream of its own, from its own distribution or the workload's."""
    common: LengthDistribution = getattr(workload, field)
    if index is None:
        return drawn_lengths(common, count, longest, stream)
    seed, number = stream
    columns = [
        drawn_lengths(getattr(one, field) or common, count, longest, (seed, number + STREAMS_PER_CLASS * place))
        for place, one in enumerate(workload.classes)
    ]
    return np.stack(columns)[index, np.arange(count)]


def _hit_share(workload: Workload, index: IntArray | None) -> FloatArray | float:
    if index is None:
        return workload.prefix_hit_share
    shares = [one.prefix_hit_share for one in workload.classes]
    return np.array([workload.prefix_hit_share if share is None else share for share in shares])[index]


def _found(prompt: IntArray, share: FloatArray | float, seed: int) -> IntArray:
    """Cached tokens of each prompt: its share; where less than a question is left, the whole prompt or nothing."""
    cached: IntArray = np.minimum(np.floor(share * prompt).astype(np.int64), prompt - 1)
    if np.max(share) <= 0:
        return cached
    whole = np.maximum(prompt - 1, 1)
    is_found = np.random.default_rng((seed, FOUND)).random(prompt.size) < share * prompt / whole
    kept: IntArray = np.where(prompt - cached < QUESTION_TOKENS, np.where(is_found, prompt - 1, 0), cached)
    return kept


def _as_logged(
    log: Recorded, places: IntArray | None, prompt: IntArray, output: IntArray, seed: int
) -> tuple[IntArray, IntArray]:
    """Where the log has lengths, each request keeps its own; without places some of the log are drawn."""
    if places is None:
        places = np.random.default_rng((seed, LOG)).integers(0, len(log.times_s), prompt.size)
    logged = (log.prompt_tokens, log.output_tokens)
    own = [np.array(tokens, np.int64)[places] if tokens else None for tokens in logged]
    return (prompt if own[0] is None else own[0]), (output if own[1] is None else own[1])


def drawn_lengths(
    distribution: LengthDistribution, count: int, longest_tokens: int, stream: tuple[int, int]
) -> IntArray:
    """The first ``count`` lengths of a stream: the same ones whatever the count."""
    if count > KEPT_LENGTHS:
        return sample_tokens(distribution, count, np.random.default_rng(stream), longest_tokens)
    return _kept(distribution, longest_tokens, stream)[:count]


@lru_cache(KEPT_STREAMS)
def _kept(distribution: LengthDistribution, longest_tokens: int, stream: tuple[int, int]) -> IntArray:
    """Kept: a sweep, a decision or a search draws the same lengths for every load and deployment."""
    tokens = sample_tokens(distribution, KEPT_LENGTHS, np.random.default_rng(stream), longest_tokens)
    tokens.flags.writeable = False
    return tokens


def draw_fetches(workload: Workload, drawn: Drawn, tiers: tuple[Tier, ...], seed: int) -> tuple[IntArray, IntArray]:
    """Prompt tokens of each request that lie in a tier, and in which; 0 where none has them: they are recomputed."""
    share = np.random.default_rng((seed, TIER)).random(drawn.prompt.size)
    tier = np.searchsorted(np.cumsum([one.hit_share for one in tiers]), share, side="right").astype(np.int64)
    tokens = np.floor(workload.offload_hit_share * drawn.prompt).astype(np.int64)
    tokens = np.where(tier < len(tiers), np.minimum(tokens, drawn.prompt - 1 - drawn.cached), 0)
    return tokens, np.minimum(tier, len(tiers) - 1)


def draw_paces(output: IntArray, accepted_tokens: float, drafted_tokens: int, seed: int) -> FloatArray:
    """Tokens per decode step of each request: its output − 1 tokens over the steps they take.

    Drafted tokens are accepted one after the other with equal chance until the first is refused (Leviathan et al.,
    ICML 2023), so a step gives X = 1 + accepted tokens. By renewal theory n tokens take (n + overshoot)/E[X] steps on
    average, with variance n·Var[X]/E[X]³ (normal); overshoot = E[X(X−1)]/(2·E[X]) tokens drafted past the end.
    """
    mean, square = _yield_moments(accepted_tokens, drafted_tokens)
    tokens = np.maximum(output - 1, 0).astype(np.float64)
    over = (square - mean) / (2 * mean)
    spread = np.sqrt(tokens * max(0.0, square - mean**2) / mean**3)
    drawn = (tokens + over) / mean + spread * np.random.default_rng((seed, PACE)).standard_normal(output.size)
    steps = np.clip(np.rint(drawn), np.ceil(tokens / (1 + drafted_tokens)), np.maximum(tokens, 1))
    paces: FloatArray = np.maximum(1.0, tokens / np.maximum(steps, 1))
    return paces


def _yield_moments(accepted_tokens: float, drafted_tokens: int) -> tuple[float, float]:
    """E[X] and E[X²] of tokens a step gives."""
    wanted = min(accepted_tokens, float(drafted_tokens))
    powers = np.arange(1, drafted_tokens + 1)
    low, high = 0.0, 1.0
    for _ in range(SEARCH_ROUNDS):
        chance = (low + high) / 2
        low, high = (chance, high) if float((chance**powers).sum()) < wanted else (low, chance)
    beyond = high**powers  # P(X > i), i = 1 … drafted
    return 1 + float(beyond.sum()), 1 + float(((2 * powers + 1) * beyond).sum())
