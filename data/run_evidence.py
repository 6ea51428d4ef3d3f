"""What stored runs say about a scenario: those comparable with it, and the evidence they give to a decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from calc.deployment import Deployment
from calc.evidence import Evidence, Provenance
from calc.messages import msg
from calc.metrics import METRICS
from calc.scenario import Scenario
from calc.startup.match import short_name
from calc.workload import Arrivals, Closed, Workload
from data.catalogue import gpus_named, model_named
from data.gpu_evidence import evidence_of_logs
from data.records import BenchmarkRun
from data.store.records import StoredRun

SAME_LOAD_SHARE = 0.1
"""A run within 10 % of the planned load is compared with the prediction."""
SAME_LENGTHS_SHARE = 0.25
"""Mean prompt and output tokens within a quarter: the same cell of the evaluation matrix."""
ANY_ENGINE = "openai"
"""Beginning of a backend that names an interface and no engine."""
LATENCIES = ("ttft", "itl", "tpot", "e2e")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
ID_SHOWN = 6
"""First characters of a run's id, as pages show it."""


def is_comparable(run: BenchmarkRun, scenario: Scenario) -> bool:
    """Same model, GPUs and engine at the planned load and lengths; what a run leaves open does not speak against it."""
    load = scenario.workload
    return same_deployment(run, scenario.deployment) and _same_load(run, load.arrivals) and _same_lengths(run, load)


def same_deployment(run: BenchmarkRun, deployment: Deployment) -> bool:
    """Whether a run can be of this deployment."""
    engine = (run.engine or run.backend or "").lower()
    same_engine = not engine or engine.startswith(ANY_ENGINE) or deployment.engine.id in engine
    same_count = run.gpu_count in (None, deployment.gpu_count)
    return _same_model(run, deployment) and same_engine and same_count and _same_gpu(run, deployment)


def _same_model(run: BenchmarkRun, deployment: Deployment) -> bool:
    if run.model is None:
        return False
    entry, wanted = model_named(run.model), deployment.model.name
    return short_name(run.model) == short_name(wanted) or (entry is not None and entry.id == wanted)


def _same_gpu(run: BenchmarkRun, deployment: Deployment) -> bool:
    gpu = deployment.gpu
    if run.gpu is None or run.gpu in (gpu.id, gpu.name):
        return True
    return gpu.id in {one.id for one in gpus_named(run.gpu)}


def _same_load(run: BenchmarkRun, arrivals: Arrivals) -> bool:
    planned: float
    ran: float | None
    if isinstance(arrivals, Closed):
        planned, ran = arrivals.concurrency, run.max_concurrency
    else:
        planned, ran = arrivals.rate_per_s, run.request_rate_per_s
    return ran is not None and math.isclose(ran, planned, rel_tol=SAME_LOAD_SHARE)


def _same_lengths(run: BenchmarkRun, load: Workload) -> bool:
    pairs = ((run.input_tokens_mean, load.prompt_tokens.mean()), (run.output_tokens_mean, load.output_tokens.mean()))
    return all(ran is None or math.isclose(ran, planned, rel_tol=SAME_LENGTHS_SHARE) for ran, planned in pairs)


def decisive_run(stored: Sequence[StoredRun], scenario: Scenario) -> StoredRun | None:
    """The newest run that is comparable and may count as evidence."""
    fitting = [one for one in stored if one.is_evidence and is_comparable(one.run, scenario)]
    return max(fitting, key=lambda one: one.run.date or one.uploaded_at, default=None)


def refused_runs(stored: Sequence[StoredRun], scenario: Scenario) -> tuple[StoredRun, ...]:
    """Comparable runs that cannot be used as they stand."""
    return tuple(one for one in stored if not one.is_evidence and is_comparable(one.run, scenario))


def measured_of(stored: Sequence[StoredRun], scenario: Scenario) -> tuple[Evidence, ...]:
    """Figures of the decisive run; none without one."""
    found = decisive_run(stored, scenario)
    return () if found is None else tuple(evidence_of_run(found).values())


def evidence_of_run(stored: StoredRun) -> dict[str, Evidence]:
    """Measured figures of a run by metric, each with what the checks say of it, and of GPU readings taken during it."""
    caveats = tuple(warning.text for warning in stored.caveats)
    return evidence_of_logs(stored.gpu_logs, stored.run) | {
        metric: Evidence(
            metric=metric,
            value=value,
            unit=METRICS[metric].unit,
            provenance=Provenance(stored.provenance),
            source=f"{stored.run.tool or 'table'} {stored.run_id[:ID_SHOWN]}",
            date=stored.run.date or stored.uploaded_at,
            caveats=caveats,
        )
        for metric, value in _figures(stored.run)
        if value is not None and metric in METRICS
    }


def _figures(run: BenchmarkRun) -> Iterator[tuple[str, float | None]]:
    """A latency counts with its median and its P99 or not at all: a tail is a ratio of the two, of one origin."""
    for latency in LATENCIES:
        stats = getattr(run, latency)
        if stats is not None and stats.p50_s is not None and stats.p99_s is not None:
            for statistic in STATISTICS:
                yield f"{latency}_{statistic}_s", getattr(stats, f"{statistic}_s")
    yield "output_tokens_per_s", run.output_token_throughput_per_s
    yield "hit_rate_share", run.prefix_hit_share


def of_model(
    handed: tuple[Evidence, ...], engine: tuple[str | None, tuple[Evidence, ...]], scenario: Scenario
) -> tuple[Evidence, ...]:
    """Figures handed over, those of an engine with a caveat when it calls its model otherwise than the scenario.

    Engines may be told to answer to any name, so another name is no proof of another model.
    """
    served, measured = engine
    asked = scenario.deployment.model.name
    if not served or short_name(served) == short_name(asked):
        return handed
    caveat = msg("the engine calls its model {served}, the scenario is about {asked}.", served=served, asked=asked)
    return tuple(replace(one, caveats=(*one.caveats, caveat)) if one in measured else one for one in handed)
