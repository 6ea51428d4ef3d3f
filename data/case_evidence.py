"""Evidence given as JSON: metric → {value, unit, provenance, source, date}, in any usual unit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from calc.errors import InputError
from calc.evidence import Evidence, Provenance, Value
from calc.messages import Message, msg
from calc.metrics import METRICS, Metric
from calc.units import GB, GIB, KIB, MIB, SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from data.case_fields import Fields, as_number, as_object, shown

_FACTORS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "bytes": {"bytes": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "MB": 1e6, "GB": GB},
        "bytes/s": {"bytes/s": 1, "MB/s": 1e6, "GB/s": GB},
        "s": {"s": 1, "ms": 1e-3, "us": 1e-6, "min": SECONDS_PER_MINUTE, "h": SECONDS_PER_HOUR},
        "share": {"share": 1, "%": 0.01, "percent": 0.01},
        "per_s": {"per_s": 1, "requests/s": 1, "per_min": 1 / SECONDS_PER_MINUTE},
        "tokens/s": {"tokens/s": 1},
    }
)
"""Metric unit → accepted unit → factor. Every other metric is given in its own unit."""


def read_evidence(given: Any) -> tuple[dict[str, Evidence], tuple[Message, ...]]:
    """Evidence by metric in base units, and a note for each metric no condition asks for."""
    evidence: dict[str, Evidence] = {}
    notes: list[Message] = []
    for name, value in as_object(given, "evidence").items():
        if metric := METRICS.get(name):
            evidence[name] = _read_one(metric, value)
        else:
            notes.append(msg("No condition asks for the metric {name}: it was not used.", name=name))
    return evidence, tuple(notes)


def _read_one(metric: Metric, given: Any) -> Evidence:
    """A bare value counts as declared, in the metric's own unit."""
    fields = Fields(given if isinstance(given, Mapping) else {"value": given}, metric.name)
    raw, unit = fields.raw("value"), fields.text("unit")
    provenance = fields.text("provenance") or Provenance.DECLARED
    if provenance not in set(Provenance):
        raise InputError(
            msg(
                "{name} must be one of {choices}, got {value}: choose one.",
                name=fields.name_of("provenance"),
                choices=", ".join(Provenance),
                value=shown(provenance),
            )
        )
    return Evidence(
        metric=metric.name,
        value=None if raw is None else _in_base_unit(metric, raw, unit),
        unit=metric.unit,
        provenance=Provenance.MISSING if raw is None else Provenance(provenance),
        source=fields.text("source") or "",
        date=fields.text("date") or "",
    )


def _in_base_unit(metric: Metric, raw: Any, unit: str | None) -> Value:
    match metric.unit:
        case "flag":
            return Fields({metric.name: raw}).flag(metric.name)
        case "text":
            return Fields({metric.name: raw}).text(metric.name)
        case _:
            return as_number(raw, metric.name) * _factor(metric, unit)


def _factor(metric: Metric, unit: str | None) -> float:
    factors = _FACTORS.get(metric.unit, {metric.unit: 1})
    if unit in (None, "", metric.unit):
        return 1
    if unit not in factors:
        raise InputError(
            msg(
                "The unit of {name} must be one of {choices}, got {unit}: convert it.",
                name=metric.name,
                choices=", ".join(factors),
                unit=shown(unit),
            )
        )
    return factors[unit]
