"""One small made-up file for each reader: the corpus that is mutated where no real files are at hand."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from conftest import ROOT
from openpyxl import Workbook
from test_formats_engine_tools import AGGREGATED, ONE_BATCH, SGLANG, TRTLLM
from test_formats_load_tools import DMON, GENAI, LLMD, LOCUST, guidellm, k6, locust_row, stage, table

VLLM: dict[str, Any] = {
    "model_id": "m", "duration": 10.0, "completed": 3, "request_throughput": 0.3, "mean_ttft_ms": 100.0,
    "p99_ttft_ms": 110.0, "mean_tpot_ms": 20.0, "request_rate": "inf", "num_prompts": 4, "max_concurrency": 2,
    "input_lens": [5, 6, 7], "output_lens": [2, 3, 0], "ttfts": [0.1, 0.1, 0.0], "itls": [[0.02], [0.02, 0.02], []],
}  # fmt: skip
LLMPERF: dict[str, Any] = {
    "version": "2023-08-31", "model": "m", "num_concurrent_requests": 5, "results_ttft_s_mean": 0.4,
    "results_ttft_s_quantiles_p50": 0.4, "results_inter_token_latency_s_mean": 0.02, "results_number_errors": 0,
    "results_end_to_end_latency_s_mean": 3.0, "results_num_completed_requests": 150,
    "results_error_code_frequency": "{}", "results_num_completed_requests_per_min": 60.0,
    "results_number_input_tokens_min": "550",
}  # fmt: skip
EVALSCOPE: dict[str, Any] = {
    "Test Duration (s)": 10.0, "Concurrency": 8, "Request Rate (req/s)": -1, "Total Requests": 100,
    "Success Requests": 97, "Failed Requests": 3, "Avg Latency (s)": 1.5, "Avg TTFT (ms)": 100.0, "Avg TPOT (ms)": 20.0,
}  # fmt: skip
PERCENTILES = [
    {"Percentiles": "50%", "TTFT (ms)": 90.0, "Latency (s)": 1.2},
    {"Percentiles": "99%", "TTFT (ms)": 300.0},
]
BATCH_TIMES = {
    "prefill_latency": 0.02, "prefill_throughput": 20_000.0, "median_decode_latency": 0.006, "total_latency": 0.15,
    "median_decode_throughput": 600.0, "overall_throughput": 3200.0,
}  # fmt: skip
RESPONSE = {"ttft_s": 0.4, "end_to_end_latency_s": 3.0, "inter_token_latency_s": 0.02, "number_output_tokens": 130}
ROUNDS = "prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,launch_time,finish_time\n"
PERF = "Concurrency,Inferences/Second,Client Send,p50 latency,p90 latency,p95 latency,p99 latency\n"
PERF_ROW = "1,69.2,46,13891,18795,19753,21018\n"
NVIDIA = (
    "index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]\n0, NVIDIA H100, 95 %, 7650 MiB, 310.5 W\n"
)
GPUSTAT = {
    "gpus": [{"index": 0, "name": "H100", "memory.used": 100, "utilization.gpu": 5, "power.draw": 70}],
    "driver_version": "1",
}


def made_up() -> dict[str, bytes]:
    """Name → content; the samples that come with the product among them."""
    samples = {path.name: path.read_bytes() for path in (ROOT / "data" / "samples").iterdir() if _is_result(path)}
    values: dict[str, list[Any]] = {
        "vllm": [VLLM],
        "vllm_lines": [VLLM, VLLM],
        "sweep": [[VLLM | {"run_number": 0}]],
        "vllm_latency": [{"avg_latency": 1.2, "latencies": [1.2, 1.3], "percentiles": {"50": 1.2, "99": 1.3}}],
        "vllm_throughput": [
            {
                "elapsed_time": 9.0,
                "num_requests": 9,
                "total_num_tokens": 900,
                "requests_per_second": 1.0,
                "tokens_per_second": 100.0,
            }
        ],
        "sglang": [SGLANG, SGLANG | {"request_rate": float("inf")}],
        "one_batch": [ONE_BATCH | BATCH_TIMES],
        "trtllm": [TRTLLM],
        "inferencex": [AGGREGATED],
        "guidellm": [guidellm({"type_": "constant", "rate": 2.0})],
        "genai": [GENAI | {"input_config": {"phases": []}}],
        "stage": [stage()],
        "llmperf": [LLMPERF],
        "responses": [[RESPONSE, RESPONSE]],
        "evalscope": [EVALSCOPE],
        "percentiles": [PERCENTILES],
        "gpustat": [GPUSTAT],
    }
    return {
        **samples,
        **{name: "\n".join(json.dumps(value) for value in lines).encode() for name, lines in values.items()},
        "locust": table(
            LOCUST, locust_row("POST", "/v1", 900, 3, 1200), locust_row("None", "Aggregated", 900, 3, 1200)
        ),
        "k6": k6(
            {"values": {"avg": 800.0, "med": 700.0}}, {"values": {"count": 9, "rate": 1.0}}, {"values": {"passes": 0}}
        ),
        "llmd": LLMD.encode(),
        "dmon": DMON.encode(),
        "rounds": (ROUNDS + "100,20,0.1,0.9,0,0,1700000000.0,1700000001.0\n").encode(),
        "perf_analyzer": (PERF + PERF_ROW).encode(),
        "nvidia_smi": NVIDIA.encode(),
        "workbook": workbook(),
        "database": database(),
    }


def _is_result(path: Path) -> bool:
    return path.name.startswith("sample-") and "recording" not in path.name


def workbook() -> bytes:
    book = Workbook()
    for row in (["concurrency", "TTFT (ms)", "QPS"], [8, 400, 2.5], [16, 500, 3]):
        book.worksheets[0].append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def database() -> bytes:
    """A table of requests as evalscope keeps them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        connection = sqlite3.connect(path)
        connection.execute(
            "CREATE TABLE result (request TEXT, start_time REAL, chunk_times TEXT, success INTEGER, "
            "response_messages TEXT, completed_time REAL, latency REAL, first_chunk_latency REAL, n_chunks INTEGER, "
            "chunk_time REAL, prompt_tokens INTEGER, completion_tokens INTEGER, max_gpu_memory_cost REAL, "
            "time_per_output_token REAL, inter_token_latencies TEXT)"
        )
        row = ("", 1.0, "[]", 1, "", 2.0, 1.0, 0.1, 5, 0.9, 10, 5, 0.0, 0.2, "[0.2, 0.3]")
        connection.execute(f"INSERT INTO result VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
        connection.close()
        return path.read_bytes()
