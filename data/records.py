"""The canonical benchmark record every reader produces. Foreign names and units end here; absent = not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calc.messages import Message
from calc.poc.cells import CacheStrategy, Repetition, SessionGroup
from calc.startup.log import StartupLog


@dataclass(frozen=True, kw_only=True)
class LatencyStats:
    """Statistics of one latency in seconds."""

    mean_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    std_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RowProblem:
    """A row that was not taken: where and why."""

    line: int
    """1-based line in the file."""
    reason: Message


@dataclass(frozen=True, kw_only=True)
class RunWarning:
    """One validity finding; ``code`` is from the closed list, severity is E, W or I."""

    code: str
    severity: str
    text: Message
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun:
    """One load point of one benchmark. Throughputs per second; shares 0-1; tokens."""

    tool: str
    model: str | None = None
    backend: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    date: str | None = None
    request_rate_per_s: float | None = None
    request_rate_is_infinite: bool = False
    max_concurrency: int | None = None
    burstiness: float | None = None
    num_prompts: int | None = None
    completed: int | None = None
    failed: int | None = None
    success_share: float | None = None
    duration_s: float | None = None
    input_tokens_total: int | None = None
    output_tokens_total: int | None = None
    input_tokens_mean: float | None = None
    output_tokens_mean: float | None = None
    request_throughput_per_s: float | None = None
    input_token_throughput_per_s: float | None = None
    output_token_throughput_per_s: float | None = None
    total_token_throughput_per_s: float | None = None
    ambiguous_throughput_per_s: float | None = None
    """A throughput whose kind the file does not say; never used as one of the others."""
    ttft: LatencyStats | None = None
    tpot: LatencyStats | None = None
    itl: LatencyStats | None = None
    e2e: LatencyStats | None = None
    prefix_hit_share: float | None = None
    kv_usage_share: float | None = None
    peak_concurrency: int | None = None
    achieved_concurrency: float | None = None
    """Requests in flight on the mean, as the file states it."""
    incomplete: int | None = None
    """Requests cut off by the end of the run."""
    tool_version: str | None = None
    engine: str | None = None
    extra: Mapping[str, float | str] = field(default_factory=dict)
    """Further named facts of the file, in base units."""
    line: int | None = None
    """Line of a table row; ``None`` for whole-file formats."""
    flags: tuple[str, ...] = ()
    """Validity codes only the reader can know, e.g. ``lengths_nominal``, ``zero_may_be_missing``."""


@dataclass(frozen=True, kw_only=True)
class RunDeclaration:
    """What the file of a run does not say and somebody declared: without it the run has no place in the matrix."""

    gpu: str | None = None
    """Catalogue id, or the name of an own GPU."""
    gpu_count: int | None = None
    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    engine_flags: str | None = None
    """Start options as typed, e.g. ``--no-enable-prefix-caching``."""
    strategy: CacheStrategy | None = None
    repetition: Repetition | None = None
    session_group: SessionGroup | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class GpuMetrics:
    """One GPU of a metrics snapshot. Shares 0-1; ``None`` = not exported or not supported."""

    gpu: str
    name: str | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    memory_temperature_c: float | None = None
    temperature_c: float | None = None
    busy_share: float | None = None
    memory_busy_share: float | None = None
    tensor_active_share: float | None = None
    memory_used_bytes: float | None = None
    memory_free_bytes: float | None = None
    power_w: float | None = None
    pcie_sent_bytes_per_s: float | None = None
    pcie_received_bytes_per_s: float | None = None
    nvlink_bytes_per_s: float | None = None
    sm_active_share: float | None = None
    dram_active_share: float | None = None
    memory_reserved_bytes: float | None = None
    """Kept by the driver: neither used nor free."""
    power_limit_w: float | None = None


@dataclass(frozen=True, kw_only=True)
class GpuLog:
    """What a log of GPU readings says (nvidia-smi, dmon, gpustat). Shares 0-1; ``None`` = not in the log."""

    source: str
    samples: int
    """Moments at which the GPUs were read."""
    gpus: int
    names: tuple[str, ...] = ()
    """Product names, each once."""
    busy_shares: tuple[float | None, ...] = ()
    """Mean of each GPU over its samples: share of time in which a kernel ran."""
    busy_share_mean: float | None = None
    busy_share_max: float | None = None
    memory_busy_share_max: float | None = None
    """Share of time in which memory was read or written: bandwidth, not how much is used."""
    memory_used_peaks_bytes: tuple[float | None, ...] = ()
    """Largest reading of each GPU."""
    memory_used_peak_bytes: float | None = None
    """Of the fullest GPU."""
    memory_total_bytes: float | None = None
    """Of the largest GPU."""
    power_max_w: float | None = None
    temperature_max_c: float | None = None
    memory_temperature_max_c: float | None = None
    power_shares: tuple[float | None, ...] = ()
    """Mean of each GPU: power drawn / its limit."""
    first_at: str | None = None
    """ISO time of the first reading; without a zone it is what the clock of that machine showed."""
    last_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """A cumulative histogram: how many observations lie at or below each bound."""

    bounds: tuple[float, ...]
    """Rising upper bounds; the last is infinity."""
    counts: tuple[float, ...]
    total: float | None = None
    """Sum of all observations."""
    count: float | None = None


@dataclass(frozen=True, kw_only=True)
class MetricsSnapshot:
    """What one scrape of an engine's or GPU exporter's metrics says. Seconds, tokens, bytes, shares 0-1."""

    source: str
    model: str | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    kv_usage_share: float | None = None
    prefix_queries_tokens: float | None = None
    prefix_hits_tokens: float | None = None
    prefix_hit_share: float | None = None
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None
    output_tokens_total: float | None = None
    requests_finished_total: float | None = None
    requests_aborted_total: float | None = None
    prompt_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    ttft: LatencyStats | None = None
    tpot: LatencyStats | None = None
    itl: LatencyStats | None = None
    e2e: LatencyStats | None = None
    queue: LatencyStats | None = None
    prefill: LatencyStats | None = None
    decode: LatencyStats | None = None
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """Latency histograms in seconds by the names above, kept so that two snapshots can be subtracted."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Engine settings exported as labels, e.g. ``block_size``."""
    gpus: tuple[GpuMetrics, ...] = ()
    started_at_s: float | None = None
    """Start of the server process, Unix time."""
    taken_at_s: float | None = None
    """Time of the scrape, Unix time, when the text or the caller says it."""
    window_s: float | None = None
    """Seconds between two scrapes for a difference; ``None`` for a single scrape (since server start)."""
    engines: float | None = None
    """Engines (replicas, data-parallel ranks) that the text holds; their counts are added up."""
    kv_capacity_tokens: float | None = None
    max_running: float | None = None
    """Requests that may run at once."""
    evicted_tokens_total: float | None = None
    offload_stored_bytes_total: float | None = None
    offload_loaded_bytes_total: float | None = None
    offload_loading_s_total: float | None = None
    """Time spent on loading them."""
    offload_loaded_tokens_total: float | None = None
    """Prompt tokens that came back from outside the GPU."""
    host_cache_usage_share: float | None = None
    cpu_seconds_total: float | None = None
    """CPU time of the server process."""
    cpu_memory_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    """What a reader understood of one file."""

    file: str
    format: str
    runs: tuple[BenchmarkRun, ...]
    warnings: tuple[RunWarning, ...] = ()
    problems: tuple[RowProblem, ...] = ()
    notes: tuple[str, ...] = ()
    """Codes for a program, e.g. ``encoding_gbk``."""
    snapshots: tuple[MetricsSnapshot, ...] = ()
    """Filled instead of ``runs`` when the file is a metrics text."""
    gpu_logs: tuple[GpuLog, ...] = ()
    """Filled instead of ``runs`` when the file is a log of GPU readings."""
    startup: StartupLog | None = None
    """Filled instead of ``runs`` when the file is the start-up log of an engine."""
