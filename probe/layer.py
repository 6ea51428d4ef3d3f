"""One decoder layer in plain torch, with random weights: prefill of a prompt, decode of a batch.

Weights are random, not zero: zeros switch fewer transistors, draw less power and let a GPU clock higher than it would.
Decode attends for all query heads of a KV head at once, so that its cache is read once, as the engines' kernels do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from calc.model import LatentAttention
from probe.shape import GATED_MATRICES, LayerShape

if TYPE_CHECKING:
    import torch

Cache: TypeAlias = "tuple[torch.Tensor, ...]"
Random: TypeAlias = "Callable[..., torch.Tensor]"

TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Attention(Protocol):
    """What the layer needs of grouped and of latent attention."""

    def prefill(self, hidden: torch.Tensor) -> torch.Tensor:
        """Causal attention of one prompt, (tokens, hidden) in and out."""

    def decode(self, hidden: torch.Tensor, cache: Cache) -> torch.Tensor:
        """One token per sequence, (batch, hidden) in and out; the last cache position is overwritten."""

    def cache(self, batch: int, context_tokens: int) -> Cache:
        """A filled cache."""


class Layer:
    """Norm, attention, norm, MLP, each with its residual; gate and up projection are one matrix, as in the engines."""

    def __init__(self, shape: LayerShape, random: Random) -> None:
        self._attention: Attention = (
            _GroupedAttention(shape, random) if shape.latent is None else _LatentAttention(shape, shape.latent, random)
        )
        self._norms = (random(shape.hidden_size), random(shape.hidden_size))
        self._is_gated = shape.mlp_matrices == GATED_MATRICES
        self._up = random(shape.hidden_size, (shape.mlp_matrices - 1) * shape.intermediate_size)
        self._down = random(shape.intermediate_size, shape.hidden_size)

    def prefill(self, hidden: torch.Tensor) -> torch.Tensor:
        """One prompt, (tokens, hidden)."""
        hidden = hidden + self._attention.prefill(_norm(hidden, self._norms[0]))
        return hidden + self._mlp(_norm(hidden, self._norms[1]))

    def decode(self, hidden: torch.Tensor, cache: Cache) -> torch.Tensor:
        """One token of each sequence, (batch, hidden)."""
        hidden = hidden + self._attention.decode(_norm(hidden, self._norms[0]), cache)
        return hidden + self._mlp(_norm(hidden, self._norms[1]))

    def cache(self, batch: int, context_tokens: int) -> Cache:
        """A filled cache for ``batch`` sequences."""
        return self._attention.cache(batch, context_tokens)

    def _mlp(self, hidden: torch.Tensor) -> torch.Tensor:
        import torch.nn.functional as F  # noqa: N812 (torch's own convention)

        wide = hidden @ self._up
        if not self._is_gated:
            return F.gelu(wide) @ self._down
        gate, up = wide.chunk(2, dim=-1)
        return (F.silu(gate) * up) @ self._down


class _GroupedAttention:
    """MHA, GQA and MQA."""

    def __init__(self, shape: LayerShape, random: Random) -> None:
        self._shape, self._random = shape, random
        values = [(shape.kv_heads, shape.v_head_dim)] * (shape.kv_projections - 1)
        parts = [(shape.heads, shape.head_dim), (shape.kv_heads, shape.head_dim), *values]
        self._heads = [heads for heads, _ in parts]
        self._widths = [heads * size for heads, size in parts]
        self._qkv = random(shape.hidden_size, sum(self._widths))
        self._out = random(shape.heads * shape.v_head_dim, shape.hidden_size)

    def _project(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        """Q, K, V as (tokens, heads, width)."""
        parts = _split(hidden @ self._qkv, self._widths)
        shaped = [_by_head(part, heads) for part, heads in zip(parts, self._heads, strict=True)]
        return shaped if self._shape.kv_projections > 1 else [*shaped, shaped[-1]]

    def prefill(self, hidden: torch.Tensor) -> torch.Tensor:
        query, key, value = self._project(hidden)
        return _causal(query, key, value) @ self._out

    def decode(self, hidden: torch.Tensor, cache: Cache) -> torch.Tensor:
        import torch.nn.functional as F  # noqa: N812

        query, key, value = self._project(hidden)
        keys, values = cache
        keys[:, :, -1] = key
        values[:, :, -1] = value
        grouped = query.reshape(query.shape[0], self._shape.kv_heads, -1, self._shape.head_dim)
        return F.scaled_dot_product_attention(grouped, keys, values).flatten(1) @ self._out

    def cache(self, batch: int, context_tokens: int) -> Cache:
        shape = self._shape
        return (
            self._random(batch, shape.kv_heads, context_tokens, shape.head_dim),
            self._random(batch, shape.kv_heads, context_tokens, shape.v_head_dim),
        )


class _LatentAttention:
    """MLA: prefill unfolds keys and values from the latent; decode folds the up-projections into query and output."""

    def __init__(self, shape: LayerShape, latent: LatentAttention, random: Random) -> None:
        self._heads, self._latent, self._random = shape.heads, latent, random
        query_width = shape.heads * (latent.nope_dim + latent.rope_dim)
        self._scale = (latent.nope_dim + latent.rope_dim) ** -0.5
        self._query_down = None if latent.q_rank is None else random(shape.hidden_size, latent.q_rank)
        self._query_norm = None if latent.q_rank is None else random(latent.q_rank)
        self._query_up = random(latent.q_rank or shape.hidden_size, query_width)
        self._kv_down = random(shape.hidden_size, latent.kv_rank + latent.rope_dim)
        self._kv_norm = random(latent.kv_rank)
        self._kv_up = random(latent.kv_rank, shape.heads, latent.nope_dim + latent.v_dim)
        self._out = random(shape.heads * latent.v_dim, shape.hidden_size)

    def _query(self, hidden: torch.Tensor) -> torch.Tensor:
        if self._query_down is not None and self._query_norm is not None:
            hidden = _norm(hidden @ self._query_down, self._query_norm)
        return _by_head(hidden @ self._query_up, self._heads)

    def _compress(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        latent, rope = _split(hidden @ self._kv_down, [self._latent.kv_rank, self._latent.rope_dim])
        return _norm(latent, self._kv_norm), rope

    def prefill(self, hidden: torch.Tensor) -> torch.Tensor:
        import torch

        latent, rope = self._compress(hidden)
        unfolded = _by_head(latent @ self._kv_up.flatten(1), self._heads)
        nope, value = _split(unfolded, [self._latent.nope_dim, self._latent.v_dim])
        key = torch.cat([nope, rope[:, None].expand(-1, self._heads, -1)], dim=-1)
        return _causal(self._query(hidden), key, value) @ self._out

    def decode(self, hidden: torch.Tensor, cache: Cache) -> torch.Tensor:
        import torch
        import torch.nn.functional as F  # noqa: N812

        (stored,) = cache
        stored[:, 0, -1] = torch.cat(self._compress(hidden), dim=-1)
        key_up, value_up = _split(self._kv_up, [self._latent.nope_dim, self._latent.v_dim])
        nope, rope = _split(self._query(hidden), [self._latent.nope_dim, self._latent.rope_dim])
        query = torch.cat([torch.einsum("bhn,rhn->bhr", nope, key_up), rope], dim=-1)
        values = stored[..., : self._latent.kv_rank]
        mixed = F.scaled_dot_product_attention(query[:, None], stored, values, scale=self._scale)
        return torch.einsum("bhr,rhv->bhv", mixed[:, 0], value_up).flatten(1) @ self._out

    def cache(self, batch: int, context_tokens: int) -> Cache:
        return (self._random(batch, 1, context_tokens, self._latent.kv_rank + self._latent.rope_dim),)


def _causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Attention of one prompt from (tokens, heads, width) to (tokens, heads · value width).

    KV heads are repeated and narrower values padded, since not every fused kernel of torch takes them as they are, and
    unfused a prompt of 8k tokens would need its whole score matrix. The copies cost about 1 % of a prefill.
    """
    import torch.nn.functional as F  # noqa: N812

    width = value.shape[-1]
    sharing = query.shape[1] // key.shape[1]
    padded = F.pad(value, (0, query.shape[-1] - width)) if width < query.shape[-1] else value
    parts = (query, key.repeat_interleave(sharing, dim=1), padded.repeat_interleave(sharing, dim=1))
    queries, keys, values = (part.transpose(0, 1).unsqueeze(0) for part in parts)
    mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    return mixed[0, ..., :width].transpose(0, 1).flatten(1)


def _split(wide: torch.Tensor, widths: list[int]) -> tuple[torch.Tensor, ...]:
    import torch

    parts: tuple[torch.Tensor, ...] = torch.split(wide, widths, dim=-1)
    return parts


def _by_head(wide: torch.Tensor, heads: int) -> torch.Tensor:
    """(tokens, heads · width) as (tokens, heads, width)."""
    return wide.reshape(wide.shape[0], heads, -1)


def _norm(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as F  # noqa: N812

    return F.rms_norm(hidden, weight.shape, weight)


def random_source(shape: LayerShape, kind: str) -> Random:
    """Random tensors in the layer's dtype, small enough to keep every sum finite."""
    import torch

    dtype = getattr(torch, TORCH_DTYPES[shape.dtype])
    scale = shape.hidden_size**-0.5

    def random(*sizes: int) -> torch.Tensor:
        return torch.empty(*sizes, dtype=dtype, device=kind).normal_(std=scale)

    return random
