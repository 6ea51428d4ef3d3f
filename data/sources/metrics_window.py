"""Two scrapes of one server: what happened between them. This, not a single scrape, describes one benchmark run."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from data.records import MetricsSnapshot
from data.sources.engine_metrics import COUNTERS, HISTOGRAMS
from data.sources.metrics_text import stats_of, subtract


def difference(before: MetricsSnapshot, after: MetricsSnapshot, seconds: float | None = None) -> MetricsSnapshot:
    """Counters and histograms of ``after`` minus ``before``, rates over the time between, gauges as of ``after``.

    ``seconds`` between the scrapes is needed for rates when the texts carry no time. A server that restarted in between
    and scrapes in the wrong order are errors, since the difference would be wrong silently.
    """
    _refuse(before, after)
    window = seconds if seconds is not None else _between(before, after)
    counted: dict[str, Any] = {field: _minus(getattr(before, field), getattr(after, field)) for field in COUNTERS}
    queries, hits = counted["prefix_queries_tokens"], counted["prefix_hits_tokens"]
    histograms = {
        name: found
        for name in before.histograms.keys() & after.histograms.keys()
        if (found := subtract(before.histograms[name], after.histograms[name])) is not None
    }
    latencies: dict[str, Any] = {name: stats_of(histograms.get(name)) for name in HISTOGRAMS}
    return replace(
        after,
        **counted,
        **latencies,
        prefix_hit_share=hits / queries if queries and hits is not None else None,
        prompt_tokens_per_s=_rate(counted["prompt_tokens_total"], window),
        output_tokens_per_s=_rate(counted["output_tokens_total"], window),
        histograms=histograms,
        window_s=window,
    )


class Relation(StrEnum):
    """How a later scrape stands to an earlier one."""

    FOLLOWS = "follows"
    RESTARTED = "restarted"
    """The counters began again in between: no rate can be told."""
    OUT_OF_ORDER = "out-of-order"
    UNCLEAR = "unclear"
    """Counters fell and nothing says whether the server restarted or the scrapes are swapped."""
    OTHER_SERVER = "other-server"


def relation(before: MetricsSnapshot, after: MetricsSnapshot) -> Relation:
    """Whether ``after`` can be measured from ``before``: by times, server start and counters."""
    if (before.source, before.model) != (after.source, after.model):
        return Relation.OTHER_SERVER
    order = _order(before.taken_at_s, after.taken_at_s)
    if order is False:
        return Relation.OUT_OF_ORDER
    later_start = _order(before.started_at_s, after.started_at_s, SAME_START_S)
    known_start = before.started_at_s is not None and after.started_at_s is not None
    if known_start and later_start is not None:
        return Relation.RESTARTED if later_start else Relation.OUT_OF_ORDER
    if not fallen(before, after):
        return Relation.FOLLOWS
    return Relation.RESTARTED if order else Relation.OUT_OF_ORDER if known_start else Relation.UNCLEAR


SAME_START_S = 1.0
"""Starts closer than this are one start, written by several processes of one server."""


def _order(before: float | None, after: float | None, slack_s: float = 0.0) -> bool | None:
    """True when ``after`` is later, False when earlier; ``None`` when equal or not known."""
    if before is None or after is None or abs(after - before) <= slack_s:
        return None
    return after > before


def fallen(before: MetricsSnapshot, after: MetricsSnapshot) -> str:
    """The first counter that is lower in ``after``; empty when none is."""
    for name in COUNTERS:
        if (_minus(getattr(before, name), getattr(after, name)) or 0) < 0:
            return name
    for name in before.histograms.keys() & after.histograms.keys():
        if (_minus(before.histograms[name].count, after.histograms[name].count) or 0) < 0:
            return name
    return ""


def _refuse(before: MetricsSnapshot, after: MetricsSnapshot) -> None:
    match relation(before, after):
        case Relation.FOLLOWS:
            return
        case Relation.OTHER_SERVER:
            raise InputError(
                msg(
                    "two scrapes of one server were expected, these are {before} and {after}: "
                    "take both from the same one.",
                    before=_named(before),
                    after=_named(after),
                )
            )
        case Relation.OUT_OF_ORDER:
            raise InputError(
                msg("the second scrape was taken before the first: they are swapped, give them the other way round.")
            )
        case Relation.RESTARTED:
            raise InputError(
                msg("the server restarted between the two scrapes, so its counters began again: take both again.")
            )
        case _:
            raise InputError(
                msg(
                    "counters fell between the scrapes ({counter}): the server restarted or the two are swapped, "
                    "take both again.",
                    counter=fallen(before, after),
                )
            )


def _minus(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _between(before: MetricsSnapshot, after: MetricsSnapshot) -> float | None:
    span = _minus(before.taken_at_s, after.taken_at_s)
    return span if span is not None and span > 0 else None


def _rate(count: float | None, window: float | None) -> float | None:
    return count / window if count is not None and window else None


def _named(snapshot: MetricsSnapshot) -> str:
    return f"{snapshot.source} {snapshot.model or ''}".strip()
