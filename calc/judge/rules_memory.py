"""When to add memory, GPUs or replicas, and where the gap comes from."""

from __future__ import annotations

from calc.judge.conditions import Facts, Rule, Truth, any_known, both, either, if_true, opposite, unless_false
from calc.judge.decision import Outcome
from calc.messages import msg

ONE = 1.0
"""A single waiting request, model or whole share: natural limits, no thresholds."""


def _fills(facts: Facts) -> Truth:
    signs = either(
        facts.at_least("waiting", ONE),
        facts.at_least("preempted_share", "preempted_warn_share"),
        facts.at_least("itl_rise_ratio", "itl_rise_ratio"),
    )
    return both(facts.at_least("kv_usage_max_share", "kv_full_share"), signs)


def _reuse_spent(facts: Facts) -> Truth:
    return either(facts.below("prefix_share", "reuse_low_share"), facts.below("reuse_gap_share", "reuse_low_share"))


def _offload_hurts(facts: Facts) -> Truth:
    return both(facts.flag("offload"), either(facts.exceeds("offload_tail_ratio", ONE), fetch_too_slow(facts)))


def fetch_too_slow(facts: Facts) -> Truth:
    """Fetching offloaded KV is slower than computing it again."""
    fetched, needed = facts.number("transfer_bytes_per_s"), facts.number("break_even_bytes_per_s")
    return None if fetched is None or needed is None else fetched < needed


def _lost_requests(facts: Facts) -> Truth:
    return either(
        facts.at_least("preempted_share", "preempted_share"),
        facts.at_least("rejected_share", "rejected_share"),
        facts.exceeds("oom_count", 0.0),
    )


def _workspace(facts: Facts) -> Truth:
    """Out of memory outside the pool, or with hardly any margin: workspace, context or buffers lack room."""
    small_margin = facts.below("margin_bytes", "margin_warn_bytes")
    pool_enough = unless_false(facts.below("kv_usage_max_share", "kv_full_share"))
    ran_out = both(facts.exceeds("oom_count", 0.0), small_margin, pool_enough)
    return either(facts.flag("runtime_oom"), ran_out)


def _beyond_capacity(facts: Facts) -> Truth:
    over = either(facts.at_least("rho", "full_ratio"), facts.flag("saturated"))
    return both(over, unless_false(opposite(facts.is_text("bound", "sequences", "memory_capacity"))))


def _too_big(facts: Facts) -> Truth:
    """Any one known answer is enough; weights that fit by themselves prove nothing."""
    heavy = if_true(facts.exceeds("weights_share", ONE)) or None
    return any_known(facts.flag("start_failed"), opposite(facts.flag("fits")), facts.exceeds("over_bytes", 0.0), heavy)


MEMORY_RULES = (
    Rule(
        code="memory.does-not-fit",
        supports=Outcome.ADD_MEMORY,
        title=msg("The deployment does not fit in memory"),
        metrics=("over_bytes", "fits", "start_failed", "weights_share"),
        source=msg("sum of the zones against the engine's budget"),
        test=_too_big,
        measure=msg("Read the engine's start-up log, or enter model, GPU and engine settings."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="memory.cache-fills",
        supports=Outcome.ADD_MEMORY,
        title=msg("The KV cache fills its pool and requests suffer from it"),
        metrics=("kv_usage_max_share", "waiting", "preempted_share", "itl_rise_ratio"),
        limits=(
            ("kv_usage_max_share", "kv_full_share"),
            ("preempted_share", "preempted_warn_share"),
            ("itl_rise_ratio", "itl_rise_ratio"),
        ),
        test=_fills,
        measure=msg("Read KV usage, waiting requests and preemptions in the same window."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="memory.weights-share",
        supports=Outcome.ADD_MEMORY,
        title=msg("Weights already take most of the memory"),
        metrics=("weights_share",),
        limits=(("weights_share", "weights_share"),),
        test=lambda facts: facts.at_least("weights_share", "weights_share"),
        says=msg(
            "Weights take {weights_share:pct} of a GPU; from {limit:pct} on too little is left for KV and runtime."
        ),
        measure=msg("Read the weights' size in the engine's start-up log."),
        bottleneck="memory_capacity",
    ),
    Rule(
        code="memory.long-context-required",
        supports=Outcome.ADD_MEMORY,
        title=msg("The long context is a hard need"),
        metrics=("long_context_required",),
        source=msg("published condition, declared by the business"),
        test=lambda facts: facts.flag("long_context_required"),
        says=msg("The business needs the long context: it cannot be cut."),
        says_not=msg("The business accepts a shorter context."),
        measure=msg("Ask the business whether history or documents may be cut or summarised."),
    ),
    Rule(
        code="memory.steady-demand",
        supports=Outcome.ADD_MEMORY,
        title=msg("Steady concurrency needs more KV than the pool holds"),
        metrics=("kv_demand_ratio", "demand_steady", "kv_usage_max_share"),
        limits=(
            ("kv_demand_ratio", "kv_full_share"),
            ("kv_usage_max_share", "kv_full_share"),
        ),
        test=lambda facts: both(
            facts.at_least("kv_demand_ratio", "kv_full_share"),
            facts.flag("demand_steady"),
            unless_false(facts.at_least("kv_usage_max_share", "kv_full_share")),
        ),
        measure=msg("Measure peak concurrency over some days, and state whether it is steady."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="memory.reuse-cannot-help",
        supports=Outcome.ADD_MEMORY,
        title=msg("Prefix reuse cannot lower the demand"),
        metrics=("prefix_share", "hit_rate_share", "reuse_gap_share"),
        limits=(("prefix_share", "reuse_low_share"), ("reuse_gap_share", "reuse_low_share")),
        test=_reuse_spent,
        measure=msg("Replay a request log for the share of prompt tokens that repeat."),
    ),
    Rule(
        code="memory.offload-hurts",
        supports=Outcome.ADD_MEMORY,
        title=msg("Offload worsens the tail"),
        metrics=("offload", "offload_tail_ratio", "transfer_bytes_per_s", "break_even_bytes_per_s"),
        source=msg("break-even: KV bytes per token times prefill tokens per second"),
        test=_offload_hurts,
        measure=msg("Measure P99 with and without offload, and the rate at which KV is fetched."),
    ),
    Rule(
        code="memory.lost-requests",
        supports=Outcome.ADD_MEMORY,
        title=msg("Out of memory, eviction or rejection is frequent"),
        metrics=("preempted_share", "rejected_share", "oom_count"),
        limits=(
            ("preempted_share", "preempted_share"),
            ("rejected_share", "rejected_share"),
        ),
        test=_lost_requests,
        measure=msg("Count preemptions, rejected requests and out-of-memory events."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="memory.several-models",
        supports=Outcome.ADD_MEMORY,
        title=msg("Several models or versions share the GPU"),
        metrics=("models_on_gpu",),
        source=msg("published condition, declared"),
        test=lambda facts: facts.exceeds("models_on_gpu", ONE),
        says=msg("{models_on_gpu:count} models or versions run on the GPU."),
        measure=msg("State how many models or versions run on one GPU."),
    ),
    Rule(
        code="memory.load-above-capacity",
        supports=Outcome.ADD_MEMORY,
        title=msg("The load is more than these GPUs can serve"),
        metrics=("rho", "saturated", "bound"),
        limits=(("rho", "full_ratio"),),
        test=_beyond_capacity,
        measure=msg("Measure the offered rate and the highest rate served."),
        diagnosis="model_or_scheduling",
        bottleneck="compute",
    ),
    Rule(
        code="memory.gap-is-workspace",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("The gap is workspace or buffers, not KV space"),
        metrics=("runtime_oom", "oom_count", "margin_bytes", "kv_usage_max_share"),
        limits=(
            ("margin_bytes", "margin_warn_bytes"),
            ("kv_usage_max_share", "kv_full_share"),
        ),
        test=_workspace,
        measure=msg("Read free memory at peak and where an out-of-memory error was raised."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
)
