"""What a config means where it is silent: the defaults of the class that reads it, each said aloud."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from calc.hub.architectures import architecture_name
from calc.hub.config import Fields
from calc.hub.families import Family
from calc.messages import Message, msg

_GEMMA3 = {"head_dim": 256, "sliding_window": 4096}
_QWEN_HYBRID = {"head_dim": 256, "shared_expert_intermediate_size": 512, "full_attention_interval": 4}
CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "Mistral": {"num_key_value_heads": 8},
        "Mixtral": {"num_key_value_heads": 8},
        "Qwen2": {"num_key_value_heads": 32},
        "Qwen3": {"num_key_value_heads": 32, "head_dim": 128},
        "Qwen3-MoE": {"num_key_value_heads": 4},
        "Qwen3-Next": _QWEN_HYBRID,
        "Qwen3.5": _QWEN_HYBRID,
        "Qwen3.5-MoE": _QWEN_HYBRID,
        "Gemma": {"num_key_value_heads": 16, "head_dim": 256},
        "Gemma 2": {"num_key_value_heads": 4, **_GEMMA3},
        "Gemma 3": {"num_key_value_heads": 4, **_GEMMA3},
        "Gemma 3n": {
            "num_key_value_heads": 2,
            "head_dim": 256,
            "sliding_window": 512,
            "num_kv_shared_layers": 15,
            "hidden_size_per_layer_input": 256,
        },
        "Gemma 4": {"num_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512, "sliding_window": 512},
        "gpt-oss": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128},
        "GLM-4": {"num_key_value_heads": 2, "head_dim": 128},
        "GLM-4 (0414)": {"num_key_value_heads": 2, "head_dim": 128},
        "GLM-4.5": {"num_key_value_heads": 8, "first_k_dense_replace": 1, "n_shared_experts": 1},
        "Seed-OSS": {"num_key_value_heads": 8, "head_dim": 128},
        "Command R7B": {"sliding_window": 4096},
        "OLMo 3": {"sliding_window": 4096},
        "ERNIE 4.5": {"moe_k": 6, "moe_layer_start_index": 1, "moe_num_shared_experts": 2},
        "Nemotron-H": {"num_key_value_heads": 8, "head_dim": 128, "mamba_head_dim": 64, "n_groups": 8},
        "DeepseekV3ForCausalLM": {"first_k_dense_replace": 3, "n_shared_experts": 1},
        "DeepseekV32ForCausalLM": {"first_k_dense_replace": 3, "n_shared_experts": 1, "index_head_dim": 128},
        "GlmMoeDsaForCausalLM": {"first_k_dense_replace": 3, "n_shared_experts": 1, "index_head_dim": 128},
    }
)
"""By family, or by class where one row serves several (``configuration_*.py`` of transformers 5.19). Only what changes
memory and what a config of the family that leaves it out would otherwise be read too small or too large for."""
OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "num_key_value_heads": ("num_kv_heads",),
        "head_dim": ("attention_head_dim",),
        "moe_k": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"),
        "moe_layer_start_index": ("first_k_dense_replace",),
        "n_shared_experts": ("num_shared_experts",),
        "moe_num_shared_experts": ("n_shared_experts", "num_shared_experts"),
        "mamba_head_dim": ("mamba_d_head", "mamba_headdim"),
        "n_groups": ("mamba_n_groups", "mamba_ngroups"),
        "full_attention_interval": ("layer_types", "layers_block_type"),
        "first_k_dense_replace": ("moe_layer_freq", "moe_layer_start_index", "num_dense_layers", "mlp_layer_types"),
    }
)
"""Other fields that say the same, or that say it better; a config with one of them is not silent."""
ONE_KEY_EACH = ("Falcon", "OPT", "GPT-NeoX", "GPT-2", "GPT-J", "BLOOM", "MPT", "Baichuan", "InternLM", "Phi")
"""Families whose class gives every attention head a KV head of its own where the config is silent."""

OWN_HEAD_DIM = (
    "Mistral",
    *("Qwen3", "Qwen3-MoE", "Qwen3-Next", "Qwen3.5", "Qwen3.5-MoE", "MiniMax-M2", "MiniMax-M3", "MiniMax-Text-01"),
    *("Gemma", "Gemma 2", "Gemma 3", "Gemma 3n", "Gemma 4", "gpt-oss", "GLM-4.5", "Seed-OSS", "Nemotron-H"),
    *("MiMo-V2", "Step-3.5", "Trinity"),
)
"""Families whose published models have heads of another width than the hidden size divided by their number."""


def with_class_defaults(fields: Fields, family: Family) -> tuple[Fields, tuple[Message, ...]]:
    """``fields`` with what their class adds, and a sentence on each number that the config does not name.

    A field given as null is not silent: the class is told to go without.
    """
    defaults = CLASS_DEFAULTS.get(architecture_name(fields)) or CLASS_DEFAULTS.get(family.name) or {}
    added = {name: value for name, value in defaults.items() if _is_silent(fields, name) and _has(family, name)}
    notes = tuple(_filled(name, value) for name, value in added.items())
    inner = {**fields.inner, **added}
    known = Fields(inner, fields.outer if fields.is_multimodal else inner)
    return known, notes + tuple(_left_open(known, family))


def _is_silent(fields: Fields, name: str) -> bool:
    return not any(key in part for part in (fields.inner, fields.outer) for key in (name, *OTHER_NAMES.get(name, ())))


def _has(family: Family, name: str) -> bool:
    """Whether the family uses the field at all: Qwen3.5 without experts has no shared one."""
    return bool(family.experts) or "expert" not in name


def _filled(name: str, value: int) -> Message:
    return msg(
        "The config names no {field}: {value:count}, the default of its class, is used.", field=name, value=value
    )


def _left_open(fields: Fields, family: Family) -> Iterator[Message]:
    """What no class default settles: the reading taken is said."""
    has_heads = not family.mla and family.hybrid not in ("pure", "blocks") and family.name not in ONE_KEY_EACH
    if has_heads and fields.raw("num_key_value_heads", "num_kv_heads") is None:
        yield msg("The config names no num_key_value_heads: every attention head is given one of its own.")
    if family.name in OWN_HEAD_DIM and fields.raw("head_dim", "attention_head_dim") is None:
        yield msg("The config names no head_dim: the hidden size divided by the attention heads is taken.")
    if family.window == "every-nth-full" and fields.raw("sliding_window") is None:
        yield msg("The config names no sliding_window: every layer is counted with the whole context.")
    if family.mla and fields.raw("moe_intermediate_size") is not None:
        yield from _experts_left_open(fields)


def _experts_left_open(fields: Fields) -> Iterator[Message]:
    if _is_silent(fields, "first_k_dense_replace"):
        yield msg("The config names no first_k_dense_replace: experts are counted in every layer.")
    if _is_silent(fields, "n_shared_experts") and _is_silent(fields, "moe_num_shared_experts"):
        yield msg("The config names no n_shared_experts: none are counted.")
