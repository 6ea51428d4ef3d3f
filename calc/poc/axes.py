"""Which contexts and concurrencies are worth measuring: taken from the user's own load, not from a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from calc.latency import LatencyReport, predict, sweep, with_load
from calc.lengths import sample_tokens
from calc.poc.place import CONTEXT_TOLERANCE
from calc.scenario import Scenario
from calc.workload import Closed, OpenLoop, Recorded, Workload

GRAIN_TOKENS = 64
"""Contexts are rounded to this: a multiple of every usual block size."""
CONTEXT_SHARES = (0.5, 0.95, 0.99)
"""Prompt quantiles that become contexts: the usual request, the long one, the longest worth a test."""
APART = (1 + CONTEXT_TOLERANCE) ** 2
"""Two levels of one axis differ by more than this, or one run could belong to both."""
PEAK_FACTOR = 2
"""The peak keeps twice the highest planned concurrency in flight: waiting and eviction must be seen somewhere."""
SWEEP_REQUESTS = 400
"""Simulated per load: the axes need two digits."""
BURSTY = 0.7
"""Shape of gamma arrivals (1/cv²) where the load's own is not one number: public traces are burstier than Poisson."""
MIXED_DRAWS = 20_000
MIXED_SEED = 1


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Levels of the two axes that depend on the load."""

    contexts_tokens: tuple[int, ...]
    """Rising; the first is the usual request, on which the headline is measured."""
    output_tokens: int
    operating: int
    """Requests in flight at today's load."""
    knee: int
    """Highest concurrency that meets the SLO, or that is still stable where there is none."""
    peak: int
    rate_per_s: float | None
    """Today's request rate; ``None`` for a closed loop, whose cells need no rate."""
    burstiness: float

    @property
    def concurrencies(self) -> tuple[int, ...]:
        """Every level once, rising."""
        return tuple(sorted({1, self.operating, self.knee, self.peak}))


def axes_of(scenario: Scenario) -> Axes:
    """The levels that matter for this load, from its quantiles and a simulated sweep."""
    workload, limit = scenario.workload, scenario.deployment.max_model_len_tokens
    output = max(1, round(_mean_output(workload)))
    report = predict(replace(scenario, workload=replace(workload, num_requests=None)), requests=SWEEP_REQUESTS)
    operating, knee = _operating(workload, report), _knee(scenario)
    levels = _apart([operating, knee])
    near = min(levels, key=lambda level: abs(level - knee))
    return Axes(
        contexts_tokens=_contexts(workload, output, limit),
        output_tokens=output,
        operating=min(levels, key=lambda level: abs(level - operating)),
        knee=near,
        peak=PEAK_FACTOR * max(levels),
        rate_per_s=None if isinstance(workload.arrivals, Closed) else workload.arrivals.rate_per_s,
        burstiness=burstiness_of(workload),
    )


def burstiness_of(workload: Workload) -> float:
    """Gamma shape of the arrivals, 1/cv²: 1 = Poisson; a constant rate is no user's, so Poisson stands for it."""
    match workload.arrivals:
        case OpenLoop(kind="gamma", cv=cv):
            return float(f"{1 / cv**2:.3g}")
        case OpenLoop() | Closed():
            return 1.0
    return BURSTY


def _contexts(workload: Workload, output_tokens: int, limit_tokens: int | None) -> tuple[int, ...]:
    most = math.inf if limit_tokens is None else max(1, limit_tokens - output_tokens)
    wanted = (_rounded(min(most, tokens)) for tokens in _prompt_quantiles(workload))
    return _apart(int(min(most, tokens)) for tokens in wanted)


def _rounded(tokens: float) -> int:
    return max(1, round(tokens)) if tokens < GRAIN_TOKENS else GRAIN_TOKENS * round(tokens / GRAIN_TOKENS)


def _apart(levels: Iterable[int]) -> tuple[int, ...]:
    """Rising, without those too near to a smaller one."""
    kept: list[int] = []
    for level in sorted(set(levels)):
        if not kept or level > APART * kept[-1]:
            kept.append(level)
    return tuple(kept)


def _prompt_quantiles(workload: Workload) -> list[float]:
    """Of the whole load: of its log, of its kinds by their shares, or of its one distribution."""
    law = workload.arrivals
    if isinstance(law, Recorded) and law.prompt_tokens:
        return [float(tokens) for tokens in np.quantile(law.prompt_tokens, CONTEXT_SHARES)]
    if not workload.classes:
        return [workload.prompt_tokens.quantile(share) for share in CONTEXT_SHARES]
    rng = np.random.default_rng(MIXED_SEED)
    kinds = [(one.share, one.prompt_tokens or workload.prompt_tokens) for one in workload.classes]
    drawn = [sample_tokens(lengths, max(1, round(share * MIXED_DRAWS)), rng) for share, lengths in kinds]
    return [float(tokens) for tokens in np.quantile(np.concatenate(drawn), CONTEXT_SHARES)]


def _mean_output(workload: Workload) -> float:
    law = workload.arrivals
    if isinstance(law, Recorded) and law.output_tokens:
        return float(np.mean(law.output_tokens))
    if workload.classes:
        return sum(one.share * (one.output_tokens or workload.output_tokens).mean() for one in workload.classes)
    return workload.output_tokens.mean()


def _operating(workload: Workload, report: LatencyReport) -> int:
    if isinstance(workload.arrivals, Closed):
        return workload.arrivals.concurrency
    return max(1, round(report.concurrency))


def _knee(scenario: Scenario) -> int:
    """In requests in flight; a knee found as a rate is simulated once more."""
    steady = replace(scenario, workload=replace(scenario.workload, num_requests=None))
    found = sweep(steady, requests=SWEEP_REQUESTS)
    stable = [load for load, report in zip(found.loads, found.reports, strict=True) if not report.saturated]
    load = found.knee_load or max(stable, default=found.operating_load)
    if found.axis == "concurrency":
        return max(1, round(load))
    at_knee = replace(steady, workload=with_load(steady.workload, load))
    return max(1, round(predict(at_knee, requests=SWEEP_REQUESTS).concurrency))
