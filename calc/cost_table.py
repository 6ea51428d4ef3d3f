"""Every line of a deployment's cost: the amount or that nobody stated it, how it is made, and where it is from.

And what the reservation is spent on: work, headroom, and what P99 keeps idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc.cost import (
    spares_per_hour,
    tier_per_hour,
    traffic_bytes_per_s,
    traffic_per_hour,
)
from calc.cost_lines import HOURS_PER_MONTH, NOT_HARDWARE, CostLine
from calc.evidence import Provenance
from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.serving import Tier


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One line of the full cost."""

    code: str
    label: Message
    per_hour: float | None
    """``None`` = not stated, or not in this deployment; ``basis`` says which."""
    basis: Message
    provenance: Provenance
    source: str = ""


def cost_rows(scenario: Scenario, latency: LatencyReport | None) -> tuple[CostRow, ...]:
    """GPUs, spare replicas, tiers, traffic, then what is not hardware; a standard line nobody stated is among them."""
    return (
        _gpus(scenario),
        _spares(scenario),
        *(_tier(scenario, tier) for tier in scenario.deployment.serving.tiers),
        *([] if scenario.deployment.serving.tiers else [_no_tier()]),
        _traffic(scenario, latency),
        *_work(scenario),
    )


def _declared(per_hour: float | None) -> Provenance:
    return Provenance.MISSING if per_hour is None else Provenance.DECLARED


def _gpus(scenario: Scenario) -> CostRow:
    prices, count = scenario.prices, scenario.deployment.gpu_count
    per_hour = None if prices.gpu_hour is None else prices.gpu_hour * count
    basis = (
        msg("{count:count} GPUs; no price of a GPU-hour is stated", count=count)
        if prices.gpu_hour is None
        else msg(
            "{count:count} GPUs × {price:,.2f} {currency} an hour",
            count=count,
            price=prices.gpu_hour,
            currency=prices.currency,
        )
    )
    told = " · ".join(text for text in (prices.region, prices.commitment, prices.source, prices.checked_on) if text)
    return CostRow(
        code="gpus", label=msg("GPUs"), per_hour=per_hour, basis=basis, provenance=_declared(per_hour), source=told
    )


def _spares(scenario: Scenario) -> CostRow:
    spares, each = scenario.prices.further.spare_replicas, scenario.deployment.gpus_per_replica
    per_hour = spares_per_hour(scenario)
    basis = (
        msg("not stated: with N+1 one replica of {each:count} GPUs stands by", each=each)
        if spares is None
        else msg("{spares:count} replicas × {each:count} GPUs", spares=spares, each=each)
    )
    return CostRow(
        code="spares", label=msg("Spare replicas"), per_hour=per_hour, basis=basis, provenance=_declared(per_hour)
    )


def _tier(scenario: Scenario, tier: Tier) -> CostRow:
    price, per_hour = dict(scenario.prices.further.tiers).get(tier.name), tier_per_hour(scenario, tier)
    if tier.capacity_bytes is None:
        basis = msg("its capacity is not stated")
    elif price is None:
        basis = msg("{size:gib} per replica; no price of a GiB-month is stated", size=tier.capacity_bytes)
    else:
        basis = msg(
            "{size:gib} × {replicas:count} replicas × {price:,.4g} {currency} a GiB-month",
            size=tier.capacity_bytes,
            replicas=scenario.deployment.replicas,
            price=price,
            currency=scenario.prices.currency,
        )
    return CostRow(
        code=f"tier:{tier.name}",
        label=msg("KV tier {name}", name=tier.name),
        per_hour=per_hour,
        basis=basis,
        provenance=_declared(per_hour),
    )


def _no_tier() -> CostRow:
    return CostRow(
        code="tier",
        label=msg("CPU memory and storage for KV"),
        per_hour=None,
        basis=msg("this deployment keeps no KV outside the GPU"),
        provenance=Provenance.DECLARED,
    )


def _traffic(scenario: Scenario, latency: LatencyReport | None) -> CostRow:
    moved = traffic_bytes_per_s(scenario, latency) if latency else 0.0
    per_hour = traffic_per_hour(scenario, latency) if latency and moved else None
    if not moved:
        basis = msg("no KV crosses the network in this deployment")
    elif scenario.prices.further.traffic_per_gb is None:
        basis = msg("{rate:gbps} of KV; no price of a GB is stated", rate=moved)
    else:
        basis = msg(
            "{rate:gbps} of KV × {price:,.4g} {currency} a GB",
            rate=moved,
            price=scenario.prices.further.traffic_per_gb,
            currency=scenario.prices.currency,
        )
    provenance = Provenance.ESTIMATED if per_hour is not None or not moved else Provenance.MISSING
    return CostRow(
        code="traffic", label=msg("Traffic between servers"), per_hour=per_hour, basis=basis, provenance=provenance
    )


def _work(scenario: Scenario) -> list[CostRow]:
    """The standard lines in their order, then the team's own."""
    lines = {line.name: line for line in scenario.prices.further.lines}
    own = [line for name, line in lines.items() if name not in NOT_HARDWARE]
    standard = [
        _line(lines[code], label) if code in lines else _unstated(code, label) for code, label in NOT_HARDWARE.items()
    ]
    return [*standard, *(_line(line, msg("{name}", name=line.name)) for line in own)]


def _unstated(code: str, label: Message) -> CostRow:
    return CostRow(code=code, label=label, per_hour=None, basis=msg("not stated"), provenance=Provenance.MISSING)


def _line(line: CostLine, label: Message) -> CostRow:
    basis = (
        msg("{amount:,.2f} a month", amount=line.per_month)
        if line.amount_per_month is not None
        else msg("{amount:,.2f} once, over {months:,.4g} months", amount=line.amount_once, months=line.months)
    )
    return CostRow(
        code=line.name,
        label=label,
        per_hour=line.per_month / HOURS_PER_MONTH,
        basis=basis,
        provenance=Provenance.DECLARED,
        source=line.source,
    )


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What the GPUs reserved are there for, as shares of the highest stable rate; they add up to 1."""

    working_share: float
    """Today's rate ÷ stability limit."""
    headroom_share: float
    """From today's rate to the highest one that meets the SLO."""
    tail_share: float
    """From there to the stability limit: what P95 or P99 keeps idle."""

    def gpus(self, scenario: Scenario, share: float) -> float:
        """A share as GPUs."""
        return share * scenario.deployment.gpu_count


def reservation(rate_per_s: float, knee_per_s: float | None, limit_per_s: float) -> Reservation | None:
    """``None`` without a target (nothing says how much must stay idle) or a limit; beyond the knee there is no
    headroom."""
    if knee_per_s is None or limit_per_s <= 0:
        return None
    working = min(rate_per_s / limit_per_s, 1.0)
    knee = min(max(knee_per_s / limit_per_s, working), 1.0)
    return Reservation(working_share=working, headroom_share=knee - working, tail_share=1.0 - knee)
