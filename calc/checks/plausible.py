"""Can these latencies belong together? If not, which factor of 1,000 would make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from calc.checks.run_facts import ERROR, RunFacts, ValidityFinding, scaled
from calc.checks.streaming import ABOVE_E2E, no_streaming
from calc.messages import Message, msg

IDENTITY_TOLERANCE = 0.2
"""E2E and TTFT + TPOT·(n − 1) may differ by this share: means over uneven requests do."""
LITTLE_RANGE = (0.2, 1.3)
"""Requests in flight (throughput x E2E) as a share of the concurrency cap."""
MAX_STREAM_TOKENS_PER_S = 1000.0
"""No engine streams one answer faster."""
USUAL_TPOT_S = 1.0
"""Hardly an engine takes longer for a token; where two units would fit, this tells which."""
UNIT_FACTORS = (1e3, 1e-3, 1e6, 1e-6)
"""Seconds taken for milliseconds and the other way, then milliseconds and nanoseconds."""
NO_REPAIR = msg("No factor of 1,000 makes it fit: check which column is which.")
_LATENCIES = ("ttft", "tpot", "itl", "e2e")
REPAIRS: Mapping[tuple[str, ...], Message] = MappingProxyType(
    {
        _LATENCIES: msg("Every latency"),
        ("e2e",): Message("E2E"),
        ("ttft",): Message("TTFT"),
        ("tpot", "itl"): Message("TPOT"),
        ("ttft", "tpot", "itl"): msg("TTFT and TPOT"),
        ("ttft", "e2e"): msg("TTFT and E2E"),
    }
)
"""Columns that may share one wrong unit, the likeliest first, and what they are called."""


def unit_implausible(facts: RunFacts) -> ValidityFinding | None:
    """What contradicts, and the one change of unit that resolves it.

    An E2E that is off by anything but a thousand is no wrong unit: see :func:`miscounted`.
    """
    reason = _contradiction(facts)
    if reason is None or no_streaming(facts) is not None:
        return None
    repair = _repair(facts)
    if repair is None and reason == _identity(facts):
        return None
    text = msg("{reason} {repair}", reason=reason, repair=repair or NO_REPAIR)
    return ValidityFinding(code="unit_implausible", severity=ERROR, text=text, fields=("ttft", "tpot", "e2e"))


def miscounted(facts: RunFacts) -> Message | None:
    """E2E and its parts differ, and no unit explains it: tokens were counted otherwise than they were timed.

    Nominal lengths are no count: answers end early.
    """
    reason = None if "lengths_nominal" in facts.flags else _identity(facts)
    if reason is None or no_streaming(facts) is not None or _repair(facts) is not None:
        return None
    return msg("{reason} Tokens were counted otherwise than they were timed: trust E2E, not TPOT.", reason=reason)


def _repair(facts: RunFacts) -> Message | None:
    """Of the changes that leave no contradiction, the first that leaves usual times per token too."""
    fitting = [
        (what, factor, changed)
        for factor in UNIT_FACTORS
        for names, what in REPAIRS.items()
        if _contradiction(changed := _rescaled(facts, names, factor)) is None
    ]
    if not fitting:
        return None
    what, factor, _ = next((one for one in fitting if (one[2].tpot.mean_s or 0.0) <= USUAL_TPOT_S), fitting[0])
    return msg(
        "{what} {sign} {factor:count} would fit: choose that unit, or correct the file.",
        what=what,
        sign="x" if factor > 1 else "/",
        factor=max(factor, 1 / factor),
    )


def _rescaled(facts: RunFacts, names: tuple[str, ...], factor: float) -> RunFacts:
    ttft, tpot, itl, e2e = (
        scaled(getattr(facts, name), factor) if name in names else getattr(facts, name) for name in _LATENCIES
    )
    return replace(facts, ttft=ttft, tpot=tpot, itl=itl, e2e=e2e)


def _contradiction(facts: RunFacts) -> Message | None:
    found = (_order(facts), _identity(facts), _in_flight(facts), _stream_rate(facts))
    return next((text for text in found if text is not None), None)


def _order(facts: RunFacts) -> Message | None:
    """The first token comes before the last."""
    ttft, e2e = facts.ttft.mean_s, facts.e2e.mean_s
    if not ttft or not e2e or ttft <= ABOVE_E2E * e2e:
        return None
    return msg("TTFT ({ttft:ms}) is above E2E ({e2e:ms}).", ttft=ttft, e2e=e2e)


def _identity(facts: RunFacts) -> Message | None:
    """E2E = TTFT + TPOT·(n−1). A mean over uneven requests may miss where the median fits; a wrong unit misses both."""
    ttft, e2e, tokens = facts.ttft.mean_s, facts.e2e.mean_s, facts.output_tokens_mean
    gaps = [v for v in (facts.tpot.mean_s, facts.tpot.p50_s) if v is not None]
    if ttft is None or not e2e or tokens is None or not gaps:
        return None
    sums = [ttft + gap * (tokens - 1) for gap in gaps]
    if any(abs(total - e2e) <= IDENTITY_TOLERANCE * e2e for total in sums):
        return None
    return msg("E2E is {e2e:ms}, but TTFT + TPOT·(tokens − 1) gives {total:ms}.", e2e=e2e, total=sums[0])


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
        "throughput times E2E gives {in_flight:.3g} requests in flight at concurrency {users:count}.",
        in_flight=in_flight,
        users=users,
    )


def _stream_rate(facts: RunFacts) -> Message | None:
    gap = facts.tpot.mean_s or facts.tpot.p50_s
    if not gap or 1 / gap <= MAX_STREAM_TOKENS_PER_S:
        return None
    return msg("TPOT {gap:ms} would be {rate:toks} for one request.", gap=gap, rate=1 / gap)
