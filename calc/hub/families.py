"""The table of known model families: how each one builds a layer. A config's own fields win over these defaults.

Each row was checked against a published parameter count (``tests/golden/published_parameters.csv``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calc.cache.recurrent import StateKind


@dataclass(frozen=True, kw_only=True)
class Family:
    """How a family builds its layers; a config's own fields win over these defaults."""

    name: str
    architectures: tuple[str, ...]
    """Class names in ``architectures``."""
    types: tuple[str, ...]
    """Values of ``model_type``."""
    mla: bool = False
    gated_mlp: bool = True
    """Gate, up and down matrices; else up and down."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: str = ""
    """``head``: one norm of head size for Q and one for K; ``full``: over all heads; "" none."""
    norms_per_layer: int = 2
    norm_has_bias: bool = False
    head_bias: bool = False
    """Bias on the output head (Phi-2)."""
    tied: bool = False
    """Default of ``tie_word_embeddings`` where the config is silent."""
    positions_default: int | None = None
    """Longest context where the config gives none (transformers class default)."""
    mlp_times_hidden: int = 0
    """Width of the MLP where the config gives none: hidden times this."""
    learned_positions: int | None = None
    """Learned position table of (positions + this) rows; ``None`` = rotary."""
    window: str = "all"
    """Which layers a ``sliding_window`` applies to by default: all, every-nth-full, chunked or qwen."""
    window_extra: int = 0
    """Tokens the window holds beyond the config's number: Cohere counts the earlier ones only."""
    full_every: int = 0
    """With every-nth-full or chunked: the n."""
    experts: str = ""
    """How experts are described: plain, qwen2, qwen3, deepseek, gpt-oss, llama4, granite, jamba, lfm2 or "" (dense)."""
    experts_beside_mlp: bool = False
    """Experts work beside a dense MLP in the same layer (Gemma 4)."""
    local_rope: bool = False
    """Local layers have a rotary table of their own, unscaled."""
    local_widths: str = ""
    """Where local layers have widths of their own: gemma4 or mimo."""
    router_bias: bool = False
    """One correction per expert beside the router's matrix."""
    compressed: bool = False
    """Layers keep several caches, keys of many tokens compressed into one (DeepSeek-V4)."""
    hybrid: str = ""
    """How the config tells recurrent layers from attention: a style of :func:`calc.hub.layer_plan.plan_layers`."""
    state: StateKind | None = None
    """What a recurrent layer keeps; ``None`` = no such layers."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Fields the family names in its own way → the usual name; ``a.b`` = field b of the object a."""
    state_dtype_field: str = ""
    """Where the config names the dtype of the state's matrix, in families whose engines ask there."""
    float32_state: bool = False
    """The matrix of the state is FP32 where the config is silent."""
    output_gate: bool = False
    """Queries carry a gate of their own width for the attention's output (``attn_output_gate`` of Qwen)."""


def family_row(name: str, architectures: str, types: str, **rules: Any) -> Family:
    """One row; class names and types as words."""
    return Family(name=name, architectures=tuple(architectures.split()), types=tuple(types.split()), **rules)


ALL_BIASES = {"qkv_bias": True, "output_bias": True, "mlp_bias": True, "norm_has_bias": True}
LAYER_NORM_MLP = {"gated_mlp": False, **ALL_BIASES}

FAMILIES: tuple[Family, ...] = (
    family_row("Llama", "LlamaForCausalLM LLaMAForCausalLM", "llama"),
    family_row(
        "Mistral",
        "MistralForCausalLM Ministral3ForCausalLM Mistral3ForConditionalGeneration",
        "mistral ministral3 mistral3",
    ),
    family_row("Granite", "GraniteForCausalLM", "granite", tied=True),
    family_row("InternLM2", "InternLM2ForCausalLM", "internlm2"),
    family_row("InternLM3", "InternLM3ForCausalLM", "internlm3"),
    family_row("Baichuan", "BaichuanForCausalLM BaiChuanForCausalLM", "baichuan"),
    family_row("EXAONE", "ExaoneForCausalLM", "exaone"),
    family_row("EXAONE 4", "Exaone4ForCausalLM", "exaone4", qk_norm="head", window="every-nth-full", full_every=4),
    family_row("Seed-OSS", "SeedOssForCausalLM", "seed_oss", qkv_bias=True),
    family_row("SmolLM3", "SmolLM3ForCausalLM", "smollm3", tied=True, window="qwen"),
    family_row("MiMo", "MiMoForCausalLM", "mimo", qkv_bias=True, window="qwen"),
    family_row("GLM-4", "GlmForCausalLM", "glm", qkv_bias=True),
    family_row("GLM-4 (0414)", "Glm4ForCausalLM", "glm4 glm4v_text", norms_per_layer=4),
    family_row("OLMo 2", "Olmo2ForCausalLM", "olmo2", qk_norm="full"),
    family_row("OLMo 3", "Olmo3ForCausalLM", "olmo3", qk_norm="full", window="every-nth-full", full_every=4),
    family_row("Hunyuan", "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", qk_norm="head"),
    family_row("Hunyuan MoE", "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", qk_norm="head", experts="deepseek"),
    family_row("Command R", "CohereForCausalLM", "cohere", tied=True, norms_per_layer=1),
    family_row(
        "Command R7B",
        "Cohere2ForCausalLM",
        "cohere2",
        window_extra=1,
        tied=True,
        norms_per_layer=1,
        window="every-nth-full",
        full_every=4,
    ),
    family_row("StableLM", "StableLmForCausalLM", "stablelm", norm_has_bias=True),
    family_row(
        "Qwen2",
        "Qwen2ForCausalLM Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration",
        "qwen2 qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text",
        qkv_bias=True,
        window="qwen",
    ),
    family_row(
        "Qwen3",
        "Qwen3ForCausalLM Qwen3VLForConditionalGeneration",
        "qwen3 qwen3_vl qwen3_vl_text",
        qk_norm="head",
        window="qwen",
    ),
    family_row("Qwen2-MoE", "Qwen2MoeForCausalLM", "qwen2_moe", qkv_bias=True, window="qwen", experts="qwen2"),
    family_row(
        "Qwen3-MoE",
        "Qwen3MoeForCausalLM Qwen3VLMoeForConditionalGeneration",
        "qwen3_moe qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe_text",
        qk_norm="head",
        window="qwen",
        experts="qwen3",
    ),
    family_row("Mixtral", "MixtralForCausalLM", "mixtral", experts="plain"),
    family_row("OLMoE", "OlmoeForCausalLM", "olmoe", qk_norm="full", experts="plain"),
    family_row(
        "Granite MoE",
        "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
        "granitemoe granitemoeshared",
        tied=True,
        experts="granite",
    ),
    family_row("MiniMax-M2", "MiniMaxM2ForCausalLM", "minimax_m2", qk_norm="full", experts="plain", router_bias=True),
    family_row("Gemma", "GemmaForCausalLM", "gemma", tied=True),
    family_row(
        "Gemma 2", "Gemma2ForCausalLM", "gemma2", tied=True, norms_per_layer=4, window="every-nth-full", full_every=2
    ),
    family_row(
        "Gemma 3",
        "Gemma3ForCausalLM Gemma3ForConditionalGeneration",
        "gemma3 gemma3_text",
        tied=True,
        norms_per_layer=4,
        qk_norm="head",
        window="every-nth-full",
        full_every=6,
        local_rope=True,
    ),
    family_row(
        "Gemma 4",
        "Gemma4ForCausalLM Gemma4ForConditionalGeneration",
        "gemma4 gemma4_text",
        tied=True,
        norms_per_layer=4,
        qk_norm="head",
        window="every-nth-full",
        full_every=6,
        experts="plain",
        experts_beside_mlp=True,
        local_widths="gemma4",
        local_rope=True,
    ),
    family_row(
        "Gemma 3n",
        "Gemma3nForCausalLM Gemma3nForConditionalGeneration",
        "gemma3n gemma3n_text",
        tied=True,
        norms_per_layer=4,
        qk_norm="head",
        window="every-nth-full",
        full_every=5,
        local_rope=True,
    ),
    family_row("Phi", "PhiForCausalLM", "phi", norms_per_layer=1, head_bias=True, **LAYER_NORM_MLP),
    family_row("Phi-3", "Phi3ForCausalLM Phi3VForCausalLM Phi4MMForCausalLM", "phi3 phi3_v phi4mm"),
    family_row(
        "Phi-3.5-MoE",
        "PhiMoEForCausalLM PhimoeForCausalLM",
        "phimoe",
        qkv_bias=True,
        output_bias=True,
        norm_has_bias=True,
        head_bias=True,
        experts="plain",
    ),
    family_row("StarCoder2", "Starcoder2ForCausalLM", "starcoder2", tied=True, **LAYER_NORM_MLP),
    family_row("GPT-NeoX", "GPTNeoXForCausalLM", "gpt_neox", **LAYER_NORM_MLP),
    family_row("OPT", "OPTForCausalLM", "opt", tied=True, learned_positions=2, **LAYER_NORM_MLP),
    family_row(
        "Falcon",
        "FalconForCausalLM RWForCausalLM",
        "falcon",
        gated_mlp=False,
        tied=True,
        norms_per_layer=1,
        norm_has_bias=True,
        mlp_times_hidden=4,
        positions_default=2048,
    ),
    family_row(
        "gpt-oss",
        "GptOssForCausalLM",
        "gpt_oss",
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        window="every-nth-full",
        full_every=2,
        experts="gpt-oss",
        router_bias=True,
    ),
    family_row(
        "Llama 4",
        "Llama4ForCausalLM Llama4ForConditionalGeneration",
        "llama4 llama4_text",
        window="chunked",
        full_every=4,
        experts="llama4",
    ),
    family_row(
        "GLM-4.5", "Glm4MoeForCausalLM", "glm4_moe glm4v_moe_text", qkv_bias=True, experts="deepseek", router_bias=True
    ),
    family_row(
        "MiMo-V2",
        "MiMoV2FlashForCausalLM",
        "mimo_v2_flash",
        experts="deepseek",
        router_bias=True,
        window="every-nth-full",
        full_every=6,
        local_widths="mimo",
    ),
    family_row("dots.llm1", "Dots1ForCausalLM", "dots1", qk_norm="head", experts="deepseek", router_bias=True),
    family_row("ERNIE 4.5", "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", tied=True, experts="deepseek", router_bias=True),
    family_row(
        "DeepSeek",
        "DeepseekV2ForCausalLM DeepseekV3ForCausalLM DeepseekV32ForCausalLM GlmMoeDsaForCausalLM "
        "KimiK25ForConditionalGeneration Glm4MoeLiteForCausalLM",
        "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa glm4_moe_lite",
        mla=True,
        experts="deepseek",
        router_bias=True,
    ),
    family_row(
        "DeepSeek-V4",
        "DeepseekV4ForCausalLM",
        "deepseek_v4",
        experts="deepseek",
        router_bias=True,
        compressed=True,
    ),
)
