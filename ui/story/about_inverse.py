"""The inverse questions in words: users, requests per second, GPUs and prompt lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.cost import cost_of
from calc.latency import load_of
from calc.scenario import Scenario
from calc.search import Found, SearchResult
from calc.search.inverse import POPULATION_SOURCE, Enough, HighestLoad, LongestContext, Population
from calc.workload import Closed
from ui import format as show
from ui.glossary import BOUNDS, TERMS
from ui.story import about_search
from ui.story.words import Figure
from ui.text import t


def source() -> str:
    """Where the assumptions about people are from."""
    return POPULATION_SOURCE


def what_binds(code: str) -> str:
    """A target or a limit in words."""
    if code in TERMS:
        return t("the {metric} target", metric=TERMS[code].label)
    words = {"model": t("the model's maximum length"), "memory": t("memory")}
    return words.get(code) or (t(BOUNDS[code]) if code in BOUNDS else code)


def load_sentence(scenario: Scenario, found: HighestLoad, people: Population) -> str:
    """The highest load in requests and in users, and what stops it."""
    if found.report is None:
        return t("Not even a small load meets the SLO: {what} binds.", what=what_binds(found.binds))
    if isinstance(scenario.workload.arrivals, Closed):
        return t(
            "Carries {number:count} requests in flight within the SLO; then {what} binds.",
            number=found.load,
            what=what_binds(found.binds),
        )
    return t(
        "Carries {rate:rate} within the SLO, the peak of {users:count} users; then {what} binds.",
        rate=found.load,
        users=people.users(found.load),
        what=what_binds(found.binds),
    )


def load_figures(scenario: Scenario, found: HighestLoad, people: Population) -> list[Figure]:
    """Load, headroom, users, and the price of a user."""
    closed = isinstance(scenario.workload.arrivals, Closed)
    now = load_of(scenario.workload)
    load = show.count(found.load) if closed else show.rate(found.load)
    spare = show.count(found.load - now) if closed else show.rate(found.load - now)
    figures = [
        Figure(label=t("Highest load"), value=load, provenance="simulated"),
        Figure(label=t("Above today's load"), value=spare, provenance="simulated", over=found.load < now),
    ]
    if closed or found.report is None:
        return figures
    users = people.users(found.load)
    price = scenario.prices.gpu_hour
    per_user = None if price is None or users < 1 else price * scenario.deployment.gpu_count * HOURS / users
    return [
        *figures,
        Figure(label=t("Users"), value=show.count(users), provenance="estimated"),
        Figure(
            label=t("GPU cost per user and month"),
            value=show.money(per_user, scenario.prices.currency),
            provenance="missing" if per_user is None else "estimated",
        ),
    ]


HOURS = 730.0
"""Of a month."""


def load_formulas(people: Population) -> list[str]:
    """From requests to people."""
    return [
        t(
            "users = requests/s · 60 ÷ (active {active:pct} · {rate:g} requests a minute · peak {peak:g})",
            active=people.active_share,
            rate=people.requests_per_minute,
            peak=people.peak_factor,
        )
    ]


def users_sentence(scenario: Scenario, found: Enough, users: float, most_gpus: int) -> str:
    """The GPUs of today's kind that so many users need."""
    if found.replicas is None:
        return t(
            "{users:count} users peak at {rate:rate}: more than {most:count} GPUs of this kind carry within the SLO.",
            users=users,
            rate=found.rate_per_s,
            most=most_gpus,
        )
    return t(
        "{users:count} users peak at {rate:rate}: {gpus:count} GPUs in {replicas:count} replicas carry that.",
        users=users,
        rate=found.rate_per_s,
        gpus=found.replicas * scenario.deployment.gpus_per_replica,
        replicas=found.replicas,
    )


def users_figures(scenario: Scenario, found: Enough) -> list[Figure]:
    """Rate, GPUs, cost, and the percentile nearest to its target."""
    rate = Figure(label=t("Peak rate"), value=show.rate(found.rate_per_s), provenance="estimated")
    if found.replicas is None or found.report is None:
        return [rate]
    gpus = found.replicas * scenario.deployment.gpus_per_replica
    price = scenario.prices.gpu_hour
    share = scenario.slo.percentile_share
    mark = show.percentile_name(share)
    return [
        rate,
        Figure(label=t("GPUs"), value=show.count(gpus), provenance="simulated"),
        Figure(
            label=t("Per hour"),
            value=show.money(None if price is None else price * gpus, scenario.prices.currency),
            provenance="missing" if price is None else "estimated",
        ),
        Figure(label=f"TTFT {mark}", value=show.ms(found.report.ttft.at(share)), provenance="simulated"),
    ]


def users_formulas(people: Population, users: float) -> list[str]:
    """From people to requests, with the numbers put in."""
    return [
        t(
            "{users:count} users · {active:pct} active · {rate:g} requests a minute · peak {peak:g} ÷ 60 = {all:rate}",
            users=users,
            active=people.active_share,
            rate=people.requests_per_minute,
            peak=people.peak_factor,
            all=people.rate_per_s(users),
        )
    ]


def context_sentence(found: LongestContext) -> str:
    """How long prompts may be, and what stops longer ones."""
    if found.report is None:
        return t("Prompts of any length tried miss the SLO at this load: {what} binds.", what=what_binds(found.ends_at))
    prompts = found.workload.prompt_tokens
    return t(
        "Prompts may be {factor:.2g} times as long, P50 {p50:tok} and P95 {p95:tok}; then {what} binds.",
        factor=found.factor,
        p50=prompts.quantile(0.5),
        p95=prompts.quantile(0.95),
        what=what_binds(found.ends_at),
    )


def context_figures(scenario: Scenario, found: LongestContext) -> list[Figure]:
    """Prompt lengths now and at most."""
    now, most = scenario.workload.prompt_tokens, found.workload.prompt_tokens
    figures = [Figure(label=t("Prompt P95 now"), value=show.tokens(now.quantile(0.95)), provenance="declared")]
    if found.report is None:
        return figures
    share = scenario.slo.percentile_share
    return [
        *figures,
        Figure(label=t("Prompt P95 at most"), value=show.tokens(most.quantile(0.95)), provenance="simulated"),
        Figure(
            label=f"TTFT {show.percentile_name(share)}",
            value=show.ms(found.report.ttft.at(share)),
            provenance="simulated",
        ),
    ]


def smallest(result: SearchResult) -> Sequence[Found]:
    """Of each type the deployment with the fewest GPUs; the shorter tail decides among equals."""
    best: dict[str, Found] = {}
    for row in result.rows:
        gpu = row.scenario.deployment.gpu.id
        if gpu not in best or _size(row) < _size(best[gpu]):
            best[gpu] = row
    return sorted(best.values(), key=_size)


def _size(row: Found) -> tuple[int, float]:
    return row.gpus, row.tail_s or 0.0


def box_row(one: Found, place: int) -> Mapping[str, str]:
    """One GPU type."""
    deployment = one.scenario.deployment
    cost = cost_of(one.scenario, one.latency)
    share = one.scenario.slo.percentile_share
    mark = show.percentile_name(share)
    return {
        " ": f"{place} · {t('Use this')}",
        t("GPU"): deployment.gpu.name,
        t("GPUs"): show.count(one.gpus),
        t("Deployment"): about_search.name(one.scenario),
        t("Per hour"): show.money(cost.total_per_hour, cost.currency) if cost else t("no price"),
        f"TTFT {mark}": show.ms(one.latency.ttft.at(share)),
        f"E2E {mark}": show.seconds(one.latency.e2e.at(share)),
    }
