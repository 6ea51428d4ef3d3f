"""How long the requests of a case get, and what becomes of those longer than the engine takes."""

from __future__ import annotations

import math

from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.workload import LengthDistribution, LogNormal, Recorded, RequestClass, Workload

LONGEST_SHARE = 0.9999
"""Quantile taken as the longest length of a distribution that has no end (lognormal)."""
OFTEN_SHARE = 0.99
"""Quantile of such a distribution from which being cut is worth a remark: one prompt in a hundred."""


def longest_request_tokens(workload: Workload, at_share: float = LONGEST_SHARE) -> int:
    """Longest prompt + output of a load, of any of its classes or in its log, in tokens.

    ``at_share``: the quantile that counts as the longest where a distribution has no end.
    """
    law = workload.arrivals
    prompts, outputs = (law.prompt_tokens, law.output_tokens) if isinstance(law, Recorded) else ((), ())
    if prompts and outputs:
        return max(map(sum, zip(prompts, outputs, strict=True)))
    kinds: tuple[Workload | RequestClass, ...] = workload.classes or (workload,)
    return math.ceil(
        max(
            (max(prompts) if prompts else _longest_tokens(kind.prompt_tokens or workload.prompt_tokens, at_share))
            + (max(outputs) if outputs else _longest_tokens(kind.output_tokens or workload.output_tokens, at_share))
            for kind in kinds
        )
    )


def shortest_window(workload: Workload, model: ModelSpec) -> tuple[int, tuple[Message, ...]]:
    """The least maximum length that serves a load whole, in tokens, as far as the model goes."""
    longest_tokens = longest_request_tokens(workload)
    if longest_tokens <= model.max_position_tokens:
        return longest_tokens, ()
    note = msg(
        "The longest request of this load ({longest:tok}) is longer than {model} allows ({limit:tok}).",
        longest=longest_tokens,
        model=model.name,
        limit=model.max_position_tokens,
    )
    return model.max_position_tokens, (note,)


def _longest_tokens(lengths: LengthDistribution, at_share: float) -> float:
    return lengths.quantile(at_share if isinstance(lengths, LogNormal) else 1.0)


def cut_notes(workload: Workload, deployment: Deployment) -> tuple[Message, ...]:
    """What becomes of requests that no engine would take."""
    longest_tokens = longest_request_tokens(workload, OFTEN_SHARE)
    limit_tokens = deployment.max_model_len_tokens or deployment.model.max_position_tokens
    if longest_tokens <= limit_tokens:
        return ()
    return (
        msg(
            "An engine refuses requests of more than {limit:tok}, and this load has some of {longest:tok}: latency is "
            "computed as if they were cut to the limit. Shorten them or raise the maximum length.",
            limit=limit_tokens,
            longest=longest_tokens,
        ),
    )
