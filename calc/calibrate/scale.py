"""Efficiency constants multiplied by the factors of a calibration; each belongs to one factor, told by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def factor_of(name: str) -> str | None:
    """The factor that an efficiency field belongs to; ``None`` = no cost."""
    found = next((factor for part, factor in _RULES if part in name), None)
    if found is None and name.endswith("_s"):
        return "step"
    return found


def scaled(shares: Efficiency, factors: Factors) -> Efficiency:
    """The constants at the costs of ``factors``."""
    times = factors.times()
    return _with_costs(
        shares, lambda factor, value, is_share: value / times[factor] if is_share else value * times[factor]
    )


def ideal(shares: Efficiency) -> Efficiency:
    """Every peak reached and nothing else paid: no measurement can be faster."""
    return _with_costs(shares, lambda factor, value, is_share: 1.0 if is_share else 0.0)  # noqa: ARG005


def _with_costs(shares: Efficiency, cost: Callable[[str, float, bool], float]) -> Efficiency:
    changed: dict[str, Any] = {}
    for name in (one.name for one in fields(shares)):
        factor = factor_of(name)
        if factor is None:
            continue
        value, is_share = getattr(shares, name), name.endswith(SHARE)
        if isinstance(value, Mapping):
            changed[name] = {key: cost(factor, inner, is_share) for key, inner in value.items()}
        else:
            changed[name] = cost(factor, value, is_share)
    return replace(shares, **changed)
