"""Why a part of a start-up log differs from its estimate, where settings do not explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from calc.messages import Message, msg
from calc.startup.log import Seen
from calc.units import GIB

WORTH_TELLING_BYTES = GIB // 20
"""From here on a difference is explained: logs round to 0.01 GiB, and ranks differ by a few of these."""
AGREES_SHARE = 0.01


def rank_reasons(seen: Seen[float] | None, text: Callable[[float, float], Message]) -> Iterator[Message]:
    """Said where ranks differ."""
    if seen is not None and seen.differs:
        yield text(seen.low, seen.high)


def most_of_ranks(low: float, high: float) -> Message:
    """Of a part that takes room."""
    return msg("Ranks took {low:.2f} to {high:.2f} GiB: the fullest counts.", low=low / GIB, high=high / GIB)


def least_of_ranks(low: float, high: float) -> Message:
    """Of what is left."""
    return msg("Ranks had {low:.2f} to {high:.2f} GiB left: the least counts.", low=low / GIB, high=high / GIB)


def own_reasons(part: str, estimated: int, logged: int) -> Iterator[Message]:
    """Why a part differs although the settings are the same; bytes."""
    difference = abs(logged - estimated)
    if difference <= max(WORTH_TELLING_BYTES, AGREES_SHARE * estimated):
        yield msg("Agrees.")
    elif part == "weights" and logged > estimated:
        yield msg(
            "The checkpoint holds more than was counted: layers kept in higher precision, padding, or an encoder."
        )
    elif part == "weights":
        yield msg("The checkpoint holds less than was counted: another quantisation, or layers that are shared.")
    elif part == "activation":
        yield msg("The warm-up of this version and its kernels needs another amount than those the estimate was fitted "
                  "on.")  # fmt: skip
    elif part == "non_torch":
        yield msg("Libraries and communication buffers depend on driver, NCCL and the links between the GPUs.")
    elif part == "graphs":
        yield msg("It depends on how many batch sizes are captured.")
