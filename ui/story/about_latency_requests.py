"""Requests told apart, in words: short against long, who waits behind whom, and an hour played through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from calc.anatomy.groups import Group
from calc.anatomy.hour import HourReport, Played
from calc.anatomy.shapes import SHAPES
from calc.latency import LatencyReport
from calc.workload import Arrivals, Clients, Mmpp, OpenLoop, PerMinute, Recorded, RequestClass, Slo
from ui import format as show
from ui.glossary import TERMS
from ui.story.words import METRICS, Figure, has_target, latency_text, target
from ui.text import t

NOTABLE = 1.5
"""Waits so many times longer than at the mean rate are worth a warning."""
AS_GIVEN = "given"
Named: TypeAlias = Sequence[tuple[str, Group]]
"""Groups of requests with what they are called."""


def names(quarters: Sequence[Group]) -> list[str]:
    """What each quarter is called: its prompt lengths."""
    return [
        t("{low:count}–{high:count} tokens", low=quarter.shortest_tokens, high=quarter.longest_tokens)
        for quarter in quarters
    ]


def group_rows(what: str, groups: Named, slo: Slo) -> list[Mapping[str, str]]:
    """Each group: its share of the tokens and what it meets; ▲ marks a missed target."""
    return [
        {
            what: name,
            t("Number"): show.count(group.requests),
            t("Of all prompt tokens"): show.percent(group.prompt_share),
            "TTFT P50": show.ms(group.ttft.p50_s),
            "TTFT P95": show.ms(group.ttft.p95_s) + _over(group.ttft.at(slo.percentile_share), slo.ttft_s),
            "TTFT P99": show.ms(group.ttft.p99_s),
            "TPOT P95": show.ms(group.tpot.p95_s),
            "E2E P95": show.seconds(group.e2e.p95_s) + _over(group.e2e.at(slo.percentile_share), slo.e2e_s),
            t("Provenance"): t("simulated"),
        }
        for name, group in groups
    ]


def classes(groups: Named, slo: Slo) -> str:
    """Which class waits longest, and which least."""
    share = slo.percentile_share
    rising = sorted((group.ttft.at(share) or 0.0, name) for name, group in groups)
    (quick_s, quickest), (slow_s, slowest) = rising[0], rising[-1]
    return t(
        "TTFT {percentile} is {slow:ms} for {slowest} and {quick:ms} for {quickest}.",
        percentile=show.percentile_name(share),
        slow=slow_s,
        slowest=slowest,
        quick=quick_s,
        quickest=quickest,
    )


def class_rules(declared: Sequence[RequestClass]) -> list[str]:
    """What the scheduler is told of each class."""
    return [
        t("{name}: {share:pct} of requests, priority {priority}", name=one.name, share=one.share, priority=one.priority)
        + ("" if one.max_running is None else t(", at most {number:count} at once", number=one.max_running))
        for one in declared
    ]


def class_rows(groups: Named, latency: LatencyReport, slo: Slo) -> list[Mapping[str, str]]:
    """Each class: what it meets, and how much of it lies within the SLO."""
    reports = {report.name: report for report in latency.classes}
    return [
        {
            **row,
            t("Within the SLO"): show.percent(share)
            if (share := reports[name].slo_attainment_share) is not None
            else "–",
            "Goodput": show.rate(rate) if (rate := reports[name].goodput_per_s) is not None else "–",
        }
        for (name, _), row in zip(groups, group_rows(t("Class"), groups, slo), strict=True)
        if name in reports
    ]


def leaving(latency: LatencyReport, clients: Clients) -> list[str]:
    """Who goes away, and what the percentiles leave out; empty where all clients stay and wait."""
    lines = []
    if clients.cancel_share > 0:
        lines.append(t("{share:pct} of requests are cancelled while tokens come.", share=latency.cancelled_share))
    if clients.patience_s is not None:
        lines.append(
            t(
                "{share:pct} get no first token within {patience:s} and give up for good; {retried:.3g} further tries "
                "for each request. Percentiles are of answered requests, the SLO counts the others as missed.",
                share=latency.gave_up_share,
                patience=clients.patience_s,
                retried=latency.retried_share,
            )
        )
    return lines


def _over(value_s: float | None, target_s: float | None) -> str:
    """A mark for what misses its target."""
    return " ▲" if value_s is not None and target_s is not None and value_s > target_s else ""


def blocking(quarters: Sequence[Group]) -> str:
    """Whether long prompts hold up short ones."""
    if len(quarters) == 1:
        return t("All prompts are about equally long: nobody is held up by longer ones.")
    short, longest = quarters[0], quarters[-1]
    share = short.behind_s[-1] / short.queue_s if short.queue_s > 0 else 0.0
    return t(
        "The shortest prompts wait {wait:ms} for their first step, {behind:ms} of it ({share:pct}) while prompts of "
        "the longest group are prefilled, which bring {tokens:pct} of all prompt tokens.",
        wait=short.queue_s,
        behind=short.behind_s[-1],
        share=share,
        tokens=longest.prompt_share,
    )


def waits_alt(groups: Named) -> str:
    """The bars of waiting in words."""
    bars = "; ".join(f"{name} {show.ms(one.queue_s)}" for name, one in groups)
    return t("Mean wait of each group, by whose prompts are prefilled meanwhile: {bars}.", bars=bars)


def shapes(arrivals: Arrivals) -> Mapping[str, str]:
    """What an hour may look like: as given, and for a plain rate the shapes of public traces."""
    given = {AS_GIVEN: _as_given(arrivals)}
    return given | {code: t(shape.title) for code, shape in SHAPES.items()} if isinstance(arrivals, OpenLoop) else given


def _as_given(arrivals: Arrivals) -> str:
    match arrivals:
        case PerMinute():
            return t("Your rates by the minute")
        case Mmpp():
            return t("Your changing rate")
        case Recorded():
            return t("Your log")
    return t("As given: the same rate all the time")


def assumption(code: str) -> str:
    """That a shape is not the user's own."""
    if code == AS_GIVEN:
        return ""
    return t(
        "An assumption: only the mean rate is yours; how it rises and falls is taken from a public trace ({source}).",
        source=SHAPES[code].source,
    )


def is_even(arrivals: Arrivals, shape: str) -> bool:
    """Whether the played arrivals are what the mean rate alone says: Poisson at one rate."""
    return shape == AS_GIVEN and isinstance(arrivals, OpenLoop) and arrivals.kind == "poisson"


def hour_sentence(hour: HourReport, slo: Slo, *, even: bool) -> str:
    """What the hour does, and what its mean rate would have promised."""
    minutes = len(hour.over)
    factor = hour.understated
    met = (
        t("{over} of {minutes} minutes miss the SLO.", over=hour.minutes_over, minutes=minutes)
        if has_target(slo)
        else t("{minutes} minutes played.", minutes=minutes)
    )
    if even:
        return met + " " + t("The rate stays the same: minutes differ by chance alone.")
    if factor is not None and factor >= NOTABLE:
        return met + " " + t("The mean rate alone would understate waiting {factor:.3g} times.", factor=factor)
    return met + " " + t("The mean rate tells the same: its changes hardly add to the waiting.")


def hour_figures(hour: HourReport, slo: Slo) -> list[Figure]:
    """The hour in numbers, each beside the same time at the mean rate."""
    share = slo.percentile_share
    figures = [
        Figure(
            label=f"{TERMS[metric].label} {show.percentile_name(share)}",
            value=latency_text(metric, getattr(hour.whole, metric).at(share)),
            provenance="simulated",
            help=t("At the mean rate: {value}.", value=latency_text(metric, getattr(hour.even, metric).at(share))),
            target="" if (aim := target(slo, metric)) is None else latency_text(metric, aim),
            over=aim is not None and (getattr(hour.whole, metric).at(share) or 0.0) > aim,
        )
        for metric in ("ttft", "e2e")
    ]
    return [
        Figure(
            label=t("Minutes over the SLO"),
            value=f"{hour.minutes_over} / {len(hour.over)}" if has_target(slo) else t("no target"),
            provenance="simulated",
            help=t("Minutes whose own requests miss a target at the SLO's percentile; ITL as each request's mean gap."),
        ),
        *figures,
        Figure(
            label=t("Mean wait"),
            value=show.ms(hour.whole.queue_s),
            provenance="simulated",
            help=t("At the mean rate, Poisson: {value}.", value=show.ms(hour.even.queue_s)),
        ),
    ]


def washed(hour: HourReport) -> str:
    """What the wash behind the curves means, and how few requests a minute has."""
    return t(
        "Washed minutes miss a target, whichever it is, at the SLO's percentile of their own requests, about "
        "{number:count} each.",
        number=hour.whole.requests / len(hour.over),
    )


def hour_rows(hour: HourReport, *, even: bool) -> list[Mapping[str, str]]:
    """The played time beside the same time at the mean rate."""
    rows = [(t("as played"), hour.whole)] + ([] if even else [(t("Poisson at the mean rate"), hour.even)])
    return [{t("Arrivals"): name, **_played(played)} for name, played in rows]


def _played(played: Played) -> Mapping[str, str]:
    return {
        t("Number"): show.count(played.requests),
        **{
            f"{TERMS[metric].label} {name}": latency_text(metric, getattr(getattr(played, metric), f"{name.lower()}_s"))
            for metric in METRICS
            if metric != "itl"
            for name in ("P50", "P95", "P99")
        },
        t("Mean wait"): show.ms(played.queue_s),
        t("Within the SLO"): show.percent(played.attained_share) if played.attained_share is not None else "–",
    }


def hour_pictures() -> Mapping[str, str]:
    """What can be drawn minute by minute."""
    return {"ttft": TERMS["ttft"].label, "e2e": TERMS["e2e"].label, "queue": t("Queue"), "kv": t("KV cache")}


def hour_alt(hour: HourReport, picture: str) -> str:
    """The curves in words: their highest minute."""
    if picture == "queue":
        return t("Requests running and waiting by minute: at most {number:count} wait.", number=max(hour.waiting))
    if picture == "kv":
        return t("KV usage by minute: at most {share:pct}.", share=max(hour.kv_usage_share))
    highest = max((value for value in getattr(hour, f"{picture}_p95_s") if value is not None), default=None)
    return t(
        "{metric} at P50, P95 and P99 by minute: P95 at most {value}.",
        metric=TERMS[picture].label,
        value=latency_text(picture, highest),
    )


def arrivals_alt(hour: HourReport) -> str:
    """The bars of arrivals in words."""
    return t(
        "Arrivals by minute: from {low:rate} to {high:rate}.", low=min(hour.offered_per_s), high=max(hour.offered_per_s)
    )


def formulas() -> list[str]:
    """How the figures of this view are made."""
    return [
        t("Groups: quarters of the simulated requests by prompt length."),
        t(
            "Wait behind a group: the time between arrival and first step, shared over the prompts in prefill at each "
            "moment (n_group ÷ n)."
        ),
        t(
            "An hour: every request of one replica's share simulated from an idle start; requests count in the minute "
            "they arrive in."
        ),
        t("KV usage by minute: blocks of the whole prompt from admission on, then one token a step, until the last."),
    ]
