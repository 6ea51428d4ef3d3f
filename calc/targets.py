"""What the team promises and what it pays: latency targets and prices."""

from __future__ import annotations

from dataclasses import dataclass, field

from calc.cost_lines import CostLines
from calc.errors import InputError
from calc.messages import msg

MEDIAN_SHARE = 0.5
MIN_TARGET_S = 1e-6
MAX_TARGET_S = 1e6
"""Shortest and longest latency target accepted: a microsecond, eleven days."""
MAX_GPU_HOUR = 1e9
"""Highest price of a GPU-hour accepted, in any currency."""


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Targets in seconds at one percentile (share, 0.95 = P95). None = no target."""

    ttft_s: float | None = None
    itl_s: float | None = None
    e2e_s: float | None = None
    percentile_share: float = 0.95
    source: str = ""

    def __post_init__(self) -> None:
        for name, value in (("TTFT", self.ttft_s), ("ITL", self.itl_s), ("E2E", self.e2e_s)):
            if value is not None and not MIN_TARGET_S <= value <= MAX_TARGET_S:
                raise InputError(
                    msg(
                        "the {name} target must be between {least:g} and {limit:count} seconds, got {value}: "
                        "leave it empty for no target.",
                        name=name,
                        least=MIN_TARGET_S,
                        limit=MAX_TARGET_S,
                        value=value,
                    )
                )
        if not MEDIAN_SHARE <= self.percentile_share < 1:
            raise InputError(
                msg("the SLO percentile must be from P50 to below P100, got {value}.", value=self.percentile_share)
            )

    @property
    def has_target(self) -> bool:
        """Whether any target is set."""
        return any(target is not None for target in (self.ttft_s, self.itl_s, self.e2e_s))


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What the team pays. None = not known."""

    gpu_hour: float | None = None
    currency: str = "USD"
    source: str = ""
    region: str = ""
    commitment: str = ""
    """on-demand, reserved-1y, reserved-3y, spot, owned … Prices of different commitments are different prices."""
    checked_on: str = ""
    """ISO date on which somebody last looked at the source."""
    further: CostLines = field(default_factory=CostLines)
    """What is paid beside GPU-hours."""

    def __post_init__(self) -> None:
        if self.gpu_hour is not None and not 0 <= self.gpu_hour <= MAX_GPU_HOUR:
            raise InputError(
                msg(
                    "the price of a GPU-hour must be between 0 and {limit:count}, got {value}: check it.",
                    limit=MAX_GPU_HOUR,
                    value=self.gpu_hour,
                )
            )
