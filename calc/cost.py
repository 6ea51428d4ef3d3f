"""What a deployment costs for what it serves. Amounts are in the currency of the prices; ``None`` without a price."""

from __future__ import annotations

from dataclasses import dataclass

from calc.cache.kv import request_bytes
from calc.cost_lines import HOURS_PER_MONTH
from calc.engine import resolve
from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.serving import Tier
from calc.units import GB, GIB, MEGA, SECONDS_PER_HOUR
from calc.workload import Prices

REMOTE = "remote"
"""The tier whose fetches cross the network."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Reserved is what is paid for GPUs; used is the part of it that the load needs; the total adds what is stated
    beside GPUs. Costs per request and per token are of the total."""

    currency: str
    reserved_per_hour: float
    """GPUs of the deployment × price of a GPU-hour, busy or idle."""
    further_per_hour: float
    """Spare replicas, tiers, traffic and lines beside hardware, as far as they are stated."""
    used_share: float | None
    """Rate served / highest rate served: the part of the reservation that works."""
    used_per_hour: float | None
    """Reserved × used share; the rest is paid for headroom and idle time."""
    per_request: float | None
    per_slo_request: float | None
    """Per request that meets every target; ``None`` without a target or when none meets it."""
    per_million_output_tokens: float | None
    per_million_tokens: float | None
    """Prompt and output tokens together, prompt tokens found in the cache included."""
    per_million_output_tokens_at_full_load: float | None
    """The same deployment kept busy: what remains is the price of idle reservation."""

    @property
    def total_per_hour(self) -> float:
        """Everything that is stated."""
        return self.reserved_per_hour + self.further_per_hour


def cost_of(scenario: Scenario, latency: LatencyReport | None = None) -> Cost | None:
    """Cost of the scenario at its load; only the reservation is known without a latency report."""
    price = scenario.prices.gpu_hour
    if price is None:
        return None
    reserved = scenario.deployment.gpu_count * price
    further = further_per_hour(scenario, latency)
    total = reserved + further
    served_per_s = latency.request_rate_per_s if latency else 0.0
    output_per_s = latency.output_tokens_per_s if latency else 0.0
    total_per_s = output_per_s + served_per_s * scenario.workload.prompt_tokens.mean()
    per_request = _each(total, served_per_s)
    output = _each(total, output_per_s / MEGA)
    used = min(served_per_s / latency.max_rate_per_s, 1.0) if latency and latency.max_rate_per_s > 0 else None
    return Cost(
        currency=scenario.prices.currency,
        reserved_per_hour=reserved,
        further_per_hour=further,
        used_share=used,
        used_per_hour=None if used is None else reserved * used,
        per_request=per_request,
        per_slo_request=_per_good(per_request, latency.slo_attainment_share if latency else None),
        per_million_output_tokens=output,
        per_million_tokens=_each(total, total_per_s / MEGA),
        per_million_output_tokens_at_full_load=None if output is None or used is None else output * used,
    )


def further_per_hour(scenario: Scenario, latency: LatencyReport | None = None) -> float:
    """What is stated beside the GPUs of the deployment; traffic needs the rate served."""
    further = scenario.prices.further
    spares = spares_per_hour(scenario) or 0.0
    tiers = sum(tier_per_hour(scenario, tier) or 0.0 for tier in scenario.deployment.serving.tiers)
    traffic = (traffic_per_hour(scenario, latency) or 0.0) if latency else 0.0
    return spares + tiers + traffic + sum(line.per_month for line in further.lines) / HOURS_PER_MONTH


def spares_per_hour(scenario: Scenario) -> float | None:
    """Spare replicas × their GPUs × price; ``None`` where spares or price are not stated."""
    spares, price = scenario.prices.further.spare_replicas, scenario.prices.gpu_hour
    return None if spares is None or price is None else spares * scenario.deployment.gpus_per_replica * price


def tier_per_hour(scenario: Scenario, tier: Tier) -> float | None:
    """Capacity of all replicas × price of a GiB-month ÷ 730; ``None`` where either is not stated."""
    price = dict(scenario.prices.further.tiers).get(tier.name)
    if price is None or tier.capacity_bytes is None:
        return None
    return tier.capacity_bytes / GIB * scenario.deployment.replicas * price / HOURS_PER_MONTH


def traffic_per_hour(scenario: Scenario, latency: LatencyReport) -> float | None:
    """Bytes over the network × price of a GB; ``None`` where the price is not stated."""
    price = scenario.prices.further.traffic_per_gb
    return None if price is None else traffic_bytes_per_s(scenario, latency) * SECONDS_PER_HOUR / GB * price


def traffic_bytes_per_s(scenario: Scenario, latency: LatencyReport) -> float:
    """KV handed from prefill to decode replicas, and KV fetched from remote storage, at the rate served."""
    deployment, workload = scenario.deployment, scenario.workload
    prompt = workload.prompt_tokens.mean()
    remote = sum(tier.hit_share for tier in deployment.serving.tiers if tier.name == REMOTE)
    moved = _kv_bytes(scenario, prompt) if deployment.serving.prefill_replicas else 0.0
    fetched = _kv_bytes(scenario, prompt * workload.offload_hit_share * remote) if remote else 0.0
    return (moved + fetched) * latency.request_rate_per_s


def _kv_bytes(scenario: Scenario, tokens: float) -> float:
    """Of a request on all its GPUs, each KV head once."""
    settings = resolve(scenario.deployment)
    return request_bytes(
        scenario.deployment.model, settings.kv_dtype, 1, 1, tokens, prefix_caching=settings.prefix_caching
    )


def incomparable(one: Prices, other: Prices) -> Message | None:
    """Why costs under two prices must not be compared; ``None`` when both are known in the same currency."""
    if one.gpu_hour is None and other.gpu_hour is None:
        return None
    if one.gpu_hour is None or other.gpu_hour is None:
        return msg("Costs are not comparable: the price of a GPU-hour is known for one of the two only.")
    if one.currency != other.currency:
        return msg(
            "Costs are not comparable: one is in {one}, the other in {other}; no exchange rate is assumed.",
            one=one.currency,
            other=other.currency,
        )
    return None


def _each(per_hour: float, made_per_s: float) -> float | None:
    return per_hour / (made_per_s * SECONDS_PER_HOUR) if made_per_s > 0 else None


def _per_good(per_request: float | None, attainment_share: float | None) -> float | None:
    return per_request / attainment_share if per_request is not None and attainment_share else None
