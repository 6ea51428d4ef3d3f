"""The KV pool in the engine's own units: blocks, tokens as logged, and sequences at a length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calc.cache.kv import NULL_BLOCKS, BlockPlan, plan_blocks
from calc.cache.specs import CacheRules
from calc.cache.state_pool import plan_beside_states
from calc.deployment import Deployment
from calc.engine import Settings, TokensMeaning
from calc.errors import ImpossibleDeployment
from calc.messages import msg

VLLM = "vllm"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One replica's pool; ``num_blocks`` is that of one DP rank."""

    num_blocks: int
    max_concurrency: float
    """Sequences of maximum length, all DP ranks of the replica together."""
    kv_tokens: int
    short_bytes: int
    """What one GPU's room lacks to hold one sequence of maximum length; 0 = it fits."""


def plan_for(deployment: Deployment, settings: Settings) -> BlockPlan:
    """How the deployment's cache is cut into blocks."""
    rules = CacheRules(
        kv_dtype=settings.kv_dtype,
        tp=deployment.tp,
        block_tokens=settings.block_size_tokens,
        prefix_caching=settings.prefix_caching,
        spec_tokens=deployment.spec_tokens,
    )
    if deployment.engine.id != VLLM and any(group.state is not None for group in deployment.model.groups):
        return plan_beside_states(deployment.model, rules, deployment.pp, deployment.engine.id)
    if deployment.hybrid_kv is False and any(group.state or group.caches for group in deployment.model.groups):
        raise ImpossibleDeployment(
            msg(
                "{model} keeps caches that vLLM cannot treat as full attention: leave its hybrid cache manager on.",
                model=deployment.model.name,
            )
        )
    return plan_blocks(deployment.model, rules, deployment.pp, window_aware=settings.hybrid_kv)


def fill_pool(deployment: Deployment, settings: Settings, plan: BlockPlan, rooms: Sequence[int]) -> Pool:
    """Blocks in the smallest stage's room. vLLM takes the minimum over all ranks; DP ranks add up.

    A room below 0 is what weights and runtime exceed the budget by.
    """
    length = settings.max_model_len_tokens
    needed = plan.blocks_per_request(length, settings.in_flight_tokens)
    if deployment.kv_tokens is None:
        sizes = tuple(zip(rooms, plan.stage_bytes_per_block, strict=True))
        blocks = max(0, min(math.floor(room / size) for room, size in sizes))
        short = max(math.ceil((needed + NULL_BLOCKS) * size) - room for room, size in sizes)
    else:
        blocks = _blocks_of_tokens(deployment, settings, plan, needed)
        short = math.ceil((needed + NULL_BLOCKS - blocks) * max(plan.stage_bytes_per_block))
    concurrency = plan.sequences(blocks, length, settings.in_flight_tokens) * deployment.dp
    return Pool(
        num_blocks=blocks,
        max_concurrency=concurrency,
        kv_tokens=deployment.kv_tokens or _logged_tokens(deployment, settings, plan, blocks, concurrency),
        short_bytes=max(0, short),
    )


def _logged_tokens(deployment: Deployment, settings: Settings, plan: BlockPlan, blocks: int, concurrency: float) -> int:
    if deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH:
        return int(concurrency * settings.max_model_len_tokens)
    return blocks // len(plan.groups) * settings.block_size_tokens * deployment.dp


def _blocks_of_tokens(deployment: Deployment, settings: Settings, plan: BlockPlan, needed: int) -> int:
    """The inverse of the log line."""
    tokens = (deployment.kv_tokens or 0) / deployment.dp
    if deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH:
        return round(tokens / settings.max_model_len_tokens * needed)
    return round(tokens / settings.block_size_tokens * len(plan.groups))


def sequences_of(deployment: Deployment, settings: Settings, num_blocks: int, tokens: int) -> float:
    """Sequences of ``tokens`` cached tokens that ``num_blocks`` blocks per DP rank hold."""
    plan = plan_for(deployment, settings)
    return plan.sequences(num_blocks, tokens, settings.in_flight_tokens) * deployment.dp
