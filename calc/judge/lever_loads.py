"""The same scenario under another load: more of its prompts found in the cache, or shorter ones."""

from __future__ import annotations

from dataclasses import replace

from calc.scenario import Scenario
from calc.workload import Empirical, Fixed, LengthDistribution, LogNormal, Recorded, Uniform


def with_hits(scenario: Scenario, hit_share: float) -> Scenario:
    """Prefix caching on, with ``hit_share`` of prompt tokens found: of every class that finds less now."""
    load = scenario.workload
    classes = (
        one if one.prefix_hit_share is None else replace(one, prefix_hit_share=max(one.prefix_hit_share, hit_share))
        for one in load.classes
    )
    workload = replace(
        load,
        prefix_hit_share=hit_share,
        offload_hit_share=min(load.offload_hit_share, 1 - hit_share),
        classes=tuple(classes),
    )
    return replace(scenario, deployment=replace(scenario.deployment, prefix_caching=True), workload=workload)


def with_prompts(scenario: Scenario, factor: float) -> Scenario:
    """Prompts of ``factor`` times the length, those of every class and of a log too; hits in proportion."""
    load = scenario.workload
    classes = (
        one if one.prompt_tokens is None else replace(one, prompt_tokens=scaled(one.prompt_tokens, factor))
        for one in load.classes
    )
    arrivals = load.arrivals
    if isinstance(arrivals, Recorded):
        shorter = tuple(max(1, round(tokens * factor)) for tokens in arrivals.prompt_tokens)
        arrivals = replace(arrivals, prompt_tokens=shorter)
    prompts = scaled(load.prompt_tokens, factor)
    changed = replace(load, prompt_tokens=prompts, classes=tuple(classes), arrivals=arrivals)
    return replace(scenario, workload=changed)


def scaled(lengths: LengthDistribution, factor: float) -> LengthDistribution:
    """Every length times ``factor``, at least one token."""
    match lengths:
        case Fixed(value_tokens=value):
            return Fixed(value_tokens=max(1.0, value * factor))
        case Uniform(low_tokens=low, high_tokens=high):
            return Uniform(low_tokens=max(1.0, low * factor), high_tokens=max(1.0, high * factor))
        case LogNormal(p50_tokens=p50, p95_tokens=p95):
            return LogNormal(p50_tokens=max(1.0, p50 * factor), p95_tokens=max(1.0, p95 * factor))
        case Empirical(quantiles=pairs):
            return Empirical(quantiles=tuple((share, max(1.0, tokens * factor)) for share, tokens in pairs))
