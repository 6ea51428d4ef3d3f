"""Words of a log as small numbers, made of their hashes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calc.lengths import IntArray


def dense_codes(hashes: NDArray[np.uint64], present: NDArray[np.bool_] | None = None) -> IntArray:
    """0 … k - 1 for equal hashes, -1 where ``present`` is false; without it all are.

    The place is packed below the hash and both are sorted as one number, several times faster than sorting pairs. The
    hash loses as many bits as n has: of a million words among five million requests less than one pair is taken as one.
    """
    if present is None:
        return _codes(hashes)
    codes = np.full(len(hashes), -1, dtype=np.int64)
    codes[present] = _codes(hashes[present])
    return codes


def _codes(hashes: NDArray[np.uint64]) -> IntArray:
    bits = max(1, len(hashes).bit_length())
    low = np.uint64((1 << bits) - 1)
    packed = np.sort((hashes & ~low) | np.arange(len(hashes), dtype=np.uint64))
    place = (packed & low).view(np.int64)
    packed >>= np.uint64(bits)
    codes = np.empty(len(hashes), dtype=np.int64)
    codes[place] = np.cumsum(np.concatenate([[False], packed[1:] != packed[:-1]]))
    return codes
