"""Which layer keeps its history how: groups of layers with the same cache, and the order they come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.cache.compressed import compressed_layers
from calc.cache.recurrent import RecurrentState
from calc.errors import InputError, UnknownArchitecture
from calc.hub.config import MAX_HEADS, Fields
from calc.hub.families import Family
from calc.hub.layer_plan import Mixer, count_layers, plan_layers
from calc.hub.states import read_state
from calc.messages import msg
from calc.model import FeedForward, LayerGroup, LayerKind

INDEX_BYTES_PER_SCALE_GROUP = 4
"""One FP32 scale per 128 index values (DeepSeek-V3.2, vLLM ``deepseek_v2.py``)."""
INDEX_SCALE_GROUP = 128
MINIMAX_INDEX_DIM, INDEX_KEY_BYTES = 128, 2
"""Width and bytes per element of MiniMax-M3's index keys (vLLM ``models/minimax_m3``)."""
LLAMA4_CHUNK_TOKENS = 8192
"""Default ``attention_chunk_size`` of Llama 4 (transformers class default)."""
_KINDS = {
    "full_attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "chunked_attention": LayerKind.CHUNKED,
}


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Attention widths of a config."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int


def read_heads(fields: Fields, family: Family) -> Heads:
    """Head counts and sizes; ``head_dim`` is hidden / heads only where the config does not give one."""
    hidden = fields.integer("hidden_size", "n_embd", "d_model")
    if family.hybrid == "pure":
        return _no_heads(fields, hidden)
    heads = fields.integer("num_attention_heads", "n_head", high=MAX_HEADS)
    kv_heads = _kv_heads(fields, family, heads)
    if heads % kv_heads:
        raise InputError(
            msg(
                "{heads} attention heads cannot share {kv_heads} KV heads evenly: correct the config.",
                heads=heads,
                kv_heads=kv_heads,
            )
        )
    head_dim = fields.optional("head_dim", "attention_head_dim")
    if head_dim is None:
        head_dim = hidden // heads
    if head_dim < 1:
        raise InputError(
            msg("hidden_size {hidden} is below {heads} attention heads: correct it.", hidden=hidden, heads=heads)
        )
    return Heads(
        layers=count_layers(fields),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim if family.mla else fields.integer("v_head_dim", default=head_dim),
    )


def _no_heads(fields: Fields, hidden: int) -> Heads:
    """Pure Mamba: its own heads, or for Mamba-1 its channels, are what TP divides."""
    heads = fields.integer("num_heads", "intermediate_size", default=2 * hidden)
    return Heads(layers=count_layers(fields), hidden=hidden, heads=heads, kv_heads=0, head_dim=0, v_head_dim=0)


def _kv_heads(fields: Fields, family: Family, heads: int) -> int:
    is_older_falcon = family.name == "Falcon" and not fields.flag("new_decoder_architecture", default=False)
    if is_older_falcon or family.name == "GPT-BigCode":
        # Older Falcon configs name KV heads they do not use.
        return 1 if fields.flag("multi_query", default=True) else heads
    return fields.integer("num_key_value_heads", "num_kv_heads", default=heads, high=MAX_HEADS)


def read_layers(
    fields: Fields, family: Family, heads: Heads, plain: str
) -> tuple[tuple[LayerGroup, ...], tuple[int, ...]]:
    """Layer groups and, for each layer in order, the index of its group; ``plain`` is the model's dtype."""
    kinds = _with_shared(fields, _plain_layers(fields, family, heads))
    if family.hybrid:
        plan = plan_layers(fields, family.hybrid, heads.layers)
        has_states = any(mixer in (Mixer.STATE, Mixer.BOTH) for mixer, _ in plan)
        state = _state(fields, family, plain) if has_states else None
        kinds = [_mixed(kind, state, *part) for kind, part in zip(kinds, plan, strict=True)]
    groups: list[LayerGroup] = []
    order = []
    for kind in kinds:
        if kind not in groups:
            groups.append(kind)
        order.append(groups.index(kind))
    return tuple(replace(group, layers=order.count(index)) for index, group in enumerate(groups)), tuple(order)


def _state(fields: Fields, family: Family, plain: str) -> RecurrentState | None:
    if family.state is None:
        return None
    dtype_field, float32 = family.state_dtype_field, family.float32_state
    return read_state(fields, family.state, plain, dtype_field=dtype_field, float32=float32)


def _plain_layers(fields: Fields, family: Family, heads: Heads) -> list[LayerGroup]:
    if family.compressed:
        return compressed_layers(fields, heads.layers)
    return _mla_layers(fields, heads) if family.mla else _attention_layers(fields, family, heads)


def _with_shared(fields: Fields, layers: list[LayerGroup]) -> list[LayerGroup]:
    """The last ``num_kv_shared_layers`` read the cache of the last earlier layer of their type."""
    if fields.flag("use_cla", default=False):
        raise UnknownArchitecture(
            msg("Layers that share keys and values by use_cla are not modelled: size it from the engine's own log.")
        )
    shared = fields.integer("num_kv_shared_layers", default=0, low=0, high=len(layers) - 1)
    own = len(layers) - shared
    return layers[:own] + [replace(layer, kind=LayerKind.SHARED) for layer in layers[own:]]


def _mixed(attention: LayerGroup, state: RecurrentState | None, mixer: Mixer, after: FeedForward) -> LayerGroup:
    """A layer of a hybrid: attention, state, both or neither."""
    if mixer is Mixer.ATTENTION:
        return replace(attention, feed_forward=after)
    if mixer is Mixer.BOTH:
        return replace(attention, state=state, feed_forward=after)
    kind = LayerKind.RECURRENT if mixer is Mixer.STATE else LayerKind.NONE
    kept = state if mixer is Mixer.STATE else None
    return LayerGroup(kind=kind, layers=1, kv_heads=0, head_dim=0, v_head_dim=0, state=kept, feed_forward=after)


def _mla_layers(fields: Fields, heads: Heads) -> list[LayerGroup]:
    latent = fields.integer("kv_lora_rank") + fields.integer("qk_rope_head_dim")
    plain = LayerGroup(kind=LayerKind.MLA, layers=1, kv_heads=1, head_dim=latent, v_head_dim=0)
    index_dim = fields.optional("index_head_dim")
    if index_dim is None:
        return [plain] * heads.layers
    index_bytes = index_dim + index_dim // INDEX_SCALE_GROUP * INDEX_BYTES_PER_SCALE_GROUP
    indexed = replace(plain, sparse_index_bytes_per_token=index_bytes)
    owners = fields.listing("indexer_types", heads.layers)
    if owners is None:
        return [indexed] * heads.layers
    following = replace(plain, follows_index=True)
    return [indexed if owner == "full" else following for owner in owners]


def _attention_layers(fields: Fields, family: Family, heads: Heads) -> list[LayerGroup]:
    full, local = _full_and_local(fields, family, heads)
    if family.state is not None:
        return [full] * heads.layers
    kinds = _kinds(fields, family, heads.layers)
    window = _window_tokens(fields, family)
    if window is None:
        return _indexed(fields, [full] * heads.layers)
    return [full if kind is LayerKind.FULL else replace(local, kind=kind, window_tokens=window) for kind in kinds]


def _full_and_local(fields: Fields, family: Family, heads: Heads) -> tuple[LayerGroup, LayerGroup]:
    """The cache of a full and of a local layer; most families use one width for both."""
    usual = LayerGroup(
        kind=LayerKind.FULL, layers=1, kv_heads=heads.kv_heads, head_dim=heads.head_dim, v_head_dim=heads.v_head_dim
    )
    if family.local_widths == "gemma4":
        dim = fields.integer("global_head_dim", default=heads.head_dim)
        kv_heads = fields.integer("num_global_key_value_heads", default=heads.kv_heads, high=MAX_HEADS)
        return replace(usual, kv_heads=kv_heads, head_dim=dim, v_head_dim=dim), usual
    if family.local_widths == "step":
        return usual, _step_local(fields, usual)
    if family.local_widths == "mimo":
        local = replace(
            usual,
            kv_heads=fields.integer("swa_num_key_value_heads", default=heads.kv_heads, high=MAX_HEADS),
            head_dim=fields.integer("swa_head_dim", default=heads.head_dim),
            v_head_dim=fields.integer("swa_v_head_dim", default=heads.v_head_dim),
        )
        return usual, local
    return usual, usual


def _step_local(fields: Fields, usual: LayerGroup) -> LayerGroup:
    """``attention_other_setting`` widens or narrows the layers of one type; in published models the local ones."""
    other = Fields(fields.mapping("attention_other_setting"), {})
    if other.text("attention_type") not in ("", "sliding_attention"):
        raise UnknownArchitecture(
            msg("attention_other_setting for other layers than local ones is not modelled: size it from a log.")
        )
    dim = other.integer("head_dim", default=usual.head_dim)
    kv_heads = other.integer("num_attention_groups", default=usual.kv_heads, high=MAX_HEADS)
    return replace(usual, kv_heads=kv_heads, head_dim=dim, v_head_dim=dim)


def _indexed(fields: Fields, layers: list[LayerGroup]) -> list[LayerGroup]:
    """MiniMax-M3: layers of sparse attention keep one BF16 index key per token beside K and V."""
    block = Fields(fields.mapping("sparse_attention_config"), {})
    marks = block.listing("sparse_attention_freq", len(layers))
    if marks is None:
        return layers
    index_bytes = block.integer("sparse_index_dim", default=MINIMAX_INDEX_DIM) * INDEX_KEY_BYTES
    return [
        replace(layer, sparse_index_bytes_per_token=index_bytes) if mark else layer
        for layer, mark in zip(layers, marks, strict=True)
    ]


def _window_tokens(fields: Fields, family: Family) -> int | None:
    if family.window == "chunked":
        return fields.integer("attention_chunk_size", default=LLAMA4_CHUNK_TOKENS)
    if family.window == "qwen" and not fields.flag("use_sliding_window", default=False):
        return None
    window = fields.optional("sliding_window")
    return None if window is None else window + family.window_extra


def _kinds(fields: Fields, family: Family, layers: int) -> list[LayerKind]:
    marks = fields.listing("hybrid_layer_pattern", layers)
    if marks is not None:
        return [LayerKind.SLIDING if mark == 1 else LayerKind.FULL for mark in marks]
    named = fields.listing("layer_types", layers)
    if named is not None:
        return [_named_kind(str(name)) for name in named]
    if family.window == "chunked":
        return _chunked(fields, family, layers)
    if family.window == "every-nth-full":
        every = fields.integer("sliding_window_pattern", "_sliding_window_pattern", default=family.full_every)
        return _every_nth_full(LayerKind.SLIDING, every, layers)
    if family.window == "qwen":
        first = fields.integer("max_window_layers", default=0, low=0)
        return [LayerKind.SLIDING if i >= first else LayerKind.FULL for i in range(layers)]
    return [LayerKind.SLIDING] * layers


def _named_kind(name: str) -> LayerKind:
    if name not in _KINDS:
        raise UnknownArchitecture(
            msg(
                "layers of type {name!r} are not modelled: only full, sliding and chunked attention are.",
                name=name,
            )
        )
    return _KINDS[name]


def _every_nth_full(local: LayerKind, every: int, layers: int) -> list[LayerKind]:
    return [LayerKind.FULL if (i + 1) % every == 0 else local for i in range(layers)]


def _chunked(fields: Fields, family: Family, layers: int) -> list[LayerKind]:
    rope: Sequence[object] | None = fields.listing("no_rope_layers", layers)
    if rope is not None:
        return [LayerKind.CHUNKED if has_rope else LayerKind.FULL for has_rope in rope]
    every = fields.integer("no_rope_layer_interval", default=family.full_every)
    return _every_nth_full(LayerKind.CHUNKED, every, layers)
