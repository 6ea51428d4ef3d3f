"""How fast these GPUs can prefill at all, and whether a run claims more."""

from __future__ import annotations

from calc.checks.run_facts import ERROR, RunFacts, ValidityFinding
from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import msg
from calc.model import ModelSpec
from calc.step.kernels import GEMM_FLOPS, peak_flops_per_s


def prefill_limit_tokens_per_s(model: ModelSpec, gpu: Gpu, gpu_count: int) -> float | None:
    """Prompt tokens/s that no schedule exceeds = GPUs x dense peak FLOP/s / (2 x parameters a token passes).

    The output head runs for the last token alone, so its parameters are left out; attention, transfers and every loss
    too. ``None`` when the GPU's peak for this format is not known.
    """
    try:
        peak, _ = peak_flops_per_s(gpu, model.storage.compute_dtype)
    except InputError:
        return None
    passed = model.active_parameters - model.vocab_size * model.hidden_size
    return gpu_count * peak / (GEMM_FLOPS * passed) if passed > 0 else None


def prefill_above_roofline(facts: RunFacts) -> ValidityFinding | None:
    """Median prompt over median TTFT; the mean prompt where the file has no median. Tokens found are no prefill."""
    tokens, ttft, limit = _prefilled_tokens(facts), facts.ttft.p50_s, facts.prefill_limit_tokens_per_s
    if tokens is None or not ttft or limit is None or tokens / ttft <= limit:
        return None
    text = msg(
        "{rate:toks} of prefill are more than these GPUs can do ({limit:toks}): a warm cache, a wrong unit, or other "
        "GPUs than stated. Empty the cache, change the seed and measure again.",
        rate=tokens / ttft,
        limit=limit,
    )
    return ValidityFinding(
        code="prefill_above_roofline", severity=ERROR, text=text, fields=("ttft", "input_tokens_mean")
    )


def _prefilled_tokens(facts: RunFacts) -> float | None:
    """Of a prompt, what is computed; ``None`` where prompts are found again by design and nobody knows how many."""
    tokens, hits = facts.input_tokens_p50 or facts.input_tokens_mean, facts.prefix_hit_share
    if tokens is None:
        return None
    if hits is not None:
        return tokens * (1 - hits)
    return None if facts.reuse_declared or "prompts_shared" in facts.flags else tokens
