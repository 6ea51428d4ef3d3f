"""Readers of load generators, metrics texts and GPU tools, most specific first."""

from __future__ import annotations

from data.formats import (
    aiperf,
    aiperf_csv,
    aiperf_records,
    aiperf_sweep,
    gpustat,
    guidellm,
    guidellm_csv,
    inference_perf,
    inference_perf_requests,
    k6,
    llmd_report,
    locust,
    metrics_file,
    nvidia_dmon,
    nvidia_smi,
    perf_analyzer,
)
from data.formats.reader import Reader

READERS: tuple[Reader, ...] = (
    Reader(title="/metrics (vLLM, SGLang, DCGM)", looks_like=metrics_file.looks_like, read=metrics_file.read),
    Reader(title="GuideLLM", looks_like=guidellm.looks_like, read=guidellm.read),
    Reader(title="GuideLLM", looks_like=guidellm_csv.looks_like, read=guidellm_csv.read),
    Reader(title="AIPerf", looks_like=aiperf_sweep.looks_like, read=aiperf_sweep.read),
    Reader(title="AIPerf", looks_like=aiperf.looks_like, read=aiperf.read),
    Reader(title="AIPerf", looks_like=aiperf_records.looks_like, read=aiperf_records.read),
    Reader(title="genai-perf", looks_like=aiperf_csv.looks_like, read=aiperf_csv.read),
    Reader(title="inference-perf", looks_like=inference_perf.looks_like, read=inference_perf.read),
    Reader(
        title="inference-perf",
        looks_like=inference_perf_requests.looks_like,
        read=inference_perf_requests.read,
    ),
    Reader(title="llm-d", looks_like=llmd_report.looks_like, read=llmd_report.read),
    Reader(title="perf_analyzer", looks_like=perf_analyzer.looks_like, read=perf_analyzer.read),
    Reader(title="k6", looks_like=k6.looks_like, read=k6.read),
    Reader(title="Locust", looks_like=locust.looks_like, read=locust.read),
    Reader(title="nvidia-smi", looks_like=nvidia_smi.looks_like, read=nvidia_smi.read),
    Reader(title="nvidia-smi", looks_like=nvidia_dmon.looks_like, read=nvidia_dmon.read),
    Reader(title="gpustat", looks_like=gpustat.looks_like, read=gpustat.read),
)
