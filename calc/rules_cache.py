"""When to optimise the cache first, and when a larger cache is no cure (each guard a check with a number)."""

from __future__ import annotations

from calc.conditions import Facts, Rule, Truth, both, either, if_true, opposite, unless_false
from calc.decision import Outcome
from calc.messages import msg

LATENCY_TARGETS = ("ttft_target_ratio", "itl_target_ratio", "e2e_target_ratio")


def _repeats(facts: Facts) -> Truth:
    stable = True if facts.measured("prefix_share") else facts.flag("prompts_stable")
    prefix, block = facts.number("prefix_tokens"), facts.number("block_tokens")
    longer_than_block = None if prefix is None or block is None else prefix >= block
    return both(facts.at_least("prefix_share", "reuse_low_share"), stable, unless_false(longer_than_block))


def _improvable(facts: Facts) -> Truth:
    hit, repeated = facts.number("hit_rate_share"), facts.number("prefix_share")
    gap = None if hit is None or repeated is None else repeated - hit >= facts.line("reuse_low_share")
    return both(gap, unless_false(facts.at_least("gpu_utilisation_share", "gpu_idle_share")))


def _hits_missing(facts: Facts) -> Truth:
    low = facts.below("hit_rate_share", "reuse_low_share")
    known = None if low is None else facts.measured("hit_rate_share")
    repeats = unless_false(facts.at_least("prefix_share", "reuse_low_share"))
    return both(low, known, repeats, unless_false(facts.flag("prompts_stable")))


def _ttft_tightest(facts: Facts) -> Truth:
    ttft = facts.number("ttft_target_ratio")
    if ttft is None:
        return None
    others = [facts.number(metric) or 0.0 for metric in LATENCY_TARGETS]
    return both(
        ttft >= max(others),
        facts.at_least("ttft_target_ratio", "target_tight_ratio"),
        unless_false(facts.flag("cache_complexity_accepted")),
    )


def _only_waiting(facts: Facts) -> Truth:
    waits = either(facts.at_least("waiting", "waiting_count"), facts.at_least("queue_share", "queue_share"))
    evicts = if_true(facts.at_least("preempted_share", "preempted_warn_share"))
    return both(facts.below("kv_usage_max_share", "kv_full_share"), waits, not evicts, unless_false(_can_carry(facts)))


def _can_carry(facts: Facts) -> Truth:
    return opposite(facts.at_least("rho", "full_ratio"))


CACHE_RULES = (
    Rule(
        code="cache.prefill-share",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Prefill takes a large share of GPU time"),
        metrics=("prefill_share",),
        lines=("prefill_share",),
        test=lambda facts: facts.at_least("prefill_share", "prefill_share"),
        says=msg("Prefill takes {prefill_share:pct} of busy time; from {limit:pct} on, reuse has much to save."),
        measure=msg("Measure the share of GPU busy time spent on prefill."),
    ),
    Rule(
        code="cache.stable-prefixes",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Many prompts begin with the same long, stable text"),
        metrics=("prefix_share", "prompts_stable", "prefix_tokens", "block_tokens"),
        lines=("reuse_low_share",),
        test=_repeats,
        says=msg(
            "{prefix_share:pct} of prompt tokens repeat an earlier beginning; under {limit:pct} reuse carries little."
        ),
        measure=msg(
            "Replay a request log for the share of prompt tokens that repeat, and state whether prompts are stable."
        ),
    ),
    Rule(
        code="cache.hit-improvable",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("The hit rate is well below what the prompts allow"),
        metrics=("hit_rate_share", "prefix_share", "gpu_utilisation_share"),
        lines=("reuse_low_share",),
        test=_improvable,
        says=msg(
            "The hit rate is {hit_rate_share:pct} where {prefix_share:pct} of prompt tokens repeat; "
            "a gap of {limit:pct} is worth closing."
        ),
        measure=msg("Read prefix cache hits and queries, and replay a log for the share of prompt tokens that repeat."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
    Rule(
        code="cache.hits-missing",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("The cache is there and is not hit"),
        metrics=("hit_rate_share", "prefix_share", "prompts_stable"),
        lines=("reuse_low_share",),
        test=_hits_missing,
        says=msg(
            "The measured hit rate is {hit_rate_share:pct}, below {limit:pct}; share of prompt tokens that repeat: "
            "{prefix_share:pct}."
        ),
        measure=msg("Read the engine's prefix cache hits and queries over one busy window."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
    Rule(
        code="cache.waste",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Memory is wasted by preallocation and fragments"),
        metrics=("kv_waste_share",),
        lines=("waste_share",),
        test=lambda facts: facts.at_least("kv_waste_share", "waste_share"),
        says=msg(
            "{kv_waste_share:pct} of allocated KV memory holds no token; from {limit:pct} on it is worth recovering."
        ),
        measure=msg("Compare the KV blocks allocated with the tokens they hold."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="cache.ttft-matters",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("TTFT is the tightest target, and cache management is acceptable"),
        metrics=("ttft_target_ratio", "cache_complexity_accepted"),
        lines=("target_tight_ratio",),
        test=_ttft_tightest,
        says=msg(
            "TTFT stands at {ttft_target_ratio:.2f} of its target; tight from {limit:.2f} on if no other is tighter."
        ),
        measure=msg("State a TTFT target with its percentile, and measure TTFT at that percentile."),
    ),
    Rule(
        code="cache.capacity-suffices",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Capacity suffices and requests wait all the same"),
        metrics=("kv_usage_max_share", "waiting", "queue_share", "preempted_share", "rho"),
        lines=("kv_full_share", "waiting_count", "queue_share", "preempted_warn_share", "full_ratio"),
        test=_only_waiting,
        says=msg(
            "Highest KV usage: {kv_usage_max_share:pct} (full: {limit:pct}); waiting per replica: {waiting:.1f} "
            "(limit {limit_2:.0f}); share of time in the queue: {queue_share:pct} (limit {limit_3:pct})."
        ),
        measure=msg("Read KV usage and waiting requests in the same window."),
    ),
)


def _expires(facts: Facts) -> Truth:
    life, interval = facts.number("prefix_lifetime_s"), facts.number("reuse_interval_s")
    return None if life is None or interval is None else life < interval


def _queue_grows(facts: Facts) -> Truth:
    busy = facts.at_least("rho", "load_ratio")
    elsewhere = facts.is_text("bound", "compute", "memory_bandwidth", "sequences", "communication", "overhead")
    return both(busy, elsewhere)


GUARD_RULES = (
    Rule(
        code="guard.no-shared-prefix",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("A larger cache has nothing to hit"),
        metrics=("prefix_share",),
        lines=("reuse_low_share",),
        test=lambda facts: facts.below("prefix_share", "reuse_low_share"),
        says=msg(
            "{prefix_share:pct} of prompt tokens repeat; under {limit:pct} a larger cache finds nothing to reuse."
        ),
        measure=msg("Replay a request log for the share of prompt tokens that repeat."),
    ),
    Rule(
        code="guard.expires-soon",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("Cached content expires before it is read again"),
        metrics=("prefix_lifetime_s", "reuse_interval_s"),
        source="article condition: content must outlive the time to its next use",
        test=_expires,
        says=msg("A prefix lives {prefix_lifetime_s:s} and is used again after {reuse_interval_s:s}."),
        measure=msg("State how long a prefix stays valid and how often it is used."),
    ),
    Rule(
        code="guard.one-off-content",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("Requests that never return fill the cache"),
        metrics=("one_off_share",),
        lines=("one_off_share",),
        test=lambda facts: facts.at_least("one_off_share", "one_off_share"),
        says=msg(
            "{one_off_share:pct} of cached tokens are never read again; from {limit:pct} on, keep them out instead."
        ),
        measure=msg("Replay a log for the share of cached tokens that are never read again."),
    ),
    Rule(
        code="guard.rebuild-cost",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("Evicting and rebuilding costs compute"),
        metrics=("rebuild_share",),
        lines=("preempted_share",),
        test=lambda facts: facts.at_least("rebuild_share", "preempted_share"),
        says=msg("{rebuild_share:pct} of prefill repeats work lost by eviction; from {limit:pct} on it counts."),
        measure=msg("Count prefill tokens that are computed again after an eviction or preemption."),
    ),
    Rule(
        code="guard.squeezes-runtime",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("A larger pool would squeeze the runtime zone"),
        metrics=("margin_bytes",),
        lines=("margin_warn_bytes",),
        test=lambda facts: facts.below("margin_bytes", "margin_warn_bytes"),
        says=msg(
            "{margin_bytes:gib} of a GPU stay outside the engine's budget; under {limit:gib} it may run out of memory."
        ),
        measure=msg("Read free GPU memory at peak load."),
    ),
    Rule(
        code="guard.longer-queues",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("More cache would admit more requests and lengthen the queue"),
        metrics=("rho", "bound"),
        lines=("load_ratio",),
        test=_queue_grows,
        says=msg("The load is {rho:.2f} of the maximum (limit {limit:.2f}) and {bound} binds, not memory capacity."),
        measure=msg("Measure the highest rate served, and what binds at it."),
    ),
)
