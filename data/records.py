"""The canonical benchmark record every reader produces. Foreign names and units end here; absent = not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calc.messages import Message


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
    extra: Mapping[str, float | str] = field(default_factory=dict)
    """Further named facts of the file, in base units."""
    line: int | None = None
    """Line of a table row; ``None`` for whole-file formats."""


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
