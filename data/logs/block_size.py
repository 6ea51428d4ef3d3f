"""How many tokens a block of hashes holds, where the log does not say: from the numbers of both."""

from __future__ import annotations

from collections.abc import Sequence

USUAL_BLOCKS_TOKENS = (16, 512, 64, 32, 128, 256, 1024, 8, 4, 1)
"""Block sizes of known traces and engines, the commonest first: Bailian and Dynamo write 16, Mooncake 512."""


def likely_block_tokens(requests: Sequence[tuple[int, int]]) -> int | None:
    """The usual size with which each prompt has the blocks it needs, else the least that fits, else the nearest one.

    ``requests`` are prompt tokens and blocks of each; without a block there is nothing to tell from.
    """
    with_blocks = [(tokens, count) for tokens, count in requests if count]
    if not with_blocks:
        return None
    least = max(-(-tokens // count) for tokens, count in with_blocks)
    most = min(((tokens - 1) // (count - 1) for tokens, count in with_blocks if count > 1), default=least)
    fitting = [size for size in USUAL_BLOCKS_TOKENS if least <= size <= most]
    if fitting:
        return fitting[0]
    if 1 <= least <= most:
        return least
    mean = sum(tokens for tokens, _ in with_blocks) / sum(count for _, count in with_blocks)
    return min(USUAL_BLOCKS_TOKENS, key=lambda size: abs(size - mean))
