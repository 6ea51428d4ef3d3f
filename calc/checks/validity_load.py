"""Validity rules about how the load was made: failures, counts, rates and starts."""

from __future__ import annotations

from calc.checks.run_facts import (
    ERROR,
    INFO,
    WARNING,
    Rule,
    RunFacts,
    ValidityFinding,
    achieved_per_s,
    answered,
    has_tail,
)
from calc.evidence import Percentiles
from calc.messages import msg

FAILED_WARNING_SHARE = 0.01
FAILED_ERROR_SHARE = 0.10
MIN_FOR_TAIL = 100
"""Below this many answers the P99 is the slowest request and the P90 rests on fewer than ten."""
MIN_FOR_MEAN = 30
"""Below this many answers even a mean is not settled (bench iterations)."""
BURST_REQUESTS_PER_USER = 5
"""All users start at once; with fewer requests each, that start is most of the run."""
SMALLEST_BURST = 4
"""Fewer requests at once than this is no burst."""
ALL_AT_ONCE_REQUESTS = 16
"""So many prompts of usual length no longer fit into one engine step, the rest queue."""
REACHED_SHARE = 0.9
DRAIN_TOLERANCE = 1.25
"""Send time plus the slowest request explains the run's duration up to this factor."""
COLD_START_RATIO = 3.0
"""Mean over median; a load alone does not part them so far in a short run."""
WARM_HIT_SHARE = 0.01


def _failures(facts: RunFacts) -> ValidityFinding | None:
    if facts.completed == 0:
        text = msg("no request completed: latencies are missing, not 0. Fix the run and measure again.")
        return ValidityFinding(code="all_failed", severity=ERROR, text=text, fields=("completed",))
    share, limit = _failed_share(facts)
    if share is None or share <= limit:
        return None
    text = msg(
        "{share:pct} of requests failed: throughput and percentiles speak for the others only. Find out why.",
        share=share,
    )
    severity = ERROR if share > FAILED_ERROR_SHARE else WARNING
    return ValidityFinding(code="failed_requests", severity=severity, text=text, fields=("failed",))


def _failed_share(facts: RunFacts) -> tuple[float | None, float]:
    """Failed share and the limit it may reach. A success rate without counts is rounded, so any loss counts."""
    sent = facts.num_prompts or ((facts.completed or 0) + (facts.failed or 0))
    if facts.failed is not None and sent:
        return facts.failed / sent, FAILED_WARNING_SHARE
    if facts.success_share is not None:
        return 1 - facts.success_share, 0.0
    return None, FAILED_WARNING_SHARE


def _failures_unknown(facts: RunFacts) -> ValidityFinding | None:
    if facts.table or facts.failed is not None or facts.num_prompts is not None or facts.success_share is not None:
        return None
    text = msg("the file does not say how many requests failed: look into the tool's log.")
    return ValidityFinding(code="failures_unknown", severity=INFO, text=text, fields=("failed",))


def _few_requests(facts: RunFacts) -> ValidityFinding | None:
    count = answered(facts)
    needed = MIN_FOR_TAIL if has_tail(facts) else MIN_FOR_MEAN
    if not count or count >= needed:
        return None
    text = msg(
        "{answered:count} requests: a P90 needs 100, a P95 200, a P99 1,000 of them. Run longer for a tail to trust.",
        answered=count,
    )
    return ValidityFinding(code="few_requests", severity=WARNING, text=text, fields=("completed",))


def _start_burst(facts: RunFacts) -> ValidityFinding | None:
    sent, users = facts.num_prompts or facts.completed, facts.max_concurrency
    if not sent or users is None or users < SMALLEST_BURST or sent >= BURST_REQUESTS_PER_USER * users:
        return None
    text = msg(
        "{sent:count} requests at concurrency {users:count}: the percentiles show the burst at the start. "
        "Send at least {needed:count}.",
        sent=sent,
        users=users,
        needed=BURST_REQUESTS_PER_USER * users,
    )
    return ValidityFinding(code="start_burst", severity=WARNING, text=text, fields=("num_prompts", "max_concurrency"))


def _all_at_once(facts: RunFacts) -> ValidityFinding | None:
    sent = facts.num_prompts or facts.completed
    if not facts.request_rate_is_infinite or not sent:
        return None
    burst = min(sent, facts.max_concurrency or sent)
    if burst < ALL_AT_ONCE_REQUESTS:
        return None
    text = msg(
        "no request rate was set: {burst:count} requests were sent in the same instant, so TTFT holds their queue. "
        "Use a rate to measure a service level.",
        burst=burst,
    )
    return ValidityFinding(code="all_at_once", severity=INFO, text=text, fields=("request_rate", "max_concurrency"))


def _coordinated_omission(facts: RunFacts) -> ValidityFinding | None:
    if facts.request_rate_per_s is None or facts.max_concurrency is None or facts.client_queue_timed:
        return None
    text = msg(
        "{rate:rate} were to be sent, but at most {users:count} at a time: waiting in the client is not timed, "
        "so latency is a lower bound. Remove the cap.",
        rate=facts.request_rate_per_s,
        users=facts.max_concurrency,
    )
    return ValidityFinding(
        code="coordinated_omission", severity=WARNING, text=text, fields=("request_rate", "max_concurrency")
    )


def _rate(facts: RunFacts) -> ValidityFinding | None:
    rate, achieved = facts.request_rate_per_s, achieved_per_s(facts)
    if not rate or achieved is None or achieved >= REACHED_SHARE * rate:
        return None
    if _explained_by_latency(facts, rate):
        text = msg(
            "{achieved:rate} of {rate:rate} were completed: requests pile up, the server is saturated at this rate.",
            achieved=achieved,
            rate=rate,
        )
        return ValidityFinding(code="saturated", severity=WARNING, text=text, fields=("request_throughput",))
    text = msg(
        "{achieved:rate} of {rate:rate} were reached and latency does not explain it: check the load generator.",
        achieved=achieved,
        rate=rate,
    )
    return ValidityFinding(code="rate_not_reached", severity=WARNING, text=text, fields=("request_throughput",))


def _explained_by_latency(facts: RunFacts, rate: float) -> bool:
    """The run lasted about as long as sending took plus the slowest request: the client kept its schedule."""
    sent, slowest = facts.num_prompts or facts.completed, _slowest(facts.e2e)
    if not sent or slowest is None or not facts.duration_s:
        return False
    return facts.duration_s <= DRAIN_TOLERANCE * (sent / rate + slowest)


def _slowest(stats: Percentiles) -> float | None:
    known = [v for v in (stats.p99_s, stats.p95_s, stats.p90_s, stats.p50_s, stats.mean_s) if v is not None]
    return max(known, default=None)


def _cold_start(facts: RunFacts) -> ValidityFinding | None:
    """Whole requests when E2E is known, else their beginning."""
    stats = facts.e2e if facts.e2e.mean_s and facts.e2e.p50_s else facts.ttft
    count = answered(facts)
    if not stats.mean_s or not stats.p50_s or not count or count > MIN_FOR_TAIL:
        return None
    if stats.mean_s < COLD_START_RATIO * stats.p50_s:
        return None
    text = msg(
        "the mean ({mean:ms}) is far above the median ({median:ms}): the first requests met a cold server. Warm it up.",
        mean=stats.mean_s,
        median=stats.p50_s,
    )
    return ValidityFinding(code="cold_start", severity=WARNING, text=text, fields=("ttft", "e2e"))


def _warm_cache(facts: RunFacts) -> ValidityFinding | None:
    hits = facts.prefix_hit_share
    if hits is None or hits < WARM_HIT_SHARE or facts.reuse_declared is not False:
        return None
    text = msg(
        "{hits:pct} of prompt tokens came from the cache in a run without reuse: reset the cache or change the seed.",
        hits=hits,
    )
    return ValidityFinding(code="warm_cache", severity=WARNING, text=text, fields=("prefix_hit_share",))


LOAD_RULES: tuple[Rule, ...] = (
    _failures,
    _failures_unknown,
    _few_requests,
    _start_burst,
    _all_at_once,
    _coordinated_omission,
    _rate,
    _cold_start,
    _warm_cache,
)
