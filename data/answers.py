"""Results as JSON for other programs: milliseconds, bytes, tokens and shares, with the unit in every key."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from calc import MODEL_VERSION
from calc.cache.waste import WasteShares
from calc.evidence import Evidence, Percentiles
from calc.judge.decision import Decision, Finding
from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.messages import Message
from calc.units import KILO

MEMORY_PARTS = ("weights", "activation", "non_torch", "graphs", "kv_pool")
"""Parts of a GPU's memory that a start-up log can measure."""
_DIGITS = 9
"""Of milliseconds, rates and shares: far below what any clock or model can tell apart; small rates keep theirs."""


def rounded(value: float | None) -> float | None:
    """With as many digits as say something."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _ms(value_s: float | None) -> float | None:
    return None if value_s is None else rounded(value_s * KILO)


def _texts(messages: tuple[Message, ...]) -> list[str]:
    return [str(message) for message in messages]


def memory_answer(report: MemoryReport, notes: tuple[Message, ...] = ()) -> dict[str, Any]:
    """The KV pool and what it is made of, per GPU; blocks, tokens and concurrency of one replica."""
    return {
        "kv_bytes_per_token_per_gpu": report.kv_bytes_per_token,
        "weights_bytes_per_gpu": report.weights_bytes,
        "activation_bytes_per_gpu": report.activation_bytes,
        "non_torch_bytes_per_gpu": report.non_torch_bytes,
        "graph_bytes_per_gpu": report.graph_bytes,
        "kv_pool_bytes_per_gpu": report.kv_pool_bytes,
        "kv_pool_band_bytes": list(report.kv_pool_band_bytes),
        "block_size_tokens": report.block_size_tokens,
        "num_blocks": report.num_blocks,
        "kv_tokens": report.kv_tokens,
        "max_concurrency": rounded(report.max_concurrency),
        "max_model_len": report.max_model_len_tokens,
        "fits": report.fits,
        "over_bytes": report.over_bytes,
        "gpu_memory_bytes": report.total_bytes,
        "budget_bytes_per_gpu": report.budget_bytes,
        "kv_dtype": report.kv_dtype,
        "states_per_sequence": report.states_per_sequence,
        "state_bytes_per_sequence_per_gpu": report.state_bytes_per_sequence,
        "weights_provenance": report.origin("weights"),
        "provenance": {part: report.origin(part) for part in MEMORY_PARTS},
        **({"log_id": report.log_id, "log_date": report.log_date} if report.log_id else {}),
        "model_version": MODEL_VERSION,
        "notes": _texts(notes + report.notes),
    }


def waste_answer(shares: WasteShares) -> dict[str, Any]:
    """What of the KV memory a load reserves stays empty, were it reserved in these ways (shares 0-1)."""
    return {
        "held_tokens": rounded(shares.held_tokens),
        "max_length_share": rounded(shares.max_length),
        "power_of_two_share": rounded(shares.power_of_two),
        "paged_share": rounded(shares.paged),
    }


def latency_answer(report: LatencyReport, notes: tuple[Message, ...] = (), *, steady: bool = False) -> dict[str, Any]:
    """Simulated latency of the whole deployment at the load of the case.

    ``steady``: the load has no end, so one that outruns the engine has no latency either: null, and the rate in words.
    """
    endless = steady and report.saturated and report.offered_rate_per_s is not None
    return {
        **(_NO_LATENCY if endless else _latencies(report)),
        "request_rate_per_s": rounded(report.request_rate_per_s),
        "output_tokens_per_s": rounded(report.output_tokens_per_s),
        "concurrency": rounded(report.concurrency),
        "kv_usage": {"mean": rounded(report.kv_usage_mean_share), "max": rounded(report.kv_usage_max_share)},
        "preemptions": report.preemptions,
        "bound": report.bound,
        "saturated": report.saturated,
        "max_rate_per_s": rounded(report.max_rate_per_s),
        "slo_attainment": rounded(report.slo_attainment_share),
        "requests": report.requests,
        "calibration": report.calibration,
        "model_version": MODEL_VERSION,
        **_told_apart(report),
        "notes": _texts(notes + report.notes),
    }


_NO_PERCENTILES = dict.fromkeys(("mean", "p50", "p90", "p95", "p99"))
_NO_LATENCY: dict[str, Any] = {
    **dict.fromkeys(("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"), _NO_PERCENTILES),
    **dict.fromkeys(("queue_ms", "prefill_ms", "decode_ms", "network_ms")),
}


def _latencies(report: LatencyReport) -> dict[str, Any]:
    return {
        "ttft_ms": _percentiles_ms(report.ttft),
        "itl_ms": _percentiles_ms(report.itl),
        "tpot_ms": _percentiles_ms(report.tpot),
        "e2e_ms": _percentiles_ms(report.e2e),
        "queue_ms": _ms(report.queue_s),
        "prefill_ms": _ms(report.prefill_s),
        "decode_ms": _ms(report.decode_s),
        "network_ms": _ms(report.network_s),
    }


def _told_apart(report: LatencyReport) -> dict[str, Any]:
    """Of loads with kinds of requests, shared prefixes, clients that leave, tiers or split prefill: what there is."""
    shares = {
        "cancelled_share": report.cancelled_share,
        "gave_up_share": report.gave_up_share,
        "retried_share": report.retried_share,
    }
    answer: dict[str, Any] = {name: rounded(share) for name, share in shares.items() if share}
    if report.fetch_s:
        answer["fetch_ms"] = _ms(report.fetch_s)
    if report.limit_pool:
        answer["transfer_ms"] = _ms(report.transfer_s)
        answer["limit_pool"] = report.limit_pool
        answer["prefill_kv_usage"] = {
            "mean": rounded(report.prefill_kv_usage_mean_share),
            "max": rounded(report.prefill_kv_usage_max_share),
        }
    if report.hit_share is not None:
        answer["hit_share"] = rounded(report.hit_share)
    if report.classes:
        answer["classes"] = [
            {
                "name": one.name,
                "share": rounded(one.share),
                "requests": one.requests,
                "ttft_ms": _percentiles_ms(one.ttft),
                "tpot_ms": _percentiles_ms(one.tpot),
                "e2e_ms": _percentiles_ms(one.e2e),
                "queue_ms": _ms(one.queue_s),
                "slo_attainment": rounded(one.slo_attainment_share),
                "goodput_per_s": rounded(one.goodput_per_s),
                "gave_up_share": rounded(one.gave_up_share),
            }
            for one in report.classes
        ]
    return answer


def _percentiles_ms(latency: Percentiles) -> dict[str, float | None]:
    return {
        "mean": _ms(latency.mean_s),
        "p50": _ms(latency.p50_s),
        "p90": _ms(latency.p90_s),
        "p95": _ms(latency.p95_s),
        "p99": _ms(latency.p99_s),
    }


def decision_answer(decision: Decision, notes: tuple[Message, ...] = ()) -> dict[str, Any]:
    """The answer, the conditions behind it with their evidence, and the levers tried."""
    return {
        "outcome": decision.outcome,
        "bottleneck": decision.bottleneck,
        "diagnosis": decision.diagnosis,
        "headline": str(decision.headline),
        "because": _texts(decision.because),
        "runner_up": decision.runner_up,
        "flips_when": decision.flips_when and str(decision.flips_when),
        "first_lever": decision.first_lever,
        "first_lever_title": decision.first_lever_title and str(decision.first_lever_title),
        "legs_agree": decision.legs_agree,
        "conditions_outcome": decision.conditions_outcome,
        "what_ifs_outcome": decision.what_ifs_outcome,
        "layers": [
            {"layer": state.layer, "strain": state.strain, "statement": str(state.statement)}
            for state in decision.layers
        ],
        "findings": [_finding(finding) for finding in decision.findings],
        "what_ifs": [
            {
                "lever": what_if.lever,
                "supports": what_if.supports,
                "meets_slo": what_if.meets_slo,
                "headroom_per_s": rounded(what_if.headroom_per_s),
                "cost_per_million_tokens": rounded(what_if.cost_per_million_tokens),
                "note": str(what_if.note),
            }
            for what_if in decision.what_ifs
        ],
        "missing": _texts(decision.missing),
        "risks": _texts(decision.risks),
        "model_version": decision.model_version,
        "notes": _texts(notes),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "supports": finding.supports,
        "verdict": finding.verdict,
        "statement": str(finding.statement),
        "guard": finding.guard,
        "threshold": finding.threshold,
        "source": finding.source,
        "evidence": [_evidence(evidence) for evidence in finding.evidence],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    told = asdict(evidence) | {"caveats": _texts(evidence.caveats)}
    if evidence.instead_of is not None:
        told["instead_of"] = _evidence(evidence.instead_of)
    return {key: value for key, value in told.items() if value not in (None, "", []) or key == "value"}


def bench_answer(seconds: list[float], requests: int) -> dict[str, Any]:
    """Simulated requests per second of the fastest of several runs, and the time of each."""
    return {"requests_per_s": round(requests / min(seconds)), "requests": requests, "seconds": seconds}
