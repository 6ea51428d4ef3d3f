"""A stored request log in words: what it says of the load, and what it cannot say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.profile.arrivals import ArrivalProfile
from calc.profile.profile import LogProfile, Parts
from calc.profile.sessions import LONG_TOKENS
from calc.profile.spread import Spread
from data.store.logs import StoredLog
from ui import format as show
from ui.story.about_log_given import format_title
from ui.story.words import Figure
from ui.text import t

HOUR_S = 3600


def span(duration_s: float) -> str:
    """How long a log is."""
    return t("{hours:.1f} hours", hours=duration_s / HOUR_S) if duration_s >= HOUR_S else show.seconds(duration_s)


def sentence(profile: LogProfile) -> str:
    """The log in one sentence."""
    arrivals = profile.arrivals
    if arrivals.rate_per_s is None:
        return t("{requests:count} requests at one moment.", requests=profile.requests)
    if arrivals.ticked:
        return t(
            "{requests:count} requests in {span}, {rate:rate} on average; the clock of the log ticks too coarsely to "
            "tell short bursts.",
            requests=profile.requests,
            span=span(arrivals.duration_s),
            rate=arrivals.rate_per_s,
        )
    if arrivals.minutes == 1:
        return t(
            "{requests:count} requests in {span}, {rate:rate} on average.",
            requests=profile.requests,
            span=span(arrivals.duration_s),
            rate=arrivals.rate_per_s,
        )
    peak = arrivals.peak_to_mean or 1.0
    return t(
        "{requests:count} requests in {span}, {rate:rate} on average; the fullest minute has {peak:.2f} times as many.",
        requests=profile.requests,
        span=span(arrivals.duration_s),
        rate=arrivals.rate_per_s,
        peak=peak,
    )


def figures(profile: LogProfile) -> list[Figure]:
    """Rate, lengths, concurrency, hits."""
    at_once, hits = profile.concurrency, profile.cached_share
    estimated = at_once is not None and at_once.assumed_latency_s is not None
    found = at_once and (at_once.max if at_once.max is not None else at_once.mean)
    return [
        Figure(
            label=t("Peak minute"),
            value=t("{count:count} requests", count=profile.arrivals.peak_minute_requests),
            provenance="measured",
            help=t("Minutes are counted from the first request."),
        ),
        _lengths(t("Prompt P50 / P95"), profile.prompt_tokens),
        _lengths(t("Output P50 / P95"), profile.output_tokens),
        Figure(
            label=t("Concurrency (Little)") if estimated else t("Most at once"),
            value=show.missing() if found is None else f"{found:,.0f}",
            provenance="missing" if found is None else "estimated" if estimated else "measured",
            help=t("Rate · an assumed latency of {latency:s}: the log has no end of requests.",
                   latency=at_once.assumed_latency_s) if at_once and at_once.assumed_latency_s else "",
        ),
        Figure(
            label=t("Hit rate"),
            value=show.percent(hits),
            provenance="missing" if hits is None else "measured",
            help=t("Cached over prompt tokens, where the log tells cached tokens."),
        ),
    ]  # fmt: skip


def _lengths(label: str, told: Spread) -> Figure:
    return Figure(
        label=label, value=f"{told.p50:,.0f} / {told.p95:,.0f}", provenance="measured",
        help=t("In tokens; P99 {p99:tok}, mean {mean:tok}, longest {most:tok}.", p99=told.p99, mean=told.mean,
               most=told.max),
    )  # fmt: skip


def warnings(profile: LogProfile) -> list[str]:
    """What the log cannot tell, and what a mean would hide."""
    said = _of_arrivals(profile.arrivals)
    at_once = profile.concurrency
    if at_once is not None and at_once.assumed_latency_s is not None:
        said.append(
            t("The log has no end of requests: concurrency is the rate times an assumed latency of {latency:s}.",
              latency=at_once.assumed_latency_s)
        )  # fmt: skip
    if not profile.arrivals.sorted_by_time:
        said.append(t("The file is not in order of time; it was sorted for what is told of time."))
    if profile.cached_beyond:
        said.append(
            t("{count:count} requests name more cached tokens than prompt tokens; the hit rate leaves them out. Does "
              "the column of prompt tokens leave out those found in the cache?", count=profile.cached_beyond)
        )  # fmt: skip
    if profile.zero_outputs:
        said.append(t("{count:count} requests have no output tokens.", count=profile.zero_outputs))
    return said


def _of_arrivals(arrivals: ArrivalProfile) -> list[str]:
    """What the times cannot tell, and what their mean would hide."""
    said = list[str]()
    if arrivals.tick_s is not None:
        said.append(
            t("Arrivals sit on a grid of {tick:s}: gaps and peaks per second are those of the clock, use counts per "
              "minute.", tick=arrivals.tick_s)
        )  # fmt: skip
    elif arrivals.ticked and arrivals.gaps is not None:
        said.append(
            t("{share:pct} of the gaps are 0: many requests share one time stamp, so gaps say nothing of bursts.",
              share=arrivals.gaps.zero_share)
        )  # fmt: skip
    if arrivals.bursty and arrivals.burst_index is not None:
        said.append(
            t("Minutes differ {index:.1f} times as much as chance would make them: plan for the busiest minutes, not "
              "for the mean.", index=arrivals.burst_index)
        )  # fmt: skip
    if arrivals.empty_minutes:
        said.append(
            t("{empty:count} of {minutes:count} minutes are empty: was the log recorded without a gap?",
              empty=arrivals.empty_minutes, minutes=arrivals.minutes)
        )  # fmt: skip
    return said


def lengths(profile: LogProfile) -> list[Mapping[str, str]]:
    """Percentiles of lengths and latencies, those that the log has."""
    rows: Sequence[tuple[str, Spread | None, float]] = (
        (t("Prompt tokens"), profile.prompt_tokens, 1.0),
        (t("Output tokens"), profile.output_tokens, 1.0),
        ("TTFT (ms)", profile.ttft_s, 1e3),
        ("ITL (ms)", profile.itl_s, 1e3),
        ("E2E (ms)", profile.e2e_s, 1e3),
    )
    names = {"mean": t("Mean"), "p50": "P50", "p90": "P90", "p95": "P95", "p99": "P99", "max": t("Most")}
    return [
        {t("Figure"): name, **{label: f"{getattr(told, key) * scale:,.0f}" for key, label in names.items()}}
        for name, told, scale in rows
        if told is not None
    ]


def groups(profile: LogProfile) -> list[Mapping[str, str]]:
    """Short, long and multi-turn requests apart."""
    names = {"short": t("Short"), "long": t("Long"), "multi-turn": t("Multi-turn")}
    return [
        {
            t("Group"): names[group.name],
            t("Requests"): show.count(group.requests),
            t("Share"): show.percent(group.share),
            t("Prompt P50 / P95"): f"{group.prompt_tokens.p50:,.0f} / {group.prompt_tokens.p95:,.0f}",
            t("Output P50 / P95"): f"{group.output_tokens.p50:,.0f} / {group.output_tokens.p95:,.0f}",
        }
        for group in profile.groups
    ]


def facts(profile: LogProfile) -> list[str]:
    """Sessions, shares and reuse, each only where the log tells it."""
    return [*_sessions(profile), *_behaviour(profile), *_reuse(profile)]


def _sessions(profile: LogProfile) -> list[str]:
    said = [
        t("{share:pct} of conversations have a prompt of more than {tokens:tok}.", share=profile.long_share,
          tokens=LONG_TOKENS)
    ]  # fmt: skip
    sessions = profile.sessions
    if sessions is None:
        return [*said, t("The log names no sessions: each request counts as a conversation.")]
    said.append(
        t("{count:count} sessions, {turns:.1f} turns on average (P95 {p95:.0f}); {share:pct} have more than one turn.",
          count=sessions.sessions, turns=sessions.turns.mean, p95=sessions.turns.p95, share=sessions.multi_turn_share)
    )  # fmt: skip
    if sessions.think_s is not None:
        text = (
            t("Between an answer and the next turn: P50 {p50:s}, P95 {p95:s}.", p50=sessions.think_s.p50,
              p95=sessions.think_s.p95)
            if sessions.think_from_end
            else t("From one request of a session to the next: P50 {p50:s}, P95 {p95:s}.", p50=sessions.think_s.p50,
                   p95=sessions.think_s.p95)
        )  # fmt: skip
        said.append(text)
    return said


def _behaviour(profile: LogProfile) -> list[str]:
    behaviour = profile.behaviour
    shares = (
        (behaviour.streaming_share, t("streaming")),
        (behaviour.failed_share, t("failed")),
        (behaviour.cancelled_share, t("cancelled")),
        (behaviour.retried_share, t("retried")),
    )
    said = [f"{show.percent(share)} {word}" for share, word in shares if share is not None]
    unknown = [word for share, word in shares if share is None]
    told = [t("Requests: {shares}.", shares=t(", ").join(said))] if said else []
    if unknown:
        told.append(t("Not told by the log: {words}.", words=t(", ").join(unknown)))
    if behaviour.same_system_prompt_share is not None and behaviour.system_prompts is not None:
        told.append(
            t("{share:pct} of requests have the same system prompt; there are {count:count} of them.",
              share=behaviour.same_system_prompt_share, count=behaviour.system_prompts)
        )  # fmt: skip
    return told


def _reuse(profile: LogProfile) -> list[str]:
    prefixes = profile.prefixes
    if prefixes is None:
        return []
    said = [
        t("{share:pct} of prompt tokens had been computed by an earlier request (a cache that never evicts); shared "
          "heads are {p50:tok} at P50, {p95:tok} at P95.", share=prefixes.reused_tokens_share,
          p50=prefixes.prefix_tokens.p50, p95=prefixes.prefix_tokens.p95),
        t("{share:pct} of requests begin with the same block.", share=prefixes.same_start_share),
    ]  # fmt: skip
    if prefixes.lifetime_s is not None:
        said.append(
            t("A reused block is used over {p50:s} at P50, {p95:s} at P95.", p50=prefixes.lifetime_s.p50,
              p95=prefixes.lifetime_s.p95)
        )  # fmt: skip
    if update := prefixes.update:
        said.append(
            t("A change at the head of the most used prefix ({tokens:tok}, {share:pct} of requests) would invalidate "
              "{blocks:pct} of all distinct blocks: up to {again:tok} to compute again.", tokens=update.prefix_tokens,
              share=update.requests_share, blocks=update.invalid_share, again=update.recomputed_tokens)
        )  # fmt: skip
    return said


def part_titles() -> Mapping[str, str]:
    """Kinds of parts with their titles."""
    return {"tenant": t("Tenants"), "model": t("Models"), "business_line": t("Business lines")}


def parts_sentence(parts: Parts) -> str:
    """How unequal they are."""
    return t(
        "{count:count} in all; the largest sends {one:pct} of the requests, the five largest {five:pct}.",
        count=parts.count,
        one=parts.top_share(1),
        five=parts.top_share(5),
    )


def minutes_alt(profile: LogProfile) -> str:
    """Requests per minute in words."""
    per_minute = profile.arrivals.per_minute
    return t(
        "Requests per minute over {minutes:count} minutes: from {low:count} to {high:count}.",
        minutes=len(per_minute),
        low=int(per_minute.min()),
        high=int(per_minute.max()),
    )


def stored(log: StoredLog) -> str:
    """A log in the list."""
    return t("{name} · {requests:count} requests", name=log.name, requests=log.requests)


def stored_facts(log: StoredLog) -> list[str]:
    """Format, beginning, rows left out."""
    said = [format_title(log.format)]
    if log.first_at:
        said.append(t("begins {moment} UTC", moment=log.first_at[:16].replace("T", " ")))
    said.append(t("{count:count} rows left out", count=log.problem_rows) if log.problem_rows else t("no row left out"))
    return said


def formulas() -> list[str]:
    """How the numbers of a log are made."""
    return [
        t("percentiles: linear between values; correlation of ranks with equal values sharing theirs"),
        t("index of dispersion = variance / mean of the requests per minute; Poisson = 1"),
        t("concurrency: requests open at once, levels weighed by how long they lasted; without ends rate · latency"),
    ]
