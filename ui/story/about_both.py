"""Two reports together: the overall verdict, and one scenario beside another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.cost import cost_of
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import Message
from calc.scenario import Scenario
from calc.workload import Slo
from ui import format as show
from ui.glossary import BOUNDS, TERMS
from ui.story import about_latency, about_memory, words
from ui.story.words import Figure
from ui.text import t


def verdict(memory: MemoryReport, latency: LatencyReport | Message, slo: Slo) -> bool | None:
    """True: fits and meets the SLO; False: does not; None: no target to judge by, or latency is not known."""
    if not memory.fits:
        return False
    return about_latency.verdict(latency, slo) if isinstance(latency, LatencyReport) else None


def overview(memory: MemoryReport, latency: LatencyReport | Message, slo: Slo, sweep: LoadSweep | None) -> list[Figure]:
    """Memory, TTFT, ITL and the load line; what is not known says so."""
    if not isinstance(latency, LatencyReport) or sweep is None:
        return [about_memory.fit(memory), about_memory.sequences(memory), about_memory.per_request(memory)]
    return [
        about_memory.fit(memory),
        about_latency.percentile("ttft", latency, slo),
        about_latency.percentile("itl", latency, slo),
        about_latency.knee(sweep),
    ]


def comparison(now: LatencyReport, other: LatencyReport, slo: Slo) -> str:
    """What the second scenario changes, at the SLO's percentile of its leading metric."""
    metric = about_latency.tightest(now, slo)
    before, after = (getattr(report, metric).at(slo.percentile_share) for report in (now, other))
    name = f"{TERMS[metric].label} {show.percentile_name(slo.percentile_share)}"
    if now.saturated or other.saturated or not before or after is None:
        limits = {"now": now.max_rate_per_s, "other": other.max_rate_per_s}
        return t("The stability limit goes from {now:rate} to {other:rate}.", **limits)
    return t(
        "{name} goes from {before} to {after} ({change:+.0%}).",
        name=name,
        before=words.latency_text(metric, before),
        after=words.latency_text(metric, after),
        change=after / before - 1,
    )


def compared_figures(scenario: Scenario, memory: MemoryReport, latency: LatencyReport) -> list[Figure]:
    """The second scenario's main numbers."""
    return [
        about_memory.fit(memory),
        about_latency.percentile("ttft", latency, scenario.slo),
        about_latency.percentile("itl", latency, scenario.slo),
        about_latency.limit(latency),
    ]


def compared_rows(
    scenarios: Sequence[Scenario],
    memories: Sequence[tuple[str, MemoryReport]],
    latencies: Sequence[tuple[str, LatencyReport]],
) -> list[Mapping[str, str]]:
    """One row per number, one column per scenario; hit rate, memory, P99 and unit cost stand in one table."""
    names = [name for name, _ in memories]
    columns = [
        _column(scenario, memory, latency)
        for scenario, (_, memory), (_, latency) in zip(scenarios, memories, latencies, strict=True)
    ]
    return [_compared(names, cells) for cells in zip(*(column.items() for column in columns), strict=True)]


def _compared(names: Sequence[str], cells: Sequence[tuple[tuple[str, str], str]]) -> Mapping[str, str]:
    """One number of every scenario; where one was measured and another estimated, both are said."""
    label = cells[0][0][0]
    kinds = " / ".join(dict.fromkeys(t(kind) for (_, kind), _ in cells))
    return {t("Number"): label, **dict(zip(names, (value for _, value in cells), strict=True)), t("Provenance"): kinds}


def _column(scenario: Scenario, memory: MemoryReport, latency: LatencyReport) -> Mapping[tuple[str, str], str]:
    cost = cost_of(scenario, latency)
    return {
        (t("GPUs"), "declared"): f"{scenario.deployment.gpu_count} × {scenario.deployment.gpu.name}",
        (t("Prefix hit share"), "declared"): show.percent(scenario.workload.prefix_hit_share),
        (t("Weights per GPU"), memory.origin("weights")): show.gib(memory.weights_bytes),
        (t("KV pool per GPU"), memory.origin("kv_pool")): show.gib(memory.kv_pool_bytes),
        (t("KV usage, max"), "simulated"): show.percent(latency.kv_usage_max_share),
        ("TTFT P50", "simulated"): show.ms(latency.ttft.p50_s),
        ("TTFT P95", "simulated"): show.ms(latency.ttft.p95_s),
        ("TTFT P99", "simulated"): show.ms(latency.ttft.p99_s),
        ("ITL P95", "simulated"): show.ms(latency.itl.p95_s),
        ("E2E P95", "simulated"): show.seconds(latency.e2e.p95_s),
        ("E2E P99", "simulated"): show.seconds(latency.e2e.p99_s),
        (t("Stability limit"), "estimated"): show.rate(latency.max_rate_per_s),
        (t("Binds"), "simulated"): t(BOUNDS[latency.bound]),
        (t("Cost per million output tokens"), "estimated"): show.money(
            cost.per_million_output_tokens if cost else None, scenario.prices.currency
        ),
    }
