"""Vision encoders of multimodal checkpoints with their projectors: counted from ``vision_config``, else doubted aloud.

Each kind follows its model code in transformers; the totals agree with the Hub's (``published_parameters.csv``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from calc.hub.config import MAX_LAYERS, Fields
from calc.hub.families import Family
from calc.messages import Message, msg

COLOURS = 3
LARGEST_IMAGE = 100_000
"""Longest image side in pixels accepted."""
GEMMA3N_ENCODERS = 983_281_504
"""MobileNet-V5 and the audio encoder of Gemma 3n: the Hub's 7,849,978,192 for E4B less the language model."""
UNKNOWN_ENCODER = 700_000_000
"""Parameters allowed for where nothing is told: most published encoders have 0.3 to 0.7 billion."""
USUAL_ENCODERS: Mapping[str, int] = MappingProxyType(
    {
        "Gemma 3": 420_000_000,
        "Gemma 3n": GEMMA3N_ENCODERS,
        "Gemma 4": 572_000_000,
        "Llama 4": 871_000_000,
        "Qwen3.5": 460_000_000,
        "Qwen3.5-MoE": 460_000_000,
    }
)
"""Families published with an encoder, where the text part of the config does not show it."""
WHOLE_ENCODERS = ("Gemma 3n", "Gemma 4")
"""Families whose encoders vLLM builds with transformers, in full on every TP rank (0.32 ``models/gemma4_mm.py``)."""
TEXT_ONLY_HIDDEN = 2048
"""Gemma 3 below this width (270M, 1B) has no encoder."""


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """What a checkpoint holds beside the language model."""

    parameters: int = 0
    doubt_parameters: int = 0
    """How many more there may be."""
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    hidden: int
    layers: int
    inner: int
    patch: int
    positions: int
    """Patches of one image and the class token, where positions are learned."""
    merge: int
    text_hidden: int


def read_encoder(fields: Fields, family: Family, text_hidden: int) -> Encoder:
    """Encoder and projector into the language model, kept unquantised."""
    block = fields.outer.get("vision_config")
    is_text_only = not fields.is_multimodal and not isinstance(block, Mapping)
    if is_text_only:
        return _left_out(fields, family, text_hidden)
    if family.name == "Gemma 3n":
        return Encoder(parameters=GEMMA3N_ENCODERS)
    sound = _sound(fields)
    vision = Fields(block, block) if isinstance(block, Mapping) and block else None
    sizes = _sizes(vision, fields, text_hidden) if vision else None
    if vision is None or sizes is None:
        note = msg("The config tells too little of the encoder beside the language model: it is not counted.")
        is_known_text = fields.is_multimodal and vision is None and not _loads_encoder(fields)
        doubt = USUAL_ENCODERS.get(family.name, UNKNOWN_ENCODER)
        return sound if is_known_text else Encoder(doubt_parameters=doubt, notes=(note,))
    count = _kind(vision, fields)(vision, fields, sizes)
    return Encoder(parameters=count, doubt_parameters=sound.doubt_parameters, notes=sound.notes)


def _loads_encoder(fields: Fields) -> bool:
    names = fields.outer.get("architectures")
    return isinstance(names, list) and bool(names) and str(names[0]).endswith("ForConditionalGeneration")


def _left_out(fields: Fields, family: Family, text_hidden: int) -> Encoder:
    """A config of the language part alone, although checkpoints of the family or the class loaded have an encoder."""
    usual = USUAL_ENCODERS.get(family.name, 0)
    if family.name == "Gemma 3" and text_hidden < TEXT_ONLY_HIDDEN:
        usual = 0
    doubt = usual or (UNKNOWN_ENCODER if _loads_encoder(fields) else 0)
    note = msg(
        "{family} is published with an image encoder that this config leaves out: where it is loaded, weights are "
        "about {count:count} million parameters more.",
        family=family.name,
        count=round(doubt / 10**6),
    )
    return Encoder(doubt_parameters=doubt, notes=(note,) if doubt else ())


def _sound(fields: Fields) -> Encoder:
    block = fields.outer.get("audio_config")
    if not isinstance(block, Mapping) or not block:
        return Encoder()
    note = msg("The audio encoder is not counted: weights may be larger.")
    return Encoder(doubt_parameters=UNKNOWN_ENCODER, notes=(note,))


def _size(vision: Fields, *names: str, high: int = LARGEST_IMAGE) -> int:
    value: Any = vision.raw(*names)
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= high
    return value if usable else 0


def _sizes(vision: Fields, fields: Fields, text_hidden: int) -> _Sizes | None:
    hidden, layers = _size(vision, "embed_dim", "hidden_size"), _size(vision, "depth", "num_hidden_layers")
    ratio = vision.raw("mlp_ratio")
    usable = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio < LARGEST_IMAGE
    inner = _size(vision, "intermediate_size") or (int(hidden * ratio) if usable else 0)
    if not hidden or not layers or not inner or layers > MAX_LAYERS:
        return None
    patch, image = _size(vision, "patch_size"), _size(vision, "image_size")
    return _Sizes(
        hidden=hidden,
        layers=layers,
        inner=inner,
        patch=patch,
        positions=(image // patch) ** 2 if patch and image else 0,
        merge=_size(vision, "spatial_merge_size") or _size(fields, "spatial_merge_size") or 1,
        text_hidden=_size(vision, "out_hidden_size") or text_hidden,
    )


def _linear(rows: int, columns: int, bias: bool = True) -> int:
    return rows * columns + (columns if bias else 0)


def _plain_layer(s: _Sizes) -> int:
    """Attention and a two-matrix MLP, biases everywhere, two layer norms."""
    attention = 4 * _linear(s.hidden, s.hidden)
    return attention + _linear(s.hidden, s.inner) + _linear(s.inner, s.hidden) + 4 * s.hidden


def _pixels(s: _Sizes) -> int:
    return COLOURS * s.patch * s.patch * s.hidden


def _siglip(_vision: Fields, fields: Fields, s: _Sizes) -> int:
    body = _pixels(s) + s.hidden + s.positions * s.hidden + s.layers * _plain_layer(s) + 2 * s.hidden
    if fields.text("model_type").startswith("gemma3") or "Gemma3" in _class(fields):
        return body + s.hidden * s.text_hidden + s.hidden
    return body + _llava_projector(fields, s)


def _clip(_vision: Fields, fields: Fields, s: _Sizes) -> int:
    body = _pixels(s) + s.hidden + (s.positions + 1) * s.hidden + s.layers * _plain_layer(s) + 4 * s.hidden
    return body + _llava_projector(fields, s)


def _llava_projector(fields: Fields, s: _Sizes) -> int:
    """Two matrices; several tapped layers enter side by side. LLaVA-NeXT marks the ends of rows."""
    tapped = fields.outer.get("vision_feature_layer")
    taps = len(tapped) if isinstance(tapped, list) and tapped else 1
    newline = s.text_hidden if "next" in str(fields.outer.get("model_type")) else 0
    return _linear(s.hidden * taps, s.text_hidden) + _linear(s.text_hidden, s.text_hidden) + newline


def _class(fields: Fields) -> str:
    names = fields.outer.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _pixtral(_vision: Fields, fields: Fields, s: _Sizes) -> int:
    """No biases, gated MLP; Mistral 3.1 merges neighbouring patches before it projects."""
    layer = 4 * s.hidden * s.hidden + 3 * s.hidden * s.inner + 2 * s.hidden
    body = _pixels(s) + s.hidden + s.layers * layer
    if s.merge == 1:
        return body + _llava_projector(fields, s)
    merger = s.hidden + s.merge**2 * s.hidden * s.hidden
    return body + merger + s.hidden * s.text_hidden + s.text_hidden * s.text_hidden


def _merged_projector(s: _Sizes) -> int:
    merged = s.hidden * s.merge**2
    return _linear(merged, merged) + _linear(merged, s.text_hidden)


def _frames(vision: Fields) -> int:
    return _size(vision, "temporal_patch_size") or 2


def _qwen2_vl(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    return _pixels(s) * _frames(vision) + s.layers * _plain_layer(s) + 2 * s.hidden + _merged_projector(s)


def _qwen25_vl(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    mlp = 2 * _linear(s.hidden, s.inner) + _linear(s.inner, s.hidden)
    layer = 4 * _linear(s.hidden, s.hidden) + mlp + 2 * s.hidden
    return _pixels(s) * _frames(vision) + s.layers * layer + s.hidden + _merged_projector(s)


QWEN3_POSITIONS = 2304
"""Default ``num_position_embeddings`` of Qwen3-VL (transformers class default)."""


def _qwen3_vl(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    """Learned positions; one more merger per tapped layer (deepstack)."""
    taps = vision.raw("deepstack_visual_indexes")
    deep = len(taps) if isinstance(taps, list) else 0
    positions = (_size(vision, "num_position_embeddings") or QWEN3_POSITIONS) * s.hidden
    body = _pixels(s) * _frames(vision) + s.hidden + positions + s.layers * _plain_layer(s)
    mergers = (1 + deep) * _merged_projector(s) + 2 * s.hidden + deep * 2 * s.hidden * s.merge**2
    return body + mergers


LLAMA4_PROJECTOR = 4096
"""Default widths of Llama 4's adapter and of its output (transformers class default)."""


def _llama4(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    inside = _size(vision, "projector_input_dim") or LLAMA4_PROJECTOR
    outside = _size(vision, "projector_output_dim", "vision_output_dim") or LLAMA4_PROJECTOR
    body = _pixels(s) + (s.positions + 2) * s.hidden + s.layers * _plain_layer(s) + 4 * s.hidden
    return body + s.inner * inside + inside * outside + outside * s.text_hidden


GEMMA4_POSITIONS = 10_240
"""Default ``position_embedding_size`` of Gemma 4's encoder, per axis (transformers class default)."""


def _gemma4(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    """Gated MLP, four norms a layer, norms of queries and keys, positions per axis."""
    head = _size(vision, "head_dim") or s.hidden // (_size(vision, "num_attention_heads") or 1)
    layer = 4 * s.hidden * s.hidden + 3 * s.hidden * s.inner + 4 * s.hidden + 2 * head
    positions = 2 * (_size(vision, "position_embedding_size") or GEMMA4_POSITIONS) * s.hidden
    standard = 2 * s.hidden if vision.raw("standardize") is True else 0
    return _pixels(s) + positions + s.layers * layer + standard + s.hidden * s.text_hidden


def _intern(vision: Fields, _fields: Fields, s: _Sizes) -> int:
    """InternViT: class token, scales after both blocks; four patches join before the projector."""
    bias, normed = vision.raw("qkv_bias") is not False, vision.raw("qk_normalization", "use_qk_norm") is True
    layer = _plain_layer(s) + 2 * s.hidden + (2 * s.hidden if normed else 0) - (0 if bias else 3 * s.hidden)
    body = _pixels(s) + s.hidden + (s.positions + 2) * s.hidden + s.layers * layer
    joined = 4 * s.hidden
    return body + 2 * joined + _linear(joined, s.text_hidden) + _linear(s.text_hidden, s.text_hidden)


_KINDS: Mapping[str, Callable[[Fields, Fields, _Sizes], int]] = MappingProxyType(
    {
        "siglip": _siglip,
        "clip": _clip,
        "pixtral": _pixtral,
        "qwen2_5_vl": _qwen25_vl,
        "qwen2_vl": _qwen2_vl,
        "qwen3_vl": _qwen3_vl,
        "qwen3_5": _qwen3_vl,
        "llama4": _llama4,
        "gemma4": _gemma4,
        "intern": _intern,
    }
)
"""By the start of the encoder's ``model_type``."""


def _kind(vision: Fields, fields: Fields) -> Callable[[Fields, Fields, _Sizes], int]:
    for label in (vision.text("model_type"), str(fields.outer.get("model_type") or "")):
        for start, kind in _KINDS.items():
            if label.startswith(start):
                return kind
    return _siglip
