"""What the users send, as widget values and as the ``workload`` of a case, both ways."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from ui.typed import (
    classes_text,
    numbers_text,
    pairs_text,
    parse_classes,
    parse_numbers,
    parse_pairs,
    parse_trace,
    trace_text,
)
from ui.typed.numbers import PERCENT, percent_of, share_of
from ui.typed.trace import MAX_SCREEN_ARRIVALS

LOAD: Mapping[str, Any] = {
    "preset": "custom",
    "prompt_kind": "lognormal", "prompt_p50": 500.0, "prompt_p95": 1500.0, "prompt_quantiles": "",
    "output_kind": "lognormal", "output_p50": 250.0, "output_p95": 600.0, "output_quantiles": "",
    "arrivals": "poisson", "rate": 1.0, "concurrency": 8, "cv": 1.0, "minute_rates": "",
    "state_rates": "4.62, 7.02", "state_stays": "117, 72", "trace": "",
    "hit": 0.0, "offload_hit": 0.0, "prefix_groups": None,
    "idle_share": 0.0, "idle_context": None,
    "classes": "", "cancel_share": 0.0, "patience": None, "retries": 0, "retry_after": 1.0,
    "num_requests": None, "http": True, "load_source": "",
}  # fmt: skip
"""Widget key → value when a case says nothing. The two states: Azure conversations, a fit of counts per second."""
CLIENTS: Mapping[str, str] = {"patience": "patience_s", "retries": "retries", "retry_after": "retry_after_s"}
ARRIVAL_VALUES: Mapping[str, str] = {"rate_per_s": "rate", "cv": "cv", "concurrency": "concurrency"}
LOG_SOURCE = "load_source"
"""The log that the load was taken from: a fingerprint of the load as it was taken, and the log's name."""
OF_LOG = (
    "prompt_kind", "prompt_quantiles", "output_kind", "output_quantiles", "arrivals", "minute_rates", "trace",
)  # fmt: skip
"""Values that make a load that of a log; changed by hand, it is the log's no more."""
MAX_SCREEN_REQUESTS = 100_000
"""Requests of a benchmark simulated while a visitor waits; scripts take a hundred times as many."""


def workload_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """The ``workload`` these values describe."""
    workload: dict[str, Any] = {
        "prompt_tokens": _lengths(values, "prompt"),
        "output_tokens": _lengths(values, "output"),
        "arrivals": _arrivals(values),
        "prefix_hit_share": values["hit"] / PERCENT,
        "http": bool(values["http"]),
    }
    if values["preset"] != "custom":
        workload["business_type"] = values["preset"]
    if values["offload_hit"]:
        workload["offload_hit_share"] = share_of(values["offload_hit"])
    if values["classes"].strip():
        workload["classes"] = parse_classes(values["classes"])
    if source := source_name(values):
        workload["source"] = source
    known = {key: values[key] for key in ("num_requests", "prefix_groups") if values[key] is not None}
    return workload | _idle(values) | _clients(values) | known


def source_text(values: Mapping[str, Any], name: str) -> str:
    """A load as it is now, and the log that it is from."""
    return f"{_fingerprint(values)} {name}" if name else ""


def source_name(values: Mapping[str, Any]) -> str:
    """The log that the load is from; empty as soon as its lengths or arrivals were changed by hand."""
    fingerprint, _, name = str(values.get(LOG_SOURCE) or "").partition(" ")
    return name if fingerprint == _fingerprint(values) else ""


def _fingerprint(values: Mapping[str, Any]) -> str:
    text = "\x1f".join(str(values.get(key, "")) for key in OF_LOG)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def _idle(values: Mapping[str, Any]) -> dict[str, Any]:
    held = values["idle_context"]
    if not values["idle_share"] and held is None:
        return {}
    idle = {"share": values["idle_share"] / PERCENT}
    return {"idle_sessions": idle if held is None else {**idle, "context_tokens": held}}


def _clients(values: Mapping[str, Any]) -> dict[str, Any]:
    differing = {target: values[key] for key, target in CLIENTS.items() if values[key] not in (None, LOAD[key])}
    if values["cancel_share"]:
        differing["cancel_share"] = share_of(values["cancel_share"])
    return {"clients": differing} if differing else {}


def _lengths(values: Mapping[str, Any], what: str) -> dict[str, Any]:
    kind = values[f"{what}_kind"]
    p50, p95 = values[f"{what}_p50"], values[f"{what}_p95"]
    shapes: Mapping[str, dict[str, Any]] = {
        "fixed": {"value": p50},
        "uniform": {"low": p50, "high": p95},
        "lognormal": {"p50": p50, "p95": p95},
    }
    if kind in shapes:
        return {"distribution": kind, **shapes[kind]}
    return {"distribution": "empirical", "quantiles": parse_pairs(values[f"{what}_quantiles"])}


def _arrivals(values: Mapping[str, Any]) -> dict[str, Any]:
    match kind := values["arrivals"]:
        case "closed":
            return {"kind": kind, "concurrency": values["concurrency"]}
        case "per-minute":
            return {"kind": kind, "rates_per_s": parse_numbers(values["minute_rates"])}
        case "mmpp":
            rates, stays = parse_numbers(values["state_rates"]), parse_numbers(values["state_stays"])
            return {"kind": kind, "rates_per_s": rates, "stays_s": stays}
        case "trace":
            return parse_trace(values["trace"])
        case _:
            return {"kind": kind, "rate_per_s": values["rate"]} | ({"cv": values["cv"]} if kind == "gamma" else {})


def workload_values(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Values that :func:`workload_case` turns back into ``workload``; what it leaves out keeps its default."""
    values: dict[str, Any] = {"preset": workload.get("business_type", "custom")}
    values["hit"] = workload.get("prefix_hit_share", 0.0) * PERCENT
    values["offload_hit"] = percent_of(workload.get("offload_hit_share") or 0.0)
    idle = workload.get("idle_sessions") or {}
    values["idle_share"], values["idle_context"] = idle.get("share", 0.0) * PERCENT, idle.get("context_tokens")
    values["prefix_groups"] = workload.get("prefix_groups")
    values["classes"] = classes_text(workload.get("classes") or ())
    requests = workload.get("num_requests")
    values["num_requests"] = None if (requests or 0) > MAX_SCREEN_REQUESTS else requests
    for what in ("prompt", "output"):
        if lengths := workload.get(f"{what}_tokens"):
            values |= _length_values(lengths, what)
    values |= _client_values(workload.get("clients") or {}) | _arrival_values(workload.get("arrivals") or {})
    return values | {LOG_SOURCE: source_text({**LOAD, **values}, workload.get("source") or "")}


def _client_values(clients: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: clients[target] for key, target in CLIENTS.items() if clients.get(target) is not None}
    return values | {"cancel_share": percent_of(clients.get("cancel_share") or 0.0)}


def _arrival_values(arrivals: Mapping[str, Any]) -> dict[str, Any]:
    if not arrivals:
        return {}
    kind = arrivals["kind"]
    values = {"arrivals": kind} | {key: arrivals[name] for name, key in ARRIVAL_VALUES.items() if name in arrivals}
    if kind == "per-minute":
        values["minute_rates"] = numbers_text(arrivals["rates_per_s"])
    if kind == "mmpp":
        values["state_rates"] = numbers_text(arrivals["rates_per_s"])
        values["state_stays"] = numbers_text(arrivals["stays_s"])
    if kind == "trace":
        values["trace"] = _log_text(arrivals)
    return values


def _log_text(arrivals: Mapping[str, Any]) -> str:
    count = len(arrivals["times_s"])
    if count > MAX_SCREEN_ARRIVALS:
        raise InputError(
            msg(
                "The log has {count:count} arrivals, more than the {limit:count} a page carries: take a part of it.",
                count=count,
                limit=MAX_SCREEN_ARRIVALS,
            )
        )
    return trace_text(arrivals)


def _length_values(lengths: Mapping[str, Any], what: str) -> dict[str, Any]:
    values: dict[str, Any] = {f"{what}_kind": lengths["distribution"]}
    for name, end in (("value", "p50"), ("p50", "p50"), ("low", "p50"), ("p95", "p95"), ("high", "p95")):
        if name in lengths:
            values[f"{what}_{end}"] = lengths[name]
    if "quantiles" in lengths:
        values[f"{what}_quantiles"] = pairs_text(lengths["quantiles"])
    return values


def load_not_on_screen(workload: Mapping[str, Any]) -> list[str]:
    """Of a load, what no widget holds: more requests than a visitor waits for."""
    return ["workload.num_requests"] if (workload.get("num_requests") or 0) > MAX_SCREEN_REQUESTS else []
