"""How long the requests of a case get, and what becomes of those longer than the engine takes."""

from __future__ import annotations

from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.workload import Workload, longest_request_tokens

OFTEN_SHARE = 0.99
"""Quantile of a distribution without an end from which being cut is worth a remark: one prompt in a hundred."""


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
