"""Split prefill of whole scenarios: published runs, limits of both pools, and what adds up to the first token."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calc.latency import predict
from data.case import read_case

GOLDEN = Path(__file__).parent / "golden" / "split_prefill.csv"
ROWS = list(csv.DictReader(GOLDEN.read_text(encoding="utf-8").splitlines()))
PROXY_MS = 31.0
"""What proxy and second engine add in that run: its 45 ms for the shortest prompt less one engine's 14 ms."""


def case(prompt_tokens: float, arrivals: dict[str, Any], requests: int | None = 10, **more: Any) -> dict[str, Any]:
    return {
        "model": "Qwen/Qwen3-8B",
        "gpu": "h800",
        "engine": "vllm",
        "tp": 8,
        "serving": {"prefill_replicas": 1, "transfer_gb_per_s": 150, "transfer_ms": PROXY_MS},
        "workload": {
            "prompt_tokens": {"distribution": "fixed", "value": prompt_tokens},
            "output_tokens": {"distribution": "fixed", "value": 128},
            "arrivals": arrivals,
            "num_requests": requests,
        },
        **more,
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["prompt_tokens"])
def test_published_runs_of_one_prefill_and_one_decode_replica(row: dict[str, str]) -> None:
    asked = case(float(row["prompt_tokens"]), {"kind": "closed", "concurrency": 1}, max_model_len=40960)
    report = predict(read_case(asked)[0])
    assert (report.ttft.mean_s or 0) * 1000 == pytest.approx(float(row["ttft_ms"]), rel=float(row["ttft_tolerance"]))
    moved_ms = report.transfer_s * 1000 - PROXY_MS
    assert moved_ms == pytest.approx(float(row["transfer_ms"]), rel=float(row["transfer_tolerance"]))


def test_the_handover_is_part_of_prefill_and_all_parts_add_up() -> None:
    report = predict(read_case(case(2000, {"kind": "poisson", "rate_per_s": 5}, None))[0])
    parts = report.queue_s + report.prefill_s + report.decode_s + report.network_s
    assert parts == pytest.approx(report.e2e.mean_s)
    assert PROXY_MS / 1000 < report.transfer_s < report.prefill_s
    assert report.prefill_kv_usage_mean_share is not None


def test_the_weaker_side_sets_the_limit() -> None:
    long_prompts = read_case(case(30_000, {"kind": "poisson", "rate_per_s": 1}, None, max_model_len=40960))[0]
    report = predict(long_prompts)
    assert report.limit_pool == "prefill"
    serving = replace(long_prompts.deployment.serving, prefill_replicas=2)
    twice = predict(replace(long_prompts, deployment=replace(long_prompts.deployment, serving=serving)))
    assert twice.max_rate_per_s == pytest.approx(2 * report.max_rate_per_s, rel=0.01)


def test_a_load_beyond_both_pools_is_said_to_be_saturated() -> None:
    report = predict(read_case(case(8000, {"kind": "poisson", "rate_per_s": 500}, None))[0])
    assert report.saturated
    assert any("Saturated at" in note.msgid for note in report.notes)
