"""GPU memory: four zones per GPU, the KV pool, and what fits in it as the engine counts it."""

from __future__ import annotations

from dataclasses import dataclass

from calc.messages import Message


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """Per GPU, for the rank with the least room. ``over_bytes`` > 0 says by how much it does not fit."""

    total_bytes: int
    """The GPU's memory as the driver shows it."""
    budget_bytes: int
    """What the engine may use (memory fraction applied)."""
    weights_bytes: int
    activation_bytes: int
    non_torch_bytes: int
    """CUDA context, NCCL, communication buffers."""
    graph_bytes: int
    graphs_in_budget: bool
    kv_pool_bytes: int
    """0 when nothing is left; see ``over_bytes``."""
    kv_pool_band_bytes: tuple[int, int]
    """80 % band."""
    margin_bytes: int
    """Left outside the budget; graphs captured outside the budget are taken off."""
    over_bytes: int
    """How far weights + runtime exceed the budget, or one sequence of max length exceeds the pool; 0 = fits."""
    fits: bool
    kv_bytes_per_token: int
    """Per GPU."""
    kv_dtype: str
    block_size_tokens: int
    num_blocks: int
    kv_tokens: int
    """One replica, as the engine version logs it."""
    max_concurrency: float
    """Sequences of max model length one replica holds."""
    max_model_len_tokens: int
    kv_per_request_bytes: int
    """Per GPU, one request of mean prompt + output length."""
    peak_concurrency: float
    """Requests in flight on one replica at the planned load."""
    kv_demand_bytes: int
    """Per GPU, at ``peak_concurrency`` requests (half the output written on average)."""
    weights_declared: bool
    notes: tuple[Message, ...] = ()

    @property
    def runtime_bytes(self) -> int:
        """Activations, non-torch and graphs: the runtime zone."""
        return self.activation_bytes + self.non_torch_bytes + self.graph_bytes
