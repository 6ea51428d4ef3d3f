"""Least-recently-used caches of every size at once: how deep in the stack of recent blocks each prompt block is found.

A cache of C blocks that evicts the least recently used one holds exactly the C blocks used last (Mattson et al., 1970),
so a block whose depth in that stack is d is found by every cache of at least d blocks. A prefix is found up to its
first missing block: block j of a prompt needs the largest depth of blocks 1 … j.

The stack is a row of touches in order of time, one bit each: set where it is the last touch of its block. The depth of
a block is the number of set bits from its own on, counted 64 at a time by a Fenwick tree over words. Blocks used one
after the other before and again now lie side by side, so only the first of such a run is counted.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit

Array: TypeAlias = np.ndarray[Any, Any]

_ONE = np.uint64(1)
_WORD_BITS = 64
_BIT = np.uint64(63)
_PAIRS, _FOURS, _EIGHTS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)


@njit(cache=True, nogil=True)
def _set_bits(word: np.uint64) -> np.int64:
    """Set bits of a word, summed in pairs, fours, eights and over its bytes."""
    word = word - ((word >> _ONE) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _EIGHTS
    return np.int64((word * _BYTES) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _add(tree: Array, word: int, change: int) -> None:
    place = word + 1
    while place < len(tree):
        tree[place] += change
        place += place & -place


@njit(cache=True, nogil=True)
def _before(tree: Array, bits: Array, touch: int) -> int:
    """Set bits before a touch."""
    word = touch >> 6
    count = int(_set_bits(bits[word] & ((_ONE << (np.uint64(touch) & _BIT)) - _ONE)))
    while word > 0:
        count += tree[word]
        word -= word & -word
    return count


@njit(cache=True, nogil=True)
def _is_set(bits: Array, touch: int) -> bool:
    return bool((bits[touch >> 6] >> (np.uint64(touch) & _BIT)) & _ONE)


@njit(cache=True, nogil=True)
def _flip(bits: Array, touch: int) -> None:
    bits[touch >> 6] ^= _ONE << (np.uint64(touch) & _BIT)


@njit(cache=True, nogil=True)
def touch_all(ids: Array, last: Array, bits: Array, tree: Array, begin: int) -> int:
    """Use the blocks of one request, its end first, so that its root is the last to be evicted; new blocks."""
    new, old_word, old_change, new_word, new_change = 0, -1, 0, begin >> 6, 0
    touch = begin
    for place in range(len(ids) - 1, -1, -1):
        before = last[ids[place]]
        if before < 0:
            new += 1
        else:
            _flip(bits, before)
            if before >> 6 != old_word:
                if old_change:
                    _add(tree, old_word, old_change)
                old_word, old_change = before >> 6, 0
            old_change -= 1
        if touch >> 6 != new_word:
            _add(tree, new_word, new_change)
            new_word, new_change = touch >> 6, 0
        _flip(bits, touch)
        new_change += 1
        last[ids[place]] = touch
        touch += 1
    if old_change:
        _add(tree, old_word, old_change)
    if new_change:
        _add(tree, new_word, new_change)
    return new


@njit(cache=True, nogil=True)
def depths_of(ids: Array, looked_up: int, last: Array, bits: Array, tree: Array, held: int, into: Array) -> int:
    """The cache size that finds each block of one prompt's prefix; how many blocks a cache without end would find."""
    needed, depth, before = 0, 0, -1
    for place in range(looked_up):
        touch = last[ids[place]]
        if touch < 0:
            return place
        if touch == before - 1:
            depth += 1
        else:
            depth = held - _before(tree, bits, touch)
        before = touch
        needed = max(needed, depth)
        into[place] = needed
    return looked_up


@njit(cache=True, nogil=True)
def longest(offsets: Array) -> int:
    """Blocks of the longest request."""
    most = 0
    for request in range(len(offsets) - 1):
        most = max(most, offsets[request + 1] - offsets[request])
    return most


@njit(cache=True, nogil=True)
def empty_stack(touches: int, unique: int) -> tuple[Array, Array, Array]:
    """Nothing used yet: the last touch of each block, the bits of all touches, the tree over their words."""
    words = touches // _WORD_BITS + 1
    return np.full(unique, -1, np.int64), np.zeros(words, np.uint64), np.zeros(words + 1, np.int64)


@njit(cache=True, nogil=True)
def histogram(
    offsets: Array, ids: Array, looked_up: Array, prompt_tokens: Array, block_tokens: int, unique: int
) -> tuple[Array, Array]:
    """Tokens and blocks of all prompts by the cache size (0 … unique blocks) that finds them."""
    tokens, blocks = np.zeros(unique + 1, np.int64), np.zeros(unique + 1, np.int64)
    last, bits, tree = empty_stack(len(ids), unique)
    needed = np.zeros(longest(offsets), np.int64)
    held = 0
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request + 1]]
        found = depths_of(own, looked_up[request], last, bits, tree, held, needed)
        left = prompt_tokens[request]
        for place in range(found):
            blocks[needed[place]] += 1
            tokens[needed[place]] += min(left, block_tokens)
            left = max(0, left - block_tokens)
        held += touch_all(own, last, bits, tree, offsets[request])
    return tokens, blocks


@njit(cache=True, nogil=True)
def histogram_by_age(
    offsets: Array,
    ids: Array,
    looked_up: Array,
    prompt_tokens: Array,
    block_tokens: int,
    unique: int,
    arrival_s: Array,
    limits_s: Array,
) -> tuple[Array, Array]:
    """The same for blocks unused for longer than a limit being dropped; one row per rising limit, one for none.

    What was dropped lies below all that was not, so the limit only cuts the stack: depths stay what they are.
    """
    rows = len(limits_s) + 1
    tokens, blocks = np.zeros((rows, unique + 1), np.int64), np.zeros((rows, unique + 1), np.int64)
    last, bits, tree = empty_stack(len(ids), unique)
    used_s = np.zeros(unique, np.float64)
    needed = np.zeros(longest(offsets), np.int64)
    held = 0
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request + 1]]
        found = depths_of(own, looked_up[request], last, bits, tree, held, needed)
        left, row, now_s = prompt_tokens[request], 0, arrival_s[request]
        for place in range(found):
            while row < rows - 1 and now_s - used_s[own[place]] > limits_s[row]:
                row += 1
            blocks[row, needed[place]] += 1
            tokens[row, needed[place]] += min(left, block_tokens)
            left = max(0, left - block_tokens)
        held += touch_all(own, last, bits, tree, offsets[request])
        used_s[own] = now_s
    return tokens, blocks


@njit(cache=True, nogil=True)
def found_by_request(offsets: Array, ids: Array, looked_up: Array, unique: int, capacities: Array, every: int) -> Array:
    """Blocks found of every so-many-th prompt in a cache of each capacity: shape (prompts, capacities)."""
    requests = len(offsets) - 1
    result = np.zeros(((requests + every - 1) // every, len(capacities)), np.int64)
    last, bits, tree = empty_stack(len(ids), unique)
    needed = np.zeros(longest(offsets), np.int64)
    held = 0
    for request in range(requests):
        own = ids[offsets[request] : offsets[request + 1]]
        if request % every == 0:
            found = depths_of(own, looked_up[request], last, bits, tree, held, needed)
            result[request // every] = np.searchsorted(needed[:found], capacities, side="right")
        held += touch_all(own, last, bits, tree, offsets[request])
    return result


@njit(cache=True, nogil=True)
def ages_of_found(offsets: Array, ids: Array, looked_up: Array, unique: int, arrival_s: Array) -> Array:
    """Seconds since its last use of each block found in a cache without end."""
    ages_s, count = np.zeros(len(ids), np.float64), 0
    used_s, seen = np.zeros(unique, np.float64), np.zeros(unique, np.bool_)
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request + 1]]
        for place in range(looked_up[request]):
            if not seen[own[place]]:
                break
            ages_s[count] = arrival_s[request] - used_s[own[place]]
            count += 1
        seen[own] = True
        used_s[own] = arrival_s[request]
    return ages_s[:count]


@njit(cache=True, nogil=True)
def _touch_at_depth(tree: Array, bits: Array, held: int, depth: int) -> int:
    """The touch whose block lies at a depth (1 = used last) of a stack that holds at least so many."""
    wanted = held - depth  # older set bits
    word, step = 0, 1
    while step * 2 < len(tree):
        step *= 2
    while step > 0:
        if word + step < len(tree) and tree[word + step] <= wanted:
            word += step
            wanted -= tree[word]
        step //= 2
    touch = word << 6
    while wanted > 0 or not _is_set(bits, touch):
        if _is_set(bits, touch):
            wanted -= 1
        touch += 1
    return touch


@njit(cache=True, nogil=True)
def residence(offsets: Array, ids: Array, unique: int, arrival_s: Array, capacities: Array) -> Array:
    """Seconds since the last use of the block next to be evicted, at each request and capacity; NaN = not full."""
    result = np.full((len(offsets) - 1, len(capacities)), np.nan)
    last, bits, tree = empty_stack(len(ids), unique)
    held = 0
    for request in range(len(offsets) - 1):
        for place in range(len(capacities)):
            if 0 < capacities[place] <= held:
                touch = _touch_at_depth(tree, bits, held, capacities[place])
                used = np.searchsorted(offsets, touch, side="right") - 1
                result[request, place] = arrival_s[request] - arrival_s[used]
        own = ids[offsets[request] : offsets[request + 1]]
        held += touch_all(own, last, bits, tree, offsets[request])
    return result
