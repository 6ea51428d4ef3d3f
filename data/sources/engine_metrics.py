"""Metrics of vLLM, SGLang and the DCGM exporter, pasted or uploaded as text, as one snapshot in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.records import Histogram, MetricsSnapshot
from data.sources.gpu_metrics import gpus_of, imbalanced
from data.sources.metrics_text import Sample, histogram_of, is_blank, parse_samples, stats_of

_SIGN = re.compile(r"^(?:vllm:|sglang:|DCGM_FI_)[A-Za-z_]", re.MULTILINE)
"""A line that starts with a metric of one of these exporters."""
_RANKS = frozenset({"tp_rank", "pp_rank", "dp_rank", "moe_ep_rank"})
"""Labels of series that every rank of one server repeats: the largest counts, they are not added."""
_LEGACY = frozenset({"vllm:gpu_cache_usage_perc", "vllm:avg_generation_throughput_toks_per_s"})
_LOST_REASONS = ("abort", "error")

_ADDED = {
    "requests_running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "requests_waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "prompt_tokens_per_s": ("vllm:avg_prompt_throughput_toks_per_s",),
    "output_tokens_per_s": ("vllm:avg_generation_throughput_toks_per_s", "sglang:gen_throughput"),
    "prefix_queries_tokens": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits_tokens": (
        "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits_total",
        "sglang:cached_tokens_total",
    ),
    "preemptions_total": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
    "prompt_tokens_total": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "output_tokens_total": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
}
"""Snapshot field → metric names, newest first; each engine of a server has its own part."""
_LARGEST = {
    "kv_usage_share": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "prefix_hit_share": ("vllm:gpu_prefix_cache_hit_rate", "sglang:cache_hit_rate"),
    "started_at_s": ("process_start_time_seconds",),
}
"""Shares (their names say percent, their values are 0-1) and moments: the largest counts."""
COUNTERS = (
    "prefix_queries_tokens",
    "prefix_hits_tokens",
    "preemptions_total",
    "prompt_tokens_total",
    "output_tokens_total",
    "requests_finished_total",
    "requests_aborted_total",
)
"""Snapshot fields that only grow while the server runs."""
HISTOGRAMS = {
    "ttft": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "itl": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
    ),
    "tpot": ("vllm:request_time_per_output_token_seconds",),
    "e2e": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
    "queue": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds"),
    "prefill": ("vllm:request_prefill_time_seconds",),
    "decode": ("vllm:request_decode_time_seconds",),
}
"""Latency histograms, newest name first."""
_SETTINGS = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_size_tokens",
    "num_gpu_blocks",
)
"""Labels of ``vllm:cache_config_info`` worth keeping."""


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """A snapshot with what its text was, for the reader of files."""

    snapshot: MetricsSnapshot
    format: str
    codes: tuple[str, ...] = ()
    """Validity codes."""
    notes: tuple[str, ...] = ()


def is_metrics_text(text: str) -> bool:
    """True when a line of the text is a metric of an engine or GPU exporter we know."""
    return _SIGN.search(text) is not None


def parse_metrics(text: str, name: str = "metrics") -> MetricsSnapshot:
    """One scrape as a snapshot; a text without any metric we know is an error."""
    return scrape(text, name).snapshot


def scrape(text: str, name: str = "metrics") -> Scrape:
    """One scrape with its format, validity codes and notes."""
    samples, odd = parse_samples(text)
    if not is_metrics_text(text) or not samples:
        raise UnreadableFile(
            msg(
                "{file}: metrics text of vLLM, SGLang or the DCGM exporter was expected, no line of it was found: "
                "copy the whole answer of the /metrics address.",
                file=name,
            )
        )
    usable = [sample for sample in samples if not is_blank(sample.value)]
    blank = len(usable) < len(samples) and any(is_blank(s.value) for s in samples if s.name.startswith("DCGM"))
    snapshot = _snapshot(samples, usable)
    notes = (
        *(["legacy_metric_names"] if snapshot.source.endswith("(old)") else []),
        *(["per_rank_series_take_max"] if any(_RANKS & set(s.labels) for s in samples) else []),
        *(["dcgm_blank_sentinel"] if blank else []),
        *(["lines_not_understood"] if odd else []),
    )
    return Scrape(snapshot=snapshot, format=_FORMATS[snapshot.source], codes=_codes(snapshot), notes=notes)


def _snapshot(samples: Sequence[Sample], usable: Sequence[Sample]) -> MetricsSnapshot:
    values: dict[str, Any] = {
        **{field: _first(usable, names, sum) for field, names in _ADDED.items()},
        **{field: _first(usable, names, max) for field, names in _LARGEST.items()},
    }
    histograms = _histograms(samples)
    finished, aborted = _finished(usable)
    values |= _prefix_cache(values)
    values |= {field: stats_of(histograms.get(field)) for field in HISTOGRAMS}
    models = sorted({s.labels["model_name"] for s in samples if s.labels.get("model_name")})
    return MetricsSnapshot(
        source=_source(samples),
        model=", ".join(models) or None,
        requests_finished_total=finished,
        requests_aborted_total=aborted,
        histograms=histograms,
        settings=_settings(samples),
        gpus=gpus_of(samples),
        taken_at_s=max((s.time_s for s in samples if s.time_s is not None), default=None),
        **values,
    )


def _first(samples: Sequence[Sample], names: Sequence[str], combine: Callable[[list[float]], float]) -> float | None:
    """The newest name present: the largest value among the ranks of one engine, then all engines combined."""
    for name in names:
        engines: dict[tuple[tuple[str, str], ...], float] = {}
        for sample in samples:
            if sample.name == name:
                engine = tuple(sorted((k, v) for k, v in sample.labels.items() if k not in _RANKS))
                engines[engine] = max(sample.value, engines.get(engine, sample.value))
        if engines:
            return combine(list(engines.values()))
    return None


def _prefix_cache(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Hits over queries in tokens; SGLang counts the hits only, its queries are the prompt tokens."""
    queries, hits = values["prefix_queries_tokens"], values["prefix_hits_tokens"]
    if queries is None and hits is not None:
        queries = values["prompt_tokens_total"]
    written = values["prefix_hit_share"]
    share = hits / queries if queries and hits is not None else written
    return {
        "prefix_queries_tokens": queries,
        "prefix_hit_share": share if share is not None and 0 <= share <= 1 else None,
    }


def _histograms(samples: Sequence[Sample]) -> dict[str, Histogram]:
    found: dict[str, Histogram] = {}
    for field, names in HISTOGRAMS.items():
        histogram = next((h for name in names if (h := histogram_of(samples, name)) is not None), None)
        if histogram is not None:
            found[field] = histogram
    return found


def _finished(samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Requests answered, and requests aborted or failed, since the server's start."""
    by_reason = [s for s in samples if s.name == "vllm:request_success_total"]
    if not by_reason:
        total = _first(samples, ("sglang:num_requests_total",), sum)
        return total, _first(samples, ("sglang:num_aborted_requests_total",), sum)
    lost = sum(s.value for s in by_reason if s.labels.get("finished_reason") in _LOST_REASONS)
    return sum(s.value for s in by_reason) - lost, lost


def _settings(samples: Sequence[Sample]) -> dict[str, str]:
    labels = next((s.labels for s in samples if s.name == "vllm:cache_config_info"), {})
    return {key: labels[key] for key in _SETTINGS if labels.get(key, "None") != "None"}


def _source(samples: Sequence[Sample]) -> str:
    names = {sample.name for sample in samples}
    if any(name.startswith("vllm:") for name in names):
        return "vLLM /metrics (old)" if names & _LEGACY else "vLLM /metrics"
    return "SGLang /metrics" if any(name.startswith("sglang:") for name in names) else "DCGM exporter"


_FORMATS = {
    "vLLM /metrics": "prometheus_vllm",
    "vLLM /metrics (old)": "prometheus_vllm_legacy",
    "SGLang /metrics": "prometheus_sglang",
    "DCGM exporter": "prometheus_dcgm",
}


def _codes(snapshot: MetricsSnapshot) -> tuple[str, ...]:
    counted = bool(snapshot.histograms) or any(getattr(snapshot, field) for field in COUNTERS)
    return (
        *(["cumulative_counters"] if counted else []),
        *(["imbalanced_gpus"] if imbalanced(snapshot.gpus) else []),
    )
