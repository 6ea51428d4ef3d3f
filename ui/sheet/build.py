"""Results of one scenario → :class:`~ui.sheet.review.Review`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calc import MODEL_VERSION
from calc.evidence import Evidence, Percentiles, Provenance
from calc.judge.decision import Decision, WhatIf
from calc.judge.decision import Verdict as Condition
from calc.judge.levers import AS_IS
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from data.records import BenchmarkRun, RunWarning
from data.run_evidence import is_comparable
from ui.format import percentile_name
from ui.sheet import numbers, proofs, statements
from ui.sheet.numbers import figure
from ui.sheet.review import Figure, Filing, LoadCurve, MemoryBar, Option, Proof, Review, State, Status, Verdict

MAX_OPTIONS = 7
"""What-ifs printed beside the scenario as it is."""
MAX_REASONS = 3
"""A decision names at most three facts."""


def build_review(
    scenario: Scenario,
    memory: MemoryReport,
    latency: LatencyReport | None,
    decision: Decision,
    *,
    sweep: LoadSweep | None = None,
    evidence: Sequence[Evidence] = (),
    runs: Sequence[BenchmarkRun] = (),
    caveats: Sequence[Sequence[RunWarning]] = (),
    refused: int = 0,
    cost_per_million_tokens: float | None = None,
    filing: Filing | None = None,
    case: Mapping[str, Any] | None = None,
) -> Review:
    """The sheet's content. ``latency`` is at the planned load, ``None`` when nothing can be served because it does not
    fit; ``evidence`` and ``runs`` are what was measured, ``caveats`` what the checks say of each run,
    ``refused`` how many more runs of this deployment a check keeps out.
    """
    filed = filing or Filing()
    known = (*evidence, *decision.evidence)
    deployment = scenario.deployment
    lever = decision.first_lever_title
    proven = proofs.proofs(scenario, latency, known, runs, filed, caveats, refused)
    comparable = [run for run in runs if is_comparable(run, scenario)]
    return Review(
        filing=filed,
        status=_status(filed, proven),
        scenario_name=scenario.name,
        model=deployment.model.name,
        gpu=deployment.gpu.name,
        gpu_count=deployment.gpu_count,
        engine=f"{deployment.engine.id} {deployment.engine.version}",
        model_version=MODEL_VERSION,
        verdict=_verdict(decision, lever),
        applies=statements.applies(scenario, latency),
        boundaries=statements.boundaries(scenario, memory, latency, sweep),
        numbers=numbers.number_rows(scenario, memory, latency, sweep, comparable, known, cost_per_million_tokens),
        options=_options(scenario, memory, latency, decision, cost_per_million_tokens),
        chosen_lever=decision.first_lever,
        memory=_bar(memory, latency),
        curve=_curve(scenario, latency, sweep),
        saturated=latency is not None and latency.saturated,
        split_s=None if latency is None else (latency.queue_s, latency.prefill_s, latency.decode_s, latency.network_s),
        proofs=proven,
        missing=decision.missing,
        checks=statements.checks(deployment),
        risks=statements.risks(decision, memory, latency, sweep),
        steps=statements.steps(decision, lever, scenario.slo, filed),
        case=case or {},
    )


def _status(filing: Filing, proven: Sequence[Proof]) -> Status:
    if not (filing.real_requests and filing.real_roles and filing.real_figures):
        return Status.DEMONSTRATION
    _, runtime, *_ = proven
    return Status.FOR_REVIEW if runtime.state is State.VERIFIED else Status.DRAFT


def _verdict(decision: Decision, lever: Message | None) -> Verdict:
    own = [finding for finding in decision.findings if finding.supports == decision.outcome and not finding.guard]
    judged = Counter(finding.verdict for finding in own)
    return Verdict(
        outcome=decision.outcome,
        bottleneck=decision.bottleneck,
        headline=decision.headline,
        because=decision.because[:MAX_REASONS],
        runner_up=decision.runner_up,
        flips_when=decision.flips_when,
        first_lever=lever,
        conditions_met=judged[Condition.MET],
        conditions_not_met=judged[Condition.NOT_MET],
        conditions_unknown=judged[Condition.UNKNOWN],
        legs_agree=decision.legs_agree,
    )


def _options(
    scenario: Scenario, memory: MemoryReport, latency: LatencyReport | None, decision: Decision, unit_cost: float | None
) -> tuple[Option, ...]:
    tried = [option for option in decision.what_ifs if option.scenario is not None and option.lever != AS_IS]
    ordered = sorted(tried, key=lambda option: _rank(option, decision.first_lever))
    as_is = _option("", msg("As it is"), scenario, memory, latency, unit_cost)
    return (as_is, *(_what_if(option, scenario) for option in ordered[:MAX_OPTIONS]))


def _rank(option: WhatIf, first_lever: str | None) -> tuple[bool, bool, bool, float]:
    """The first lever leads, then what carries the load with headroom, then what meets the SLO, cheapest first."""
    cost = option.cost_per_million_tokens
    unit_cost = math.inf if cost is None else cost
    return option.lever != first_lever, not option.carries, not option.meets_slo, unit_cost


def _what_if(option: WhatIf, scenario: Scenario) -> Option:
    changed, unit_cost = option.scenario or scenario, option.cost_per_million_tokens
    row = _option(option.lever, option.title, changed, option.memory, option.latency, unit_cost)
    return row if option.meets_slo is None else replace(row, meets_slo=option.meets_slo)


def _option(
    lever: str,
    title: Message,
    scenario: Scenario,
    memory: MemoryReport | None,
    latency: LatencyReport | None,
    unit_cost: float | None,
) -> Option:
    return Option(
        lever=lever,
        title=title,
        hit_share=figure(numbers.hit_share(scenario), "share", Provenance.DECLARED),
        memory_peak=figure(_peak(memory, latency), "bytes", Provenance.ESTIMATED),
        memory_fits=numbers.holds(memory, latency),
        ttft_p99=_p99(None if latency is None else latency.ttft, "ms"),
        e2e_p99=_p99(None if latency is None else latency.e2e, "s"),
        unit_cost=figure(unit_cost, scenario.prices.currency, Provenance.ESTIMATED),
        meets_slo=numbers.meets_slo(scenario.slo, memory, latency),
        unstable=latency is not None and latency.saturated,
    )


def _peak(memory: MemoryReport | None, latency: LatencyReport | None) -> int | None:
    """Weights, runtime and KV demand of one GPU; without a steady load, what must fit before any request."""
    if memory is None:
        return None
    return memory.weights_bytes + memory.runtime_bytes + (numbers.demand_bytes(memory, latency) or 0)


def _p99(latency: Percentiles | None, unit: str) -> Figure:
    return figure(None if latency is None else latency.p99_s, unit, Provenance.SIMULATED, percentile="P99")


def _bar(memory: MemoryReport, latency: LatencyReport | None) -> MemoryBar:
    inside_bytes = memory.runtime_in_budget_bytes
    demand_bytes = numbers.demand_bytes(memory, latency)
    if demand_bytes is None:
        demand_bytes = 0 if latency is None else round(latency.kv_usage_max_share * memory.kv_pool_bytes)
    return MemoryBar(
        total_bytes=memory.total_bytes,
        budget_bytes=memory.budget_bytes,
        weights_bytes=memory.weights_bytes,
        runtime_bytes=inside_bytes,
        demand_bytes=demand_bytes,
        pool_bytes=memory.kv_pool_bytes,
        outside_bytes=max(memory.runtime_bytes - inside_bytes, 0),
        over_bytes=max(memory.weights_bytes + inside_bytes + demand_bytes - memory.budget_bytes, 0),
    )


def _curve(scenario: Scenario, latency: LatencyReport | None, sweep: LoadSweep | None) -> LoadCurve | None:
    if latency is None or sweep is None or not sweep.reports:
        return None
    metric, slo_s = numbers.tightest_target(scenario.slo, latency)
    series = [Percentiles() if report.saturated else _series(report, metric) for report in sweep.reports]
    return LoadCurve(
        metric=metric,
        axis=sweep.axis,
        loads=sweep.loads,
        p50_s=tuple(_finite(one.p50_s) for one in series),
        p95_s=tuple(_finite(one.p95_s) for one in series),
        p99_s=tuple(_finite(one.p99_s) for one in series),
        slo_s=slo_s,
        slo_percentile=percentile_name(scenario.slo.percentile_share),
        operating_load=sweep.operating_load,
        knee_load=sweep.knee_load,
        limit_load=sweep.max_rate_per_s if sweep.axis == "rate" else None,
    )


def _series(report: LatencyReport, metric: str) -> Percentiles:
    return {"TTFT": report.ttft, "ITL": report.itl, "E2E": report.e2e}[metric]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
