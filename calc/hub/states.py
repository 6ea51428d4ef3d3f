"""Reading the recurrent state of a hybrid family from its config: how many channels, heads and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

from calc.cache.recurrent import RecurrentState, StateKind
from calc.dtypes import PLAIN_BYTES, weight_code
from calc.errors import InputError
from calc.hub.config import MAX_HEADS, Fields
from calc.messages import msg

CONV_KERNEL = 4
"""Default width of the short convolution (transformers class defaults of every family here)."""
MAMBA_EXPAND = 2
"""Default ratio of Mamba's inner width to the hidden size."""
MAMBA1_STATE = 16
"""Default ``state_size`` of Mamba-1."""
FLOAT32_STATES = (StateKind.KDA,)
"""Kinds whose matrix engines keep in FP32 unless told otherwise (vLLM ``kda_state_dtype``)."""


def read_state(
    fields: Fields, kind: StateKind, plain: str, *, dtype_field: str = "", float32: bool = False
) -> RecurrentState:
    """State of one layer; ``plain`` is the model's dtype; the matrix's is under ``dtype_field``, else FP32 or plain."""
    matrix = _matrix_code(fields.text(dtype_field), kind, plain, float32)
    return _READERS[kind](fields, PLAIN_BYTES[plain], PLAIN_BYTES[matrix])


def _matrix_code(text: str, kind: StateKind, plain: str, float32: bool) -> str:
    if text and text != "auto":
        code = weight_code(text)
        if code not in PLAIN_BYTES:
            raise InputError(msg("a recurrent state of {dtype} is not known: use float32 or bfloat16.", dtype=text))
        return code
    return "fp32" if float32 or kind in FLOAT32_STATES else plain


def _mamba1(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    inner = fields.optional("mamba_d_inner") or _inner_width(fields)
    size = fields.integer("mamba_d_state", "state_size", default=MAMBA1_STATE)
    return RecurrentState(
        kind=StateKind.MAMBA1,
        conv_channels=inner,
        conv_positions=fields.integer("mamba_d_conv", "conv_kernel", default=CONV_KERNEL) - 1,
        conv_bytes_per_element=conv,
        matrix_elements=inner * size,
        matrix_bytes_per_element=matrix,
        heads=inner,
    )


def _inner_width(fields: Fields) -> int:
    """Expansion · hidden size; pure Mamba configs call it ``intermediate_size``."""
    pure = fields.raw("num_attention_heads", "n_head") is None
    if pure and fields.raw("mamba_expand") is None and fields.raw("intermediate_size") is not None:
        return fields.integer("intermediate_size")
    return fields.integer("mamba_expand", "expand", default=MAMBA_EXPAND) * fields.integer("hidden_size")


def _mamba2(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    heads = fields.integer("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads", high=MAX_HEADS)
    size = fields.integer("ssm_state_size", "mamba_d_state", "state_size")
    inner = heads * _mamba2_head_dim(fields, heads)
    return RecurrentState(
        kind=StateKind.MAMBA2,
        conv_channels=inner,
        conv_positions=fields.integer("mamba_d_conv", "conv_kernel", default=CONV_KERNEL) - 1,
        conv_bytes_per_element=conv,
        matrix_elements=inner * size,
        matrix_bytes_per_element=matrix,
        heads=heads,
        groups=fields.integer("n_groups", "mamba_n_groups", "mamba_ngroups", default=1, high=MAX_HEADS),
        group_channels=2 * size,
    )


def _mamba2_head_dim(fields: Fields, heads: int) -> int:
    names = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
    if fields.raw(*names) not in (None, "auto"):
        return fields.integer(*names)
    inner = fields.optional("mamba_d_ssm")
    if inner is None:
        inner = fields.integer("mamba_expand", "expand", default=MAMBA_EXPAND) * fields.integer("hidden_size")
    if inner % heads:
        raise InputError(
            msg("{heads} Mamba heads cannot share {width} channels evenly: correct it.", heads=heads, width=inner)
        )
    return inner // heads


def _gated_delta_net(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    keys = fields.integer("linear_num_key_heads", high=MAX_HEADS) * fields.integer("linear_key_head_dim")
    heads, width = fields.integer("linear_num_value_heads", high=MAX_HEADS), fields.integer("linear_value_head_dim")
    return RecurrentState(
        kind=StateKind.GATED_DELTA_NET,
        conv_channels=2 * keys + heads * width,
        conv_positions=fields.integer("linear_conv_kernel_dim", default=CONV_KERNEL) - 1,
        conv_bytes_per_element=conv,
        matrix_elements=heads * width * fields.integer("linear_key_head_dim"),
        matrix_bytes_per_element=matrix,
        heads=math.gcd(heads, fields.integer("linear_num_key_heads")),
    )


def _kda(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    part = fields.mapping("linear_attn_config")
    block = Fields(part, part)
    heads, dim = block.integer("num_heads", high=MAX_HEADS), block.integer("head_dim")
    return RecurrentState(
        kind=StateKind.KDA,
        conv_channels=3 * heads * dim,
        conv_positions=block.integer("short_conv_kernel_size", default=CONV_KERNEL) - 1,
        conv_bytes_per_element=conv,
        matrix_elements=heads * dim * dim,
        matrix_bytes_per_element=matrix,
        heads=heads,
    )


def _lightning(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    heads = fields.integer("num_attention_heads", high=MAX_HEADS)
    dim = fields.optional("head_dim") or fields.integer("hidden_size") // heads
    return RecurrentState(
        kind=StateKind.LIGHTNING,
        conv_channels=0,
        conv_positions=0,
        conv_bytes_per_element=conv,
        matrix_elements=heads * dim * dim,
        matrix_bytes_per_element=matrix,
        heads=heads,
    )


def _short_conv(fields: Fields, conv: float, matrix: float) -> RecurrentState:
    channels = fields.integer("conv_dim", "hidden_size")
    return RecurrentState(
        kind=StateKind.SHORT_CONV,
        conv_channels=channels,
        conv_positions=fields.integer("conv_L_cache", low=2) - 1,
        conv_bytes_per_element=conv,
        matrix_elements=0,
        matrix_bytes_per_element=matrix,
        heads=channels,
    )


_READERS: MappingProxyType[StateKind, Callable[[Fields, float, float], RecurrentState]] = MappingProxyType(
    {
        StateKind.MAMBA1: _mamba1,
        StateKind.MAMBA2: _mamba2,
        StateKind.GATED_DELTA_NET: _gated_delta_net,
        StateKind.KDA: _kda,
        StateKind.LIGHTNING: _lightning,
        StateKind.SHORT_CONV: _short_conv,
    }
)
