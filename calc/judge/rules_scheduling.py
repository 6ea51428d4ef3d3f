"""When settings alone are at fault: scheduler limits, mixed steps, host, links."""

from __future__ import annotations

from calc.judge.conditions import Facts, Rule, Truth, any_known, both, either, if_true, opposite, unless_false
from calc.judge.decision import Outcome
from calc.judge.rules_memory import ONE, fetch_too_slow
from calc.messages import msg

SPECULATION_TP = 4.0
"""Tensor-parallel degree at which speculation lost 3 % (vllm#16035)."""
SPECULATION_RUNNING = 100.0
"""Running requests from which speculation loses ("negative at hundreds running": sglang#6949, vllm#19254)."""


def _waits_with_room(facts: Facts) -> Truth:
    waits = either(facts.at_least("waiting", "waiting_count"), facts.at_least("queue_share", "queue_share"))
    busy = if_true(facts.at_least("rho", "full_ratio")) and if_true(
        facts.is_text("bound", "compute", "memory_bandwidth")
    )
    return both(waits, facts.below("kv_usage_max_share", "kv_idle_share"), not busy)


def _seqs_bind(facts: Facts) -> Truth:
    waits = unless_false(facts.at_least("waiting", ONE))
    full = both(facts.at_least("seqs_used_share", "seqs_full_share"), waits)
    named = both(facts.is_text("bound", "sequences"), facts.at_least("rho", "load_ratio"))
    return both(either(full, named), unless_false(facts.below("kv_usage_max_share", "kv_full_share")))


def _prefill_in_pieces(facts: Facts) -> Truth:
    prompt, budget = facts.number("prompt_p50_tokens"), facts.number("max_num_batched_tokens")
    long = None if prompt is None or budget is None else prompt > budget
    return both(long, facts.exceeds("ttft_target_ratio", ONE), opposite(facts.exceeds("itl_target_ratio", ONE)))


def _itl_tail(facts: Facts) -> Truth:
    tail = facts.at_least("itl_tail_ratio", "itl_tail_ratio")
    mixed = facts.at_least("mixed_step_share", "mixed_step_share")
    unchunked = opposite(facts.flag("chunked_prefill"))
    matters = unless_false(facts.at_least("itl_target_ratio", "target_tight_ratio"))
    return both(either(both(tail, unless_false(mixed)), if_true(unchunked) and if_true(tail)), matters)


def _long_blocks_short(facts: Facts) -> Truth:
    spread = unless_false(facts.at_least("prompt_tail_ratio", "prompt_tail_ratio"))
    matters = unless_false(facts.at_least("ttft_target_ratio", "target_tight_ratio"))
    return both(facts.at_least("ttft_tail_ratio", "ttft_tail_ratio"), spread, matters)


def _host_binds(facts: Facts) -> Truth:
    cpu = facts.at_least("cpu_utilisation_share", "host_busy_share")
    gpu_idle = facts.below("gpu_utilisation_share", "gpu_idle_share")
    starved = both(gpu_idle, facts.at_least("waiting", ONE))
    return either(both(cpu, unless_false(gpu_idle)), starved)


def _settings_stop_start(facts: Facts) -> Truth:
    failed = any_known(facts.flag("start_failed"), opposite(facts.flag("fits")))
    return both(failed, unless_false(facts.below("weights_share", "weights_share")))


def _over_sharded(facts: Facts) -> Truth:
    small = facts.below("one_gpu_weights_share", "weights_share")
    idle = facts.below("gpu_utilisation_share", "gpu_idle_share")
    return both(facts.at_least("tp", "oversharded_tp"), either(small, idle))


def _split_hurts(facts: Facts) -> Truth:
    missed = either(facts.at_least("transfer_share", "transfer_share"), facts.exceeds("ttft_target_ratio", ONE))
    return both(facts.flag("pd_split"), missed)


def _speculation_hurts(facts: Facts) -> Truth:
    tp, running = facts.number("tp"), facts.number("running")
    wide = None if tp is None else tp >= SPECULATION_TP
    many = None if running is None else running >= SPECULATION_RUNNING
    return both(facts.flag("speculation"), either(wide, many))


SCHEDULING_RULES = (
    Rule(
        code="schedule.queue-with-free-kv",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Requests wait although the KV pool is free"),
        metrics=("waiting", "queue_share", "kv_usage_max_share", "rho", "bound"),
        limits=(
            ("kv_usage_max_share", "kv_idle_share"),
            ("waiting", "waiting_count"),
            ("queue_share", "queue_share"),
            ("rho", "full_ratio"),
        ),
        test=_waits_with_room,
        measure=msg("Read waiting requests and KV usage in the same window."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.max-seqs-binds",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("The limit of running requests binds, not memory"),
        metrics=("seqs_used_share", "max_num_seqs", "waiting", "bound", "rho", "kv_usage_max_share"),
        limits=(
            ("seqs_used_share", "seqs_full_share"),
            ("rho", "load_ratio"),
            ("kv_usage_max_share", "kv_full_share"),
        ),
        test=_seqs_bind,
        measure=msg("Read running requests against the engine's limit (max_num_seqs)."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.batched-tokens-bind",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("The token budget cuts ordinary prompts into pieces"),
        metrics=("prompt_p50_tokens", "max_num_batched_tokens", "ttft_target_ratio", "itl_target_ratio"),
        source=msg("engine documentation: a larger max_num_batched_tokens favours TTFT, a smaller one ITL"),
        test=_prefill_in_pieces,
        measure=msg("Read max_num_batched_tokens, prompt length P50, and TTFT and ITL against their targets."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.itl-tail",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Prefill steps stretch the gaps between tokens"),
        metrics=("itl_tail_ratio", "mixed_step_share", "chunked_prefill", "itl_target_ratio"),
        limits=(
            ("itl_tail_ratio", "itl_tail_ratio"),
            ("mixed_step_share", "mixed_step_share"),
            ("itl_target_ratio", "target_tight_ratio"),
        ),
        test=_itl_tail,
        measure=msg("Measure ITL P50 and P99 over all gaps."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.long-blocks-short",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Long prompts block short ones"),
        metrics=("ttft_tail_ratio", "prompt_tail_ratio", "ttft_target_ratio"),
        limits=(
            ("ttft_tail_ratio", "ttft_tail_ratio"),
            ("prompt_tail_ratio", "prompt_tail_ratio"),
            ("ttft_target_ratio", "target_tight_ratio"),
        ),
        test=_long_blocks_short,
        measure=msg("Measure TTFT P50 and P99 together with prompt length P50 and P99."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.preemption-thrash",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("More requests are admitted than the pool can finish"),
        metrics=("preempted_share",),
        limits=(("preempted_share", "preempted_share"),),
        test=lambda facts: facts.at_least("preempted_share", "preempted_share"),
        says=msg(
            "{preempted_share:pct} preemptions per request (limit {limit:pct}); the engine's own advice is a larger "
            "memory fraction, then fewer running requests, then more GPUs."
        ),
        measure=msg("Read the engine's preemption counter over one window."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="schedule.memory-not-released",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Memory is not released when requests end"),
        metrics=("memory_not_released",),
        source=msg("trend of KV usage over stored samples"),
        test=lambda facts: facts.flag("memory_not_released"),
        says=msg("KV usage stays high after requests end."),
        says_not=msg("KV usage falls when requests end."),
        measure=msg("Watch KV usage for some hours, also while few requests run."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="schedule.start-settings",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Settings, not weights, keep the engine from starting"),
        metrics=("start_failed", "fits", "weights_share"),
        limits=(("weights_share", "weights_share"),),
        test=_settings_stop_start,
        measure=msg("Read the engine's start-up log."),
        diagnosis="cache_fills_memory",
        bottleneck="memory_capacity",
    ),
    Rule(
        code="schedule.host-bound",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("The host, not the GPU, sets the pace"),
        metrics=("cpu_utilisation_share", "gpu_utilisation_share", "waiting"),
        limits=(
            ("cpu_utilisation_share", "host_busy_share"),
            ("gpu_utilisation_share", "gpu_idle_share"),
        ),
        test=_host_binds,
        measure=msg("Read the busiest CPU core and GPU activity under load."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="schedule.speculation",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Speculative decoding runs where it loses"),
        metrics=("speculation", "tp", "running"),
        source=msg("vllm#16035: -3 % at TP 4; sglang#6949, vllm#19254: negative at hundreds running"),
        test=_speculation_hurts,
        measure=msg("State whether speculation is on, and measure running requests per replica."),
        diagnosis="model_or_scheduling",
        bottleneck="memory_bandwidth",
    ),
)

TRANSFER_RULES = (
    Rule(
        code="transfer.offload-slow",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Fetching offloaded KV is slower than recomputing it"),
        metrics=("offload", "transfer_bytes_per_s", "break_even_bytes_per_s", "offload_tail_ratio"),
        source=msg("break-even: KV bytes per token times prefill tokens per second"),
        test=lambda facts: both(
            facts.flag("offload"), either(fetch_too_slow(facts), facts.exceeds("offload_tail_ratio", ONE))
        ),
        measure=msg("Measure the rate at which KV is fetched, and prefill tokens per second."),
        diagnosis="transfer_is_bottleneck",
        bottleneck="transfer",
    ),
    Rule(
        code="transfer.tp-over-pcie",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("Tensor parallelism runs over a slow link"),
        metrics=("tp", "link", "one_gpu_weights_share"),
        limits=(("one_gpu_weights_share", "weights_share"),),
        test=lambda facts: both(
            facts.exceeds("tp", ONE),
            facts.is_text("link", "pcie"),
            unless_false(facts.below("one_gpu_weights_share", "weights_share")),
        ),
        measure=msg("State the link between the GPUs and the tensor-parallel degree."),
        diagnosis="transfer_is_bottleneck",
        bottleneck="transfer",
    ),
    Rule(
        code="transfer.over-sharded",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("The model is split over more GPUs than it needs"),
        metrics=("tp", "one_gpu_weights_share", "gpu_utilisation_share"),
        limits=(
            ("tp", "oversharded_tp"),
            ("one_gpu_weights_share", "weights_share"),
            ("gpu_utilisation_share", "gpu_idle_share"),
        ),
        test=_over_sharded,
        measure=msg("State the tensor-parallel degree and the size of the weights."),
        diagnosis="transfer_is_bottleneck",
        bottleneck="transfer",
    ),
    Rule(
        code="transfer.split-hurts",
        supports=Outcome.TUNE_SCHEDULING,
        title=msg("The prefill/decode split does not pay"),
        metrics=("pd_split", "transfer_share", "ttft_target_ratio"),
        limits=(("transfer_share", "transfer_share"),),
        test=_split_hurts,
        measure=msg("Measure the same load without the split, and the time KV is in transfer."),
        diagnosis="transfer_is_bottleneck",
        bottleneck="transfer",
    ),
)
