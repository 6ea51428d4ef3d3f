"""Efficiency constants multiplied by the factors of a calibration; each belongs to one factor, told by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from calc.calibrate.calibration import Factors
from calc.step.efficiency import Efficiency

SHARE = "_share"
"""Fields whose name ends so are shares of a peak: a cost twice as high is a share half as large."""
_RULES = (
    ("allreduce", "link"),
    ("http", "network"),
    ("sequence", "sequence"),
    ("prefill_s", "request"),
    ("compute", "compute"),
    ("bandwidth", "memory"),
    ("activation", "memory"),
)
"""Part of a field's name → factor; the first that fits counts. What remains in seconds is paid once per step."""


_RELATIVE = ("expert_bandwidth_share",)
"""Shares of another share, which is scaled already."""


def factor_of(name: str) -> str | None:
    """The factor that an efficiency field belongs to; ``None`` = no cost of its own."""
    if name in _RELATIVE:
        return None
    found = next((factor for part, factor in _RULES if part in name), None)
    if found is None and name.endswith("_s"):
        return "step"
    return found


def scaled(shares: Efficiency, factors: Factors) -> Efficiency:
    """The constants at the costs of ``factors``."""
    times = factors.times()
    changed: dict[str, Any] = {}
    for name in _names(shares):
        factor = factor_of(name)
        if factor is not None:
            cost = 1 / times[factor] if name.endswith(SHARE) else times[factor]
            changed[name] = _each(getattr(shares, name), cost, 0.0)
    return replace(shares, **changed)


def least_costs(shares: Efficiency, most_share: float) -> dict[str, float]:
    """The factors at which a table of shares reaches ``most_share`` of its peak: no cost can be lower."""
    return {
        "memory": max(shares.bandwidth_share.values()) / most_share,
        "compute": max(shares.compute_share.values()) / most_share,
    }


def ideal(shares: Efficiency) -> Efficiency:
    """Every peak reached and nothing else paid: no measurement can be faster."""
    changed: dict[str, Any] = {}
    for name in _names(shares):
        if name.endswith(SHARE):
            changed[name] = _each(getattr(shares, name), 0.0, 1.0)
        elif factor_of(name) is not None:
            changed[name] = _each(getattr(shares, name), 0.0, 0.0)
    return replace(shares, **changed)


def _names(shares: Efficiency) -> tuple[str, ...]:
    return tuple(one.name for one in fields(shares))


def _each(value: Any, times: float, plus: float) -> Any:
    """A number, or every number of a table, times a factor plus a constant."""
    if isinstance(value, Mapping):
        return {key: inner * times + plus for key, inner in value.items()}
    return value * times + plus
