"""Vision encoders of multimodal checkpoints: counted from ``vision_config`` where it tells enough, else left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calc.config import MAX_LAYERS, Fields

GATED_TYPES = ("pixtral", "qwen2_5_vl")
"""Encoders whose MLP has a gate, by the start of their ``model_type``."""
COLOURS = 3
ATTENTION_MATRICES = 4
LARGEST_IMAGE = 100_000
"""Longest image side in pixels accepted."""


def encoder_parameters(fields: Fields, text_hidden: int) -> int:
    """Parameters of the encoder and of the projector into the language model; 0 when the config does not tell.

    Layers · (4 H² + 2 or 3 · H · I) + patch and position embeddings + projectors (merged patches into the text width).
    """
    block = fields.outer.get("vision_config")
    if not fields.is_multimodal or not isinstance(block, Mapping):
        return 0
    vision = Fields(block, block)
    hidden, layers = _size(vision, "hidden_size", "embed_dim"), _size(vision, "num_hidden_layers", "depth")
    size = _size(vision, "intermediate_size") or hidden * _size(vision, "mlp_ratio")
    if not hidden or not layers or not size or layers > MAX_LAYERS:
        return 0
    matrices = 3 if vision.text("model_type").startswith(GATED_TYPES) else 2
    body = layers * (ATTENTION_MATRICES * hidden * hidden + matrices * hidden * size)
    return body + _patches(vision, hidden) + _projectors(vision, fields, hidden, text_hidden)


def _size(vision: Fields, *names: str) -> int:
    value: Any = vision.raw(*names)
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_IMAGE
    return value if usable else 0


def _patches(vision: Fields, hidden: int) -> int:
    patch, image = _size(vision, "patch_size"), _size(vision, "image_size")
    positions = (image // patch) ** 2 if patch and image else 0
    return (COLOURS * patch * patch + positions) * hidden


def _projectors(vision: Fields, fields: Fields, hidden: int, text_hidden: int) -> int:
    merge = _size(vision, "spatial_merge_size") or _size(fields, "spatial_merge_size") or 1
    merged = hidden * merge * merge
    taps = vision.raw("deepstack_visual_indexes")
    count = 1 + (len(taps) if isinstance(taps, list) else 0)
    inner = merged * merged if merge > 1 else 0
    return count * (inner + merged * text_hidden)
