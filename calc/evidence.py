"""A figure and where it comes from. Missing stays missing: ``None``, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from calc.messages import Message

Value: TypeAlias = float | str | bool | None


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
    value: Value
    unit: str
    provenance: Provenance
    source: str = ""
    date: str = ""
    instead_of: Evidence | None = None
    """The calculated or declared figure that this measured one overrides; shown beside it."""
    caveats: tuple[Message, ...] = ()
    """What the checks say of the measurement: it goes wherever the figure goes."""


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


_STRENGTH = (
    Provenance.MISSING,
    Provenance.DECLARED,
    Provenance.ESTIMATED,
    Provenance.SIMULATED,
    Provenance.MEASURED,
)
"""Weakest first: a figure worked out from others is no better known than the weakest of them."""


def weakest(provenances: Iterable[Provenance]) -> Provenance:
    """Provenance of a figure worked out from others."""
    return min(provenances, key=_STRENGTH.index, default=Provenance.MISSING)


def number(evidence: Mapping[str, Evidence], metric: str) -> float | None:
    """The figure as a number; ``None`` when it is missing or no number."""
    value = value_of(evidence, metric)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def flag(evidence: Mapping[str, Evidence], metric: str) -> bool | None:
    """The fact as yes or no; ``None`` when nobody stated it."""
    value = value_of(evidence, metric)
    return value if isinstance(value, bool) else None


def value_of(evidence: Mapping[str, Evidence], metric: str) -> Value:
    """The figure as it is; ``None`` when it is missing."""
    found = evidence.get(metric)
    return None if found is None or found.provenance is Provenance.MISSING else found.value


def is_measured(evidence: Mapping[str, Evidence], metric: str) -> bool:
    """Whether the figure was measured on the real system."""
    found = evidence.get(metric)
    return found is not None and found.value is not None and found.provenance is Provenance.MEASURED


def overriding(calculated: Mapping[str, Evidence], measured: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """``calculated`` with every figure of ``measured`` in its place; the replaced figure stays visible beside it."""
    merged = dict(calculated)
    for metric, found in measured.items():
        if found.value is None:
            continue
        before = calculated.get(metric)
        kept = before if before is not None and before.value is not None else None
        merged[metric] = Evidence(
            metric=metric,
            value=found.value,
            unit=found.unit,
            provenance=found.provenance,
            source=found.source,
            date=found.date,
            instead_of=kept,
            caveats=found.caveats,
        )
    return merged
