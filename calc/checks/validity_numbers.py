"""Validity rules about the figures themselves: units, streams, throughputs, lengths and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from calc.checks.run_facts import (
    ERROR,
    INFO,
    WARNING,
    Rule,
    RunFacts,
    ValidityFinding,
    achieved_per_s,
    has_tail,
    latencies,
)
from calc.messages import Message, msg

IDENTITY_TOLERANCE = 0.2
LITTLE_RANGE = (0.2, 1.3)
"""Requests in flight (throughput x E2E) as a share of the concurrency cap."""
MAX_STREAM_TOKENS_PER_S = 1000.0
STREAMED_TOKENS = 4
"""From more output tokens than this TTFT must lie well below E2E."""
NO_STREAM_SHARE = 0.95
CHUNK_GAP_RATIO = 1.3
BUFFERED_RATIO = 0.2
THROUGHPUT_TOLERANCE = 0.05


def _no_streaming(facts: RunFacts) -> ValidityFinding | None:
    ttft, e2e, tokens = facts.ttft.mean_s, facts.e2e.mean_s, facts.output_tokens_mean
    if not ttft or not e2e or ttft < NO_STREAM_SHARE * e2e or (tokens is not None and tokens <= STREAMED_TOKENS):
        return None
    text = msg(
        "TTFT ({ttft:ms}) equals E2E ({e2e:ms}): the answer came in one piece, so this run has no TTFT or ITL. "
        "Measure with streaming.",
        ttft=ttft,
        e2e=e2e,
    )
    return ValidityFinding(code="no_streaming", severity=ERROR, text=text, fields=("ttft", "itl"))


def _unit_implausible(facts: RunFacts) -> ValidityFinding | None:
    text = next((t for t in (_identity(facts), _in_flight(facts), _stream_rate(facts)) if t is not None), None)
    if text is None or _no_streaming(facts) is not None:
        return None
    return ValidityFinding(code="unit_implausible", severity=ERROR, text=text, fields=("ttft", "tpot", "e2e"))


def _identity(facts: RunFacts) -> Message | None:
    """E2E = TTFT + TPOT·(n−1). A mean over uneven requests may miss where the median fits; a wrong unit misses both."""
    ttft, e2e, tokens = facts.ttft.mean_s, facts.e2e.mean_s, facts.output_tokens_mean
    gaps = [v for v in (facts.tpot.mean_s, facts.tpot.p50_s) if v is not None]
    if ttft is None or not e2e or tokens is None or not gaps:
        return None
    sums = [ttft + gap * (tokens - 1) for gap in gaps]
    if any(abs(total - e2e) <= IDENTITY_TOLERANCE * e2e for total in sums):
        return None
    return msg(
        "E2E is {e2e:ms}, but TTFT + TPOT·(tokens − 1) gives {total:ms}: the unit of one column is wrong.",
        e2e=e2e,
        total=sums[0],
    )


def _in_flight(facts: RunFacts) -> Message | None:
    """Little's law: requests in flight = throughput x E2E."""
    rate, e2e, cap = facts.request_throughput_per_s, facts.e2e.mean_s, facts.max_concurrency
    if rate is None or e2e is None or not cap:
        return None
    in_flight, users = rate * e2e, min(cap, facts.num_prompts or cap)
    low, high = LITTLE_RANGE
    if in_flight <= high * users and (in_flight >= low * users or facts.request_rate_per_s is not None):
        return None
    return msg(
        "throughput times E2E gives {in_flight:.3g} requests in flight at concurrency {users:count}: "
        "the unit of one column is wrong.",
        in_flight=in_flight,
        users=users,
    )


def _stream_rate(facts: RunFacts) -> Message | None:
    gap = facts.tpot.mean_s or facts.tpot.p50_s
    if not gap or 1 / gap <= MAX_STREAM_TOKENS_PER_S:
        return None
    return msg("TPOT {gap:ms} would be {rate:toks} for one request: the label's unit is wrong.", gap=gap, rate=1 / gap)


def _chunk_gap(facts: RunFacts) -> ValidityFinding | None:
    itl, tpot = facts.itl.mean_s, facts.tpot.mean_s
    if not itl or not tpot or itl <= CHUNK_GAP_RATIO * tpot:
        return None
    text = msg(
        "ITL ({itl:ms}) is the gap between chunks of about {tokens:.2g} tokens: use TPOT ({tpot:ms}) for capacity.",
        itl=itl,
        tokens=itl / tpot,
        tpot=tpot,
    )
    return ValidityFinding(code="itl_is_chunk_gap", severity=WARNING, text=text, fields=("itl", "tpot"))


def _buffered(facts: RunFacts) -> ValidityFinding | None:
    itl, tpot = facts.itl.p50_s, facts.tpot.p50_s
    if itl is None or not tpot or itl >= BUFFERED_RATIO * tpot:
        return None
    text = msg(
        "ITL P50 ({itl:ms}) is far below TPOT P50 ({tpot:ms}): a proxy or the client collects chunks. Use TPOT.",
        itl=itl,
        tpot=tpot,
    )
    return ValidityFinding(code="buffered_stream", severity=WARNING, text=text, fields=("itl", "tpot"))


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
    return None


def _throughput_pairs(facts: RunFacts) -> Iterator[tuple[float, float]]:
    """(as written, as it follows from the others), per second."""
    rate, prompt, output = achieved_per_s(facts), facts.input_tokens_mean, facts.output_tokens_mean
    if facts.request_throughput_per_s is not None and facts.completed and facts.duration_s:
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
    if facts.completed == 0:
        return None
    text = msg("prompt or output length is not known: latency and throughput cannot be compared without it.")
    return ValidityFinding(
        code="lengths_missing", severity=WARNING, text=text, fields=("input_tokens_mean", "output_tokens_mean")
    )


def _model_missing(facts: RunFacts) -> ValidityFinding | None:
    if facts.model:
        return None
    text = msg("the file does not name the model: choose it.")
    return ValidityFinding(code="model_missing", severity=INFO, text=text, fields=("model",))


def _p99_missing(facts: RunFacts) -> ValidityFinding | None:
    if facts.table or not has_tail(facts) or any(stats.p99_s is not None for stats in latencies(facts)):
        return None
    text = msg("this file has no P99: ask the tool for it.")
    return ValidityFinding(code="p99_missing", severity=INFO, text=text, fields=("ttft", "itl", "e2e"))


def _prefill_above_roofline(facts: RunFacts) -> ValidityFinding | None:
    tokens, ttft, limit = facts.input_tokens_mean, facts.ttft.p50_s, facts.prefill_limit_tokens_per_s
    if tokens is None or not ttft or limit is None or tokens / ttft <= limit:
        return None
    text = msg(
        "{rate:toks} of prefill are more than these GPUs can do ({limit:toks}): a warm cache or a wrong unit.",
        rate=tokens / ttft,
        limit=limit,
    )
    return ValidityFinding(
        code="prefill_above_roofline", severity=ERROR, text=text, fields=("ttft", "input_tokens_mean")
    )


NUMBER_RULES: tuple[Rule, ...] = (
    _no_streaming,
    _unit_implausible,
    _chunk_gap,
    _buffered,
    _throughput_inconsistent,
    _throughput_ambiguous,
    _lengths_missing,
    _model_missing,
    _p99_missing,
    _prefill_above_roofline,
)
