"""Results of SGLang's ``bench_one_batch`` and ``bench_one_batch_server``: one batch of equal requests, in seconds.

The overall throughput counts prompt and output tokens. The others are rates of one phase: prompt tokens over the
prefill time, output tokens over the decode time.
"""

from __future__ import annotations

from data.formats.collect import known
from data.formats.document import Document
from data.formats.json_fields import number
from data.formats.json_objects import JsonObject, any_object, facts, has_all, latency, read_runs
from data.records import BenchmarkRun, ReadResult

_COMMON = ("batch_size", "input_len", "output_len", "overall_throughput")
_FACTS = {
    "batch_size": "batch_size",
    "run_name": "run_name",
    "engine_decode_token_throughput": "last_gen_throughput",
}


def is_batch(document: Document) -> bool:
    """True for ``bench_one_batch``."""
    return any_object(document, _has_batch)


def read_batch(document: Document) -> ReadResult:
    """One load point a batch size and length: TTFT is the prefill of the batch, TPOT the median decode step."""
    return read_runs(document, "sglang_bench_one_batch_jsonl", signature=_has_batch, run=_batch_run)


def is_server(document: Document) -> bool:
    """True for ``bench_one_batch_server``."""
    return any_object(document, _has_server)


def read_server(document: Document) -> ReadResult:
    """One load point a batch size and length, through the server; TTFT is that of the last request of the batch."""
    return read_runs(document, "sglang_bench_one_batch_server_jsonl", signature=_has_server, run=_server_run)


def _has_batch(item: JsonObject) -> bool:
    return has_all(item, _COMMON) and "prefill_latency" in item


def _has_server(item: JsonObject) -> bool:
    """The first versions have no throughput of the prompts."""
    return has_all(item, _COMMON) and has_all(item, ("latency", "output_throughput"))


def _batch_run(item: JsonObject) -> BenchmarkRun:
    phases = {
        "prefill_token_throughput": "prefill_throughput",
        "decode_token_throughput": "median_decode_throughput",
    }
    return BenchmarkRun(
        tool="sglang bench_one_batch",
        input_tokens_mean=number(item, "input_len"),
        output_tokens_mean=number(item, "output_len"),
        total_token_throughput_per_s=number(item, "overall_throughput"),
        ttft=latency(item, {"mean_s": "prefill_latency"}, 1.0),
        tpot=latency(item, {"p50_s": "median_decode_latency"}, 1.0),
        e2e=latency(item, {"mean_s": "total_latency"}, 1.0),
        extra=facts(item, _FACTS | phases) | _accepted(item),
        flags=("not_serving",),
    )


def _server_run(item: JsonObject) -> BenchmarkRun:
    phases = {"prefill_token_throughput": "input_throughput", "decode_token_throughput": "output_throughput"}
    ttft = "ttft" if "ttft" in item else "last_ttft"
    return BenchmarkRun(
        tool="sglang bench_one_batch_server",
        input_tokens_mean=number(item, "input_len"),
        output_tokens_mean=number(item, "output_len"),
        total_token_throughput_per_s=number(item, "overall_throughput"),
        ttft=latency(item, {"mean_s": ttft}, 1.0),
        tpot=latency(item, {"mean_s": "tpot"}, 1.0),
        e2e=latency(item, {"mean_s": "latency"}, 1.0),
        extra=facts(item, _FACTS | phases) | _accepted(item),
        flags=("not_serving",),
    )


def _accepted(item: JsonObject) -> dict[str, float | str]:
    """Tokens a step under speculation; -1 is none."""
    length = number(item, "acc_length")
    return known(spec_accept_len=length if length is not None and length > 0 else None)
