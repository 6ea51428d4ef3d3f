"""What a start of an engine takes beside weights and KV pool: the constants of its warm-up, a dated row each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RuntimeConstants:
    """Rows live in ``data/catalogue/runtime.toml``; what was fitted says on which starts in ``source``."""

    id: str
    fitted: bool
    """Fitted on many starts (of Hopper class); otherwise taken from a few logs or from another engine."""
    logit_bytes: float
    """Per logit of the warm-up's sampler at 16 bit: what sorting, softmax and noise keep alive at once."""
    sampler_rows: int
    """FP32 rows as wide as the vocabulary that the sampler's kernel keeps whatever the sequences."""
    activation_base_bytes: int
    """What every warm-up needs whatever the model: positions, slots, sampling state."""
    mlp_hidden_copies: float
    """Hidden states alive while a layer's MLP runs."""
    sampler_hidden_copies: float
    """Hidden states alive while the sampler runs."""
    encoder_bytes: int
    """Profiling run of a vision encoder beside the language model."""
    warm_seqs_limit: int
    """Most sequences the sampler is warmed up with; 0 = all the scheduler may run."""
    context_bytes: int
    """CUDA context that exists before the engine measures; outside its budget."""
    context_nvls_bytes: int
    """The same with the communicators of several GPUs of Hopper class and later, by TP or pipeline stages."""
    non_torch_bytes: int
    """CUDA libraries on one GPU that is neither split nor a stage."""
    non_torch_large_bytes: int
    """The same on Hopper class and later."""
    non_torch_pipeline_bytes: int
    """With pipeline stages the libraries are loaded before the measurement begins."""
    non_torch_pair_bytes: int
    """Collective buffers at TP 2, GPUs without NVLink SHARP."""
    non_torch_pair_nvls_bytes: int
    """Collective buffers at TP 2 with NVLink SHARP: Hopper class and later."""
    non_torch_per_rank_bytes: int
    """For each rank beyond two."""
    graph_base_bytes: int
    """Captured CUDA graphs of a stage, whatever its depth."""
    graph_per_layer_bytes: int
    source: str
    checked_on: str
