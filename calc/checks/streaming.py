"""Was the answer timed as it came? TTFT and ITL mean something only for a stream that nothing collects on its way."""

from __future__ import annotations

from calc.checks.run_facts import ERROR, WARNING, RunFacts, ValidityFinding
from calc.messages import Message, msg

STREAMED_TOKENS = 4
"""From more output tokens than this TTFT must lie well below E2E."""
NO_STREAM_SHARE = 0.95
"""Of E2E: TTFT beyond it came with the whole answer."""
ABOVE_E2E = 1.05
"""TTFT over E2E that rounding explains; more is no missing stream but a wrong unit."""
FASTEST_TOKEN_S = 1e-3
"""Tokens closer than this came in one piece: 1,000 tokens/s of one stream."""
CHUNK_GAP_RATIO = 1.3
"""ITL over TPOT: beyond it chunks carry several tokens."""
BUFFERED_RATIO = 0.2
"""ITL P50 over TPOT P50: below it most chunks were read at once."""
WITHOUT_STREAM = frozenset({"not_serving", "no_token_metrics", "needs_companion", "server_side"})
"""Files that never time a stream and say so themselves."""


def no_streaming(facts: RunFacts) -> ValidityFinding | None:
    """TTFT equals E2E, or a file with E2E of several tokens has no trace of a stream."""
    tokens = facts.output_tokens_mean
    if not facts.e2e.mean_s or (tokens is not None and tokens <= STREAMED_TOKENS):
        return None
    if _short_after_long(facts):
        return None
    text = _one_piece(facts.ttft.mean_s, facts.e2e.mean_s) if facts.ttft.mean_s else _no_trace(facts)
    return None if text is None else _finding(text)


def _short_after_long(facts: RunFacts) -> bool:
    """A few tokens after a long prefill end just behind the first one, and their own time accounts for the rest."""
    ttft, tpot, e2e, tokens = facts.ttft.mean_s, facts.tpot.mean_s, facts.e2e.mean_s, facts.output_tokens_mean
    if not ttft or not tpot or not e2e or not tokens or tpot < FASTEST_TOKEN_S:
        return False
    return ttft + tpot * (tokens - 1) <= ABOVE_E2E * e2e


def _one_piece(ttft: float, e2e: float) -> Message | None:
    if not NO_STREAM_SHARE * e2e <= ttft <= ABOVE_E2E * e2e:
        return None
    return msg(
        "TTFT ({ttft:ms}) equals E2E ({e2e:ms}): the answer came in one piece, so this run has no TTFT or ITL. "
        "Measure with streaming.",
        ttft=ttft,
        e2e=e2e,
    )


def _no_trace(facts: RunFacts) -> Message | None:
    known = any(stats.mean_s or stats.p50_s for stats in (facts.ttft, facts.tpot, facts.itl))
    if known or facts.table or facts.output_tokens_mean is None or WITHOUT_STREAM.intersection(facts.flags):
        return None
    return msg("only E2E was timed: this run has no TTFT or ITL. Measure with streaming.")


def _finding(text: Message) -> ValidityFinding:
    return ValidityFinding(code="no_streaming", severity=ERROR, text=text, fields=("ttft", "itl"))


def chunk_gap(facts: RunFacts) -> ValidityFinding | None:
    """Under speculation or multi-step scheduling a chunk carries several tokens: its gap is not the time per token."""
    itl, tpot = facts.itl.mean_s, facts.tpot.mean_s
    if not itl or not tpot or itl <= CHUNK_GAP_RATIO * tpot or "itl_includes_ttft" in facts.flags:
        return None
    text = msg(
        "ITL ({itl:ms}) is the gap between chunks of about {tokens:.2g} tokens: use TPOT ({tpot:ms}) for capacity.",
        itl=itl,
        tokens=itl / tpot,
        tpot=tpot,
    )
    return ValidityFinding(code="itl_is_chunk_gap", severity=WARNING, text=text, fields=("itl", "tpot"))


def buffered(facts: RunFacts) -> ValidityFinding | None:
    """A proxy or a busy client hands out several chunks at once: most gaps are nearly 0, a few carry all the time."""
    itl, tpot = facts.itl.p50_s, facts.tpot.p50_s
    if itl is None or not tpot or itl >= BUFFERED_RATIO * tpot:
        return None
    text = msg(
        "ITL P50 ({itl:ms}) is far below TPOT P50 ({tpot:ms}): a proxy or the client collects chunks. Use TPOT.",
        itl=itl,
        tpot=tpot,
    )
    return ValidityFinding(code="buffered_stream", severity=WARNING, text=text, fields=("itl", "tpot"))
