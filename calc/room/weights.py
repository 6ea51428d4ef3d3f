"""Weight bytes on one GPU: what TP and experts divide, what every rank holds, and the fullest pipeline stage."""

from __future__ import annotations

import math

from calc.cache.kv import stage_spans
from calc.model import LayerGroup, LayerKind, ModelSpec

PADDED_HIDDEN = 256
PADDED_SIZE = 128
VOCAB_PADDING = 64
"""Engines pad the vocabulary to a multiple of this (vLLM ``vocab_parallel_embedding.py``)."""


def weights_bytes_per_gpu(model: ModelSpec, tp: int, pp: int = 1, ep: bool = False, dp: int = 1) -> int:
    """Bytes on a GPU of the fullest stage; a declared size of the replica is divided evenly instead.

    Dense parts are repeated on every DP rank; routed experts are divided over TP × DP (vLLM), by whole experts with
    expert parallelism.
    """
    stages = stage_weights_bytes(model, tp, pp, ep, dp)
    return max(stages)


def stage_weights_bytes(model: ModelSpec, tp: int, pp: int, ep: bool = False, dp: int = 1) -> tuple[int, ...]:
    """Bytes on one GPU of each pipeline stage, rotary tables included."""
    estimate = _estimated(model, tp, pp, ep, dp)
    if model.weights_bytes_declared is None:
        return estimate
    if dp == 1 or model.moe is None:
        return (math.ceil(model.weights_bytes_declared / (tp * pp)),) * pp
    whole = sum(_estimated(model, 1, 1, False, 1))
    return tuple(math.ceil(model.weights_bytes_declared * stage / whole) for stage in estimate)


def _estimated(model: ModelSpec, tp: int, pp: int, ep: bool, dp: int) -> tuple[int, ...]:
    per_layer = _per_layer(model, tp, ep, dp)
    stages = [sum(per_layer[layer] for layer in span) for span in stage_spans(model, pp)]
    vocab_bytes, plain = _vocab_bytes(model, tp), model.storage.plain_bytes_per_parameter
    copies = [model.vocab_copies] * pp
    copies[0] = max(copies[0], 1)
    # The last stage needs the head; the embedding is with it on a single stage, and where every stage has one.
    copies[-1] = 1 if model.tied_embeddings or (pp > 1 and not model.vocab_copies) else 2
    stages[0] += model.first_stage_parameters * plain / tp
    stages[-1] += model.extra_parameters * plain
    # Encoders are created on every stage, though only the first runs them (vLLM 0.32 ``models/interfaces.py``).
    encoder_bytes = model.encoder_parameters * plain / (1 if model.whole_encoder else tp)
    everywhere = encoder_bytes + model.rope_cache_bytes
    return tuple(round(stage + copy * vocab_bytes + everywhere) for stage, copy in zip(stages, copies, strict=True))


def _per_layer(model: ModelSpec, tp: int, ep: bool, dp: int) -> list[float]:
    """Most layers of a model are alike, and then one object: each kind is summed once."""
    known: dict[tuple[int, int], float] = {}
    sizes = []
    for index, layer in enumerate(model.layer_weights):
        kind = (id(layer), id(_group(model, index)))
        if kind not in known:
            known[kind] = _layer_bytes(model, index, tp, ep, dp)
        sizes.append(known[kind])
    return sizes


def _vocab_bytes(model: ModelSpec, tp: int) -> float:
    padded = math.ceil(model.vocab_size / VOCAB_PADDING) * VOCAB_PADDING
    return padded * model.hidden_size * model.storage.plain_bytes_per_parameter / tp


def _layer_bytes(model: ModelSpec, index: int, tp: int, ep: bool, dp: int) -> float:
    quantised, plain = model.storage.bytes_per_parameter, model.storage.plain_bytes_per_parameter
    layer, group = model.layer_weights[index], _group(model, index)
    return (
        (layer.split_quantised * quantised + layer.split_plain * plain + layer.split_extra_bytes) / tp
        + (layer.kv_quantised * quantised + layer.kv_plain * plain + layer.kv_extra_bytes) / _kv_ranks(model, group, tp)
        + layer.replicated_quantised * quantised
        + layer.replicated_plain * plain
        + layer.replicated_extra_bytes
        + (layer.expert_quantised * quantised + layer.expert_plain * plain + layer.expert_extra_bytes)
        * _expert_share(model, tp, ep, dp)
        + _absorbed_bytes(model, group, tp)
    )


def _group(model: ModelSpec, index: int) -> LayerGroup | None:
    return model.groups[model.layer_order[index]] if index < len(model.layer_order) else None


def _kv_ranks(model: ModelSpec, group: LayerGroup | None, tp: int) -> int:
    """Ranks that K and V projections are divided over: below one KV head they are repeated."""
    if group is None or group.kind is LayerKind.MLA:
        return tp if model.attention == "mla" else min(tp, max(1, model.kv_heads))
    return min(tp, max(1, group.kv_heads))


def _absorbed_bytes(model: ModelSpec, group: LayerGroup | None, tp: int) -> float:
    """MLA: the latent up-projection a second time, folded into queries and outputs (vLLM ``mla_attention.py``)."""
    latent = model.latent
    if latent is None or (group is not None and group.kind is not LayerKind.MLA):
        return 0.0
    elements = latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim)
    return elements * model.storage.plain_bytes_per_parameter / tp


def _expert_share(model: ModelSpec, tp: int, ep: bool, dp: int) -> float:
    ranks = tp * dp
    if model.moe is None:
        return 1 / ranks
    if ep:
        return math.ceil(model.moe.experts / ranks) / model.moe.experts * _expert_padding(model, 1)
    return _expert_padding(model, ranks) / ranks


def _expert_padding(model: ModelSpec, ranks: int) -> float:
    """MXFP4 kernels pad the hidden width to a multiple of 256 and an expert's share of its width to one of 128.

    gpt-oss: 2880 → 3072 and 2944; logged 13.72 and 65.97 GiB on one GPU against 12.8 and 60.7 unpadded.
    """
    if model.moe is None or model.storage.code != "mxfp4":
        return 1.0
    hidden, size = model.hidden_size, model.moe.expert_size
    share = max(1, size // ranks)
    padded = math.ceil(hidden / PADDED_HIDDEN) * PADDED_HIDDEN * math.ceil(share / PADDED_SIZE) * PADDED_SIZE
    return padded / (hidden * share)
