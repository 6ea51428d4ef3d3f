"""Experts of a mixture-of-experts config: how many, how wide, which layers have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from calc.errors import InputError
from calc.hub.config import MAX_EXPERTS, Fields
from calc.hub.families import Family
from calc.messages import msg

QWEN2_MOE_SHARED_SIZE = 5632
"""Default ``shared_expert_intermediate_size`` of Qwen2-MoE (transformers class default)."""
OWN_COUNT = MappingProxyType({"deepseek": "n_routed_experts", "qwen2": "num_experts", "qwen3": "num_experts"})
"""What a family calls the number of its experts, and an error that misses it."""
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk", "top_k_experts")
"""Names of how many experts one token passes."""
OWN_WIDTH = ("qwen2", "qwen3", "deepseek", "lfm2")
"""Families whose experts are narrower than their dense MLP: the one width does not stand in for the other."""
JAMBA_PERIOD, JAMBA_OFFSET = 2, 1
"""Defaults of ``expert_layer_period`` and ``expert_layer_offset`` (transformers class default)."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Experts of a config, before they are counted."""

    count: int
    per_token: int
    size: int
    """Width of one expert's MLP."""
    shared_size: int
    """Width of all shared experts together; 0 = none."""
    router_extras: int
    """Beside the router's matrix: corrections per expert, the gate of the shared expert."""
    is_moe: Callable[[int], bool]
    """Whether layer i has experts."""
    latent: int = 0
    """Width experts work at where it is not the hidden size (LatentMoE); 0 = the hidden size."""


def read_experts(fields: Fields, family: Family) -> Experts | None:
    """Experts by the key names of the family; ``None`` = a dense model."""
    if not family.experts:
        return None
    usual = OWN_COUNT.get(family.experts, "num_local_experts")
    names = (usual, "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
    may_be_dense = family.mla or family.experts_beside_mlp or family.state is not None
    dense = may_be_dense and fields.raw("moe_intermediate_size", *PER_TOKEN) is None
    count = fields.integer(*names, default=0 if dense else None, low=0, high=MAX_EXPERTS)
    if count == 0:
        return None
    per_token = fields.integer(*PER_TOKEN, high=MAX_EXPERTS, default=1 if family.experts == "llama4" else None)
    if per_token > count:
        raise InputError(
            msg(
                "{used} experts per token are more than the {count} there are: correct it.", used=per_token, count=count
            )
        )
    own_width = family.experts in OWN_WIDTH or family.experts_beside_mlp
    size = fields.integer("moe_intermediate_size", *(() if own_width else ("intermediate_size",)))
    return Experts(
        count=count,
        per_token=per_token,
        size=size,
        shared_size=_shared_size(fields, family, size),
        router_extras=_router_extras(fields, family, count),
        is_moe=_placement(fields, family),
        latent=fields.optional("moe_latent_size") or 0,
    )


def _router_extras(fields: Fields, family: Family, count: int) -> int:
    if family.experts == "qwen2":
        return fields.integer("hidden_size")
    is_plain_top_k = fields.text("topk_method") in ("greedy", "group_limited_greedy")
    return count if family.router_bias and not is_plain_top_k else 0


def _shared_size(fields: Fields, family: Family, size: int) -> int:
    if family.experts == "qwen2":
        return fields.integer("shared_expert_intermediate_size", default=QWEN2_MOE_SHARED_SIZE, low=0)
    if family.experts == "deepseek":
        names = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
        one = fields.optional("moe_shared_expert_intermediate_size") or size
        return one * fields.integer(*names, default=0, low=0, high=MAX_EXPERTS)
    if family.experts == "granite":
        return fields.optional("shared_intermediate_size") or 0
    return size if family.experts == "llama4" else 0


def _placement(fields: Fields, family: Family) -> Callable[[int], bool]:
    return _PLACEMENTS.get(family.experts, _everywhere)(fields)


def _everywhere(_fields: Fields) -> Callable[[int], bool]:
    return lambda _i: True


def _after_dense(fields: Fields) -> Callable[[int], bool]:
    """Experts after the first dense layers, in every n-th, or where a list marks them."""
    frequency = fields.raw("moe_layer_freq")
    if isinstance(frequency, Sequence):
        marks = list(frequency)
        return lambda i: i < len(marks) and marks[i] == 1
    first = fields.integer("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", default=0, low=0)
    every = fields.integer("moe_layer_freq", default=1)
    return lambda i: i >= first and i % every == 0


def _interleaved(fields: Fields) -> Callable[[int], bool]:
    step = fields.integer("interleave_moe_layer_step", default=1)
    return lambda i: (i + 1) % step == 0


def _sparse_step(fields: Fields) -> Callable[[int], bool]:
    step = fields.integer("decoder_sparse_step", default=1)
    dense = fields.raw("mlp_only_layers")
    dense_layers = [i for i in dense if isinstance(i, int)] if isinstance(dense, list) else []
    return lambda i: i not in dense_layers and (i + 1) % step == 0


def _periodic(fields: Fields) -> Callable[[int], bool]:
    period = fields.integer("expert_layer_period", default=JAMBA_PERIOD)
    offset = fields.integer("expert_layer_offset", default=JAMBA_OFFSET, low=0)
    return lambda i: i % period == offset


_PLACEMENTS: Mapping[str, Callable[[Fields], Callable[[int], bool]]] = MappingProxyType(
    {
        "deepseek": _after_dense,
        "lfm2": _after_dense,
        "llama4": _interleaved,
        "qwen2": _sparse_step,
        "qwen3": _sparse_step,
        "jamba": _periodic,
    }
)
