"""What a deployment costs beside its GPUs: memory and storage tiers, traffic, spare replicas, and people's work.

Nothing is assumed: what nobody stated is not stated, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.errors import InputError
from calc.messages import Message, msg

HOURS_PER_MONTH = 730.0
"""8,760 hours of a year over twelve: how clouds turn monthly prices into hourly ones."""
MAX_AMOUNT = 1e12
"""Highest amount of one line accepted, in any currency."""
MAX_LINES = 50
MAX_MONTHS = 600.0
"""Longest time an amount paid once is spread over: fifty years."""
MAX_SPARES = 64
NOT_HARDWARE: Mapping[str, Message] = MappingProxyType(
    {
        "adaptation": msg("Adaptation work"),
        "monitoring": msg("Monitoring and capacity work"),
        "isolation": msg("Isolation of tenants and data"),
        "network": msg("Network"),
        "upgrade": msg("Upgrade and rollback"),
    }
)
"""What a full cost names beside hardware, by the name a line has in a case; each is stated or not stated."""


def _check_amount(value: float, name: str) -> None:
    if not (math.isfinite(value) and 0 <= value <= MAX_AMOUNT):
        raise InputError(
            msg(
                "the amount of {name} must be between 0 and {limit:count}, got {value}: check it.",
                name=name,
                limit=MAX_AMOUNT,
                value=value,
            )
        )


@dataclass(frozen=True, kw_only=True)
class CostLine:
    """One amount beside hardware: per month, or paid once and spread over months."""

    name: str
    """A code of :data:`NOT_HARDWARE`, or the team's own words."""
    amount_per_month: float | None = None
    amount_once: float | None = None
    months: float | None = None
    """Over which an amount paid once is spread."""
    source: str = ""

    def __post_init__(self) -> None:
        if (self.amount_per_month is None) == (self.amount_once is None):
            raise InputError(
                msg("cost line {name} needs either an amount per month or one paid once: give one.", name=self.name)
            )
        for amount in (self.amount_per_month, self.amount_once):
            if amount is not None:
                _check_amount(amount, self.name)
        if self.amount_once is not None and not (self.months is not None and 0 < self.months <= MAX_MONTHS):
            raise InputError(
                msg(
                    "cost line {name} is paid once: enter the months to spread it over (up to {limit:count}).",
                    name=self.name,
                    limit=MAX_MONTHS,
                )
            )

    @property
    def per_month(self) -> float:
        """The amount, or the month's part of what is paid once."""
        if self.amount_per_month is not None:
            return self.amount_per_month
        assert self.amount_once is not None  # checked when it was made
        assert self.months is not None
        return self.amount_once / self.months


@dataclass(frozen=True, kw_only=True)
class CostLines:
    """Everything beside the price of a GPU-hour, in the currency of the prices. Empty = nothing stated."""

    lines: tuple[CostLine, ...] = ()
    tiers: tuple[tuple[str, float], ...] = ()
    """(name of a tier outside the GPU, price of a GiB-month): CPU memory, disk, remote storage."""
    traffic_per_gb: float | None = None
    """Price of a GB between servers or to remote storage."""
    spare_replicas: int | None = None
    """Replicas kept beside those the load needs, so that one may fail (N+1); ``None`` = not stated."""

    def __post_init__(self) -> None:
        if len(self.lines) > MAX_LINES:
            raise InputError(msg("at most {limit:count} cost lines are kept: join some.", limit=MAX_LINES))
        if len({line.name for line in self.lines}) < len(self.lines):
            raise InputError(msg("two cost lines have the same name: rename one."))
        for name, amount in self.tiers:
            _check_amount(amount, name)
        if self.traffic_per_gb is not None:
            _check_amount(self.traffic_per_gb, "traffic")
        if self.spare_replicas is not None and not 0 <= self.spare_replicas <= MAX_SPARES:
            raise InputError(
                msg(
                    "spare replicas must be between 0 and {limit:count}, got {value}.",
                    limit=MAX_SPARES,
                    value=self.spare_replicas,
                )
            )

    @property
    def stated(self) -> bool:
        """True as soon as anything is said."""
        return self != CostLines()
