"""What one API server process has to do per request and per streamed token, and when that becomes the bottleneck."""

from __future__ import annotations

from calc.messages import Message, msg

REQUEST_S = 9.5e-3
"""HTTP, template, tokeniser, hand-over: 1,000 requests sent at once to vLLM of May 2025 (pull request 18566) got their
first tokens after 9.5 s in the median, of which the GPU needed 2; BLIS fits 9.3 ms from arrival to the queue."""
TOKEN_S = 46e-6
"""Detokenise and stream one token (BLIS, inference-sim docs/guide/latency-models.md)."""
BUSY_SHARE = 0.8
"""From here on the process is what requests wait for."""


def front_share(requests_per_s: float, output_tokens_per_s: float) -> float:
    """How busy one process is: rate · 9.5 ms + tokens per second · 46 µs; above 1 it falls behind."""
    return requests_per_s * REQUEST_S + output_tokens_per_s * TOKEN_S


def front_notes(requests_per_s: float, output_tokens_per_s: float) -> tuple[Message, ...]:
    """A warning where one process of a replica would be the bottleneck; its queue is not simulated."""
    share = front_share(requests_per_s, output_tokens_per_s)
    if share < BUSY_SHARE:
        return ()
    return (
        msg(
            "One API server process would be busy {share:pct} of the time: first tokens then wait for it, which is not "
            "simulated. Run several of them (vLLM --api-server-count) or stream several tokens at a time.",
            share=share,
        ),
    )
