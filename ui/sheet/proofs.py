"""The four kinds of evidence and how far each carries on the day of the sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from calc.deployment import Deployment
from calc.engine import resolve
from calc.evidence import Evidence, Percentiles, Provenance
from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.startup.match import listed, matches
from calc.workload import Slo
from data.records import BenchmarkRun, RunWarning
from data.run_evidence import is_comparable, same_deployment
from ui.glossary import VALIDITY
from ui.sheet.review import Filing, Kind, Party, Proof, State

STALE_AFTER_DAYS = 30
"""Older measurements describe another version of the service."""
MOST_CAVEATS = 3
"""Warnings named in the table; more are counted."""
RUNTIME_METRICS = ("ttft", "itl", "kv_usage", "preempt", "hit_rate", "waiting", "queue")
"""Beginnings of metric names that say how the service runs."""
RUNTIME_ENOUGH = 3
"""Different runtime metrics that make the picture complete: latency, cache and queue."""


def iso_day(text: str | None) -> date | None:
    """The day of an ISO date or time; ``None`` when it is none."""
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None


def is_stale(day: str | None, today: str) -> bool:
    """True when ``day`` is more than 30 days before ``today``; an unknown day is not called stale."""
    then, now = iso_day(day), iso_day(today)
    return then is not None and now is not None and (now - then).days > STALE_AFTER_DAYS


def proofs(
    scenario: Scenario,
    latency: LatencyReport | None,
    evidence: Sequence[Evidence],
    runs: Sequence[BenchmarkRun],
    filing: Filing,
    caveats: Sequence[Sequence[RunWarning]] = (),
    refused: int = 0,
) -> tuple[Proof, ...]:
    """Configuration, runtime, responsibility and retrospective, always all four.

    ``caveats`` are those of each run, ``refused`` the number of runs of this deployment that may not be used.
    """
    return (
        _configuration(scenario.deployment, evidence, filing),
        _warned(_runtime(scenario, evidence, runs, filing), _codes(scenario, runs, caveats), refused),
        _responsibility(filing),
        _retrospective(scenario, latency, runs, filing),
    )


def _measured(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [one for one in evidence if one.provenance is Provenance.MEASURED and one.value is not None]


def _configuration(deployment: Deployment, evidence: Sequence[Evidence], filing: Filing) -> Proof:
    settings = resolve(deployment)
    seen = [one for one in _measured(evidence) if one.metric in ("kv_tokens", "max_num_seqs", "kv_pool_bytes")]
    log = deployment.measured_memory
    stands = log is not None and log.used and matches(log, deployment)
    logged = bool(seen) or deployment.kv_tokens is not None or stands
    newest = max((*(one.date for one in seen), log.date if log is not None and stands else ""))
    state = State.VERIFIED if logged else State.PARTIAL
    return Proof(
        kind=Kind.CONFIGURATION,
        state=State.STALE if is_stale(newest, filing.created_at) else state,
        says=msg(
            "{engine} {version}, memory fraction {fraction:pct}, block {block:tok}, KV {dtype}, prefix cache {caching}",
            engine=deployment.engine.id,
            version=deployment.engine.version,
            fraction=settings.memory_fraction,
            block=settings.block_size_tokens,
            dtype=settings.kv_dtype,
            caching=msg("on") if settings.prefix_caching else msg("off"),
        ),
        check=msg("Start-up log; flags, routing and template hash under version control"),
        owner=(Party.PLATFORM,),
        date=newest,
    )


def _runtime(scenario: Scenario, evidence: Sequence[Evidence], runs: Sequence[BenchmarkRun], filing: Filing) -> Proof:
    own = [run for run in runs if same_deployment(run, scenario.deployment)]
    seen = [one for one in _measured(evidence) if one.metric.startswith(RUNTIME_METRICS)]
    busy, peak = (_figure(evidence, metric) for metric in ("gpu_utilisation_share", "gpu_memory_peak_bytes"))
    days = map(iso_day, (*(run.date for run in own), *(one.date for one in seen)))
    newest = max((day.isoformat() for day in days if day), default="")
    return Proof(
        kind=Kind.RUNTIME,
        state=_runtime_state(own, seen, newest, filing.created_at),
        says=_with_gpus(
            msg(
                "Benchmark runs of this deployment: {runs:count}; metrics read from the service: {metrics:count}",
                runs=len(own),
                metrics=len(seen),
            ),
            busy,
            peak,
        )
        if own or seen
        else msg("No benchmark run and no metric of this deployment"),
        check=msg("One window of hits, KV usage, waiting, TTFT, ITL; TTFT of a repeated prompt"),
        owner=(Party.PLATFORM,),
        date=newest,
    )


def _figure(evidence: Sequence[Evidence], metric: str) -> float | None:
    """A measured figure."""
    return next((float(one.value) for one in _measured(evidence) if one.metric == metric and one.value), None)


def _with_gpus(says: Message, busy_share: float | None, peak_bytes: float | None) -> Message:
    """What readings of the GPUs add, where there are any."""
    if busy_share is None or peak_bytes is None:
        return says
    return msg(
        "{says}; GPUs busy {busy:pct} of the time, memory peak {peak:gib}", says=says, busy=busy_share, peak=peak_bytes
    )


def _codes(
    scenario: Scenario, runs: Sequence[BenchmarkRun], caveats: Sequence[Sequence[RunWarning]]
) -> tuple[str, ...]:
    """Warnings that the runs of this deployment carry, each once."""
    own = (told for run, told in zip(runs, caveats, strict=False) if same_deployment(run, scenario.deployment))
    return tuple(dict.fromkeys(warning.code for told in own for warning in told))


def _warned(proof: Proof, codes: Sequence[str], refused: int) -> Proof:
    """The proof, saying which warnings its figures carry and how many runs a check keeps out."""
    says = proof.says
    if codes:
        named = listed([VALIDITY[code] for code in codes[:MOST_CAVEATS]])
        says = msg("{says}. Warnings: {named}", says=says, named=named)
    if len(codes) > MOST_CAVEATS:
        says = msg("{says} and {more:count} more", says=says, more=len(codes) - MOST_CAVEATS)
    if refused:
        says = msg("{says}. Refused by a check: {refused:count}", says=says, refused=refused)
    return replace(proof, says=says)


def _runtime_state(own: Sequence[BenchmarkRun], seen: Sequence[Evidence], newest: str, today: str) -> State:
    if not own and not seen:
        return State.MISSING
    if is_stale(newest, today):
        return State.STALE
    complete = bool(own) or len({one.metric for one in seen}) >= RUNTIME_ENOUGH
    return State.VERIFIED if complete and newest else State.PARTIAL


def _responsibility(filing: Filing) -> Proof:
    named = [party for party in Party if filing.owners.get(party)]
    return Proof(
        kind=Kind.RESPONSIBILITY,
        state=State.VERIFIED if len(named) == len(Party) else State.PARTIAL if named else State.MISSING,
        says=msg("{named:count} of {all:count} owners named", named=len(named), all=len(Party)),
        check=msg("SLO, template, model version, quota, on-call; supplier, budget, delivery"),
        owner=(Party.BUSINESS, Party.PLATFORM),
    )


def _retrospective(
    scenario: Scenario, latency: LatencyReport | None, runs: Sequence[BenchmarkRun], filing: Filing
) -> Proof:
    error = (
        prediction_error(scenario.slo, latency, [run for run in runs if is_comparable(run, scenario)])
        if latency
        else None
    )
    if error is not None:
        state, says = State.VERIFIED, error
    elif filing.look_back_on:
        state, says = State.PARTIAL, msg("Prediction and operation will be compared on {day}", day=filing.look_back_on)
    else:
        state, says = State.MISSING, msg("No date is set to compare prediction and operation")
    return Proof(
        kind=Kind.RETROSPECTIVE,
        state=state,
        says=says,
        check=msg("In 2-4 weeks: prediction and operation, incidents, rollbacks, flip condition"),
        owner=tuple(Party),
    )


def prediction_error(slo: Slo, latency: LatencyReport, runs: Sequence[BenchmarkRun]) -> Message | None:
    """How far the prediction was from the newest comparable run, at the percentile of the SLO."""
    for run in sorted(runs, key=lambda one: one.date or "", reverse=True):
        for name, predicted, stats in (("TTFT", latency.ttft, run.ttft), ("ITL", latency.itl, run.itl)):
            if stats is None:
                continue
            measured = Percentiles(p50_s=stats.p50_s, p90_s=stats.p90_s, p95_s=stats.p95_s, p99_s=stats.p99_s)
            truth, guess = measured.at(slo.percentile_share), predicted.at(slo.percentile_share)
            if truth and guess is not None:
                return msg(
                    "{metric} P{percentile:.0f}: {truth:ms} measured (prediction {error:+.0f} %)",
                    metric=name,
                    percentile=slo.percentile_share * 100,
                    error=(guess / truth - 1) * 100,
                    truth=truth,
                )
    return None
