"""Validity rules about the figures themselves: throughputs, lengths and what is missing; their table."""

from __future__ import annotations

from collections.abc import Iterator

from calc.checks.plausible import miscounted, unit_implausible
from calc.checks.prefill import prefill_above_roofline
from calc.checks.run_facts import (
    ERROR,
    INFO,
    WARNING,
    Rule,
    RunFacts,
    ValidityFinding,
    achieved_per_s,
    has_tail,
    is_drained,
    latencies,
)
from calc.checks.streaming import buffered, chunk_gap, no_streaming
from calc.messages import msg

THROUGHPUT_TOLERANCE = 0.05
"""Relative; rounding and a tail outside the window explain less."""


LENGTHS_ELSEWHERE = frozenset({"no_token_metrics", "needs_companion", "lengths_nominal"})
"""Flags that already say what is to be known of lengths."""


def _throughput_inconsistent(facts: RunFacts) -> ValidityFinding | None:
    for written, computed in _throughput_pairs(facts):
        if abs(written - computed) > THROUGHPUT_TOLERANCE * computed:
            text = msg(
                "a throughput of {written:.5g} per second is given, tokens, time and rate make {computed:.5g}: "
                "check which one is right.",
                written=written,
                computed=computed,
            )
            return ValidityFinding(code="throughput_inconsistent", severity=WARNING, text=text, fields=("throughput",))
    odd = miscounted(facts)
    if odd is None:
        return None
    return ValidityFinding(code="throughput_inconsistent", severity=WARNING, text=odd, fields=("tpot", "e2e"))


def _throughput_pairs(facts: RunFacts) -> Iterator[tuple[float, float]]:
    """(as written, as it follows from the others), per second."""
    rate, prompt, output = achieved_per_s(facts), facts.input_tokens_mean, facts.output_tokens_mean
    if facts.request_throughput_per_s is not None and facts.completed and facts.duration_s and not is_drained(facts):
        yield facts.request_throughput_per_s, facts.completed / facts.duration_s
    if rate is None or output is None or "lengths_nominal" in facts.flags:
        return
    if facts.output_token_throughput_per_s is not None and output > 0:
        yield facts.output_token_throughput_per_s, rate * output
    if facts.total_token_throughput_per_s is not None and prompt is not None and prompt + output > 0:
        yield facts.total_token_throughput_per_s, rate * (prompt + output)


def _throughput_ambiguous(facts: RunFacts) -> ValidityFinding | None:
    if facts.ambiguous_throughput_per_s is None:
        return None
    text = msg(
        "a throughput of {value:.5g} per second does not say whether it counts output tokens, all tokens or requests: "
        "choose the column's meaning.",
        value=facts.ambiguous_throughput_per_s,
    )
    return ValidityFinding(code="throughput_ambiguous", severity=ERROR, text=text, fields=("throughput",))


def _lengths_missing(facts: RunFacts) -> ValidityFinding | None:
    if facts.table or (facts.input_tokens_mean is not None and facts.output_tokens_mean is not None):
        return None
    if facts.completed == 0 or LENGTHS_ELSEWHERE.intersection(facts.flags):
        return None
    text = msg("prompt or output length is not known: latency and throughput cannot be compared without it.")
    return ValidityFinding(
        code="lengths_missing", severity=WARNING, text=text, fields=("input_tokens_mean", "output_tokens_mean")
    )


def _model_missing(facts: RunFacts) -> ValidityFinding | None:
    if (facts.model or "").strip() or "needs_companion" in facts.flags:
        return None
    text = msg("the file does not name the model: choose it.")
    return ValidityFinding(code="model_missing", severity=INFO, text=text, fields=("model",))


def _p99_missing(facts: RunFacts) -> ValidityFinding | None:
    if facts.table or not has_tail(facts) or any(stats.p99_s is not None for stats in latencies(facts)):
        return None
    text = msg("this file has no P99: ask the tool for it.")
    return ValidityFinding(code="p99_missing", severity=INFO, text=text, fields=("ttft", "itl", "e2e"))


NUMBER_RULES: tuple[Rule, ...] = (
    no_streaming,
    unit_implausible,
    chunk_gap,
    buffered,
    _throughput_inconsistent,
    _throughput_ambiguous,
    _lengths_missing,
    _model_missing,
    _p99_missing,
    prefill_above_roofline,
)
