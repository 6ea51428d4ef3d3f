"""State of fixed size that recurrent layers keep for a sequence, in place of a cache that grows with its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StateKind(StrEnum):
    """What computes the state: decides its shape and how many copies an engine keeps."""

    MAMBA1 = "mamba-1"
    MAMBA2 = "mamba-2"
    GATED_DELTA_NET = "gated-delta-net"
    KDA = "kimi-delta-attention"
    LIGHTNING = "lightning-attention"
    SHORT_CONV = "short-convolution"


@dataclass(frozen=True, kw_only=True)
class RecurrentState:
    """State of one layer and one sequence: the last inputs of a short convolution, and a matrix that is updated.

    Channels and matrix are divided over TP ranks. Where TP does not divide the groups of Mamba-2, every rank keeps one.
    Source: vLLM ``mamba_utils.py``.
    """

    kind: StateKind
    conv_channels: int
    """Over all ranks, without the groups below; 0 = no convolution."""
    conv_positions: int
    """Earlier inputs the convolution looks back on: its kernel less one."""
    conv_bytes_per_element: float
    matrix_elements: int
    """Over all ranks; 0 = no matrix (short convolutions)."""
    matrix_bytes_per_element: float
    heads: int = 1
    """Heads (channels for Mamba-1 and convolutions) that TP must divide."""
    groups: int = 0
    """Groups of Mamba-2 that share their B and C."""
    group_channels: int = 0
    """Convolution channels of one group: twice the state size."""

    def conv_bytes(self, tp: int, spec_tokens: int = 0) -> int:
        """Of the convolution on one GPU; each speculated token lengthens it by one position, but for Mamba-1."""
        groups = self.groups if self.groups % tp == 0 else tp
        channels = (self.conv_channels + groups * self.group_channels) // tp
        longer = 0 if self.kind in (StateKind.MAMBA1, StateKind.SHORT_CONV) else spec_tokens
        return int(channels * (self.conv_positions + longer) * self.conv_bytes_per_element)

    def matrix_bytes(self, tp: int) -> int:
        """Of the updated matrix on one GPU."""
        return int(self.matrix_elements // tp * self.matrix_bytes_per_element)

    def bytes_per_gpu(self, tp: int, spec_tokens: int = 0) -> int:
        """One state of one layer on one GPU: gated DeltaNet of Qwen3.5-27B at TP 2: 0.78 MiB."""
        return self.conv_bytes(tp, spec_tokens) + self.matrix_bytes(tp)
