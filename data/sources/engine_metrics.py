"""Metrics of vLLM, SGLang, TensorRT-LLM and the DCGM exporter, as text, as one snapshot in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from data.records import Histogram, MetricsSnapshot
from data.sources import metric_names as names
from data.sources.gpu_metrics import gpus_of, imbalanced
from data.sources.metrics_text import (
    RANKS,
    SOURCE_LABEL,
    Index,
    Sample,
    by_engine,
    histogram_of,
    indexed,
    is_blank,
    parse_samples,
    stats_of,
)

COUNTERS = names.COUNTERS
HISTOGRAMS = names.HISTOGRAMS
_SIGN = re.compile(r"^(?:vllm:|sglang:|trtllm[_:]|nv_trt_llm_|DCGM_FI_)[A-Za-z_]", re.MULTILINE)
"""A line that starts with a metric of one of these exporters."""
MAX_NAME = 200
"""Signs kept of what a label says."""
PERCENT = 100.0
"""Full for a server that counts its KV usage in per cent, as ``gpu_cache_usage_perc`` says; others are full at 1."""
_LOST_REASONS = ("abort", "error")
_SETTINGS = {
    "block_size": "block_size",
    "page_size": "block_size",
    "cache_dtype": "cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
    "enable_block_reuse": "enable_prefix_caching",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "free_gpu_memory_fraction": "gpu_memory_utilization",
    "kv_cache_size_tokens": "kv_cache_size_tokens",
    "num_gpu_blocks": "num_gpu_blocks",
    "num_pages": "num_gpu_blocks",
}
"""Label of an engine's cache_config_info → the setting it names in vLLM's words."""


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
    return scrape_all([text], name)


def scrape_all(texts: Sequence[str], name: str) -> Scrape:
    """Texts of several addresses read at one moment (replicas of a service, a GPU exporter beside it) as one scrape."""
    samples: list[Sample] = []
    odd = 0
    for number, text in enumerate(texts):
        found, strange = parse_samples(text, names.is_known)
        samples += [_canonical(sample, number if len(texts) > 1 else None) for sample in found]
        odd += strange
    if not samples or not any(is_metrics_text(text) for text in texts):
        raise UnreadableFile(
            msg(
                "{file}: metrics text of vLLM, SGLang, TensorRT-LLM or the DCGM exporter was expected, no line of it "
                "was found: copy the whole answer of the /metrics address.",
                file=name,
            )
        )
    _refuse_mixture(samples, name)
    return _scrape(samples, odd)


def _scrape(samples: list[Sample], odd: int) -> Scrape:
    usable = [sample for sample in samples if not is_blank(sample.value)]
    blank = len(usable) < len(samples) and any(is_blank(s.value) for s in samples if s.name.startswith("DCGM"))
    snapshot = _snapshot(samples, indexed(usable))
    notes = (
        *(["legacy_metric_names"] if snapshot.source.endswith("(old)") else []),
        *(["per_rank_series_take_max"] if any(RANKS & set(s.labels) for s in samples) else []),
        *(["several_engines_added_up"] if (snapshot.engines or 0) > 1 else []),
        *(["dcgm_blank_sentinel"] if blank else []),
        *(["lines_not_understood"] if odd else []),
    )
    return Scrape(snapshot=snapshot, format=_FORMATS[snapshot.source], codes=_codes(snapshot), notes=notes)


def _canonical(sample: Sample, address: int | None) -> Sample:
    """One name for what differs by prefix or by a label that tells figures apart."""
    name, labels = names.own_name(sample.name), sample.labels
    if name in names.FOLDED:
        kind = names.FOLDED[name]
        name, labels = f"{name}:{labels.get(kind, '')}", {k: v for k, v in labels.items() if k != kind}
    if address is not None:
        labels = {**labels, SOURCE_LABEL: str(address)}
    return sample if name == sample.name and labels is sample.labels else replace(sample, name=name, labels=labels)


def _refuse_mixture(samples: Sequence[Sample], name: str) -> None:
    """Figures of two kinds of engines mean different things and cannot be added up."""
    kinds = {kind for kind, prefixes in _ENGINES.items() if any(s.name.startswith(prefixes) for s in samples)}
    if len(kinds) > 1:
        raise UnreadableFile(
            msg(
                "{file}: metrics of one kind of engine were expected, these are of {kinds}: give them one by one.",
                file=name,
                kinds=", ".join(sorted(kinds)),
            )
        )


_ENGINES = {
    "vLLM": ("vllm:",),
    "SGLang": ("sglang:",),
    "TensorRT-LLM": ("trtllm_", "nv_trt_llm_"),
}


def _snapshot(samples: Sequence[Sample], index: Index) -> MetricsSnapshot:
    values: dict[str, Any] = {
        **{field: _first(index, known, sum) for field, known in names.ADDED.items()},
        **{field: _first(index, known, max) for field, known in names.LARGEST.items()},
    }
    histograms = _histograms(index)
    finished, aborted = _finished(index)
    settings = _settings(index)
    values |= _prefix_cache(values, index)
    values |= {field: stats_of(histograms.get(field)) for field in HISTOGRAMS}
    values["kv_capacity_tokens"] = _capacity(values["kv_capacity_tokens"], settings, index)
    values["kv_usage_share"] = _usage(values["kv_usage_share"], index)
    models = sorted({s.labels["model_name"] for s in samples if s.labels.get("model_name")})
    return MetricsSnapshot(
        source=_source(samples),
        model=", ".join(models)[:MAX_NAME] or None,
        engines=_engines(index),
        requests_finished_total=finished,
        requests_aborted_total=aborted,
        histograms=histograms,
        settings=settings,
        gpus=gpus_of(samples),
        taken_at_s=max((s.time_s for s in samples if s.time_s is not None), default=None),
        **(values | {"host_cache_usage_share": _host_usage(values["host_cache_usage_share"], index)}),
    )


def _first(index: Index, known: Sequence[str], combine: Callable[[list[float]], float]) -> float | None:
    """The newest name present: the largest value among the ranks of one engine, then all engines combined."""
    found = next((index[name] for name in known if name in index), None)
    return None if found is None else combine(list(by_engine(found).values()))


def _engines(index: Index) -> float | None:
    running = next((index[name] for name in names.ADDED["requests_running"] if name in index), None)
    return None if running is None else float(len(by_engine(running)))


def _prefix_cache(values: Mapping[str, float | None], index: Index) -> dict[str, float | None]:
    """Hits over queries in tokens; SGLang and TensorRT-LLM count the hits, their queries are the prompt tokens."""
    queries, hits = values["prefix_queries_tokens"], values["prefix_hits_tokens"]
    reused, missed = _first(index, names.TRT_REUSED, sum), _first(index, names.TRT_MISSED, sum)
    if hits is None and reused is not None and missed is not None:
        block = _first(index, names.TRT_BLOCK_TOKENS, max) or 1.0
        queries, hits = (reused + missed) * block, reused * block
    elif queries is None and hits is not None:
        queries = values["prompt_tokens_total"]
    written = values["prefix_hit_share"]
    share = hits / queries if queries and hits is not None else written
    return {
        "prefix_queries_tokens": queries,
        "prefix_hits_tokens": hits,
        "prefix_hit_share": share if share is not None and 0 <= share <= 1 else None,
    }


def _capacity(written: float | None, settings: Mapping[str, str], index: Index) -> float | None:
    """KV pool in tokens: as the engine says it, else blocks × block size; of all engines of the text."""
    blocks, size = _first(index, names.TRT_BLOCKS, sum), _first(index, names.TRT_BLOCK_TOKENS, max)
    if written is None and blocks is not None and size is not None:
        return blocks * size
    stated = _number(settings.get("kv_cache_size_tokens"))
    blocks, size = _number(settings.get("num_gpu_blocks")), _number(settings.get("block_size"))
    if written is None and stated is None and blocks is not None and size is not None:
        stated = blocks * size
    return written if written is not None else None if stated is None else stated * (_engines(index) or 1.0)


def _usage(written: float | None, index: Index) -> float | None:
    """A share, as engines write it whatever the name says; what goes beyond 1 can only be per cent."""
    used, blocks = _first(index, names.TRT_USED, sum), _first(index, names.TRT_BLOCKS, sum)
    if written is None:
        return used / blocks if used is not None and blocks else None
    return written / PERCENT if written > 1 else written


def _host_usage(written: float | None, index: Index) -> float | None:
    used, total = _first(index, names.HOST_USED, sum), _first(index, names.HOST_TOTAL, sum)
    return used / total if written is None and used is not None and total else written


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,15}(?:\.\d+)?", text) else None


def _histograms(index: Index) -> dict[str, Histogram]:
    found: dict[str, Histogram] = {}
    for field, known in {**HISTOGRAMS, names.LIFETIME: names.LIFETIMES}.items():
        histogram = next((h for name in known if (h := histogram_of(index, name)) is not None), None)
        if histogram is not None:
            found[field] = histogram
    return found


def _finished(index: Index) -> tuple[float | None, float | None]:
    """Requests answered, and requests aborted or failed, since the server's start."""
    by_reason = index.get(names.SUCCESS_BY_REASON, ())
    if not by_reason:
        served = _served(index)
        return _first(served, names.FINISHED, sum), _first(served, names.ABORTED, sum)
    lost = sum(s.value for s in by_reason if s.labels.get("finished_reason") in _LOST_REASONS)
    return sum(s.value for s in by_reason) - lost, lost


def _served(index: Index) -> Index:
    """Triton counts requests of every model of its pipeline: only the one that the engine itself runs is meant."""
    own = {s.labels.get("model") for name in index if name.startswith("nv_trt_llm_request") for s in index[name]}
    return {
        name: [s for s in index[name] if s.labels.get("model") in own]
        if name.startswith("nv_inference_")
        else index[name]
        for name in index
    }


def _settings(index: Index) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in (names.VLLM_SETTINGS, names.SGLANG_SETTINGS, names.TRT_SETTINGS):
        labels = index[name][0].labels if name in index else {}
        found |= {ours: labels[key][:MAX_NAME] for key, ours in _SETTINGS.items() if labels.get(key, "None") != "None"}
    block = _first(index, names.TRT_BLOCK_TOKENS, max)
    return {**({"block_size": f"{block:.0f}"} if block is not None else {}), **found}


def _source(samples: Sequence[Sample]) -> str:
    seen = {sample.name for sample in samples}
    if any(name.startswith("vllm:") for name in seen):
        return "vLLM /metrics (old)" if seen & names.LEGACY else "vLLM /metrics"
    if any(name.startswith("sglang:") for name in seen):
        return "SGLang /metrics"
    return "TensorRT-LLM /metrics" if any(n.startswith(("trtllm_", "nv_trt_llm_")) for n in seen) else "DCGM exporter"


_FORMATS = {
    "vLLM /metrics": "prometheus_vllm",
    "vLLM /metrics (old)": "prometheus_vllm_legacy",
    "SGLang /metrics": "prometheus_sglang",
    "TensorRT-LLM /metrics": "prometheus_trtllm",
    "DCGM exporter": "prometheus_dcgm",
}


def _codes(snapshot: MetricsSnapshot) -> tuple[str, ...]:
    counted = bool(snapshot.histograms) or any(getattr(snapshot, field) for field in COUNTERS)
    return (
        *(["cumulative_counters"] if counted else []),
        *(["imbalanced_gpus"] if imbalanced(snapshot.gpus) else []),
    )
