"""The tail of ITL: how many tokens share their step with a prefill, and how long such steps last."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calc.anatomy.run import Run
from calc.deployment import Deployment
from calc.engine import resolve
from calc.errors import PlimsollError
from calc.latency import LatencyReport, predict
from calc.messages import Message
from calc.scenario import Scenario
from calc.simulator.layout import gap_edges
from calc.workload import FloatArray

BUDGET_STEPS = (0.25, 0.5, 1.0, 2.0)
"""Token budgets tried, of the scenario's own."""


@dataclass(frozen=True, kw_only=True)
class GapTail:
    """Gaps between tokens of one stream, in seconds; means ``None`` where there is no such gap."""

    mixed_share: float
    """Share of tokens made in steps that also prefill."""
    slow_mean_s: float | None
    """Mean of the longest gaps, as many as come from mixed steps."""
    plain_mean_s: float | None
    """Mean of the others."""
    p50_s: float | None
    p99_s: float | None


def gap_tail(run: Run) -> GapTail:
    """A mixed step lasts longer than a plain one of the same batch: the longest gaps are taken for the mixed ones."""
    counts = run.result.gap_counts.astype(np.float64)
    total = float(counts.sum())
    if total == 0:
        return GapTail(mixed_share=0.0, slow_mean_s=None, plain_mean_s=None, p50_s=None, p99_s=None)
    share = run.result.mixed_tokens / max(1, run.result.decode_tokens)
    middles = gap_edges(np.arange(counts.size, dtype=np.float64) + 0.5)
    plain = np.clip((1 - share) * total - (np.cumsum(counts) - counts), 0.0, counts)
    p50, p99 = run.result.gap_quantiles((0.5, 0.99))
    return GapTail(
        mixed_share=share,
        slow_mean_s=_mean(middles, counts - plain),
        plain_mean_s=_mean(middles, plain),
        p50_s=p50,
        p99_s=p99,
    )


def _mean(values: FloatArray, weights: FloatArray) -> float | None:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0.5 else None  # noqa: PLR2004 - less than one gap


@dataclass(frozen=True, kw_only=True)
class BudgetTrial:
    """The scenario at another token budget per step."""

    budget_tokens: int
    current: bool
    latency: LatencyReport | None
    refused: Message | None = None
    """Why there is no latency."""


def try_budgets(scenario: Scenario, *, requests: int = 1000, seed: int = 1) -> tuple[BudgetTrial, ...]:
    """A smaller budget cuts prefill into smaller chunks: shorter mixed steps, more of them, a later first token.

    The budget also sets how much memory activations take, so each trial has its own KV pool.
    """
    own = resolve(scenario.deployment).max_num_batched_tokens
    budgets = sorted({max(1, round(own * step)) for step in BUDGET_STEPS})
    return tuple(_try(scenario, budget, own, requests, seed) for budget in budgets)


def _try(scenario: Scenario, budget: int, own: int, requests: int, seed: int) -> BudgetTrial:
    deployment: Deployment = replace(scenario.deployment, max_num_batched_tokens=budget)
    try:
        latency = predict(replace(scenario, deployment=deployment), requests=requests, seed=seed)
    except PlimsollError as error:
        return BudgetTrial(budget_tokens=budget, current=budget == own, latency=None, refused=error.message)
    return BudgetTrial(budget_tokens=budget, current=budget == own, latency=latency)
