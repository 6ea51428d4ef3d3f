"""What a deployment costs for what it serves. Amounts are in the currency of the prices; ``None`` without a price."""

from __future__ import annotations

from dataclasses import dataclass

from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.units import MEGA, SECONDS_PER_HOUR
from calc.workload import Prices


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Reserved is what is paid for; used is the part of it that the load needs."""

    currency: str
    reserved_per_hour: float
    """GPUs of the deployment × price of a GPU-hour, busy or idle."""
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


def cost_of(scenario: Scenario, latency: LatencyReport | None = None) -> Cost | None:
    """Cost of the scenario at its load; only the reservation is known without a latency report."""
    price = scenario.prices.gpu_hour
    if price is None:
        return None
    reserved = scenario.deployment.gpu_count * price
    served_per_s = latency.request_rate_per_s if latency else 0.0
    output_per_s = latency.output_tokens_per_s if latency else 0.0
    total_per_s = output_per_s + served_per_s * scenario.workload.prompt_tokens.mean()
    per_request = _each(reserved, served_per_s)
    output = _each(reserved, output_per_s / MEGA)
    used = min(served_per_s / latency.max_rate_per_s, 1.0) if latency and latency.max_rate_per_s > 0 else None
    return Cost(
        currency=scenario.prices.currency,
        reserved_per_hour=reserved,
        used_share=used,
        used_per_hour=None if used is None else reserved * used,
        per_request=per_request,
        per_slo_request=_per_good(per_request, latency.slo_attainment_share if latency else None),
        per_million_output_tokens=output,
        per_million_tokens=_each(reserved, total_per_s / MEGA),
        per_million_output_tokens_at_full_load=None if output is None or used is None else output * used,
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
