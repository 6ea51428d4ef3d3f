"""Parameters of recurrent layers: projections, short convolutions, decays and norms of each kind of state."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

from calc.cache.recurrent import RecurrentState, StateKind
from calc.hub.config import MAX_HEADS, Fields
from calc.hub.parts import Part, Split

MAMBA1_RANK_DIVISOR = 16
"""Rank of the step's projection is hidden / 16 where the config gives none (transformers class default)."""


def state_parts(fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """Matrices of one recurrent layer under the checkpoint's name ``name``."""
    return _COUNTERS[state.kind](fields, hidden, state, name)


def _kernel(state: RecurrentState) -> int:
    return state.conv_positions + 1


def _matrix(elements: int, name: str) -> Part:
    return Part(elements=elements, split=Split.EVEN, module=name)


def _small(elements: int) -> Part:
    return Part(elements=elements, split=Split.EVEN)


def _mamba1(fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """in_proj to inputs and gate, x_proj to step, B and C, dt_proj; A and D; Jamba norms step, B and C."""
    inner = state.conv_channels
    size = state.matrix_elements // inner
    rank = _step_rank(fields, hidden)
    bias = fields.flag("mamba_proj_bias", "use_bias", default=False)
    conv_bias = fields.flag("mamba_conv_bias", "use_conv_bias", default=True)
    norms = rank + 2 * size if fields.text("model_type") == "jamba" else 0
    return [
        _matrix(2 * inner * hidden + (2 * inner if bias else 0), f"{name}.in_proj"),
        _small(inner * (_kernel(state) + (1 if conv_bias else 0))),
        _matrix(inner * (rank + 2 * size), f"{name}.x_proj"),
        _small(rank * inner + inner),
        _small(inner * size + inner),
        _matrix(inner * hidden + (hidden if bias else 0), f"{name}.out_proj"),
        Part(elements=norms, split=Split.NONE),
    ]


def _step_rank(fields: Fields, hidden: int) -> int:
    value = fields.raw("mamba_dt_rank", "time_step_rank")
    if value is None or value == "auto":
        return math.ceil(hidden / MAMBA1_RANK_DIVISOR)
    return fields.integer("mamba_dt_rank", "time_step_rank")


def _mamba2(fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """in_proj to gate, inputs, B, C and steps at once; A, D and step bias per head; a gated norm unless left out."""
    inner, channels = state.conv_channels, state.groups * state.group_channels
    heads = fields.integer("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads", high=MAX_HEADS)
    bias = fields.flag("mamba_proj_bias", "use_bias", "add_bias_linear", default=False)
    conv_bias = fields.flag("mamba_conv_bias", "use_conv_bias", default=True)
    out = 2 * inner + heads
    # A single group of B and C is kept by every rank; several are divided.
    split = Split.NONE if state.groups == 1 else Split.EVEN
    norm = inner if fields.flag("mamba_rms_norm", default=True) else 0
    return [
        _matrix(hidden * out + (out if bias else 0), f"{name}.in_proj"),
        Part(elements=(hidden + bias) * channels, split=split, module=f"{name}.in_proj"),
        _small(inner * (_kernel(state) + (1 if conv_bias else 0))),
        Part(elements=channels * (_kernel(state) + (1 if conv_bias else 0)), split=split),
        _small(3 * heads + norm),
        _matrix(inner * hidden + (hidden if bias else 0), f"{name}.out_proj"),
    ]


def _gated_delta_net(fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """Queries, keys, values and gate; two numbers per value head for decay and step; no bias on the convolution."""
    heads, width = fields.integer("linear_num_value_heads", high=MAX_HEADS), fields.integer("linear_value_head_dim")
    values, fused = heads * width, fields.text("model_type").startswith("qwen3_next")
    return [
        _matrix(hidden * state.conv_channels, f"{name}.in_proj_qkvz" if fused else f"{name}.in_proj_qkv"),
        _matrix(hidden * values, f"{name}.in_proj_qkvz" if fused else f"{name}.in_proj_z"),
        _matrix(hidden * 2 * heads, f"{name}.in_proj_ba" if fused else f"{name}.in_proj_a"),
        _small(state.conv_channels * _kernel(state)),
        _small(2 * heads),
        Part(elements=width, split=Split.NONE),
        _matrix(values * hidden, f"{name}.out_proj"),
    ]


def _kda(fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """Kimi delta attention: decay and output gate through a bottleneck of one head's width, or at full rank (K3)."""
    block = Fields(fields.mapping("linear_attn_config"), fields.outer)
    heads, dim = block.integer("num_heads", high=MAX_HEADS), block.integer("head_dim")
    width = heads * dim
    gate = hidden * width if block.flag("use_full_rank_gate", default=False) else dim * (hidden + width)
    return [
        _matrix(3 * hidden * width, f"{name}.q_proj"),
        _small(3 * width * _kernel(state)),
        _matrix(dim * (hidden + width), f"{name}.f_b_proj"),
        _matrix(gate, f"{name}.g_b_proj"),
        _matrix(hidden * heads, f"{name}.b_proj"),
        _small(heads + width),
        Part(elements=dim, split=Split.NONE),
        _matrix(width * hidden, f"{name}.o_proj"),
    ]


def _lightning(fields: Fields, hidden: int, _state: RecurrentState, name: str) -> list[Part]:
    """Queries, keys and values, an output gate, a norm over all heads, and the output."""
    heads = fields.integer("num_attention_heads", high=MAX_HEADS)
    width = heads * (fields.optional("head_dim") or hidden // heads)
    return [
        _matrix(3 * hidden * width, f"{name}.qkv_proj"),
        _matrix(hidden * width, f"{name}.output_gate"),
        _small(width),
        _matrix(width * hidden, f"{name}.out_proj"),
    ]


def _short_conv(_fields: Fields, hidden: int, state: RecurrentState, name: str) -> list[Part]:
    """Two gates and the input, a depthwise convolution, and the output (LFM2)."""
    width = state.conv_channels
    return [
        _matrix(3 * hidden * width, f"{name}.in_proj"),
        _small(width * _kernel(state)),
        _matrix(width * hidden, f"{name}.out_proj"),
    ]


_COUNTERS: MappingProxyType[StateKind, Callable[[Fields, int, RecurrentState, str], list[Part]]] = MappingProxyType(
    {
        StateKind.MAMBA1: _mamba1,
        StateKind.MAMBA2: _mamba2,
        StateKind.GATED_DELTA_NET: _gated_delta_net,
        StateKind.KDA: _kda,
        StateKind.LIGHTNING: _lightning,
        StateKind.SHORT_CONV: _short_conv,
    }
)
