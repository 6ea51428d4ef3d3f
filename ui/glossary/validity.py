"""Short names of the validity codes, for badges and the sheet; the sentence with its numbers comes with the run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.messages import Message, msg

SEVERITIES: Mapping[str, Message] = MappingProxyType(
    {"E": msg("cannot be used as it stands"), "W": msg("warning"), "I": msg("information")}
)
"""What a severity means for the run."""

VALIDITY: Mapping[str, Message] = MappingProxyType(
    {
        "prefill_above_roofline": msg("prefill beyond the GPU"),
        "warm_cache": msg("warm cache"),
        "prompts_shared": msg("prompts share prefixes"),
        "coordinated_omission": msg("waiting not timed"),
        "start_burst": msg("start burst"),
        "all_at_once": msg("sent all at once"),
        "rate_not_reached": msg("rate not reached"),
        "saturated": msg("saturated"),
        "failed_requests": msg("failed requests"),
        "all_failed": msg("all failed"),
        "failures_unknown": msg("failures not told"),
        "failures_in_percentiles": msg("failures in percentiles"),
        "incomplete_requests": msg("requests cut off"),
        "few_requests": msg("few requests"),
        "few_samples": msg("few samples"),
        "runs_differ": msg("repeats differ"),
        "cold_start": msg("cold start"),
        "unit_implausible": msg("implausible unit"),
        "no_streaming": msg("no streaming"),
        "headers_only": msg("only headers timed"),
        "itl_is_chunk_gap": msg("ITL is a chunk gap"),
        "buffered_stream": msg("buffered stream"),
        "itl_includes_ttft": msg("ITL counted TTFT"),
        "tpot_includes_first_token": msg("TPOT counted the first token"),
        "throughput_inconsistent": msg("figures disagree"),
        "throughput_ambiguous": msg("throughput of what"),
        "mixed_stages": msg("several loads pooled"),
        "not_serving": msg("offline batch"),
        "server_side": msg("timed in the server"),
        "cumulative_counters": msg("counters since start"),
        "zero_may_be_missing": msg("0 for not measured"),
        "no_token_metrics": msg("no tokens"),
        "lengths_nominal": msg("nominal lengths"),
        "lengths_missing": msg("lengths not known"),
        "model_missing": msg("model not named"),
        "needs_companion": msg("part of a set"),
        "p99_missing": msg("no P99"),
        "imbalanced_gpus": msg("uneven GPUs"),
        "not_comparable": msg("not comparable"),
    }
)
"""Code → two or three words."""
