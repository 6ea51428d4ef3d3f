"""When neither cache nor memory meets cost and SLO; when nothing needs to change; when to measure first."""

from __future__ import annotations

from calc.judge.conditions import Facts, Rule, Truth, both, either, if_true, opposite, unless_false
from calc.judge.decision import Outcome
from calc.judge.rules_memory import ONE
from calc.messages import msg

SLO_METRICS = ("worst_target_ratio", "slo_attainment_share", "slo_percentile_share")
"""What says whether the SLO is met."""
PRESSURE_METRICS = ("kv_usage_max_share", "waiting", "preempted_share")
"""What an engine reports when memory or slots run short."""


def _none_carries(facts: Facts) -> Truth:
    tried, carrying = facts.number("levers_tried"), facts.number("levers_carrying")
    return None if tried is None or carrying is None else tried >= ONE and carrying == 0


def _too_dear(facts: Facts) -> Truth:
    cost, limit = facts.number("carrying_cost_per_million_tokens"), facts.number("cost_limit_per_million_tokens")
    return None if cost is None or limit is None else cost > limit


def _tenants_collide(facts: Facts) -> Truth:
    tail = facts.at_least("ttft_tail_ratio", "ttft_tail_ratio")
    return both(facts.flag("multi_tenant"), either(tail, facts.at_least("prompt_tail_ratio", "prompt_tail_ratio")))


def _batch_disturbs(facts: Facts) -> Truth:
    suffers = either(facts.at_least("ttft_tail_ratio", "ttft_tail_ratio"), facts.at_least("queue_share", "queue_share"))
    return both(facts.flag("offline_mixed"), suffers)


def _link_dominates(facts: Facts) -> Truth:
    idle = both(facts.flag("offload"), facts.below("gpu_power_share", "gpu_power_idle_share"))
    return either(facts.at_least("transfer_share", "transfer_share"), idle)


ARCHITECTURE_RULES = (
    Rule(
        code="architecture.no-lever-carries",
        supports=Outcome.RE_ARCHITECT,
        title=msg("Neither settings, cache nor memory meet the SLO"),
        metrics=("levers_tried", "levers_carrying"),
        source=msg("what-ifs on this scenario"),
        test=_none_carries,
        says=msg("{levers_tried:count} levers were simulated, {levers_carrying:count} carry the load within the SLO."),
        measure=msg("Describe the deployment and its load, so that levers can be simulated."),
        diagnosis="model_or_scheduling",
    ),
    Rule(
        code="architecture.idle-misses-slo",
        supports=Outcome.RE_ARCHITECT,
        title=msg("A single request on an idle server already misses its target"),
        metrics=("unloaded_target_ratio",),
        limits=(("unloaded_target_ratio", "full_ratio"),),
        test=lambda facts: facts.exceeds("unloaded_target_ratio", facts.line("full_ratio")),
        says=msg("On an idle server latency is {unloaded_target_ratio:.2f} of its target (limit {limit:.2f})."),
        measure=msg("Measure one request at a time, and state the targets."),
        diagnosis="model_or_scheduling",
    ),
    Rule(
        code="architecture.cost-limit",
        supports=Outcome.RE_ARCHITECT,
        title=msg("What meets the SLO costs more than accepted"),
        metrics=("carrying_cost_per_million_tokens", "cost_limit_per_million_tokens"),
        source=msg("cost limit declared by the team"),
        test=_too_dear,
        says=msg(
            "The cheapest way to meet the SLO costs {carrying_cost_per_million_tokens:.2f} per million output tokens; "
            "accepted: {cost_limit_per_million_tokens:.2f}."
        ),
        measure=msg("State the price of a GPU-hour and the highest accepted cost per million output tokens."),
        diagnosis="model_or_scheduling",
    ),
    Rule(
        code="architecture.tenants-collide",
        supports=Outcome.RE_ARCHITECT,
        title=msg("One tenant's long requests set everyone's latency"),
        metrics=("multi_tenant", "ttft_tail_ratio", "prompt_tail_ratio"),
        limits=(
            ("ttft_tail_ratio", "ttft_tail_ratio"),
            ("prompt_tail_ratio", "prompt_tail_ratio"),
        ),
        test=_tenants_collide,
        measure=msg("State whether tenants share the deployment, and measure lengths and TTFT by tenant."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="architecture.offline-mixed",
        supports=Outcome.RE_ARCHITECT,
        title=msg("Offline batches disturb online requests"),
        metrics=("offline_mixed", "ttft_tail_ratio", "queue_share"),
        limits=(
            ("ttft_tail_ratio", "ttft_tail_ratio"),
            ("queue_share", "queue_share"),
        ),
        test=_batch_disturbs,
        measure=msg("State whether offline batches run on the same replicas."),
        diagnosis="model_or_scheduling",
        bottleneck="scheduling",
    ),
    Rule(
        code="architecture.link-dominates",
        supports=Outcome.RE_ARCHITECT,
        title=msg("Moving KV takes most of the time"),
        metrics=("transfer_share", "offload", "gpu_power_share"),
        limits=(
            ("transfer_share", "transfer_share"),
            ("gpu_power_share", "gpu_power_idle_share"),
        ),
        test=_link_dominates,
        measure=msg("Measure the time KV is in transfer and GPU power while offload is in use."),
        diagnosis="transfer_is_bottleneck",
        bottleneck="transfer",
    ),
)


def _slo_met(facts: Facts) -> Truth:
    attained, needed = facts.number("slo_attainment_share"), facts.number("slo_percentile_share")
    by_share = None if attained is None or needed is None else attained >= needed
    by_latency = opposite(facts.exceeds("worst_target_ratio", ONE))
    preferred = by_share is None or facts.measured("worst_target_ratio")
    return by_latency if preferred and by_latency is not None else by_share


def _carries(facts: Facts) -> Truth:
    room = facts.number("headroom_share")
    spare = None if room is None else room >= ONE / facts.line("load_ratio") - ONE
    trusted = _is_seen(facts) or None
    return both(_slo_met(facts), spare if spare is not None else facts.below("rho", "load_ratio"), trusted)


def _is_seen(facts: Facts) -> bool:
    """A simulated SLO says nothing once pressure was measured on the real system."""
    slo = any(facts.measured(metric) for metric in SLO_METRICS)
    return slo or not any(facts.measured(metric) for metric in PRESSURE_METRICS)


def _nothing_waits(facts: Facts) -> Truth:
    waits = facts.number("waiting")
    calm = None if waits is None else waits < ONE
    evicts = if_true(facts.at_least("preempted_share", "preempted_warn_share"))
    missed = if_true(opposite(_slo_met(facts))) or if_true(facts.at_least("rho", "load_ratio"))
    return both(calm, facts.below("kv_usage_max_share", "kv_idle_share"), not evicts, not missed)


def _offload_idle(facts: Facts) -> Truth:
    return both(
        facts.flag("offload"),
        facts.at_least("hit_rate_share", "gpu_holds_share"),
        unless_false(facts.below("kv_usage_max_share", "kv_full_share")),
    )


CALM_RULES = (
    Rule(
        code="calm.slo-with-headroom",
        supports=Outcome.NO_CHANGE,
        title=msg("The SLO is met with headroom"),
        metrics=(*SLO_METRICS, "headroom_share", "rho", *PRESSURE_METRICS),
        limits=(("rho", "load_ratio"),),
        test=_carries,
        says=msg(
            "The tightest latency is {worst_target_ratio:.2f} of its target and {headroom_share:pct} more load fits "
            "(planned up to {limit:.2f} of the limit)."
        ),
        measure=msg("State targets, and find the highest load that meets them."),
    ),
    Rule(
        code="calm.nothing-waits",
        supports=Outcome.NO_CHANGE,
        title=msg("Nothing waits and the KV pool is half empty"),
        metrics=("kv_usage_max_share", "waiting", "preempted_share", "rho", *SLO_METRICS),
        limits=(
            ("kv_usage_max_share", "kv_idle_share"),
            ("preempted_share", "preempted_warn_share"),
            ("rho", "load_ratio"),
        ),
        test=_nothing_waits,
        measure=msg("Read KV usage and waiting requests in the same window."),
    ),
    Rule(
        code="calm.offload-not-needed",
        supports=Outcome.NO_CHANGE,
        title=msg("The GPU's own cache already holds the prompts"),
        metrics=("offload", "hit_rate_share", "kv_usage_max_share"),
        limits=(
            ("hit_rate_share", "gpu_holds_share"),
            ("kv_usage_max_share", "kv_full_share"),
        ),
        test=_offload_idle,
        measure=msg("Read the hit rate of the GPU's own prefix cache beside that of the further tier."),
    ),
)

MEASURE_RULES = (
    Rule(
        code="measure.run-invalid",
        supports=Outcome.MEASURE_FIRST,
        title=msg("The benchmark run cannot be used as it stands"),
        metrics=("run_invalid",),
        source=msg("validity checks of the uploaded run"),
        test=lambda facts: facts.flag("run_invalid"),
        says=msg("The uploaded run has errors: see its warnings."),
        says_not=msg("The uploaded run passed its validity checks."),
        measure=msg("Upload a benchmark run: its validity is checked on reading."),
    ),
)
