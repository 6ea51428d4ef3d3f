"""What a search found as JSON: ranked deployments with cost, headroom and percentiles, fronts, what was ruled out."""

from __future__ import annotations

from typing import Any

from calc import MODEL_VERSION
from calc.engine import resolve
from calc.messages import Message
from calc.search.result import REASONS, Found, SearchResult
from data.answers import latency_answer, rounded
from data.case import AUTO, write_case

LATENCIES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "request_rate_per_s", "output_tokens_per_s", "max_rate_per_s",
             "slo_attainment", "saturated", "bound", "requests")  # fmt: skip


def search_answer(result: SearchResult, notes: tuple[Message, ...], most_rows: int) -> dict[str, Any]:
    """One line: rows in order, with the case that ``predict`` answers with the same figures."""
    return {
        "deployments": [_row(place, row) for place, row in enumerate(result.rows[:most_rows], 1)],
        "feasible": result.feasible,
        "combinations": result.combinations,
        "simulated": result.simulated,
        "ruled_out": [
            {"reason": out.reason, "count": out.count, "text": str(REASONS[out.reason]), "example": str(out.example)}
            for out in result.ruled_out
        ],
        "fronts": {
            "throughput_per_gpu_and_interactivity": [_point(one) for one in result.fast_front],
            "cost_and_p99": [_point(one) for one in result.cheap_front],
        },
        "model_version": MODEL_VERSION,
        "notes": [str(note) for note in (*notes, *result.notes)],
    }


def _row(place: int, row: Found) -> dict[str, Any]:
    latency = latency_answer(row.latency)
    return {
        "rank": place,
        **_point(row),
        **_cost(row),
        "headroom_per_s": rounded(row.headroom_per_s),
        "meets_slo": row.latency.slo_met,
        **{key: latency[key] for key in LATENCIES},
        "cautions": [str(caution) for caution in row.cautions],
        "case": write_case(row.scenario),
    }


def _point(one: Found) -> dict[str, Any]:
    deployment = one.scenario.deployment
    settings = resolve(deployment)
    return {
        "gpu": deployment.gpu.id,
        "gpus": one.gpus,
        "tp": deployment.tp,
        "pp": deployment.pp,
        "dp": deployment.dp,
        "replicas": deployment.replicas,
        "prefill_replicas": deployment.serving.prefill_replicas,
        "kv_dtype": settings.kv_dtype,
        "weight_dtype": deployment.weight_dtype or AUTO,
        "enable_prefix_caching": settings.prefix_caching,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "offload": [tier.name for tier in deployment.serving.tiers],
        "cost_per_hour": rounded(one.cost.total_per_hour if one.cost else None),
        "output_tokens_per_s_per_gpu": rounded(one.per_gpu),
        "tokens_per_s_per_user": rounded(one.interactivity),
        "e2e_p99_ms": latency_answer(one.latency)["e2e_ms"]["p99"],
    }


def _cost(row: Found) -> dict[str, Any]:
    cost = row.cost
    return {
        "currency": row.scenario.prices.currency if cost else None,
        "cost_per_request": rounded(cost.per_request if cost else None),
        "cost_per_slo_request": rounded(cost.per_slo_request if cost else None),
        "cost_per_million_output_tokens": rounded(cost.per_million_output_tokens if cost else None),
    }
