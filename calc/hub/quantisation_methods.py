"""What each quantisation method stores per parameter, read from its block of a config; an unknown one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from calc.dtypes import (
    ABSMAX_BYTES,
    INT4_SCALE_BYTES,
    INT8_BYTES,
    NF4_BLOCK,
    PACKED_BITS,
    SCALE_BYTES,
    WEIGHT_BYTES,
    weight_code,
)
from calc.errors import InputError
from calc.messages import msg

BITS_PER_BYTE = 8
SCALED_FP4_GROUP = 16
"""Group size that tells NVFP4 from MXFP4 (32), where a config only says four-bit floats."""
MAX_GROUP = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How a matrix is stored."""

    code: str
    bytes_per_parameter: float
    """Scales and zero points included."""


def scheme_of(block: Mapping[str, Any], hidden: int) -> Scheme | None:
    """The storage a ``quantization_config`` asks for; ``None`` = nothing is quantised.

    ``hidden`` stands for the length of a row, over which a scale per output channel is spread.
    """
    method = method_of(block)
    if not method:
        return None
    read = _READERS.get(method)
    if read is None:
        raise InputError(
            msg(
                "the quantisation method {method!r} is not known: enter the weight dtype or the weight bytes yourself.",
                method=method,
            )
        )
    return read(block, hidden)


def method_of(block: Mapping[str, Any]) -> str:
    """The method's name, lower case; for ModelOpt its algorithm."""
    method = _text(block, "quant_method").lower()
    algorithm = _text(block, "quant_algo").lower()
    if method in ("", "modelopt", "modelopt_fp4", "modelopt_mixed"):
        return algorithm or ("compressed-tensors" if isinstance(block.get("config_groups"), Mapping) else method)
    return method


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


def whole(block: Mapping[str, Any], *names: str) -> int | None:
    """A positive whole number under one of ``names``, else ``None``."""
    for name in names:
        value = block.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_GROUP:
            return value
    return None


def packed_ints(bits: int | None, group: int | None, zero_points: bool, hidden: int) -> Scheme:
    """Packed integers: a 2-byte scale and, where the format has one, a packed zero point per group or row."""
    code = {4: "int4", 8: "int8"}.get(bits or 0)
    if bits is None or code is None:
        raise InputError(
            msg("weights of {bits} bits are not known: enter the weight bytes yourself.", bits=bits or "?")
        )
    zero = bits / BITS_PER_BYTE if zero_points else 0.0
    return Scheme(code=code, bytes_per_parameter=bits / BITS_PER_BYTE + (INT4_SCALE_BYTES + zero) / (group or hidden))


def _gptq(block: Mapping[str, Any], hidden: int) -> Scheme:
    # GPTQ and AWQ files keep packed zero points even where they are all alike.
    bits = whole(block, "bits", "w_bit") or PACKED_BITS
    return packed_ints(bits, whole(block, "group_size", "q_group_size"), True, hidden)


def _fp8(block: Mapping[str, Any], hidden: int) -> Scheme:
    sides = block.get("weight_block_size")
    usable = isinstance(sides, list | tuple) and all(isinstance(side, int) and side > 0 for side in sides) and sides
    area = sides[0] * sides[-1] if usable and isinstance(sides, list | tuple) else hidden
    return Scheme(code="fp8", bytes_per_parameter=WEIGHT_BYTES["fp8"] + SCALE_BYTES / area)


def _block_fp8(block: Mapping[str, Any], hidden: int) -> Scheme:
    return _fp8({"weight_block_size": [128, 128], **block}, hidden)


def _fixed(code: str) -> Callable[[Mapping[str, Any], int], Scheme]:
    def read(_block: Mapping[str, Any], _hidden: int) -> Scheme:
        return Scheme(code=code, bytes_per_parameter=WEIGHT_BYTES[code])

    return read


def _mxfp8(_block: Mapping[str, Any], _hidden: int) -> Scheme:
    return Scheme(code="fp8", bytes_per_parameter=1 + 1 / 32)


def _bitsandbytes(block: Mapping[str, Any], hidden: int) -> Scheme:
    """NF4 in blocks of 64, whose maxima are widened to FP32 at load (vLLM ``bitsandbytes_loader.py``)."""
    if block.get("load_in_4bit") or block.get("_load_in_4bit"):
        return Scheme(code="int4", bytes_per_parameter=PACKED_BITS / BITS_PER_BYTE + ABSMAX_BYTES / NF4_BLOCK)
    return Scheme(code="int8", bytes_per_parameter=INT8_BYTES + SCALE_BYTES / hidden)


def compressed(weights: Mapping[str, Any], hidden: int) -> Scheme:
    """The ``weights`` entry of a compressed-tensors group."""
    kind, bits = str(weights.get("type", "int")), weights.get("num_bits")
    group = whole(weights, "group_size")
    match kind, bits:
        case "float", 8:
            return _fp8({"weight_block_size": weights.get("block_structure")}, hidden)
        case "float", 4:
            is_nvfp4 = group is None or group == SCALED_FP4_GROUP
            return _fixed("nvfp4" if is_nvfp4 else "mxfp4")({}, hidden)
        case "int", 8 if group is None:
            return Scheme(code="int8", bytes_per_parameter=INT8_BYTES + SCALE_BYTES / hidden)
        case "int", int():
            return packed_ints(bits, group, weights.get("symmetric") is False, hidden)
    raise InputError(
        msg("this compressed-tensors config does not say its weight bits: enter the weight dtype yourself.")
    )


def group_weights(block: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], list[Any]]]:
    """The ``weights`` and ``targets`` of every group of a compressed-tensors config."""
    groups = block.get("config_groups")
    found = []
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        targets = group.get("targets") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            found.append((weights, targets if isinstance(targets, list) else []))
    return found


def _compressed_tensors(block: Mapping[str, Any], hidden: int) -> Scheme:
    groups = group_weights(block)
    return compressed(groups[0][0] if groups else {"type": ""}, hidden)


def _quark(block: Mapping[str, Any], hidden: int) -> Scheme:
    """AMD Quark: ``global_quant_config.weight`` names the dtype, with a group where there is one."""
    overall = block.get("global_quant_config")
    weight = overall.get("weight") if isinstance(overall, Mapping) else None
    weight = weight[0] if isinstance(weight, list) and weight else weight
    dtype = str(weight.get("dtype", "")).lower() if isinstance(weight, Mapping) else ""
    found = next((code for start, code in _QUARK.items() if dtype.startswith(start)), None)
    if found is None or not isinstance(weight, Mapping):
        raise InputError(msg("this Quark config does not say its weight dtype: enter the weight dtype yourself."))
    if found == "int4":
        return packed_ints(PACKED_BITS, whole(weight, "group_size"), dtype.startswith("u"), hidden)
    return _fixed(found)({}, hidden)


_QUARK = MappingProxyType({"fp8": "fp8", "fp4": "mxfp4", "int8": "int8", "int4": "int4", "uint4": "int4"})
"""Starts of Quark's dtypes; its FP4 is MXFP4."""


def _torchao(block: Mapping[str, Any], hidden: int) -> Scheme:
    """torchao: a name ("int4_weight_only") or an object with its class name ("Float8WeightOnlyConfig")."""
    kind = block.get("quant_type")
    kind = kind.get("default", kind) if isinstance(kind, Mapping) else kind
    name = str(kind.get("_type") or kind.get("type") or "" if isinstance(kind, Mapping) else kind).lower()
    data = kind.get("_data") if isinstance(kind, Mapping) else block.get("quant_type_kwargs")
    group = whole(data, "group_size") if isinstance(data, Mapping) else None
    if "int4" in name:
        return packed_ints(PACKED_BITS, group or TORCHAO_GROUP, True, hidden)
    if "int8" in name:
        return Scheme(code="int8", bytes_per_parameter=INT8_BYTES + SCALE_BYTES / hidden)
    if "float8" in name or "fp8" in name:
        return _fp8({}, hidden)
    raise InputError(msg("the torchao type {name!r} is not known: enter the weight dtype yourself.", name=name))


TORCHAO_GROUP = 128
"""Default group of torchao's INT4 weight-only type."""

_READERS: Mapping[str, Callable[[Mapping[str, Any], int], Scheme]] = MappingProxyType(
    {
        **dict.fromkeys(("fp8", "fbgemm_fp8", "fp8_per_channel_per_token", "ptpc_fp8"), _fp8),
        **dict.fromkeys(("gptq", "gptq_marlin", "awq", "awq_marlin", "auto-round", "auto_round", "inc"), _gptq),
        **dict.fromkeys(("intel/auto-round", "w4a16_awq", "w4a8_awq", "auto_gptq", "auto_awq"), _gptq),
        **dict.fromkeys(("fp8_pb_wo", "fp8_block_wise", "fp8_pb"), _block_fp8),
        **dict.fromkeys(("nvfp4", "nvfp4_awq", "w4a16_nvfp4", "fp4"), _fixed("nvfp4")),
        "mxfp4": _fixed("mxfp4"),
        "mxfp8": _mxfp8,
        "w8a8_sq_per_channel": lambda _block, hidden: compressed({"type": "int", "num_bits": 8}, hidden),
        "compressed-tensors": _compressed_tensors,
        "bitsandbytes": _bitsandbytes,
        "torchao": _torchao,
        "quark": _quark,
    }
)


def asked_scheme(text: str, hidden: int) -> Scheme:
    """The storage behind a dtype or method that the user asks the engine for."""
    name = text.lower().removeprefix("torch.")
    if name in ("bitsandbytes", "nf4"):
        return _bitsandbytes({"load_in_4bit": True}, hidden)
    code = weight_code(text)
    return Scheme(code=code, bytes_per_parameter=WEIGHT_BYTES[code])
