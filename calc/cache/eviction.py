"""Keeping only part of a sequence's cache: what each budget leaves, and how many sequences it would make room for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from calc.errors import InputError
from calc.messages import msg
from calc.room.capacity import Room

REPORTED_SMALLER = (2.0, 5.0)
"""How much smaller the cache is reported to become: H2O keeps a fifth, Scissorhands up to a fifth without loss (both
NeurIPS 2023; OPT, LLaMA and GPT-NeoX, offline generation)."""


class Policy(StrEnum):
    """Which tokens stay."""

    WINDOW = "window"
    """The latest W."""
    SCORE = "score"
    """A share of all, those that attention looked at most (H2O, Scissorhands)."""
    LAYERS = "layers"
    """A budget of its own per layer: some keep everything, the others the share above."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """The user's own budgets."""

    window_tokens: int
    kept_share: float
    """Of tokens, for SCORE and for the lean layers of LAYERS (0-1)."""
    full_layers_share: float
    """Of layers that keep everything, for LAYERS (0-1)."""

    def __post_init__(self) -> None:
        for share in (self.kept_share, self.full_layers_share):
            if not 0 <= share <= 1:
                raise InputError(msg("a share must be between 0 and 1, got {value}: 0.2 is one in five.", value=share))
        if self.window_tokens < 1:
            raise InputError(
                msg("a window must be at least 1 token, got {value}: correct it.", value=self.window_tokens)
            )


@dataclass(frozen=True, kw_only=True)
class Evicted:
    """One policy at one length; bytes on each GPU, sequences of one replica."""

    policy: Policy
    kept_tokens: int
    """Per sequence, in the layers that evict."""
    kv_bytes: float
    full_kv_bytes: float
    sequences: float
    full_sequences: float

    @property
    def smaller(self) -> float:
        """How many times smaller the cache of a sequence becomes."""
        return self.full_kv_bytes / self.kv_bytes


def evict(room: Room, length_tokens: int, budgets: Budgets) -> tuple[Evicted, ...]:
    """Every policy at ``length_tokens``. Windows and states that the model has anyway do not shrink a second time."""
    scored = max(1, math.ceil(budgets.kept_share * length_tokens))
    kept = {
        Policy.WINDOW: (min(length_tokens, budgets.window_tokens), 0.0),
        Policy.SCORE: (scored, 0.0),
        Policy.LAYERS: (scored, budgets.full_layers_share),
    }
    return tuple(_evicted(room, length_tokens, policy, tokens, full) for policy, (tokens, full) in kept.items())


def _evicted(room: Room, length_tokens: int, policy: Policy, kept_tokens: int, full_layers_share: float) -> Evicted:
    whole = room.blocks(length_tokens)
    need = full_layers_share * whole + (1 - full_layers_share) * room.blocks_keeping(kept_tokens, length_tokens)
    held = room.sequences(length_tokens)
    return Evicted(
        policy=policy,
        kept_tokens=kept_tokens,
        kv_bytes=room.bytes_of(need),
        full_kv_bytes=room.bytes_of(whole),
        sequences=held * whole / need,
        full_sequences=held,
    )
