"""Scenario → latency: decomposed, with percentiles, at one load and over a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from calc.evidence import Percentiles
from calc.messages import Message


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
