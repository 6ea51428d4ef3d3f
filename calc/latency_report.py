"""One load point as a report: percentiles, bands, decomposition, SLO, what binds and whether it is saturated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calc.class_report import ClassReport, Leavers, class_reports, leaver_notes, leavers, mean_s
from calc.evidence import Percentiles
from calc.messages import Message, msg
from calc.order_statistics import Bands, bands_of, percentiles_of, quantile
from calc.request_times import Times, answered
from calc.simulator.replica import Replica
from calc.simulator.simulate import SimulationResult
from calc.step.roofline import binding
from calc.workload import Closed, FloatArray, Slo, Workload

GROWING_WAIT = 0.02
"""Seconds of wait gained per second of arrivals from which a queue counts as growing without end."""
NEAR_LIMIT_SHARE = 0.85
"""Below this share of the estimated limit a growing queue is taken for a fluctuation."""
TINY_S = 1e-12
NOTABLE_QUEUE_SHARE = 0.1
"""Share of the end-to-end time from which waiting, not the step, is what binds."""


@dataclass(frozen=True, kw_only=True)
class LatencyReport:
    """One load point of the whole deployment. T_e2e = queue + prefill + decode + network (means)."""

    ttft: Percentiles
    itl: Percentiles
    """Gap between tokens of one stream, over all gaps."""
    tpot: Percentiles
    """Mean gap of a request, over requests."""
    e2e: Percentiles
    queue_s: float
    prefill_s: float
    decode_s: float
    network_s: float
    request_rate_per_s: float
    """Completed requests per second, all replicas."""
    offered_rate_per_s: float | None
    """``None`` for a closed loop."""
    output_tokens_per_s: float
    concurrency: float
    """Mean requests in the deployment (Little's law)."""
    kv_usage_mean_share: float
    kv_usage_max_share: float
    preemptions: int
    preempted_share: float
    """Preemptions per request."""
    bound: str
    """What binds at this load: compute, memory_bandwidth, memory_capacity, sequences, communication or overhead."""
    saturated: bool
    max_rate_per_s: float
    """Stability limit of the whole deployment, requests per second."""
    slo_attainment_share: float | None
    """Share of requests that meet every target; ``None`` without a target."""
    requests: int
    """Requests simulated."""
    mixed_step_share: float
    """Share of decode tokens made in steps that also prefill: the cause of the ITL tail."""
    prefill_compute_share: float
    """Share of busy time spent on prefill tokens."""
    calibration: str
    """``uncalibrated`` or the name of the calibration."""
    notes: tuple[Message, ...] = ()
    ttft_band: Bands | None = None
    tpot_band: Bands | None = None
    e2e_band: Bands | None = None
    slo_met: bool | None = None
    """Whether every target holds at the SLO's percentile (ITL over all gaps), unsaturated; ``None`` = no target."""
    goodput_per_s: float | None = None
    """Requests per second that meet the whole SLO, all replicas."""
    limit: str = ""
    """What sets ``max_rate_per_s``: compute, memory_capacity or sequences."""
    fetch_s: float = 0.0
    """Part of ``prefill_s``: waiting for KV from tiers outside the GPU."""
    classes: tuple[ClassReport, ...] = ()
    """Of each kind of requests the load tells apart."""
    cancelled_share: float = 0.0
    """Requests whose client went away while tokens came; they are in no percentile."""
    gave_up_share: float = 0.0
    """Requests without a first token in the end; they are in no percentile, and meet no target."""
    retried_share: float = 0.0
    """Further attempts per request."""
    transfer_s: float = 0.0
    """Part of ``prefill_s``: split prefill's handover, from the end of prefill until the KV is on a decode replica."""
    hit_share: float | None = None
    """Prompt tokens found in the prefix cache, where requests share prefixes by group; ``None`` = as the load says."""
    prefill_kv_usage_mean_share: float | None = None
    prefill_kv_usage_max_share: float | None = None
    """Of prefill replicas, where prefill is split."""
    limit_pool: str = ""
    """Split prefill: the side whose limit is ``max_rate_per_s``, ``prefill`` or ``decode``."""


@dataclass(frozen=True, kw_only=True)
class LoadSweep:
    """Reports over rising load (requests/s for open loops, concurrency for closed)."""

    axis: str
    """``rate`` or ``concurrency``."""
    loads: tuple[float, ...]
    reports: tuple[LatencyReport, ...]
    operating_load: float
    knee_load: float | None
    """Highest load that meets the SLO; ``None`` when none does or no SLO is set."""
    max_rate_per_s: float


def build_report(
    slo: Slo,
    replica: Replica,
    workload: Workload,
    result: SimulationResult,
    calibration: str,
    *,
    bands: bool = True,
) -> LatencyReport:
    """The measured requests of one replica, scaled to the deployment; without ``bands`` in two thirds of the time."""
    http_s, later_steps = replica.model.http_s, replica.first_token_steps
    times = Times.of(result, http_s, later_steps)
    ranks = _ranks(replica, workload, result)
    span_s, completed, tokens = _completed(result, workload)
    rate = completed / span_s if span_s > 0 else 0.0
    saturated = _is_saturated(replica, workload, result, times)
    met, left = times.meeting(slo), leavers(result)
    ttft, tpot, e2e = np.sort(times.ttft_s), np.sort(times.tpot_s), np.sort(times.e2e_s)
    offered = None if isinstance(workload.arrivals, Closed) else workload.arrivals.rate_per_s
    report = LatencyReport(
        ttft=percentiles_of(ttft),
        itl=_gap_percentiles(result),
        tpot=percentiles_of(tpot),
        e2e=percentiles_of(e2e),
        queue_s=mean_s(times.queue_s),
        prefill_s=mean_s(times.prefill_s),
        decode_s=mean_s(times.decode_s),
        network_s=http_s,
        request_rate_per_s=rate * ranks,
        offered_rate_per_s=offered,
        output_tokens_per_s=(tokens / span_s if span_s > 0 else 0.0) * ranks,
        concurrency=rate * mean_s(times.e2e_s) * ranks,
        kv_usage_mean_share=result.kv_used_mean_share,
        kv_usage_max_share=result.kv_used_max_share,
        preemptions=result.preemptions * ranks,
        preempted_share=result.preemptions / max(1, times.ttft_s.size),
        bound=_bound(replica, times, rate / result.schedulers),
        saturated=saturated,
        max_rate_per_s=replica.limits.max_rate_per_s * replica.split,
        slo_attainment_share=times.attained(slo),
        requests=times.ttft_s.size,
        mixed_step_share=result.mixed_tokens / result.decode_tokens if result.decode_tokens else 0.0,
        prefill_compute_share=result.prefill_busy_s / result.busy_s if result.busy_s else 0.0,
        calibration=calibration,
        notes=replica.notes
        + _notes(result, workload, ranks)
        + _limit_note(replica, workload, saturated)
        + leaver_notes(left),
        ttft_band=bands_of(times.ttft_s, ttft) if bands else None,
        tpot_band=bands_of(times.tpot_s, tpot) if bands else None,
        e2e_band=bands_of(times.e2e_s, e2e) if bands else None,
        slo_met=_meets(slo, result, times, ttft, e2e) and not saturated if met is not None else None,
        goodput_per_s=rate * ranks * met / _ended(result) if met is not None else None,
        limit=replica.limits.binds,
        limit_pool=replica.limits.pool,
    )
    classes = class_reports(slo, workload, result, http_s, later_steps, rate * ranks)
    return _with_moves(replace(report, classes=classes), result, left)


def _with_moves(report: LatencyReport, result: SimulationResult, left: Leavers) -> LatencyReport:
    """The same with who left, what KV on its way took, and what the prefill side held."""

    def waited_s(column: FloatArray | None) -> float:
        return 0.0 if column is None else mean_s(column[result.measured][answered(result)])

    return replace(
        report,
        cancelled_share=left.cancelled_share,
        gave_up_share=left.gave_up_share,
        retried_share=left.retried_share,
        hit_share=result.hit_share,
        fetch_s=waited_s(result.fetch_s),
        transfer_s=waited_s(result.transfer_s),
        prefill_kv_usage_mean_share=result.prefill_kv_used_mean_share,
        prefill_kv_usage_max_share=result.prefill_kv_used_max_share,
    )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a search for the highest load asks of one load point, and no more."""

    fine: bool
    """Stable, and no stated target missed."""
    request_rate_per_s: float


def verdict(slo: Slo, replica: Replica, workload: Workload, result: SimulationResult) -> Verdict:
    """The same judgement as in :func:`build_report`, without the figures nobody looks at."""
    times = Times.of(result, replica.model.http_s, replica.first_token_steps)
    fine = not _is_saturated(replica, workload, result, times)
    fine = fine and _meets(slo, result, times, np.sort(times.ttft_s), np.sort(times.e2e_s))
    span_s, completed, _ = _completed(result, workload)
    rate = completed / span_s if span_s > 0 else 0.0
    return Verdict(fine=fine, request_rate_per_s=rate * _ranks(replica, workload, result))


def _gap_percentiles(result: SimulationResult) -> Percentiles:
    p50, p90, p95, p99 = result.gap_quantiles((0.5, 0.9, 0.95, 0.99))
    return Percentiles(mean_s=result.gap_mean_s, p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)


def _ended(result: SimulationResult) -> int:
    """Measured requests that ended with tokens, cancelled ones among them."""
    return max(1, int((~np.isnan(result.finished_s[result.measured])).sum()))


def _meets(slo: Slo, result: SimulationResult, times: Times, ttft: FloatArray, e2e: FloatArray) -> bool:
    """Whether targets hold at the SLO's percentile of all who asked; clients that gave up lie beyond any target."""
    share = slo.percentile_share * times.asked / max(1, ttft.size)
    if times.gave_up and share > 1:
        return False
    reached = (
        (quantile(ttft, share), slo.ttft_s),
        (result.gap_quantiles((slo.percentile_share,))[0], slo.itl_s),
        (quantile(e2e, share), slo.e2e_s),
    )
    return all(target is None or value is None or value <= target for value, target in reached)


def _ranks(replica: Replica, workload: Workload, result: SimulationResult) -> int:
    """Schedulers at work for each simulated one; a closed loop with fewer users than replicas leaves some idle."""
    if replica.fleet is not None:
        return replica.split // result.schedulers
    if isinstance(workload.arrivals, Closed):
        return min(replica.split, workload.arrivals.concurrency)
    return replica.split


def _completed(result: SimulationResult, workload: Workload) -> tuple[float, int, int]:
    """Seconds, requests and output tokens completed: of the whole run if finite, else while the measured ones start."""
    finished = result.finished_s
    if workload.num_requests is not None:
        begin, end = float(result.arrival_s[0]), result.end_s
    else:
        begin, end = _measured_span(result)
    inside = (finished >= begin) & (finished <= end)
    if not inside.any():  # one burst starts everything: count to its end
        end = result.end_s
        inside = (finished >= begin) & (finished <= end)
    return end - begin, int(inside.sum()), int(result.output_tokens[inside].sum())


def _measured_span(result: SimulationResult) -> tuple[float, float]:
    """From the first to the last admission of a measured request; of those admitted, where some never were."""
    admitted = result.admitted_s[result.measured]
    begin, end = float(admitted[0]), float(admitted[-1])
    if result.first_arrival_s is None:
        return begin, end
    known = admitted[~np.isnan(admitted)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)


def _is_saturated(replica: Replica, workload: Workload, result: SimulationResult, times: Times) -> bool:
    """Open loop: the wait keeps growing near or beyond the limit. Closed loop: users beyond what runs at once wait."""
    if not result.complete:
        return True
    if isinstance(workload.arrivals, Closed):
        waiting_share = mean_s(times.queue_s) / max(mean_s(times.e2e_s), TINY_S)
        users = workload.arrivals.concurrency / replica.split
        return users > replica.limits.max_batch and waiting_share > NOTABLE_QUEUE_SHARE
    load = workload.arrivals.rate_per_s / replica.split / replica.limits.max_rate_per_s
    if load >= 1 or load < NEAR_LIMIT_SHARE or times.arrival_s.size < _FEW:
        return load >= 1
    return _growth(times.arrival_s, times.queue_s) > GROWING_WAIT


_FEW = 30
"""Fewer requests than this show no trend."""


def _growth(arrival_s: FloatArray, wait_s: FloatArray) -> float:
    """Least-squares slope of the wait over arrival time (seconds per second)."""
    centred = arrival_s - arrival_s.mean()
    spread = float((centred**2).sum())
    return float((centred * wait_s).sum()) / spread if spread > 0 else 0.0


def _bound(replica: Replica, times: Times, rate: float) -> str:
    """What stops this load point from being faster: the limit it waits at, else what the mean step waits for."""
    if mean_s(times.queue_s) > NOTABLE_QUEUE_SHARE * mean_s(times.e2e_s):
        return replica.limits.binds
    running = max(1.0, rate * (mean_s(times.prefill_s) + mean_s(times.decode_s)))
    starts = running / replica.demand.steps
    return binding(
        replica.model,
        tokens=running * replica.demand.verified + starts * replica.demand.fresh,
        sequences=running,
        context_tokens=running * replica.demand.held,
        pairs=starts * replica.demand.pairs,
    )


def _limit_note(replica: Replica, workload: Workload, saturated: bool) -> tuple[Message, ...]:
    """Beyond stability latency is no number: it grows for as long as the load lasts."""
    if not saturated or isinstance(workload.arrivals, Closed):
        return ()
    limit = replica.limits.max_rate_per_s * replica.split
    return (msg("Saturated at {limit:rate}: latencies only say how long the load was simulated.", limit=limit),)


def _notes(result: SimulationResult, workload: Workload, ranks: int) -> tuple[Message, ...]:
    notes: list[Message] = []
    if not result.complete:
        notes.append(msg("The simulation was stopped early: figures are of the requests finished until then."))
    simulated = result.measured.stop - result.measured.start
    if workload.num_requests is not None and simulated * ranks < workload.num_requests:
        notes.append(
            msg(
                "{asked:count} requests were asked for; the first {simulated:count} of each replica are simulated.",
                asked=workload.num_requests,
                simulated=simulated,
            )
        )
    return tuple(notes)
