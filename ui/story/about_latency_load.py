"""Latency over load in words: how far the SLO holds, where the limit is, and how sure the curve is."""

from __future__ import annotations

from collections.abc import Mapping

from calc.latency import LatencyReport, LoadSweep, headroom_per_s
from calc.scenario import Scenario
from ui import format as show
from ui.glossary import BOUNDS, TERMS
from ui.story.words import METRIC_NAMES, has_target, latency_text
from ui.text import t

SETTLED_SHARE = 0.005
"""A knee so near to the planned load is at it."""


def pictures() -> Mapping[str, str]:
    """What the load curve can show."""
    return {**METRIC_NAMES, "slo": t("SLO and goodput"), "kv": t("KV cache")}


def knee(scenario: Scenario, sweep: LoadSweep) -> str:
    """How far the SLO holds, and what that leaves."""
    if not has_target(scenario.slo):
        return t("No target is set, so no load is too high until the queue grows without end.")
    if sweep.knee_load is None:
        return t("Not even the lightest load shown meets the SLO.")
    held, planned = _load(sweep, sweep.knee_load), _load(sweep, sweep.operating_load)
    spare = headroom_per_s(scenario, load_sweep=sweep) or 0.0
    if sweep.knee_load == sweep.loads[-1]:
        return t("The SLO holds over the whole range, up to {held}.", held=held)
    if abs(sweep.knee_load / sweep.operating_load - 1) <= SETTLED_SHARE:
        return t("The SLO holds up to {held}, the planned load: no headroom.", held=held)
    if sweep.knee_load > sweep.operating_load:
        return t(
            "The SLO holds up to {held}: headroom {spare:rate} above the planned {planned}.",
            held=held,
            spare=spare,
            planned=planned,
        )
    return t(
        "The SLO holds up to {held}: {over:rate} less than the planned {planned}.",
        held=held,
        over=-spare,
        planned=planned,
    )


def _load(sweep: LoadSweep, load: float) -> str:
    if sweep.axis == "rate":
        return show.rate(load)
    return t("{number:count} requests in flight", number=load)


def limit(latency: LatencyReport, sweep: LoadSweep) -> str:
    """The stability limit, what sets it, and where the planned load stands."""
    what = t(BOUNDS[latency.limit]) if latency.limit else ""
    if sweep.axis == "concurrency":
        return t(
            "At most {limit:rate} can be served, set by {what}; users beyond that only wait.",
            limit=sweep.max_rate_per_s,
            what=what,
        )
    return t(
        "Saturated at {limit:rate}, set by {what}; the planned load is {share:pct} of it.",
        limit=sweep.max_rate_per_s,
        what=what,
        share=sweep.operating_load / sweep.max_rate_per_s,
    )


def agreement(latency: LatencyReport, sweep: LoadSweep, metric: str, share: float) -> str:
    """How many requests a point stands on, and how its figure at the planned load compares with the card's."""
    here = next(report for load, report in zip(sweep.loads, sweep.reports, strict=True) if load == sweep.operating_load)
    if here.requests == latency.requests or metric not in METRIC_NAMES or latency.saturated or here.saturated:
        return t("Each point simulates {number:count} requests.", number=here.requests)
    return t(
        "Each point simulates {number:count} requests, the cards above {cards:count}: {metric} {percentile} is {here} "
        "here and {there} there; the difference is chance.",
        number=here.requests,
        cards=latency.requests,
        metric=TERMS[metric].label,
        percentile=show.percentile_name(share),
        here=latency_text(metric, getattr(here, metric).at(share)),
        there=latency_text(metric, getattr(latency, metric).at(share)),
    )


def attainment_alt(sweep: LoadSweep) -> str:
    """Requests within the SLO, in words."""
    return t(
        "Share of requests within every target over load: {first:pct} at {low:.3g}.",
        first=sweep.reports[0].slo_attainment_share or 0.0,
        low=sweep.loads[0],
    )


def goodput_alt(sweep: LoadSweep) -> str:
    """Goodput in words: its best."""
    best = max(
        (report.goodput_per_s or 0.0) for report in sweep.reports if not report.saturated or report is sweep.reports[0]
    )
    return t("Requests served and requests within the SLO per second over load: at best {best:rate}.", best=best)


def kv_alt(sweep: LoadSweep) -> str:
    """KV usage in words: its ends."""
    return t(
        "Mean and largest KV usage over load: mean {first:pct} at {low:.3g} to {last:pct} at {high:.3g}.",
        first=sweep.reports[0].kv_usage_mean_share,
        last=sweep.reports[-1].kv_usage_mean_share,
        low=sweep.loads[0],
        high=sweep.loads[-1],
    )


def preempted_alt(sweep: LoadSweep) -> str:
    """Preemptions in words: where they begin."""
    first = next((load for load, one in zip(sweep.loads, sweep.reports, strict=True) if one.preemptions), None)
    if first is None:
        return t("Preemptions over load: none.")
    return t("Preemptions over load: none below {load:.3g}.", load=first)
