"""The workload in words: what users send and what it asks of the engine."""

from __future__ import annotations

from collections.abc import Mapping

from calc.course import RateCourse, share_above
from calc.latency import LatencyReport
from calc.scenario import Scenario
from calc.workload import Closed, LengthDistribution, Mmpp, OpenLoop, PerMinute, Recorded, Workload
from data import catalogue
from ui import format as show
from ui.glossary import CHOICES, TERMS
from ui.story.words import Figure, latency_text, target
from ui.text import t


def sentence(scenario: Scenario, latency: LatencyReport) -> str:
    """What arrives against what can be served."""
    if isinstance(scenario.workload.arrivals, Closed):
        return t(
            "{number:count} users in a closed loop make {rate:rate}.",
            number=scenario.workload.arrivals.concurrency,
            rate=latency.request_rate_per_s,
        )
    return t(
        "{offered:rate} arrive; the deployment can serve at most {limit:rate}.",
        offered=scenario.workload.arrivals.rate_per_s,
        limit=latency.max_rate_per_s,
    )


def arrivals(workload: Workload) -> Figure:
    """Rate of an open loop, concurrency of a closed one."""
    law = workload.arrivals
    help_text = {
        Closed: t("Each user waits for the answer before sending the next request."),
        PerMinute: t("Poisson inside each minute, with that minute's own rate."),
        OpenLoop: t("Requests come whatever the engine does."),
        Mmpp: t("Poisson whose rate jumps between calm and rush, each for an exponential time."),
        Recorded: t("The times of a log, as they were."),
    }[type(law)]
    if isinstance(law, Closed):
        return Figure(label=t("Concurrency"), value=show.count(law.concurrency), provenance="declared", help=help_text)
    return Figure(
        label=t("Request rate"), value=show.rate(law.rate_per_s), provenance=provenance(workload), help=help_text
    )


def provenance(workload: Workload) -> str:
    """Whether lengths and arrivals are those of a log."""
    return "measured" if workload.source else "declared"


def source(workload: Workload) -> str:
    """Which log the load is from."""
    return t("Lengths and arrivals are measured: from the log {name}.", name=workload.source)


def lengths(title: str, distribution: LengthDistribution, provenance: str = "declared") -> Figure:
    """P50 and P95 of a length."""
    return Figure(
        label=t("{title} P50 / P95", title=title),
        value=f"{distribution.quantile(0.5):,.0f} / {distribution.quantile(0.95):,.0f}",
        provenance=provenance,
        help=t("In tokens; P99 {p99:tok}, mean {mean:tok}.", p99=distribution.quantile(0.99), mean=distribution.mean()),
    )


def prefill(workload: Workload, latency: LatencyReport) -> Figure:
    """Prompt tokens that must be computed, per second."""
    fresh = workload.prompt_tokens.mean() * (1 - workload.prefix_hit_share) * latency.request_rate_per_s
    return Figure(
        label=t("To compute"),
        value=show.tokens_rate(fresh),
        provenance="estimated",
        help=t("Prompt tokens, after {hit:pct} of them were found in the cache.", hit=workload.prefix_hit_share),
    )


def lengths_alt(distribution: LengthDistribution) -> str:
    """The length curve in words."""
    return t(
        "Share of requests by length: half below {p50:tok}, 95 % below {p95:tok}, 99 % below {p99:tok}.",
        p50=distribution.quantile(0.5),
        p95=distribution.quantile(0.95),
        p99=distribution.quantile(0.99),
    )


def course_sentence(course: RateCourse, latency: LatencyReport) -> str:
    """What the course of the rate means for the deployment."""
    over = share_above(course, latency.max_rate_per_s)
    if not over:
        return t("The highest rate, {peak:rate}, stays below what can be served.", peak=max(course.rates_per_s))
    return t(
        "In {over:pct} of the time more arrives than can be served, at most {peak:rate} against {limit:rate}: a queue "
        "builds up and drains afterwards.",
        over=over,
        peak=max(course.rates_per_s),
        limit=latency.max_rate_per_s,
    )


def course_notes(course: RateCourse) -> list[str]:
    """What kind of picture it is."""
    return [t("One course of many as likely; states last exponential times.")] if course.drawn else []


def course_alt(course: RateCourse) -> str:
    """The course of the rate in words."""
    return t(
        "Arrivals per second over {span:s}: from {low:rate} to {high:rate}.",
        span=course.edges_s[-1],
        low=min(course.rates_per_s),
        high=max(course.rates_per_s),
    )


def classes(workload: Workload) -> list[Mapping[str, str]]:
    """Kinds of requests, each with what it has of its own."""
    return [
        {
            t("Kind"): one.name,
            t("Share"): show.percent(one.share),
            t("Prompt P50 / P95"): _ends(one.prompt_tokens or workload.prompt_tokens),
            t("Output P50 / P95"): _ends(one.output_tokens or workload.output_tokens),
            t("Prefix hits"): show.percent(
                workload.prefix_hit_share if one.prefix_hit_share is None else one.prefix_hit_share
            ),
            t("Priority"): str(one.priority),
            t("Running at once"): t("any") if one.max_running is None else show.count(one.max_running),
        }
        for one in workload.classes
    ]


def clients(workload: Workload) -> list[str]:
    """How clients behave beside sending; nothing where all wait for ever and read to the end."""
    who, said = workload.clients, []
    if who.cancel_share:
        said.append(t("{share:pct} of requests are cancelled while tokens come.", share=who.cancel_share))
    if who.patience_s is not None:
        said.append(t("A client without a first token after {patience:s} gives up.", patience=who.patience_s))
        if who.retries:
            said.append(
                t("It tries again up to {number:count} times, {pause:s} later each time.", number=who.retries,
                  pause=who.retry_after_s)
            )  # fmt: skip
    if workload.offload_hit_share:
        said.append(t("{share:pct} of prompt tokens lie in a tier outside the GPU.", share=workload.offload_hit_share))
    if workload.prefix_groups is not None:
        said.append(t("{number:count} distinct prefixes are shared.", number=workload.prefix_groups))
    if workload.num_requests is not None:
        said.append(t("A benchmark of {number:count} requests, ramp included.", number=workload.num_requests))
    return said


def presets(current: str) -> list[Mapping[str, str]]:
    """Business types with their lengths and targets; the current one is marked."""
    rows: list[Mapping[str, str]] = []
    for code, preset in catalogue.presets().items():
        slo = preset.slo
        wanted = [
            f"{TERMS[metric].label} ≤ {latency_text(metric, limit)}"
            for metric in ("ttft", "itl", "e2e")
            if (limit := target(slo, metric)) is not None
        ]
        rows.append(
            {
                t("Business type"): ("● " if code == current else "") + t(CHOICES[code]),
                t("Prompt P50 / P95"): _ends(preset.workload.prompt_tokens),
                t("Output P50 / P95"): _ends(preset.workload.output_tokens),
                t("Targets"): t(", ").join(wanted) or t("none"),
                t("Source"): preset.source,
            }
        )
    return rows


def _ends(distribution: LengthDistribution) -> str:
    return f"{distribution.quantile(0.5):,.0f} / {distribution.quantile(0.95):,.0f}"


def questions(current: str) -> list[str]:
    """What to ask about this business type."""
    preset = catalogue.presets().get(current)
    return [t(question) for question in preset.questions] if preset else []


def formulas(workload: Workload) -> list[str]:
    """How the numbers of the page are made."""
    return [
        t("lognormal lengths: μ = ln P50, σ = ln(P95 / P50) / 1.645"),
        t(
            "prompt tokens to compute = {mean:tok} · (1 − {hit:pct}) · request rate",
            mean=workload.prompt_tokens.mean(),
            hit=workload.prefix_hit_share,
        ),
    ]


def sources(current: str) -> list[str]:
    """Where the business type's figures come from."""
    preset = catalogue.presets().get(current)
    return [preset.source] if preset else []
