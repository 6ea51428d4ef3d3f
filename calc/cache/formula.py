"""The cache formula with a deployment's numbers: a rate per token, and where layers keep a state, a fixed part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calc.cache.kv import kv_bytes_per_token
from calc.cache.specs import heads_per_gpu, state_bytes, states_per_sequence
from calc.engine import resolve
from calc.messages import Message, msg
from calc.model import ATTENTION, LayerGroup, LayerKind

if TYPE_CHECKING:
    from calc.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class KvFormula:
    """2 · L · H_kv · D · B with a deployment's numbers, per GPU; MLA: L · (R + P) · B with latent R and RoPE part P."""

    is_mla: bool
    layers: int
    """Those that keep a cache growing with the tokens."""
    kv_heads: int
    """Per GPU; 1 for MLA."""
    head_dim: int
    """D; for MLA the latent and RoPE part together."""
    bytes_per_element: float
    bytes_per_token: int
    """Of all layers. Where layers differ, or keep scales or index keys, it is not the plain product."""
    state_bytes: int = 0
    """One state of all recurrent layers together; 0 = none."""
    state_copies: int = 0
    """States reserved for a sequence."""
    compressed_fixed_bytes: int = 0
    """Of compressed caches: what full windows and running states take, whatever the length; 0 = not compressed."""

    @property
    def text(self) -> Message:
        """The formula with its numbers put in."""
        return _formula_text(self)


def kv_formula_parts(deployment: Deployment) -> KvFormula:
    """The numbers of the formula for all layers of the model on one GPU of a TP group."""
    model, settings = deployment.model, resolve(deployment)
    attending = [group for group in model.groups if group.kind in ATTENTION]
    group = attending[0] if attending else model.groups[0]
    is_mla = group.kind is LayerKind.MLA
    drafts = deployment.spec_tokens
    return KvFormula(
        is_mla=is_mla,
        layers=_growing_layers(attending),
        kv_heads=1 if is_mla else heads_per_gpu(group.kv_heads, deployment.tp),
        head_dim=group.head_dim,
        bytes_per_element=settings.kv_bytes_per_element,
        bytes_per_token=kv_bytes_per_token(model, settings.kv_dtype, deployment.tp),
        state_bytes=state_bytes(model, deployment.tp, drafts),
        compressed_fixed_bytes=_compressed_fixed_bytes(attending),
        state_copies=states_per_sequence(model, prefix_caching=settings.prefix_caching, spec_tokens=drafts),
    )


def _compressed_fixed_bytes(attending: list[LayerGroup]) -> int:
    return sum(
        group.layers * cache.bytes_per_record * (cache.window_tokens or 0)
        for group in attending
        for cache in group.caches
    )


def _growing_layers(attending: list[LayerGroup]) -> int:
    return sum(group.layers for group in attending)


def _formula_text(parts: KvFormula) -> Message:
    if not parts.layers:
        return msg(
            "{copies} · {state:count} bytes of recurrent state per sequence and GPU, whatever its length: "
            "no cache grows with the tokens",
            copies=parts.state_copies,
            state=parts.state_bytes,
        )
    if parts.compressed_fixed_bytes:
        return msg(
            "compressed: {total:count} bytes per token and GPU in {layers} layers, and {fixed:count} bytes per "
            "sequence in full windows",
            layers=parts.layers,
            total=parts.bytes_per_token,
            fixed=parts.compressed_fixed_bytes,
        )
    if parts.state_bytes:
        return msg(
            "{layers} attention layers: {total:count} bytes per token and GPU, and {copies} · {state:count} bytes of "
            "recurrent state per sequence, whatever its length",
            layers=parts.layers,
            total=parts.bytes_per_token,
            copies=parts.state_copies,
            state=parts.state_bytes,
        )
    return _rate_text(parts)


def _rate_text(parts: KvFormula) -> Message:
    sides = 1 if parts.is_mla else 2
    product = sides * parts.layers * parts.kv_heads * parts.head_dim * parts.bytes_per_element
    numbers = {
        "layers": parts.layers,
        "heads": parts.kv_heads,
        "dim": parts.head_dim,
        "element": parts.bytes_per_element,
        "total": parts.bytes_per_token,
    }
    if round(product) != parts.bytes_per_token:
        each = parts.bytes_per_token / parts.layers
        return msg(
            "L · bytes per layer = {layers} · {each:.0f} = {total:count} bytes per token and GPU (mean of the layers)",
            each=each,
            **numbers,
        )
    if parts.is_mla:
        return msg(
            "L · (R + P) · B = {layers} · {dim} · {element:g} = {total:count} bytes per token and GPU", **numbers
        )
    return msg(
        "2 · L · H_kv · D · B = 2 · {layers} · {heads} · {dim} · {element:g} = {total:count} bytes per token and GPU",
        **numbers,
    )


def kv_formula(deployment: Deployment) -> Message:
    """The cache formula with the deployment's numbers put in."""
    return kv_formula_parts(deployment).text
