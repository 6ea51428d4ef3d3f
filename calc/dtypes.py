"""Number formats: one code per format, its bytes per element, and the spellings found in configs and flags."""

from __future__ import annotations

from types import MappingProxyType

from calc.errors import InputError
from calc.messages import msg

PLAIN_BYTES = MappingProxyType({"bf16": 2.0, "fp16": 2.0, "fp32": 4.0})
"""Bytes per element of unquantised weights and activations."""

KV_BYTES = MappingProxyType({**PLAIN_BYTES, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625})
"""Bytes per cached element. FP8 scales are scalars per layer; NVFP4 stores D/2 + D/16 bytes per head and side
(vLLM ``utils/torch_utils.py: nvfp4_kv_cache_full_dim``)."""

INT8_KV_SCALE_BYTES = 4
"""INT8 caches keep one FP32 scale per token, head and side (vLLM ``triton_attn.py``)."""

INT4_BYTES = 0.5
INT4_SCALE_BYTES = 2.0
"""Scale of each group of INT4 weights."""
INT4_ZERO_BYTES = 0.5
"""Zero point of each group, where the format has one (AWQ, GPTQ)."""
PACKED_BITS = 4
INT8_BYTES = 1.0
SCALE_BYTES = 4
"""FP32 scale of an FP8 block or of an output channel of FP8 and INT8 weights."""
NF4_BLOCK = 64
"""Weights that share one maximum in bitsandbytes' NF4 (QLoRA, arXiv 2305.14314)."""
ABSMAX_BYTES = 4
"""That maximum, in FP32."""

WEIGHT_BYTES = MappingProxyType(
    {
        **PLAIN_BYTES,
        "fp8": 1.0,
        "int8": 1.0,
        "int4": INT4_BYTES + (INT4_SCALE_BYTES + INT4_ZERO_BYTES) / 128,
        "mxfp4": 0.5 + 1 / 32,
        "nvfp4": 0.5 + 1 / 16,
    }
)
"""Bytes per parameter of quantised matrices, scales included: INT4 in groups of 128 with a 2-byte scale and a half-byte
zero point, MXFP4 one byte per 32, NVFP4 one byte per 16 (OCP MX 1.0; NVIDIA NVFP4 format)."""

COMPUTE_DTYPE = MappingProxyType({"fp32": "fp32", "fp16": "fp16", "fp8": "fp8", "int8": "int8", "nvfp4": "fp4"})
"""Whose peak the matrix products run at; weight-only formats (INT4, MXFP4 before Blackwell) compute in BF16."""

_SPELLINGS = MappingProxyType(
    {
        "bf16": ("bf16", "bfloat16"),
        "fp16": ("fp16", "float16", "half"),
        "fp32": ("fp32", "float32", "float"),
        "fp8": ("fp8", "float8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "e4m3", "fp8_ds_mla", "fp8_inc"),
        "int8": ("int8", "w8a8", "w8a16", "int8_per_token_head"),
        "int4": ("int4", "w4a16", "awq", "gptq", "awq_marlin", "gptq_marlin", "nf4", "bitsandbytes"),
        "mxfp4": ("mxfp4",),
        "nvfp4": ("nvfp4", "fp4", "modelopt_fp4"),
    }
)
_CODE = {spelling: code for code, spellings in _SPELLINGS.items() for spelling in spellings}


def _code(text: str, allowed: tuple[str, ...], what: str) -> str:
    code = _CODE.get(str(text).lower().removeprefix("torch."))
    if code is None or code not in allowed:
        raise InputError(
            msg("{what} {text!r} is not known: use one of {allowed}.", what=what, text=text, allowed=", ".join(allowed))
        )
    return code


def kv_code(text: str) -> str:
    """Cache format as its code: bf16, fp16, fp32, fp8, int8 or nvfp4."""
    return _code(text, tuple(KV_BYTES), "KV dtype")


def weight_code(text: str) -> str:
    """Weight format as its code: bf16, fp16, fp32, fp8, int8, int4, mxfp4 or nvfp4."""
    return _code(text, tuple(WEIGHT_BYTES), "weight dtype")


def is_auto(text: str | None) -> bool:
    """True when nothing was asked for: the checkpoint decides."""
    return text is None or str(text).lower() in ("auto", "")
