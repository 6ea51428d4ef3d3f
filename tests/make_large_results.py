"""Large result files of made-up requests, for tests of speed and memory."""

from __future__ import annotations

import json

import numpy as np


def vllm_detailed(requests: int, gaps: int = 60, seed: int = 3) -> bytes:
    """``vllm bench serve --save-detailed``: every gap of every request, and every answer."""
    draw = np.random.default_rng(seed)
    outputs = draw.integers(2, gaps, requests).tolist()
    itls = [
        row[: count - 1] for row, count in zip(draw.gamma(4, 0.005, (requests, gaps)).tolist(), outputs, strict=True)
    ]
    run = {
        "model_id": "m",
        "duration": 100.0,
        "completed": requests,
        "num_prompts": requests,
        "request_rate": float("inf"),
        "request_throughput": requests / 100,
        "mean_e2el_ms": 1000 * (0.1 + sum(map(sum, itls)) / requests),
        "input_lens": [50] * requests,
        "output_lens": outputs,
        "ttfts": [0.1] * requests,
        "itls": itls,
        "generated_texts": ["what was answered, and more of it"] * requests,
        "errors": [""] * requests,
    }
    return json.dumps(run).encode()


def aiperf_records(requests: int, gaps: int = 20) -> bytes:
    """AIPerf's ``profile_export.jsonl``: one request a line."""
    lines = []
    for number in range(requests):
        start_ns = 1_790_000_000_000_000_000 + number * 10_000_000
        times = {"time_to_first_token": 80.0 + number % 7, "request_latency": 400.0 + number % 11}
        metrics = {name: {"value": value, "unit": "ms"} for name, value in times.items()}
        metrics["inter_chunk_latency"] = {"value": [15.0 + (number + gap) % 13 for gap in range(gaps)], "unit": "ms"}
        metrics["input_sequence_length"] = {"value": 200, "unit": "tokens"}
        metrics["output_sequence_length"] = {"value": gaps + 1, "unit": "tokens"}
        metadata = {"x_request_id": f"{number:032d}", "benchmark_phase": "profiling", "was_cancelled": False}
        metadata |= {"request_start_ns": start_ns, "request_end_ns": start_ns + 400_000_000}
        lines.append(json.dumps({"metadata": metadata, "metrics": metrics, "error": None}))
    return "\n".join(lines).encode()


def gpu_log(readings: int, gpus: int = 8) -> bytes:
    """``nvidia-smi --query-gpu`` once a second."""
    lines = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
    for number in range(readings):
        second = number // gpus
        clock = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000"
        lines.append(
            f"2026/08/17 {clock}, {number % gpus}, {number % 101} %, {number % 80000} MiB, 81559 MiB, {number % 700} W"
        )
    return "\n".join(lines).encode()
