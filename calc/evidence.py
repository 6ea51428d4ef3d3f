"""A figure and where it comes from. Missing stays missing: ``None``, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """How we came to know a figure."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    ESTIMATED = "estimated"
    DECLARED = "declared"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One named figure in base units (bytes, seconds, tokens, shares) with unit, provenance, source and date."""

    metric: str
    value: float | str | bool | None
    unit: str
    provenance: Provenance
    source: str = ""
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Of one latency over requests, in seconds. ``None`` = not measured."""

    mean_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None

    def at(self, share: float) -> float | None:
        """The value at one of the kept percentiles (0.5, 0.9, 0.95, 0.99)."""
        return {0.5: self.p50_s, 0.9: self.p90_s, 0.95: self.p95_s, 0.99: self.p99_s}.get(share)
