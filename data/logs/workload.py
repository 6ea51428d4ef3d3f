"""A stored log as the load of a scenario: its own quantiles, its rate in each minute, what was cached and cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calc.lengths import FloatArray
from calc.messages import Message, msg
from calc.profile.profile import LogProfile
from calc.profile.spread import Spread
from calc.traffic import MAX_RECORDED, MIN_TIMES
from calc.units import SECONDS_PER_MINUTE
from data.case_lengths import OF_LOG
from data.store.logs import request_log
from data.store.store import Store

MAX_MINUTES = 1440
"""Minutes a scenario carries: one day."""
MAX_TENANTS = 8
"""Tenants told apart; the others are one class."""
OTHERS = "others"
LEAST_SHARE = 1e-4
"""A class with a smaller share is not told apart: rounding would lose it."""
PER_MINUTE, TRACE = "per-minute", "trace"
GROUPS, TENANTS = "groups", "tenants"


@dataclass(frozen=True, kw_only=True)
class LogWorkload:
    """The ``workload`` of a case, and what of the log it does not carry."""

    case: Mapping[str, Any]
    notes: tuple[Message, ...]


def workload_of_log(
    store: Store,
    log_id: str,
    profile: LogProfile,
    *,
    arrivals: str = PER_MINUTE,
    classes: str = "",
    most_times: int = MAX_RECORDED,
) -> LogWorkload:
    """``arrivals``: ``per-minute``, or ``trace`` = the times; ``classes``: ``groups``, ``tenants`` or none."""
    log = request_log(store.database, log_id)
    notes: list[Message] = []
    rows = _rows(store, log_id)
    case: dict[str, Any] = {
        "prompt_tokens": _empirical(rows["prompt_tokens"]),
        "output_tokens": _empirical(rows["output_tokens"]),
        "arrivals": _recorded(rows) if arrivals == TRACE and _fits(rows, most_times) else _per_minute(profile, notes),
        "source": log.name,
    }
    if profile.cached_share is not None:
        case["prefix_hit_share"] = profile.cached_share
    if told := _classes(profile, classes):
        case["classes"] = told
    if clients := _clients(profile):
        case["clients"] = clients
    if profile.zero_outputs or profile.zero_prompts:
        notes.append(msg("Requests without tokens count as arrivals; their lengths do not count."))
    return LogWorkload(case=case, notes=tuple(notes))


def _rows(store: Store, log_id: str) -> dict[str, FloatArray]:
    with store.database.reading() as cursor:
        found = cursor.execute(
            "SELECT arrival_s, prompt_tokens, output_tokens FROM log_requests WHERE log_id = ?", [log_id]
        ).fetchnumpy()
        return {name: np.asarray(found[name], dtype=np.float64) for name in found}


def _empirical(tokens: FloatArray) -> dict[str, Any]:
    """Quantiles of the lengths that are none of 0; a log of nothing else has the shortest length there is."""
    some = tokens[tokens > 0]
    values = np.quantile(some if len(some) else np.ones(1), OF_LOG)
    pairs = [[share, float(value)] for share, value in zip(OF_LOG, values, strict=True)]
    return {"distribution": "empirical", "quantiles": pairs}


def _fits(rows: Mapping[str, FloatArray], most: int) -> bool:
    times_s = rows["arrival_s"]
    return MIN_TIMES <= len(times_s) <= most and float(times_s.max()) > float(times_s.min())


def _recorded(rows: Mapping[str, FloatArray]) -> dict[str, Any]:
    order = np.argsort(rows["arrival_s"], kind="stable")
    lengths = {
        name: np.maximum(rows[name][order], 1).astype(np.int64).tolist() for name in ("prompt_tokens", "output_tokens")
    }
    return {"kind": TRACE, "times_s": [round(time_s, 6) for time_s in rows["arrival_s"][order].tolist()], **lengths}


def _per_minute(profile: LogProfile, notes: list[Message]) -> dict[str, Any]:
    """Requests per second of each minute; the last, partial minute over the seconds it has."""
    counts = profile.arrivals.per_minute.astype(np.float64)
    seconds = np.full(len(counts), float(SECONDS_PER_MINUTE))
    rest_s = profile.arrivals.duration_s - SECONDS_PER_MINUTE * (len(counts) - 1)
    if len(counts) > 1 and rest_s < SECONDS_PER_MINUTE / 2:  # too short to tell a rate
        counts, seconds = counts[:-1], seconds[:-1]
    elif rest_s > 0:
        seconds[-1] = rest_s
    if len(counts) > MAX_MINUTES:
        sums = np.concatenate([[0.0], np.cumsum(counts)])
        begin = int(np.argmax(sums[MAX_MINUTES:] - sums[:-MAX_MINUTES]))
        counts, seconds = counts[begin : begin + MAX_MINUTES], seconds[begin : begin + MAX_MINUTES]
        notes.append(msg("The log is longer than a day: its busiest {minutes:count} minutes are taken.",
                         minutes=MAX_MINUTES))  # fmt: skip
    return {"kind": PER_MINUTE, "rates_per_s": [float(f"{rate:.4g}") for rate in (counts / seconds).tolist()]}


def _clients(profile: LogProfile) -> dict[str, Any]:
    behaviour = profile.behaviour
    clients: dict[str, Any] = {}
    if behaviour.cancelled_share:
        clients["cancel_share"] = behaviour.cancelled_share
    if behaviour.mean_retries:
        clients["retries"] = max(1, round(behaviour.mean_retries))
    return clients


def _classes(profile: LogProfile, kind: str) -> list[dict[str, Any]]:
    """Kinds of requests with lengths of their own (groups) or shares alone (tenants)."""
    if kind == GROUPS and len(profile.groups) > 1:
        return _shares(
            (group.name, group.share, {"prompt_tokens": _lognormal(group.prompt_tokens),
                                       "output_tokens": _lognormal(group.output_tokens)})
            for group in profile.groups
        )  # fmt: skip
    tenants = profile.parts.get("tenant")
    if kind != TENANTS or tenants is None or tenants.count < 2:  # noqa: PLR2004 - one tenant is no class
        return []
    largest = tenants.largest[:MAX_TENANTS]
    rest = 1 - sum(part.share for part in largest)
    named = [(_word(part.name), part.share, dict[str, Any]()) for part in largest]
    return _shares([*named, *([(OTHERS, rest, {})] if rest > LEAST_SHARE else [])])


def _shares(classes: Iterable[tuple[str, float, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Shares of four digits that add up to one; names told apart."""
    kept = [(name, share, own) for name, share, own in classes if share > LEAST_SHARE]
    total = sum(share for _, share, _ in kept)
    told: list[dict[str, Any]] = []
    for name, share, own in kept:
        twice = any(one["name"] == name for one in told)
        told.append({"name": f"{name}-{len(told)}" if twice else name, "share": round(share / total, 4), **own})
    told[0]["share"] = round(told[0]["share"] + 1 - sum(one["share"] for one in told), 4)
    return told


def _lognormal(tokens: Spread) -> dict[str, Any]:
    p50 = max(tokens.p50, 1.0)
    return {"distribution": "lognormal", "p50": round(p50), "p95": round(max(tokens.p95, p50))}


def _word(name: str) -> str:
    """A tenant's name as one word that a list of classes can hold."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)[:40] or "tenant"
