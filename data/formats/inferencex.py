"""Results collected by InferenceX (earlier InferenceMAX): ``agg_*.json``, one object a run, or a list of them.

They are the figures of ``vllm bench serve`` divided by 1000, so latencies are seconds with no unit in the key.
Throughputs are per GPU: with split prefill the output's is per decode GPU, the prompt's per prefill GPU, the sum's per
GPU of both. Requests are always sent without a rate, ``conc`` at a time. ``isl`` and ``osl`` are settings.
``*_intvty`` is 1/TPOT and adds nothing; its deviation means nothing.
"""

from __future__ import annotations

from math import prod

from data.formats.document import Document
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, any_object, facts, has_all, latency, read_runs
from data.records import BenchmarkRun, ReadResult

_SIGNATURE = ("hw", "conc", "tput_per_gpu")
_STATS = {"mean_s": "mean", "p50_s": "median", "std_s": "std", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99"}
_LATENCIES = {
    ours: {stat: f"{prefix}_{theirs}" for stat, prefix in _STATS.items()}
    for ours, theirs in {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}.items()
}
_PARALLEL = ("tp", "pp", "pcp_size")
"""Their product is the number of GPUs of a run on one node."""
_SPLIT = ("num_prefill_gpu", "num_decode_gpu")
_ROUNDING = 0.02
"""Prompt and output throughput add up to the total within this."""
_FACTS = {
    "input_tokens_nominal": "isl",
    "output_tokens_nominal": "osl",
    "image": "image",
    "precision": "precision",
    "spec_decoding": "spec_decoding",
    "prefill_gpus": "num_prefill_gpu",
    "decode_gpus": "num_decode_gpu",
    "prefill_tp": "prefill_tp",
    "decode_tp": "decode_tp",
    "tp": "tp",
    "ep": "ep",
    "dp_attention": "dp_attention",
}


def looks_like(document: Document) -> bool:
    """True when one object has the collector's keys."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """Every collected run."""
    return read_runs(document, "inferencex_agg", signature=_has_signature, run=_run)


def _has_signature(item: JsonObject) -> bool:
    return has_all(item, _SIGNATURE)


def _run(item: JsonObject) -> BenchmarkRun:
    gpus = _gpus(item)
    per_gpu, prompt_per_gpu = number(item, "tput_per_gpu"), number(item, "input_tput_per_gpu")
    total = None if per_gpu is None or gpus is None else per_gpu * gpus
    prompt_gpus = count(item, "num_prefill_gpu") or gpus
    return BenchmarkRun(
        tool="InferenceX",
        model=text(item, "model"),
        engine=text(item, "framework"),
        gpu=text(item, "hw"),
        gpu_count=gpus,
        max_concurrency=count(item, "conc"),
        request_rate_is_infinite=True,
        input_token_throughput_per_s=None
        if prompt_per_gpu is None or not prompt_gpus
        else prompt_per_gpu * prompt_gpus,
        output_token_throughput_per_s=_output(item, gpus, total),
        total_token_throughput_per_s=total,
        ttft=latency(item, _LATENCIES["ttft"], 1.0),
        tpot=latency(item, _LATENCIES["tpot"], 1.0),
        itl=latency(item, _LATENCIES["itl"], 1.0),
        e2e=latency(item, _LATENCIES["e2e"], 1.0),
        extra=facts(item, _FACTS),
        flags=("lengths_nominal",) if item.get("isl") is not None or item.get("osl") is not None else (),
    )


def _gpus(item: JsonObject) -> int | None:
    """GPUs of both halves of a split deployment, else the product of the parallel sizes."""
    halves = [count(item, key) for key in _SPLIT]
    if any(halves):
        return sum(half or 0 for half in halves)
    sizes = [size for size in (count(item, key) for key in _PARALLEL) if size]
    return prod(sizes) if item.get("tp") and sizes else None


def _output(item: JsonObject, gpus: int | None, total: float | None) -> float | None:
    """Output tokens per second: per decode GPU when split, unless only all GPUs make the parts add up to the total."""
    per_gpu = number(item, "output_tput_per_gpu")
    decode_gpus, prefill_gpus = count(item, "num_decode_gpu"), count(item, "num_prefill_gpu")
    if per_gpu is None or gpus is None:
        return None
    if not decode_gpus:
        return per_gpu * gpus
    prompt_per_gpu = number(item, "input_tput_per_gpu")
    if total and prompt_per_gpu is not None and prefill_gpus:
        over_all = prompt_per_gpu * prefill_gpus + per_gpu * gpus
        if abs(over_all - total) <= _ROUNDING * total:
            return per_gpu * gpus
    return per_gpu * decode_gpus
