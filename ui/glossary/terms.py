"""The words of this tool: what each means, how it is made, where the definition comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.messages import Message, msg


@dataclass(frozen=True, kw_only=True)
class Term:
    """One word this tool uses: what it means, how it is made, where the definition comes from."""

    key: str
    label: str
    """The field's standard name; the same in every language."""
    unit: str
    meaning: Message
    formula: str | Message = ""
    source: str = ""
    word: Message | None = None
    """The name as a word that other languages translate; ``None`` where they use the label."""


def _terms(*rows: Term) -> Mapping[str, Term]:
    return {row.key: row for row in rows}


TERMS = _terms(
    Term(
        key="ttft",
        label="TTFT",
        unit="ms",
        formula="TTFT = T_queue + T_prefill + T_network",
        meaning=msg("Time to first token: from sending the request to its first token, queueing included."),
    ),
    Term(
        key="itl",
        label="ITL",
        unit="ms",
        meaning=msg(
            "Inter-token latency: the gap between two tokens of one stream, first token excluded; over all gaps."
        ),
    ),
    Term(
        key="tpot",
        label="TPOT",
        unit="ms",
        formula=msg("TPOT = (E2E − TTFT) / (output tokens − 1)"),
        meaning=msg("Time per output token: the mean ITL of one request; over requests."),
    ),
    Term(
        key="e2e",
        label="E2E",
        unit="s",
        formula="E2E = TTFT + (n − 1) · TPOT",
        meaning=msg("End-to-end latency: from sending the request to its last token."),
    ),
    Term(
        key="queue",
        label="T_queue",
        unit="s",
        meaning=msg("Waiting in the engine before the first prompt token is computed."),
    ),
    Term(key="prefill", label="T_prefill", unit="s", meaning=msg("Computing the prompt tokens that no cache holds.")),
    Term(key="decode", label="T_decode", unit="s", meaning=msg("From the first to the last token.")),
    Term(key="network", label="T_network", unit="s", meaning=msg("HTTP, tokenising and streaming outside the engine.")),
    Term(
        key="kv_cache",
        label="KV cache",
        unit="GiB",
        formula="2 · L · H_kv · D · B",
        meaning=msg(
            "Keys and values of all tokens a request has seen, so that none is computed twice; grows with every token."
        ),
    ),
    Term(
        key="kv_pool",
        label="KV pool",
        word=msg("KV pool"),
        unit="GiB",
        meaning=msg("What is left of the engine's budget after weights and runtime; cut into blocks."),
    ),
    Term(
        key="kv_demand",
        label="KV demand",
        word=msg("KV demand"),
        unit="GiB",
        meaning=msg("What the requests in flight need at the planned load."),
    ),
    Term(
        key="kv_usage",
        label="KV usage",
        word=msg("KV usage"),
        unit="%",
        meaning=msg(
            "Blocks in use over blocks in the pool. High usage alone is no fault; with waiting or preemption it is."
        ),
    ),
    Term(
        key="max_concurrency",
        label="Max concurrency",
        word=msg("Max concurrency"),
        unit="requests",
        meaning=msg("Sequences of the max model length one replica holds, as the engine logs it."),
    ),
    Term(
        key="hit_rate",
        label="Hit rate",
        word=msg("Hit rate"),
        unit="%",
        formula=msg("prompt tokens found / prompt tokens"),
        meaning=msg("Share of prompt tokens found in the prefix cache. A means, not a goal: it only shortens prefill."),
    ),
    Term(
        key="preemption",
        label="Preemption",
        word=msg("Preemption"),
        unit="per request",
        meaning=msg("A running request loses its blocks and is computed again: the pool was too small for the load."),
    ),
    Term(
        key="headroom",
        label="Headroom",
        word=msg("Headroom"),
        unit="requests/s",
        meaning=msg("Load that can still be added before the SLO is missed."),
    ),
    Term(
        key="knee",
        label="Knee",
        word=msg("Knee"),
        unit="requests/s",
        meaning=msg("The highest load that still meets the SLO."),
    ),
    Term(
        key="goodput", label="Goodput", unit="requests/s", meaning=msg("Requests per second that meet the whole SLO.")
    ),
    Term(
        key="slo",
        label="SLO",
        unit="",
        meaning=msg("The promise: targets for TTFT, ITL or E2E at a stated percentile."),
    ),
    Term(
        key="saturated",
        label="Saturated",
        word=msg("Saturated"),
        unit="",
        meaning=msg("More arrives than can be served: latency grows with time and has no steady value."),
    ),
)
