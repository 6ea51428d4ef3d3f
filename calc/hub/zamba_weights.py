"""Parameters of a Zamba2 layer: a Mamba mixer everywhere, and few attention blocks that many layers share."""

from __future__ import annotations

from calc.hub.config import MAX_HEADS, Fields
from calc.hub.layer_plan import Mixer, plan_layers
from calc.hub.parts import Part, Split
from calc.hub.state_weights import state_parts
from calc.model import LayerGroup, LayerKind

ADAPTER_RANK = 128
"""Default ``adapter_rank`` (transformers class default)."""


def zamba_parts(fields: Fields, hidden: int, group: LayerGroup, layers: int, i: int) -> list[Part]:
    """Parts of layer ``i`` of ``layers``.

    Each of the ``num_mem_blocks`` shared blocks is stored once, with the first layer that uses it; every further
    use adds its own projection and low-rank adapters (vLLM ``models/zamba2.py``).
    """
    parts = [] if group.state is None else state_parts(fields, hidden, group.state, "mamba")
    parts.append(Part(elements=hidden, split=Split.NONE))
    if group.kind is LayerKind.RECURRENT:
        return parts
    inner = fields.integer("intermediate_size", "ffn_hidden_size")
    width = fields.integer("attention_hidden_size", default=2 * hidden)
    parts += _own(fields, hidden, inner, width)
    uses_before = sum(mixer is Mixer.BOTH for mixer, _ in plan_layers(fields, "zamba", layers)[:i])
    is_stored_here = uses_before < fields.integer("num_mem_blocks", default=1, high=MAX_HEADS)
    return parts + _shared(hidden, inner, width, is_stored_here)


def _own(fields: Fields, hidden: int, inner: int, width: int) -> list[Part]:
    rank = fields.integer("adapter_rank", default=ADAPTER_RANK)
    adapters = rank * (hidden + 2 * inner)
    if fields.flag("use_shared_attention_adapter", default=False):
        adapters += 3 * rank * 2 * width
    return [Part(elements=hidden * hidden, split=Split.NONE), Part(elements=adapters, split=Split.EVEN)]


def _shared(hidden: int, inner: int, width: int, is_stored_here: bool) -> list[Part]:
    """Attention over hidden state and embedding together, and the MLP; every use reads them, one layer stores them."""
    matrices = 3 * width * width + width * hidden + 3 * hidden * inner
    norms = width + hidden
    return [
        Part(elements=matrices if is_stored_here else 0, split=Split.EVEN, active=matrices),
        Part(elements=norms if is_stored_here else 0, split=Split.NONE, active=norms),
    ]
