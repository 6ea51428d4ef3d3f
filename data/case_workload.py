"""The load and the targets of a JSON case, both ways."""

from __future__ import annotations

from typing import Any

from calc.units import KILO
from calc.workload import MAX_PREFIX_GROUPS, Arrivals, LengthDistribution, Recorded, Slo, Workload
from data.case_clients import read_classes, read_clients, write_classes, write_clients
from data.case_fields import Fields, unscaled
from data.case_lengths import lengths_of_log, read_lengths, write_lengths
from data.case_traffic import read_arrivals, write_arrivals
from data.own_text import one_line

TARGETS = ("ttft", "itl", "e2e")
PERCENT = 100
_MEDIAN_PERCENT = 50


def read_workload(fields: Fields, http: bool | None = None) -> Workload:
    """The load; ``http`` is the case's own top-level field and wins over the workload's."""
    inner_http = fields.flag("http")
    measured_at = http if http is not None else inner_http
    idle = fields.child("idle_sessions")
    arrivals = read_arrivals(fields.needed_child("arrivals"))
    return Workload(
        prompt_tokens=_lengths(fields, "prompt_tokens", arrivals),
        output_tokens=_lengths(fields, "output_tokens", arrivals),
        arrivals=arrivals,
        prefix_hit_share=fields.number("prefix_hit_share") or 0.0,
        num_requests=fields.whole("num_requests"),
        business_type=fields.text("business_type") or "custom",
        http=True if measured_at is None else measured_at,
        idle_share=(idle.number("share") or 0.0) if idle else 0.0,
        idle_context_tokens=idle.number("context_tokens") if idle else None,
        offload_hit_share=fields.share("offload_hit_share") or 0.0,
        classes=read_classes(fields),
        clients=read_clients(fields.child("clients")),
        prefix_groups=fields.count("prefix_groups", MAX_PREFIX_GROUPS),
        source=_source(fields),
    )


def _source(fields: Fields) -> str:
    """The name of a log, as it may be shown."""
    name = fields.text("source")
    return one_line(name, fields.name_of("source")) if name else ""


def _lengths(fields: Fields, key: str, arrivals: Arrivals) -> LengthDistribution:
    """As given, or as the log of the arrivals has them."""
    logged: tuple[int, ...] = getattr(arrivals, key) if isinstance(arrivals, Recorded) else ()
    return lengths_of_log(logged) if logged and fields.raw(key) is None else read_lengths(fields.needed_child(key))


def write_workload(workload: Workload) -> dict[str, Any]:
    """The load as a case carries it (``http`` stands one level up)."""
    written: dict[str, Any] = {
        "prompt_tokens": write_lengths(workload.prompt_tokens),
        "output_tokens": write_lengths(workload.output_tokens),
        "arrivals": write_arrivals(workload.arrivals),
        "prefix_hit_share": workload.prefix_hit_share,
    }
    if workload.num_requests is not None:
        written["num_requests"] = workload.num_requests
    if workload.business_type != "custom":
        written["business_type"] = workload.business_type
    if workload.idle_share or workload.idle_context_tokens is not None:
        written["idle_sessions"] = _write_idle(workload)
    if workload.offload_hit_share:
        written["offload_hit_share"] = workload.offload_hit_share
    if workload.prefix_groups is not None:
        written["prefix_groups"] = workload.prefix_groups
    if workload.source:
        written["source"] = workload.source
    return written | write_classes(workload.classes) | write_clients(workload.clients)


def _write_idle(workload: Workload) -> dict[str, float]:
    held = workload.idle_context_tokens
    return {"share": workload.idle_share} | ({} if held is None else {"context_tokens": held})


def read_slo(fields: Fields | None) -> Slo:
    """The targets ``ttft``, ``itl`` and ``e2e``, each as ``…_ms`` or ``…_s``, and a ``percentile`` (0.95, or 95)."""
    if fields is None:
        return Slo()
    percentile = fields.number("percentile")
    return Slo(
        **{f"{target}_s": _read_target(fields, target) for target in TARGETS},
        percentile_share=Slo.percentile_share if percentile is None else _as_share(percentile),
        source=fields.text("source") or "",
    )


def _read_target(fields: Fields, target: str) -> float | None:
    milliseconds, seconds = fields.number(f"{target}_ms"), fields.number(f"{target}_s")
    return seconds if milliseconds is None else milliseconds / KILO


def _as_share(percentile: float) -> float:
    return percentile / PERCENT if percentile >= _MEDIAN_PERCENT else percentile


def write_slo(slo: Slo) -> dict[str, Any]:
    """The targets that are set."""
    written: dict[str, Any] = {"percentile": slo.percentile_share}
    for key, value_s in (("ttft", slo.ttft_s), ("itl", slo.itl_s)):
        if value_s is not None:
            written |= _write_target(key, value_s)
    if slo.e2e_s is not None:
        written["e2e_s"] = slo.e2e_s
    return written | ({"source": slo.source} if slo.source else {})


def _write_target(target: str, value_s: float) -> dict[str, float]:
    """In milliseconds, or in seconds where no number of milliseconds reads back as the same target."""
    milliseconds = unscaled(value_s, KILO)
    return {f"{target}_ms": milliseconds} if milliseconds / KILO == value_s else {f"{target}_s": value_s}
