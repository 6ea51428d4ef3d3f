"""Reports → named evidence: what the scenario declares, the memory model estimates and the simulator simulates.

Measured figures given beside them win, and keep the figure they replace in view (``Evidence.instead_of``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from calc import MODEL_VERSION
from calc.cost import cost_of
from calc.engine import Settings, resolve
from calc.evidence import Evidence, Percentiles, Provenance, Value, overriding
from calc.judge.derived import derived_from
from calc.latency import LatencyReport, LoadSweep, load_of
from calc.memory import MemoryReport
from calc.metrics import METRICS
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.startup.memory import ID_SHOWN, MEASURED
from calc.traffic import busiest_minute_per_s
from calc.workload import Arrivals, Closed, Mmpp, OpenLoop, PerMinute, Recorded

P50, P99 = 0.5, 0.99
STEADY_PEAK_RATIO = 1.5
"""Peak over mean rate from which a load counts as peaky (llm-d-planner plans with 1.5-2.5)."""

Named: TypeAlias = Iterator[tuple[str, Value]]
LOGGED: Mapping[str, tuple[str, ...]] = {
    "weights": ("weights_bytes", "one_gpu_weights_share"),
    "kv_pool": ("kv_pool_bytes", "kv_tokens", "over_bytes", "fits"),
    "gpu_memory": ("gpu_memory_bytes",),
}
"""Part of a GPU's memory → metrics that are as well known as it is."""


def evidence_of(
    scenario: Scenario,
    memory: MemoryReport | None = None,
    latency: LatencyReport | None = None,
    *,
    sweep: LoadSweep | None = None,
    limit_load: float | None = None,
    idle: LatencyReport | None = None,
    measured: Mapping[str, Evidence] | None = None,
) -> dict[str, Evidence]:
    """Every metric known about the scenario.

    ``limit_load`` is the highest load that meets the SLO, when no sweep says so; ``idle`` a report at one request at
    a time.
    """
    settings = resolve(scenario.deployment)
    declared = chain(_load(scenario), _deployment(scenario, settings), _targets(scenario))
    simulated = chain(
        _service(scenario, latency) if latency else (),
        _knee(scenario, sweep.knee_load if sweep else limit_load),
        _idle(idle, scenario.slo.percentile_share) if idle else (),
        _costs(scenario, latency),
    )
    calculated = {
        **_known(declared, Provenance.DECLARED, "scenario"),
        **(_of_memory(scenario, memory) if memory else {}),
        **_known(simulated, Provenance.SIMULATED, f"simulation {MODEL_VERSION}, {_calibration(latency)}"),
    }
    return derived_from(overriding(calculated, measured or {}))


def _of_memory(scenario: Scenario, memory: MemoryReport) -> dict[str, Evidence]:
    """Estimated, but for what a start-up log measured."""
    known = _known(_memory(scenario, memory), Provenance.ESTIMATED, f"memory model {MODEL_VERSION}")
    logged = {metric for part, metrics in LOGGED.items() if memory.origin(part) == MEASURED for metric in metrics}
    return {
        metric: replace(
            one, provenance=Provenance.MEASURED, source=f"start-up log {memory.log_id[:ID_SHOWN]}", date=memory.log_date
        )
        if metric in logged
        else one
        for metric, one in known.items()
    }


def _calibration(latency: LatencyReport | None) -> str:
    return latency.calibration if latency else "uncalibrated"


def _known(named: Iterator[tuple[str, Value]] | tuple[()], how: Provenance, source: str) -> dict[str, Evidence]:
    return {
        metric: Evidence(metric=metric, value=value, unit=METRICS[metric].unit, provenance=how, source=source)
        for metric, value in named
        if value is not None
    }


def _load(scenario: Scenario) -> Named:
    load = scenario.workload
    yield "prompt_p50_tokens", load.prompt_tokens.quantile(P50)
    yield "prompt_p99_tokens", load.prompt_tokens.quantile(P99)
    yield "output_p50_tokens", load.output_tokens.quantile(P50)
    yield "hit_rate_share", load.prefix_hit_share
    yield "demand_steady", _is_steady(load.arrivals)
    if not isinstance(load.arrivals, Closed):
        yield "request_rate_per_s", load.arrivals.rate_per_s


def _is_steady(arrivals: Arrivals) -> bool:
    match arrivals:
        case Closed():
            return True
        case OpenLoop(kind=kind, cv=cv):
            return kind != "gamma" or cv <= 1.0
        case PerMinute(rates_per_s=rates) | Mmpp(rates_per_s=rates):
            return max(rates) <= STEADY_PEAK_RATIO * arrivals.rate_per_s
        case Recorded(times_s=times):
            return busiest_minute_per_s(times) <= STEADY_PEAK_RATIO * arrivals.rate_per_s


def _deployment(scenario: Scenario, settings: Settings) -> Named:
    deployment = scenario.deployment
    yield "tp", deployment.tp
    yield "pp", deployment.pp
    yield "replicas", deployment.replicas
    yield "gpu_count", deployment.gpu_count
    yield "local_layers_share", _local_layers(deployment.model)
    if deployment.tp > 1 and deployment.gpu.link_bytes_per_s:
        yield "link", "nvlink" if deployment.gpu.nvlink_bytes_per_s else "pcie"
    yield "max_num_seqs", settings.max_num_seqs
    yield "max_num_batched_tokens", settings.max_num_batched_tokens
    yield "prefix_caching", settings.prefix_caching
    if not settings.prefix_caching and scenario.workload.prefix_hit_share:
        yield "prefix_share", scenario.workload.prefix_hit_share
    yield "chunked_prefill", settings.chunked_prefill
    # A scenario describes all there is: what it does not name is not there.
    yield "offload", bool(deployment.serving.tiers)
    yield "pd_split", deployment.serving.prefill_replicas > 0
    yield "speculation", deployment.spec_method is not None


def _local_layers(model: ModelSpec) -> float:
    local = sum(group.layers for group in model.groups if group.window_tokens is not None)
    return local / model.layers


def _targets(scenario: Scenario) -> Named:
    slo = scenario.slo
    yield "ttft_slo_s", slo.ttft_s
    yield "itl_slo_s", slo.itl_s
    yield "e2e_slo_s", slo.e2e_s
    if (slo.ttft_s, slo.itl_s, slo.e2e_s) != (None, None, None):
        yield "slo_percentile_share", slo.percentile_share


def _memory(scenario: Scenario, memory: MemoryReport) -> Named:
    total = memory.total_bytes
    yield "gpu_memory_bytes", total
    yield "weights_bytes", memory.weights_bytes
    yield "one_gpu_weights_share", memory.weights_bytes * scenario.deployment.tp * scenario.deployment.pp / total
    yield "runtime_share", memory.runtime_bytes / total
    yield "margin_bytes", memory.margin_bytes if memory.fits else None
    yield "over_bytes", memory.over_bytes
    yield "fits", memory.fits
    yield "kv_pool_bytes", memory.kv_pool_bytes
    yield "kv_demand_bytes", memory.kv_demand_bytes - memory.idle_kv_bytes if memory.peak_is_known else None
    yield "kv_request_bytes", memory.kv_per_request_bytes
    yield "kv_tokens", memory.kv_tokens
    yield "block_tokens", memory.block_size_tokens
    yield "kv_waste_share", _last_block_waste(scenario, memory.block_size_tokens)


def _last_block_waste(scenario: Scenario, block_tokens: int) -> float:
    """Half a block is empty at the end of each live sequence: (B−1)/2 over that plus its mean live length."""
    empty = (block_tokens - 1) / 2
    live = scenario.workload.prompt_tokens.mean() + scenario.workload.output_tokens.mean() / 2
    return empty / (empty + live)


def _service(scenario: Scenario, latency: LatencyReport) -> Named:
    for name, percentiles in (
        ("ttft", latency.ttft),
        ("itl", latency.itl),
        ("tpot", latency.tpot),
        ("e2e", latency.e2e),
    ):
        yield from _percentiles(name, percentiles)
    schedulers = scenario.deployment.replicas * scenario.deployment.dp
    waiting = latency.queue_s * latency.request_rate_per_s / schedulers
    running = max(latency.concurrency / schedulers - waiting, 0.0)
    yield "waiting", waiting
    yield "running", running
    yield "rebuild_share", latency.preempted_share / (1 + latency.preempted_share)
    if latency.offered_rate_per_s is not None:
        yield "max_rate_per_s", latency.max_rate_per_s
    yield from _same_name(latency)


def _same_name(latency: LatencyReport) -> Named:
    yield "queue_s", latency.queue_s
    yield "prefill_s", latency.prefill_s
    yield "decode_s", latency.decode_s
    yield "network_s", latency.network_s
    yield "concurrency", latency.concurrency
    yield "output_tokens_per_s", latency.output_tokens_per_s
    yield "kv_usage_mean_share", latency.kv_usage_mean_share
    yield "kv_usage_max_share", latency.kv_usage_max_share
    yield "preempted_share", latency.preempted_share
    yield "prefill_share", latency.prefill_compute_share
    yield "mixed_step_share", latency.mixed_step_share
    # Beyond capacity a batch fills whatever it is given; what sets the highest rate is the cause.
    yield "bound", latency.limit or latency.bound if latency.saturated else latency.bound
    yield "saturated", latency.saturated
    yield "slo_attainment_share", latency.slo_attainment_share


def _percentiles(name: str, latency: Percentiles) -> Named:
    yield f"{name}_mean_s", latency.mean_s
    yield f"{name}_p50_s", latency.p50_s
    yield f"{name}_p90_s", latency.p90_s
    yield f"{name}_p95_s", latency.p95_s
    yield f"{name}_p99_s", latency.p99_s


def _knee(scenario: Scenario, knee_load: float | None) -> Named:
    """Headroom in the unit of the arrivals; a knee in requests per second for open loops only."""
    if knee_load is None:
        return
    yield "headroom_share", knee_load / load_of(scenario.workload) - 1
    if not isinstance(scenario.workload.arrivals, Closed):
        yield "knee_per_s", knee_load


def _idle(idle: LatencyReport, percentile_share: float) -> Named:
    yield "unloaded_ttft_s", idle.ttft.at(percentile_share)
    yield "unloaded_itl_s", idle.itl.at(percentile_share)
    yield "unloaded_e2e_s", idle.e2e.at(percentile_share)


def _costs(scenario: Scenario, latency: LatencyReport | None) -> Named:
    cost = cost_of(scenario, latency)
    if cost is None:
        return
    yield "cost_per_hour", cost.reserved_per_hour
    yield "cost_per_million_tokens", cost.per_million_output_tokens
    yield "cost_per_slo_request", cost.per_slo_request
