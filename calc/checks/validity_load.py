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
    is_drained,
    latencies,
    slowest_s,
)
from calc.messages import msg

FAILED_WARNING_SHARE = 0.01
FAILED_ERROR_SHARE = 0.10
"""Shares of requests sent, from which a run is marked and from which it cannot be used."""
FEWEST_FOR = (("P90", 100), ("P95", 200), ("P99", 1000))
"""Answers from which about ten requests lie beyond the percentile."""
INCOMPLETE_SHARE = 0.02
"""Fewer cut off at the end change no figure that is read."""
COLD_START_REQUESTS = 100
"""In longer runs the first requests no longer move the mean so far."""
NOT_SENT_BY_A_CLIENT = frozenset({"not_serving", "server_side", "needs_companion"})
"""Flags of files in which no client's requests could fail, or whose companion says it."""
MIN_FOR_MEAN = 30
"""Below this many answers even a mean is not settled (bench iterations)."""
BURST_REQUESTS_PER_USER = 5
"""All users start at once; with fewer requests each, that start is most of the run."""
SMALLEST_BURST = 4
"""Fewer requests at once than this is no burst."""
ALL_AT_ONCE_REQUESTS = 16
"""So many prompts of usual length no longer fit into one engine step, the rest queue."""
REACHED_SHARE = 0.9
"""Of the requested rate."""
DRAIN_TOLERANCE = 1.25
"""Send time plus the slowest request explains the run's duration up to this factor."""
COLD_START_RATIO = 3.0
"""Mean over median; a load alone does not part them so far in a short run."""
WARM_HIT_SHARE = 0.01
"""Of prompt tokens; less is the template every prompt begins with."""
SCHEDULE_DELAY_S = 0.1
"""A client this late was busy with itself."""
GROWTH_RATIO = 2.0
"""Latency of the last third over the first from which a run is not steady."""
MADE_OF_CHANCE = ("random",)
"""Data sets whose prompts share nothing unless a server has seen them before."""
SHARED_BY_DESIGN = ("prefix", "shared")
"""Words in the name of a data set whose prompts begin alike."""


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
    counted = facts.num_prompts is not None and facts.completed is not None
    known = facts.failed is not None or facts.success_share is not None or counted
    if facts.table or known or NOT_SENT_BY_A_CLIENT.intersection(facts.flags):
        return None
    text = msg("the file does not say how many requests failed: look into the tool's log.")
    return ValidityFinding(code="failures_unknown", severity=INFO, text=text, fields=("failed",))


def _few_requests(facts: RunFacts) -> ValidityFinding | None:
    """The highest percentile that too few answers carry; without one, too few for a mean."""
    count = answered(facts)
    if not count:
        return None
    thin = [(name, needed) for name, needed in FEWEST_FOR if count < needed and _has(facts, name)]
    if not thin and count >= MIN_FOR_MEAN:
        return None
    name, needed = thin[-1] if thin else (msg("mean"), MIN_FOR_MEAN)
    text = msg(
        "{answered:count} requests: a {name} needs {needed:count}. Run longer.",
        answered=count,
        name=name,
        needed=needed,
    )
    return ValidityFinding(code="few_requests", severity=WARNING, text=text, fields=("completed",))


def _has(facts: RunFacts, percentile: str) -> bool:
    return any(getattr(stats, f"{percentile.lower()}_s") is not None for stats in latencies(facts))


def _incomplete(facts: RunFacts) -> ValidityFinding | None:
    cut, done = facts.incomplete, facts.completed
    if not cut or done is None or cut <= INCOMPLETE_SHARE * (done + cut):
        return None
    text = msg(
        "{cut:count} of {all:count} requests were cut off by the end of the run: the slow ones are missing in latency "
        "and their tokens in throughput. Run longer.",
        cut=cut,
        all=done + cut,
    )
    return ValidityFinding(code="incomplete_requests", severity=WARNING, text=text, fields=("incomplete",))


def _start_burst(facts: RunFacts) -> ValidityFinding | None:
    sent, users = facts.num_prompts or facts.completed, facts.max_concurrency
    if not sent or users is None or users < SMALLEST_BURST or sent >= BURST_REQUESTS_PER_USER * users:
        return None
    if facts.request_rate_per_s is not None and facts.peak_concurrency is not None and facts.peak_concurrency < users:
        return None  # a rate let them in one after the other, and never all were there
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
    cap = facts.max_concurrency
    if facts.request_rate_per_s is None or cap is None or facts.client_queue_timed:
        return None
    if facts.peak_concurrency is not None and facts.peak_concurrency < cap:
        return None  # the cap held nobody back
    text = msg(
        "{rate:rate} were to be sent, but at most {users:count} at a time: waiting in the client is not timed, "
        "so latency is a lower bound. Remove the cap.",
        rate=facts.request_rate_per_s,
        users=cap,
    )
    return ValidityFinding(
        code="coordinated_omission", severity=WARNING, text=text, fields=("request_rate", "max_concurrency")
    )


def _rate(facts: RunFacts) -> ValidityFinding | None:
    rate, achieved = facts.request_rate_per_s, _completed_per_s(facts)
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


def _completed_per_s(facts: RunFacts) -> float | None:
    """As written; over the time of sending where the written one holds the wait for the last answers too."""
    if is_drained(facts) and facts.completed and facts.duration_s:
        return facts.completed / facts.duration_s
    return achieved_per_s(facts)


def _explained_by_latency(facts: RunFacts, rate: float) -> bool:
    """The run lasted about as long as sending took plus the slowest request: the client kept its schedule."""
    sent, slowest = facts.num_prompts or facts.completed, slowest_s(facts.e2e)
    if not sent or slowest is None or not facts.duration_s:
        return False
    return facts.duration_s <= DRAIN_TOLERANCE * (sent / rate + slowest)


def _cold_start(facts: RunFacts) -> ValidityFinding | None:
    """Whole requests when E2E is known, else their beginning."""
    stats = facts.e2e if facts.e2e.mean_s and facts.e2e.p50_s else facts.ttft
    count = answered(facts)
    if not stats.mean_s or not stats.p50_s or not count or count > COLD_START_REQUESTS:
        return None
    if stats.mean_s < COLD_START_RATIO * stats.p50_s:
        return None
    text = msg(
        "the mean ({mean:ms}) is far above the median ({median:ms}): the first requests met a cold server. Warm it up.",
        mean=stats.mean_s,
        median=stats.p50_s,
    )
    return ValidityFinding(code="cold_start", severity=WARNING, text=text, fields=("ttft", "e2e"))


def _late_client(facts: RunFacts) -> ValidityFinding | None:
    """The load generator ran behind its own schedule: what it timed is partly its own waiting."""
    delay = facts.schedule_delay_s
    if delay is None or delay <= SCHEDULE_DELAY_S:
        return None
    text = msg(
        "requests were sent up to {delay:ms} behind schedule: the load generator is the bottleneck. Give it more "
        "processes or a lower rate.",
        delay=delay,
    )
    return ValidityFinding(code="rate_not_reached", severity=WARNING, text=text, fields=("request_rate",))


def _growing(facts: RunFacts) -> ValidityFinding | None:
    """Conversations grow by themselves; any other load whose latency grows outruns the server."""
    ratio = facts.latency_growth_ratio
    if ratio is None or ratio < GROWTH_RATIO or "prompts_shared" in facts.flags:
        return None
    text = msg(
        "latency grew {ratio:.2g}-fold from the first third of the run to the last: requests pile up, and a longer run "
        "would show more. Lower the load.",
        ratio=ratio,
    )
    return ValidityFinding(code="saturated", severity=WARNING, text=text, fields=("e2e", "ttft"))


def _warm_cache(facts: RunFacts) -> ValidityFinding | None:
    hits = facts.prefix_hit_share
    if hits is None or hits < WARM_HIT_SHARE or not _without_reuse(facts):
        return None
    text = msg(
        "{hits:pct} of prompt tokens came from the cache in a run without reuse: reset the cache or change the seed.",
        hits=hits,
    )
    return ValidityFinding(code="warm_cache", severity=WARNING, text=text, fields=("prefix_hit_share",))


def _without_reuse(facts: RunFacts) -> bool:
    """Declared so, or the prompts are random and somebody would have to have sent them before."""
    if facts.reuse_declared is not None:
        return not facts.reuse_declared
    name = (facts.dataset or "").lower()
    return any(word in name for word in MADE_OF_CHANCE) and not any(word in name for word in SHARED_BY_DESIGN)


LOAD_RULES: tuple[Rule, ...] = (
    _failures,
    _failures_unknown,
    _few_requests,
    _incomplete,
    _start_burst,
    _all_at_once,
    _coordinated_omission,
    _rate,
    _late_client,
    _growing,
    _cold_start,
    _warm_cache,
)
