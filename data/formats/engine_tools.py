"""Readers of what engines and their own benchmarks write, most specific first."""

from __future__ import annotations

from data.formats import (
    evalscope,
    evalscope_db,
    evalscope_percentile,
    inferencex,
    llmperf,
    multi_round_qa,
    sglang_batch,
    sglang_serving,
    trtllm_bench,
    vllm_offline,
    vllm_serve,
)
from data.formats.reader import Reader

READERS: tuple[Reader, ...] = (
    Reader(title="vllm bench", looks_like=vllm_serve.looks_like, read=vllm_serve.read),
    Reader(title="vllm bench", looks_like=vllm_offline.is_latency, read=vllm_offline.read_latency),
    Reader(title="vllm bench", looks_like=vllm_offline.is_throughput, read=vllm_offline.read_throughput),
    Reader(title="vllm bench", looks_like=vllm_offline.is_twin, read=vllm_offline.read_twin),
    Reader(title="SGLang benchmarks", looks_like=sglang_serving.looks_like, read=sglang_serving.read),
    Reader(title="SGLang benchmarks", looks_like=sglang_batch.is_batch, read=sglang_batch.read_batch),
    Reader(title="SGLang benchmarks", looks_like=sglang_batch.is_server, read=sglang_batch.read_server),
    Reader(title="trtllm-bench", looks_like=trtllm_bench.looks_like, read=trtllm_bench.read),
    Reader(title="InferenceX", looks_like=inferencex.looks_like, read=inferencex.read),
    Reader(title="llmperf", looks_like=llmperf.is_summary, read=llmperf.read_summary),
    Reader(title="llmperf", looks_like=llmperf.is_individual, read=llmperf.read_individual),
    Reader(title="evalscope", looks_like=evalscope.is_summary, read=evalscope.read_summary),
    Reader(title="evalscope", looks_like=evalscope_percentile.looks_like, read=evalscope_percentile.read),
    Reader(title="evalscope", looks_like=evalscope.is_arguments, read=evalscope.read_arguments),
    Reader(title="evalscope", looks_like=evalscope_db.looks_like, read=evalscope_db.read),
    Reader(title="LMCache multi-round-qa", looks_like=multi_round_qa.looks_like, read=multi_round_qa.read),
)
