"""When to optimise the cache first: the six published conditions, and what keeps a cache from being hit."""

from __future__ import annotations

from calc.judge.conditions import Facts, Rule, Truth, both, either, if_true, opposite, unless_false
from calc.judge.decision import Outcome
from calc.messages import msg

LATENCY_TARGETS = ("ttft_target_ratio", "itl_target_ratio", "e2e_target_ratio")


def _repeats(facts: Facts) -> Truth:
    stable = True if facts.measured("prefix_share") else facts.flag("prompts_stable")
    prefix, block = facts.number("prefix_tokens"), facts.number("block_tokens")
    longer_than_block = None if prefix is None or block is None else prefix >= block
    return both(facts.at_least("prefix_share", "reuse_low_share"), stable, unless_false(longer_than_block))


def _improvable(facts: Facts) -> Truth:
    gap = facts.at_least("reuse_gap_share", "reuse_low_share")
    return both(gap, unless_false(facts.at_least("gpu_utilisation_share", "gpu_idle_share")))


def _hits_missing(facts: Facts) -> Truth:
    """A hit rate a scenario assumes says nothing about a cache; one that was measured does."""
    low = facts.below("hit_rate_share", "reuse_low_share") if facts.measured("hit_rate_share") else None
    repeats = unless_false(facts.at_least("prefix_share", "reuse_low_share"))
    return both(low, repeats, unless_false(facts.flag("prefix_caching")))


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


def _under_one_block(facts: Facts) -> Truth:
    prefix, block = facts.number("prefix_tokens") or facts.number("prompt_p50_tokens"), facts.number("block_tokens")
    return None if prefix is None or block is None else prefix < block


def _diluted(facts: Facts) -> Truth:
    blind = facts.is_text("routing", "round_robin", "random", "load")
    return both(facts.exceeds("replicas", 1.0), blind, unless_false(facts.at_least("prefix_share", "reuse_low_share")))


def _can_carry(facts: Facts) -> Truth:
    return opposite(facts.at_least("rho", "full_ratio"))


CACHE_RULES = (
    Rule(
        code="cache.prefill-share",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Prefill takes a large share of GPU time"),
        metrics=("prefill_share",),
        limits=(("prefill_share", "prefill_share"),),
        test=lambda facts: facts.at_least("prefill_share", "prefill_share"),
        says=msg("Prefill takes {prefill_share:pct} of busy time; from {limit:pct} on, reuse has much to save."),
        measure=msg("Measure the share of GPU busy time spent on prefill."),
    ),
    Rule(
        code="cache.stable-prefixes",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Many prompts begin with the same long, stable text"),
        metrics=("prefix_share", "prompts_stable", "prefix_tokens", "block_tokens"),
        limits=(("prefix_share", "reuse_low_share"),),
        test=_repeats,
        measure=msg(
            "Replay a request log for the share of prompt tokens that repeat, and state whether prompts are stable."
        ),
    ),
    Rule(
        code="cache.hit-improvable",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("The hit rate is well below what the prompts allow"),
        metrics=("hit_rate_share", "prefix_share", "reuse_gap_share", "gpu_utilisation_share"),
        limits=(("reuse_gap_share", "reuse_low_share"), ("gpu_utilisation_share", "gpu_idle_share")),
        test=_improvable,
        measure=msg("Read prefix cache hits and queries, and replay a log for the share of prompt tokens that repeat."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
    Rule(
        code="cache.hits-missing",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("The cache is there and is not hit"),
        metrics=("hit_rate_share", "prefix_share", "prefix_caching"),
        limits=(("hit_rate_share", "reuse_low_share"),),
        test=_hits_missing,
        measure=msg("Read the engine's prefix cache hits and queries over one busy window."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
    Rule(
        code="cache.waste",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Memory is wasted by preallocation and fragments"),
        metrics=("kv_waste_share",),
        limits=(("kv_waste_share", "waste_share"),),
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
        metrics=(*LATENCY_TARGETS, "cache_complexity_accepted"),
        limits=(("ttft_target_ratio", "target_tight_ratio"),),
        test=_ttft_tightest,
        measure=msg("State a TTFT target with its percentile, and measure TTFT at that percentile."),
    ),
    Rule(
        code="cache.capacity-suffices",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Capacity suffices and requests wait all the same"),
        metrics=("kv_usage_max_share", "waiting", "queue_share", "preempted_share", "rho"),
        limits=(
            ("kv_usage_max_share", "kv_full_share"),
            ("waiting", "waiting_count"),
            ("queue_share", "queue_share"),
            ("preempted_share", "preempted_warn_share"),
            ("rho", "full_ratio"),
        ),
        test=_only_waiting,
        measure=msg("Read KV usage and waiting requests in the same window."),
    ),
    Rule(
        code="cache.block-too-long",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Prefixes are shorter than one cache block"),
        metrics=("prefix_tokens", "prompt_p50_tokens", "block_tokens"),
        source=msg("engines hash complete blocks only (vLLM; hybrid models use blocks of 528-8,320 tokens)"),
        test=_under_one_block,
        measure=msg("Read the effective block size in the engine's start-up log, and the shared prefix length."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
    Rule(
        code="cache.diluted",
        supports=Outcome.OPTIMISE_CACHE,
        title=msg("Routing spreads equal prefixes over replicas"),
        metrics=("replicas", "routing", "prefix_share"),
        limits=(("prefix_share", "reuse_low_share"),),
        source=msg("sglang#26611: under round robin the hit rate is at most 1/replicas"),
        test=_diluted,
        measure=msg("State how requests are routed to replicas, and the share of prompt tokens that repeat."),
        diagnosis="cache_not_hit",
        bottleneck="compute",
    ),
)
