"""The one thing a user asks about: a deployment, a load, a target and a price."""

from __future__ import annotations

from dataclasses import dataclass, field

from calc.calibrate.calibration import Calibration
from calc.deployment import Deployment
from calc.workload import Prices, Slo, Workload


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Frozen; every page, the command line and the sheet start from one of these."""

    name: str = ""
    deployment: Deployment
    workload: Workload
    slo: Slo = field(default_factory=Slo)
    prices: Prices = field(default_factory=Prices)
    calibration: Calibration | None = None
    """Measured constants in place of the generic ones, as far as they hold for the deployment."""
