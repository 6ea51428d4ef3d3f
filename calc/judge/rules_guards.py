"""What speaks against: when a larger cache is no cure, and when reuse gains little. Each a check with a number."""

from __future__ import annotations

from calc.judge.conditions import Facts, Rule, Truth, both, opposite
from calc.judge.decision import Outcome
from calc.messages import msg


def _expires(facts: Facts) -> Truth:
    life, interval = facts.number("prefix_lifetime_s"), facts.number("reuse_interval_s")
    return None if life is None or interval is None else life < interval


def _queue_grows(facts: Facts) -> Truth:
    busy = facts.at_least("rho", "load_ratio")
    elsewhere = facts.is_text("bound", "compute", "memory_bandwidth", "sequences", "communication", "overhead")
    return both(busy, elsewhere)


ENLARGE_GUARDS = (
    Rule(
        code="guard.no-shared-prefix",
        supports=Outcome.ADD_MEMORY,
        guard=True,
        title=msg("A larger cache has nothing to hit"),
        metrics=("prefix_share",),
        limits=(("prefix_share", "reuse_low_share"),),
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
        source=msg("published condition: content must outlive the time to its next use"),
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
        limits=(("one_off_share", "one_off_share"),),
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
        limits=(("rebuild_share", "preempted_share"),),
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
        limits=(("margin_bytes", "margin_warn_bytes"),),
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
        limits=(("rho", "load_ratio"),),
        test=_queue_grows,
        measure=msg("Measure the highest rate served, and what binds at it."),
    ),
)


REUSE_GUARDS = (
    Rule(
        code="guard.short-prompts",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Prompts are too short for reuse to pay"),
        metrics=("prompt_p50_tokens",),
        limits=(("prompt_p50_tokens", "short_prompt_tokens"),),
        test=lambda facts: facts.below("prompt_p50_tokens", "short_prompt_tokens"),
        says=msg("Prompt length P50 is {prompt_p50_tokens:tok}; under {limit:tok} the host's work outweighs reuse."),
        measure=msg("Read prompt lengths from the request log."),
    ),
    Rule(
        code="guard.changing-prompts",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Prompts change from their first tokens on"),
        metrics=("prompts_stable",),
        source=msg("an exact match is needed: one character that differs ends the shared prefix"),
        test=lambda facts: opposite(facts.flag("prompts_stable")),
        says=msg("Prompts do not begin with the same text each time: stabilise them before anything else."),
        says_not=msg("Prompts begin with the same text each time."),
        measure=msg("Compare the first tokens of two prompts: clocks, ids and tool output belong at the end."),
    ),
    Rule(
        code="guard.little-to-gain",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Even perfect hits would shorten TTFT little"),
        metrics=("reuse_gain_share",),
        limits=(("reuse_gain_share", "reuse_low_share"),),
        test=lambda facts: facts.below("reuse_gain_share", "reuse_low_share"),
        says=msg("At most {reuse_gain_share:pct} of TTFT can be saved by reuse; under {limit:pct} it carries little."),
        measure=msg("Measure the share of prefill in TTFT and the share of prompt tokens that repeat."),
    ),
    Rule(
        code="guard.local-attention",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Most layers keep only a window of the history"),
        metrics=("local_layers_share",),
        limits=(("local_layers_share", "local_layers_share"),),
        test=lambda facts: facts.at_least("local_layers_share", "local_layers_share"),
        says=msg("{local_layers_share:pct} of layers keep only a window; from {limit:pct} on check what is reused."),
        measure=msg("Read the model's attention layout from its config.json."),
    ),
    Rule(
        code="guard.tight-memory",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Memory is too tight to keep a cache"),
        metrics=("weights_share",),
        limits=(("weights_share", "weights_share"),),
        test=lambda facts: facts.at_least("weights_share", "weights_share"),
        says=msg("Weights take {weights_share:pct} of a GPU; from {limit:pct} on little room is left for prefixes."),
        measure=msg("Read the weights' size in the engine's start-up log."),
    ),
    Rule(
        code="guard.tenants-apart",
        supports=Outcome.OPTIMISE_CACHE,
        guard=True,
        title=msg("Tenants may not share cached prefixes"),
        metrics=("tenants_may_share",),
        source=msg("decided by the security side"),
        test=lambda facts: opposite(facts.flag("tenants_may_share")),
        says=msg("Tenants may not share cached prefixes: reuse counts within one tenant only."),
        says_not=msg("Tenants may share cached prefixes."),
        measure=msg("Ask the security side whether tenants may share cached prefixes."),
    ),
)
