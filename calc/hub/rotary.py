"""Rotary tables that engines compute once and keep beside the weights on every rank: cosine and sine by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calc.dtypes import PLAIN_BYTES
from calc.hub.config import Fields
from calc.hub.families import Family
from calc.hub.layers import Heads
from calc.hub.parameters import max_positions
from calc.hub.quantisation import Storage
from calc.model import LayerGroup, LayerKind

MAX_ROPE_FACTOR = 1000.0
"""Largest stretch of the context accepted; the largest published is 64."""
MULTIMODAL_LENGTHENING = 4
"""Tables over time, height and width are made this many times as long (vLLM ``mrope.py``)."""
WITHOUT_ROTARY = ("jamba", "nemotron", "pure")
"""Hybrids whose attention has no positions: the recurrent layers tell the order."""


def rope_cache_bytes(
    fields: Fields, family: Family, heads: Heads, groups: Iterable[LayerGroup], storage: Storage
) -> int:
    """Positions × rotary width × dtype, once for full layers and once more for local ones where theirs differs.

    Linear scaling lengthens the table by its factor (Gemma 3: 8); YaRN runs to original length × factor.
    """
    if family.learned_positions is not None or _has_no_rotary(fields, family):
        return 0
    element, attending = PLAIN_BYTES[storage.plain], [group for group in groups if group.head_dim]
    full = next((group for group in attending if group.kind in (LayerKind.FULL, LayerKind.MLA)), None)
    if family.mla:
        return int(_positions(fields, family, _rules(fields, "")) * fields.integer("qk_rope_head_dim") * element)
    rules = _rules(fields, "full_attention")
    longer = MULTIMODAL_LENGTHENING if _is_multimodal(fields, rules) else 1
    width = (full.head_dim if full else heads.head_dim) * _share(fields, rules)
    elements = _positions(fields, family, rules) * width * longer
    if family.local_rope:
        local = _rules(fields, "sliding_attention")
        elements += max_positions(fields, family) * heads.head_dim * _share(fields, local)
    return int(elements * element)


def _has_no_rotary(fields: Fields, family: Family) -> bool:
    is_nope = fields.flag("mla_use_nope", default=False) or fields.text("position_embedding_type") == "nope"
    return is_nope or family.hybrid in WITHOUT_ROTARY


def _is_multimodal(fields: Fields, rules: Mapping[str, Any]) -> bool:
    """Positions in time, height and width: said by the rules, or known of Qwen's vision models."""
    return (
        "mrope_section" in rules
        or "VLForConditional" in _class_of(fields)
        or "VLMoeForConditional" in _class_of(fields)
    )


def _class_of(fields: Fields) -> str:
    names = fields.outer.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _rules(fields: Fields, kind: str) -> Mapping[str, Any]:
    """Scaling rules; newer configs keep one set per kind of layer."""
    rules = fields.mapping("rope_scaling", "rope_parameters")
    own = rules.get(kind)
    return own if isinstance(own, Mapping) else rules


def _share(fields: Fields, rules: Mapping[str, Any]) -> float:
    # Proportional tables (Gemma 4) keep every dimension and leave the rest unrotated.
    if rules.get("rope_type") == "proportional":
        return 1.0
    share = rules.get("partial_rotary_factor")
    return _factor(share if share is not None else fields.raw("partial_rotary_factor", "rotary_pct"), highest=1.0)


def _positions(fields: Fields, family: Family, rules: Mapping[str, Any]) -> float:
    positions = max_positions(fields, family)
    kind = str(rules.get("rope_type") or rules.get("type") or "")
    factor = _factor(rules.get("factor"), highest=MAX_ROPE_FACTOR)
    if kind == "linear":
        return positions * factor
    original = rules.get("original_max_position_embeddings")
    if kind == "yarn" and isinstance(original, int) and 0 < original <= positions:
        return original * factor
    return positions


def _factor(value: object, highest: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= highest
    return float(value) if usable and isinstance(value, int | float) else 1.0
