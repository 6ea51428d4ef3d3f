"""Recurrent states beside attention where pages are not made equal: SGLang's two pools, TensorRT-LLM's one."""

from __future__ import annotations

import math

from calc.cache.kv import BlockPlan, CacheGroup, stage_spans
from calc.cache.specs import CacheRules, layer_bytes_per_token, states_per_sequence
from calc.errors import ImpossibleDeployment
from calc.messages import msg
from calc.model import LayerKind, ModelSpec

SGLANG_STATE_RATIO = 0.9
"""``mamba_full_memory_ratio``: memory of the state pool over that of the attention pool (SGLang 0.5)."""
SGLANG_STATES_PER_REQUEST = 3
"""States SGLang keeps per running request while it caches prefixes."""
SGLANG = "sglang"


def plan_beside_states(model: ModelSpec, rules: CacheRules, pp: int, engine_id: str) -> BlockPlan:
    """One group of attention layers; states in a pool of their own (SGLang), or as blocks' worth of the same pool."""
    rates = [layer_bytes_per_token(group, rules.kv_dtype, rules.tp) for group in model.groups]
    sizes = [0 if group.state is None else group.state.bytes_per_gpu(rules.tp, rules.spec_tokens)
             for group in model.groups]  # fmt: skip
    spans = stage_spans(model, pp)
    blocks = [sum(rates[model.layer_order[i]] for i in span) * rules.block_tokens for span in spans]
    states = [float(sum(sizes[model.layer_order[i]] for i in span)) for span in spans]
    attention = CacheGroup(
        kind=LayerKind.FULL,
        window_tokens=None,
        layers=tuple(i for i, index in enumerate(model.layer_order) if rates[index]),
        block_size_tokens=rules.block_tokens,
    )
    if not attention.layers:
        return _states_alone(model, rules, states)
    if not all(blocks):
        raise ImpossibleDeployment(
            msg(
                "PP {pp} leaves a stage of {model} without attention layers, which {engine} is not known to serve: use "
                "fewer stages.",
                pp=pp,
                model=model.name,
                engine=engine_id,
            )
        )
    if engine_id == SGLANG:
        kept = SGLANG_STATES_PER_REQUEST if rules.prefix_caching else 1
        worst = max(state / block for state, block in zip(states, blocks, strict=True))
        return BlockPlan(
            groups=(attention,),
            stage_bytes_per_block=tuple(block * (1 + SGLANG_STATE_RATIO) for block in blocks),
            sequences_per_block=SGLANG_STATE_RATIO / (worst * kept),
        )
    worth = max(math.ceil(_copies(model, rules) * state / block) for state, block in zip(states, blocks, strict=True))
    return BlockPlan(groups=(attention, _state_group(model, worth)), stage_bytes_per_block=tuple(blocks))


def _copies(model: ModelSpec, rules: CacheRules) -> int:
    return states_per_sequence(model, prefix_caching=rules.prefix_caching, spec_tokens=rules.spec_tokens)


def _state_group(model: ModelSpec, copies: int) -> CacheGroup:
    layers = tuple(i for i, index in enumerate(model.layer_order) if model.groups[index].state is not None)
    return CacheGroup(kind=LayerKind.RECURRENT, window_tokens=None, layers=layers, block_size_tokens=1, copies=copies)


def _states_alone(model: ModelSpec, rules: CacheRules, states: list[float]) -> BlockPlan:
    return BlockPlan(groups=(_state_group(model, _copies(model, rules)),), stage_bytes_per_block=tuple(states))
