"""How a checkpoint stores its weights: which matrices are quantised, at how many bytes, and the default cache dtype."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calc.config import Fields
from calc.dtypes import (
    COMPUTE_DTYPE,
    INT4_BYTES,
    INT4_SCALE_BYTES,
    INT4_ZERO_BYTES,
    PLAIN_BYTES,
    WEIGHT_BYTES,
    is_auto,
    kv_code,
    weight_code,
)
from calc.errors import InputError
from calc.messages import msg
from calc.model import WeightStorage

MAX_PATTERN = 200
"""Longest exclusion pattern read; real ones stay below 100 characters."""
_METHODS = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "awq": "int4",
    "gptq": "int4",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "fp8_block_wise": "fp8",
    "w4a16_awq": "int4",
}


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Weight storage of a checkpoint with what it leaves unquantised and its default cache dtype."""

    weights: WeightStorage
    plain: str
    """Dtype code of everything unquantised."""
    kv: str
    excluded: tuple[str, ...] = ()
    """Names or glob patterns of modules left at the plain dtype."""
    only_experts: bool = False

    def quantises(self, module: str) -> bool:
        """Whether the matrix ``module`` ("model.layers.3.mlp.down_proj") is stored quantised."""
        if self.weights.code in PLAIN_BYTES:
            return False
        if self.only_experts and "experts" not in module:
            return False
        return not any(_covers(name, module) for name in self.excluded)


def read_storage(fields: Fields, weight_dtype: str | None, kv_dtype: str | None) -> Storage:
    """Storage from the config, or from ``weight_dtype`` / ``kv_dtype`` where these are not "auto"."""
    config_plain, block = _plain_code(fields), fields.mapping("quantization_config", "quantization")
    code = _config_code(block) if is_auto(weight_dtype) else weight_code(str(weight_dtype))
    plain = code if code in PLAIN_BYTES else config_plain
    code = code or plain
    kv = _config_kv(block, plain) if is_auto(kv_dtype) else kv_code(str(kv_dtype))
    weights = WeightStorage(
        code=code,
        bytes_per_parameter=_bytes_per_parameter(code, block),
        plain_bytes_per_parameter=PLAIN_BYTES[plain],
        compute_dtype=COMPUTE_DTYPE.get(code, "bf16"),
    )
    only_experts = code == "mxfp4"
    return Storage(weights=weights, plain=plain, kv=kv, excluded=_exclusions(block), only_experts=only_experts)


def _bytes_per_parameter(code: str, block: Mapping[str, Any]) -> float:
    """INT4 by its group size: half a byte, a 2-byte scale and, unless symmetric, a half-byte zero point per group."""
    scheme = _scheme(block)
    group = scheme.get("group_size", block.get("group_size"))
    if code != "int4" or isinstance(group, bool) or not isinstance(group, int) or group < 1:
        return WEIGHT_BYTES[code]
    zero = 0.0 if scheme.get("symmetric") is True else INT4_ZERO_BYTES
    return INT4_BYTES + (INT4_SCALE_BYTES + zero) / group


def _scheme(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """The weights of the first group of a compressed-tensors config, empty elsewhere."""
    groups = block.get("config_groups")
    first: Any = next(iter(groups.values()), {}) if isinstance(groups, Mapping) else {}
    weights = first.get("weights") if isinstance(first, Mapping) else None
    return weights if isinstance(weights, Mapping) else {}


def _plain_code(fields: Fields) -> str:
    text = fields.text("torch_dtype", "dtype", "checkpoint_dtype")
    code = weight_code(text) if text else "bf16"
    # Engines run FP32 checkpoints in BF16 unless they are told not to (vLLM ``_resolve_auto_dtype``).
    return code if code in ("bf16", "fp16") else "bf16"


def _config_code(block: Mapping[str, Any]) -> str:
    if not block:
        return ""
    method = str(block.get("quant_method") or block.get("quant_algo") or "").lower()
    if method == "compressed-tensors":
        return _compressed_tensors(block)
    if method == "modelopt":
        method = str(block.get("quant_algo") or "").lower()
    if method == "bitsandbytes":
        return "int4" if block.get("load_in_4bit") else "int8"
    code = _METHODS.get(method, "")
    if code == "int4":
        code = {"4": "int4", "8": "int8"}.get(str(block.get("bits", 4)), "")
    if not code:
        raise InputError(
            msg("the quantisation method {method!r} is not known: enter the weight dtype yourself.", method=method)
        )
    return code


def _compressed_tensors(block: Mapping[str, Any]) -> str:
    weights = _scheme(block)
    wanted = f"{weights.get('type')}{weights.get('num_bits')}"
    code = {"float8": "fp8", "int8": "int8", "int4": "int4", "float4": "nvfp4"}.get(wanted)
    if code is None:
        raise InputError(
            msg("this compressed-tensors config does not say its weight bits: enter the weight dtype yourself.")
        )
    return code


def _config_kv(block: Mapping[str, Any], plain: str) -> str:
    scheme = block.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8:  # noqa: PLR2004 - eight bits
        return "fp8" if str(scheme.get("type", "float")) == "float" else "int8"
    algorithm = str(block.get("kv_cache_quant_algo") or "").lower()
    return algorithm if algorithm in ("fp8", "nvfp4", "int8") else plain


def _exclusions(block: Mapping[str, Any]) -> tuple[str, ...]:
    names: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules"):
        value = block.get(key)
        if isinstance(value, list):
            names.extend(name for name in value if isinstance(name, str) and len(name) <= MAX_PATTERN)
    return tuple(dict.fromkeys(_without_regex(name) for name in names))


def _without_regex(name: str) -> str:
    # Regular expressions of strangers are never run; the few forms in use read as globs.
    return name[3:].replace(".*", "*").replace("\\.", ".").strip("^$") if name.startswith("re:") else name


def _covers(name: str, module: str) -> bool:
    if "*" in name:
        return fnmatch.fnmatchcase(module, f"*{name}") or fnmatch.fnmatchcase(module, f"*{name}.*")
    return f".{name}." in f".{module}."
