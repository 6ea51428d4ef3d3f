"""The numbers table: each figure with unit, percentile, provenance, source and date, against its target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from calc import MODEL_VERSION
from calc.engine import resolve
from calc.evidence import Evidence, Percentiles, Provenance
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.workload import Prices, Slo
from data.records import BenchmarkRun, LatencyStats
from ui.format import percentile_name
from ui.sheet.review import Figure, NumberRow

SHOWN = (("P50", 0.5), ("P95", 0.95), ("P99", 0.99))
P90 = ("P90", 0.9)
"""Shown too when the targets hold at P90."""
SOURCE = f"Plimsoll {MODEL_VERSION}"


def figure(
    value: float | None,
    unit: str,
    provenance: Provenance,
    *,
    percentile: str = "",
    source: str = SOURCE,
    date: str = "",
) -> Figure:
    """A figure; one that has no finite value is missing, whatever it would have been."""
    known = value is not None and math.isfinite(value)
    return Figure(
        value=value if known else None,
        unit=unit,
        percentile=percentile,
        provenance=provenance if known else Provenance.MISSING,
        source=source if known else "",
        date=date if known else "",
    )


def tightest_target(slo: Slo, latency: LatencyReport) -> tuple[str, float | None]:
    """The metric that uses most of its target at the planned load, and that target; TTFT when none is set."""
    at = slo.percentile_share
    used = [
        ((value.at(at) or 0.0) / target, name, target)
        for name, value, target in _targets(slo, latency)
        if target is not None
    ]
    return max(used)[1:] if used else ("TTFT", None)


def meets_slo(slo: Slo, memory: MemoryReport | None, latency: LatencyReport | None) -> bool | None:
    """Whether each target holds at its percentile; ``None`` without a target or when it is not known."""
    if all(target is None for *_, target in _targets(slo, latency)):
        return None
    if memory is not None and not memory.fits:
        return False
    return None if latency is None else latency.slo_met


def demand_bytes(memory: MemoryReport | None, latency: LatencyReport | None) -> int | None:
    """KV demand of one GPU at the planned load; ``None`` where no load is served or the queue grows without end."""
    if memory is None or latency is None or latency.saturated or not memory.fits:
        return None
    return memory.kv_demand_bytes


def holds(memory: MemoryReport | None, latency: LatencyReport | None) -> bool | None:
    """Whether weights, runtime and the KV demand of the load fit; ``None`` without a memory report."""
    if memory is None:
        return None
    demanded = demand_bytes(memory, latency)
    return demanded is not None and demanded <= memory.kv_pool_bytes


def hit_share(scenario: Scenario) -> float:
    """Share of prompt tokens found: nothing is found where prefix caching is off."""
    return scenario.workload.prefix_hit_share if resolve(scenario.deployment).prefix_caching else 0.0


def _targets(slo: Slo, latency: LatencyReport | None) -> tuple[tuple[str, Percentiles, float | None], ...]:
    unknown = Percentiles()
    return (
        ("TTFT", latency.ttft if latency else unknown, slo.ttft_s),
        ("ITL", latency.itl if latency else unknown, slo.itl_s),
        ("E2E", latency.e2e if latency else unknown, slo.e2e_s),
    )


def number_rows(
    scenario: Scenario,
    memory: MemoryReport,
    latency: LatencyReport | None,
    sweep: LoadSweep | None,
    runs: Sequence[BenchmarkRun],
    evidence: Sequence[Evidence],
    cost_per_million_tokens: float | None,
) -> tuple[NumberRow, ...]:
    """Memory first, then latency, load, cache and cost."""
    return (
        *_memory_rows(scenario, memory, latency),
        *_latency_rows(scenario.slo, memory, latency, runs),
        *_load_rows(scenario.slo, latency, sweep),
        *_cache_rows(scenario, latency, evidence),
        NumberRow(
            key="cost",
            label=msg("Cost per million tokens"),
            figures=(_cost(cost_per_million_tokens, scenario.prices),),
        ),
    )


def _cost(cost_per_million_tokens: float | None, prices: Prices) -> Figure:
    """As old as the price it rests on."""
    return figure(
        cost_per_million_tokens, prices.currency, Provenance.ESTIMATED,
        source=prices.source or SOURCE, date=prices.checked_on,
    )  # fmt: skip


def _memory_rows(scenario: Scenario, memory: MemoryReport, latency: LatencyReport | None) -> Iterator[NumberRow]:
    known = Provenance(memory.origin("weights"))
    given = scenario.deployment.kv_pool_bytes_per_gpu is not None or scenario.deployment.kv_tokens is not None
    pool = Provenance.DECLARED if given else Provenance(memory.origin("kv_pool"))
    given = given or pool is Provenance.MEASURED
    yield NumberRow(
        key="weights", label=msg("Weights, per GPU"), figures=(figure(memory.weights_bytes, "bytes", known),)
    )
    yield NumberRow(
        key="kv_per_request",
        label=msg("KV per request, per GPU"),
        figures=(figure(memory.kv_per_request_bytes, "MiB", Provenance.ESTIMATED),),
    )
    yield NumberRow(
        key="kv_pool", label=msg("KV pool, per GPU"), figures=(figure(memory.kv_pool_bytes, "bytes", pool),)
    )
    if not given:
        yield NumberRow(
            key="kv_pool_band",
            label=msg("KV pool, 80 % band"),
            figures=tuple(
                figure(edge, "bytes", pool, percentile=name)
                for name, edge in zip(("P10", "P90"), memory.kv_pool_band_bytes, strict=True)
            ),
        )
    yield NumberRow(
        key="kv_demand",
        label=msg("KV demand, per GPU"),
        figures=(figure(demand_bytes(memory, latency), "bytes", Provenance.SIMULATED),),
        target=figure(memory.kv_pool_bytes, "bytes", pool),
        passes=holds(memory, latency),
        instead=_instead(memory, latency),
    )
    yield NumberRow(
        key="max_concurrency",
        label=msg("Max concurrency at {longest:tok}", longest=memory.max_model_len_tokens),
        figures=(figure(memory.max_concurrency, "number", pool),),
    )


def _latency_rows(
    slo: Slo, memory: MemoryReport, latency: LatencyReport | None, runs: Sequence[BenchmarkRun]
) -> Iterator[NumberRow]:
    newest = max(runs, key=lambda run: run.date or "", default=None)
    instead = _instead(memory, latency)
    for name, value, target_s in _targets(slo, latency):
        unit = "s" if name == "E2E" else "ms"
        measured = () if newest is None else _measured(name, unit, newest)
        judged = next((one.value for one in measured if one.percentile == percentile_name(slo.percentile_share)), None)
        reached = judged if isinstance(judged, float | int) else value.at(slo.percentile_share)
        yield NumberRow(
            key=name.lower(),
            label=Message(name),
            figures=tuple(
                figure(value.at(share), unit, Provenance.SIMULATED, percentile=label)
                for label, share in _shown(slo.percentile_share)
            ),
            measured=measured,
            target=None
            if target_s is None
            else figure(target_s, unit, Provenance.DECLARED, percentile=percentile_name(slo.percentile_share)),
            passes=_passes(reached, target_s, served=instead is None),
            instead=instead,
        )


def _instead(memory: MemoryReport, latency: LatencyReport | None) -> Message | None:
    if not memory.fits:
        return msg("does not fit")
    return msg("unstable") if latency is not None and latency.saturated else None


def _passes(reached: float | None, target_s: float | None, *, served: bool) -> bool | None:
    if target_s is None or (served and reached is None):
        return None
    return served and reached is not None and reached <= target_s


def _shown(slo_share: float) -> list[tuple[str, float]]:
    return sorted({*SHOWN, P90} if slo_share == P90[1] else SHOWN, key=lambda one: one[1])


def _measured(name: str, unit: str, run: BenchmarkRun) -> tuple[Figure, ...]:
    stats = {"TTFT": run.ttft, "ITL": run.itl, "E2E": run.e2e}[name] or LatencyStats()
    values = (("P50", stats.p50_s), ("P90", stats.p90_s), ("P95", stats.p95_s), ("P99", stats.p99_s))
    return tuple(
        figure(value, unit, Provenance.MEASURED, percentile=name, source=run.tool, date=run.date or "")
        for name, value in values
        if value is not None
    )


def _load_rows(slo: Slo, latency: LatencyReport | None, sweep: LoadSweep | None) -> Iterator[NumberRow]:
    knee = None if sweep is None else sweep.knee_load
    unit = "requests/s" if sweep is None or sweep.axis == "rate" else "count"
    planned = None if sweep is None else sweep.operating_load
    promised = any(target for *_, target in _targets(slo, latency))
    never = promised and sweep is not None and knee is None
    instead = msg("none of those simulated") if never else None if promised else msg("no target is set")
    yield NumberRow(
        key="knee",
        label=msg("Highest load within SLO"),
        figures=(figure(knee, unit, Provenance.SIMULATED),),
        target=figure(planned, unit, Provenance.DECLARED) if promised and planned is not None else None,
        at_least=True,
        passes=False if never else None if knee is None or planned is None else knee >= planned,
        instead=instead,
    )
    yield NumberRow(
        key="attainment",
        label=msg("Requests within SLO"),
        figures=(figure(None if latency is None else latency.slo_attainment_share, "share", Provenance.SIMULATED),),
    )


def _cache_rows(scenario: Scenario, latency: LatencyReport | None, evidence: Sequence[Evidence]) -> Iterator[NumberRow]:
    yield NumberRow(
        key="hit_rate",
        label=msg("Hit rate"),
        figures=(figure(hit_share(scenario), "share", Provenance.DECLARED),),
        measured=_read("hit_rate_share", evidence),
    )
    yield NumberRow(
        key="kv_usage",
        label=msg("Highest KV usage"),
        figures=(figure(None if latency is None else latency.kv_usage_max_share, "share", Provenance.SIMULATED),),
        measured=_read("kv_usage_max_share", evidence),
    )
    yield NumberRow(
        key="preempted",
        label=msg("Preemptions per request"),
        figures=(figure(None if latency is None else latency.preempted_share, "share", Provenance.SIMULATED),),
        measured=_read("preempted_share", evidence),
    )


def _read(metric: str, evidence: Sequence[Evidence]) -> tuple[Figure, ...]:
    return tuple(
        figure(one.value, "share", Provenance.MEASURED, source=one.source, date=one.date)
        for one in evidence
        if one.metric == metric and one.provenance is Provenance.MEASURED and isinstance(one.value, float | int)
    )[:1]
