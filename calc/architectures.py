"""Which model families are known, and how each one builds a layer. What is not listed is refused, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from calc.config import Fields
from calc.errors import UnknownArchitecture
from calc.messages import msg


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
    kv_heads_default: int | None = None
    """KV heads where the config is silent; ``None`` = one per attention head."""
    window: str = "all"
    """Which layers a ``sliding_window`` applies to by default: all, alternate, every-nth-full, chunked or qwen."""
    full_every: int = 0
    """With every-nth-full or chunked: the n."""
    experts: str = ""
    """How experts are described: mixtral, qwen2, qwen3, deepseek, gpt-oss, llama4 or "" (dense)."""


_MIXTRAL_LIKE = "mixtral"
FAMILIES: tuple[Family, ...] = (
    Family(name="Llama", architectures=("LlamaForCausalLM", "LLaMAForCausalLM"), types=("llama",)),
    Family(
        name="Mistral",
        architectures=("MistralForCausalLM", "Mistral3ForConditionalGeneration"),
        types=("mistral", "mistral3"),
    ),
    Family(name="Granite", architectures=("GraniteForCausalLM",), types=("granite",), tied=True),
    Family(
        name="Qwen2",
        architectures=("Qwen2ForCausalLM", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"),
        types=("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"),
        qkv_bias=True,
        window="qwen",
    ),
    Family(
        name="Qwen3",
        architectures=("Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration"),
        types=("qwen3", "qwen3_vl", "qwen3_vl_text"),
        qk_norm="head",
        window="qwen",
    ),
    Family(
        name="Qwen2-MoE",
        architectures=("Qwen2MoeForCausalLM",),
        types=("qwen2_moe",),
        qkv_bias=True,
        window="qwen",
        experts="qwen2",
    ),
    Family(
        name="Qwen3-MoE",
        architectures=("Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"),
        types=("qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text"),
        qk_norm="head",
        window="qwen",
        experts="qwen3",
    ),
    Family(name="Mixtral", architectures=("MixtralForCausalLM",), types=("mixtral",), experts=_MIXTRAL_LIKE),
    Family(
        name="MiniMax-M2",
        architectures=("MiniMaxM2ForCausalLM",),
        types=("minimax_m2",),
        qk_norm="full",
        experts=_MIXTRAL_LIKE,
    ),
    Family(name="Gemma", architectures=("GemmaForCausalLM",), types=("gemma",), tied=True),
    Family(
        name="Gemma 2",
        architectures=("Gemma2ForCausalLM",),
        types=("gemma2",),
        tied=True,
        norms_per_layer=4,
        window="alternate",
    ),
    Family(
        name="Gemma 3",
        architectures=("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"),
        types=("gemma3", "gemma3_text"),
        tied=True,
        norms_per_layer=4,
        qk_norm="head",
        window="every-nth-full",
        full_every=6,
    ),
    Family(
        name="Phi",
        architectures=("PhiForCausalLM",),
        types=("phi",),
        gated_mlp=False,
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        norms_per_layer=1,
        norm_has_bias=True,
        head_bias=True,
    ),
    Family(name="Phi-3", architectures=("Phi3ForCausalLM",), types=("phi3",)),
    Family(
        name="gpt-oss",
        architectures=("GptOssForCausalLM",),
        types=("gpt_oss",),
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        window="alternate",
        experts="gpt-oss",
    ),
    Family(
        name="Llama 4",
        architectures=("Llama4ForCausalLM", "Llama4ForConditionalGeneration"),
        types=("llama4", "llama4_text"),
        window="chunked",
        full_every=4,
        experts="llama4",
    ),
    Family(
        name="GLM-4.5",
        architectures=("Glm4MoeForCausalLM",),
        types=("glm4_moe",),
        qkv_bias=True,
        experts="deepseek",
    ),
    Family(
        name="DeepSeek",
        architectures=(
            "DeepseekV2ForCausalLM",
            "DeepseekV3ForCausalLM",
            "DeepseekV32ForCausalLM",
            "GlmMoeDsaForCausalLM",
            "KimiK25ForConditionalGeneration",
            "Glm4MoeLiteForCausalLM",
        ),
        types=("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "glm_moe_dsa", "glm4_moe_lite"),
        mla=True,
        experts="deepseek",
    ),
)

_FIXED_STATE = msg("a fixed state per request beside the cache")
_COMPRESSED = msg("its compressed cache, which is not a fixed number of bytes per token")
_UNEVEN = msg("layers with different cache sizes")
_SHARED = msg("layers that use the cache of other layers")

REFUSED = MappingProxyType(
    {
        **dict.fromkeys(("mamba", "jamba", "bamba", "zamba", "falcon_h1", "falconh1", "nemotron_h"), _FIXED_STATE),
        **dict.fromkeys(("nemotronh", "granitemoehybrid", "qwen3_next", "qwen3next", "qwen3_5", "rwkv"), _FIXED_STATE),
        **dict.fromkeys(("kimi_linear", "kimilinear", "kimik3", "minimaxm1", "minimax_text"), _FIXED_STATE),
        **dict.fromkeys(("deepseek_v4", "deepseekv4", "minimax_m3", "minimaxm3"), _COMPRESSED),
        **dict.fromkeys(("gemma4", "mimo_v2", "mimov2", "step3", "nemotron-nas", "deci"), _UNEVEN),
        "gemma3n": _SHARED,
    }
)
"""Families met in the wild whose memory rules are not built in, and what is missing. Keys match the start of a type."""

_BY_ARCHITECTURE = {name: family for family in FAMILIES for name in family.architectures}
_BY_TYPE = {name: family for family in FAMILIES for name in family.types}


def _class_name(fields: Fields) -> str:
    names = fields.outer.get("architectures")
    if not isinstance(names, list | tuple) or not names:
        names = fields.inner.get("architectures")
    return str(names[0]) if isinstance(names, list | tuple) and names else ""


def _refuse_known(*labels: str) -> None:
    for label in labels:
        for start, missing in REFUSED.items():
            if label.lower().startswith(start):
                raise UnknownArchitecture(
                    msg(
                        "{family} models are not supported yet: {missing} is not modelled, "
                        "so enter the engine's own logged KV tokens with a similar supported model.",
                        family=label,
                        missing=missing,
                    )
                )


def family_of(fields: Fields) -> Family:
    """The family of a config, by class name first (what engines load by), then by ``model_type``."""
    class_name, model_type = _class_name(fields), fields.text("model_type")
    _refuse_known(class_name, model_type)
    family = _BY_ARCHITECTURE.get(class_name)
    if family is None and (not class_name or not class_name.endswith("ForCausalLM")):
        family = _BY_TYPE.get(model_type)
    if family is None:
        raise UnknownArchitecture(
            msg(
                "the architecture {name} is not known, and its cache is never guessed: "
                "use one of {known}, or add its rules to the table of families.",
                name=class_name or model_type or "(none given)",
                known=", ".join(f.name for f in FAMILIES),
            )
        )
    return family


def architecture_name(fields: Fields) -> str:
    """What the config calls itself: class name, else ``model_type``."""
    return _class_name(fields) or fields.text("model_type")
