"""Requests as the blocks of their prompts: what a prefix cache would see of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.errors import InputError
from calc.lengths import FloatArray, IntArray
from calc.messages import msg

__all__ = ["BlockTrace", "FloatArray", "IntArray", "renumbered"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockTrace:
    """Requests in the order in which they came; n requests, b block ids of all prompts together, u distinct ones.

    An id names a block **and everything before it** in its prompt (a chained hash, as vLLM, SGLang, Mooncake, Bailian
    and Dynamo write it): two prompts that share an id share the whole prefix up to there.
    """

    block_size_tokens: int
    """Tokens of a full block; the last block of a prompt may hold fewer."""
    offsets: IntArray
    """Shape (n + 1), rising from 0 to b: the ids of request i are ``block_ids[offsets[i]:offsets[i + 1]]``."""
    block_ids: IntArray
    """Shape (b), 0 … u − 1, from the root of each prompt to its end."""
    unique_blocks: int
    """u, the number of distinct ids."""
    prompt_tokens: IntArray
    """Shape (n)."""
    output_tokens: IntArray | None = None
    """Shape (n); None = the log does not say."""
    arrival_s: FloatArray | None = None
    """Shape (n), seconds from any zero; None = the log does not say."""
    tenant: IntArray | None = None
    """Shape (n), 0 … k − 1; None = not told apart."""
    tenant_names: tuple[str, ...] = ()
    """Names of the k tenants."""
    session: IntArray | None = None
    """Shape (n), one number per conversation, -1 = of none; None = the log does not say."""
    answer_blocks: IntArray | None = None
    """Shape (n): so many ids at the end of each request are its answer's: cached, not asked for; None = no answers."""
    cached_tokens: IntArray | None = None
    """Shape (n): prompt tokens that the engine itself said it found, -1 = not said; None = the log does not say."""

    def __post_init__(self) -> None:
        if self.block_size_tokens < 1:
            raise InputError(
                msg("the block size must be at least 1 token, got {tokens}.", tokens=self.block_size_tokens)
            )
        requests = len(self.offsets) - 1
        per_request = (
            self.prompt_tokens,
            self.output_tokens,
            self.arrival_s,
            self.tenant,
            self.session,
            self.answer_blocks,
            self.cached_tokens,
        )
        fits = all(values is None or len(values) == requests for values in per_request)
        if not (fits and requests >= 0 and self.offsets[0] == 0 and self.offsets[-1] == len(self.block_ids)):
            raise InputError(msg("a block trace must have one entry per request in each of its columns."))

    @property
    def requests(self) -> int:
        """n."""
        return len(self.offsets) - 1

    @property
    def looked_up(self) -> IntArray:
        """Shape (n): leading blocks of each request that are looked up, those of its prompt."""
        all_blocks = np.diff(self.offsets)
        return all_blocks if self.answer_blocks is None else all_blocks - self.answer_blocks

    @property
    def blocks(self) -> int:
        """b, block ids of all requests together, repeated ones counted each time."""
        return len(self.block_ids)

    @property
    def total_prompt_tokens(self) -> int:
        """Prompt tokens of all requests: what hit rates are shares of."""
        return int(self.prompt_tokens.sum())

    @property
    def unique_tokens(self) -> int:
        """Tokens of the distinct blocks taken as full: a cache of this size never evicts."""
        return self.unique_blocks * self.block_size_tokens


def renumbered(ids: IntArray) -> tuple[IntArray, int]:
    """Ids of any numbers as 0 … u − 1, and u."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)
