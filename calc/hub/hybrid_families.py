"""The table of hybrid families: recurrent layers in place of attention, or beside it. A config's own fields win.

Layer patterns and states follow each family's model code in vLLM 0.32.
"""

from __future__ import annotations

from calc.cache.recurrent import StateKind
from calc.hub.families import Family, family_row

_QWEN = {"qk_norm": "head", "output_gate": True, "hybrid": "layer-types", "state": StateKind.GATED_DELTA_NET}

HYBRIDS: tuple[Family, ...] = (
    family_row("Qwen3-Next", "Qwen3NextForCausalLM", "qwen3_next", experts="qwen2", **_QWEN),
    family_row(
        "Qwen3.5",
        "Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration",
        "qwen3_5 qwen3_5_text",
        state_dtype_field="mamba_ssm_dtype",
        **_QWEN,
    ),
    family_row(
        "Qwen3.5-MoE",
        "Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration",
        "qwen3_5_moe qwen3_5_moe_text",
        experts="qwen2",
        state_dtype_field="mamba_ssm_dtype",
        **_QWEN,
    ),
    family_row(
        "Kimi Linear",
        "KimiLinearForCausalLM",
        "kimi_linear",
        mla=True,
        experts="deepseek",
        router_bias=True,
        hybrid="kimi",
        state=StateKind.KDA,
    ),
    family_row(
        "Nemotron-H",
        "NemotronHForCausalLM NemotronHPuzzleForCausalLM",
        "nemotron_h",
        gated_mlp=False,
        norms_per_layer=1,
        experts="deepseek",
        router_bias=True,
        hybrid="nemotron",
        state=StateKind.MAMBA2,
        state_dtype_field="mamba_ssm_cache_dtype",
        float32_state=True,
    ),
    family_row("Llama-Nemotron", "DeciLMForCausalLM", "nemotron-nas deci", hybrid="blocks"),
    family_row(
        "Granite 4 hybrid",
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        tied=True,
        experts="granite",
        hybrid="layer-types",
        state=StateKind.MAMBA2,
    ),
    family_row("Bamba", "BambaForCausalLM", "bamba", hybrid="bamba", state=StateKind.MAMBA2),
    family_row("Falcon-H1", "FalconH1ForCausalLM", "falcon_h1", hybrid="parallel", state=StateKind.MAMBA2),
    family_row("Jamba", "JambaForCausalLM", "jamba", experts="jamba", hybrid="jamba", state=StateKind.MAMBA1),
    family_row(
        "Mamba",
        "MambaForCausalLM FalconMambaForCausalLM",
        "mamba falcon_mamba",
        tied=True,
        norms_per_layer=1,
        hybrid="pure",
        state=StateKind.MAMBA1,
    ),
    family_row("Mamba-2", "Mamba2ForCausalLM", "mamba2", norms_per_layer=1, hybrid="pure", state=StateKind.MAMBA2),
    family_row("Zamba2", "Zamba2ForCausalLM", "zamba2", hybrid="zamba", state=StateKind.MAMBA2),
    family_row(
        "MiniMax-Text-01",
        "MiniMaxText01ForCausalLM MiniMaxM1ForCausalLM MiniMaxForCausalLM",
        "minimax_text_01 minimax_m1 minimax",
        experts="plain",
        hybrid="minimax",
        state=StateKind.LIGHTNING,
    ),
    family_row(
        "Ring linear",
        "BailingMoeV2_5ForCausalLM",
        "bailing_hybrid bailing_moe_linear",
        mla=True,
        experts="deepseek",
        router_bias=True,
        hybrid="grouped",
        state=StateKind.LIGHTNING,
    ),
    family_row("LFM2", "Lfm2ForCausalLM", "lfm2", tied=True, qk_norm="head", hybrid="lfm2", state=StateKind.SHORT_CONV),
    family_row(
        "LFM2-MoE",
        "Lfm2MoeForCausalLM",
        "lfm2_moe",
        tied=True,
        qk_norm="head",
        experts="lfm2",
        router_bias=True,
        hybrid="lfm2",
        state=StateKind.SHORT_CONV,
    ),
    family_row(
        "OLMo hybrid",
        "OlmoHybridForCausalLM",
        "olmo_hybrid",
        qk_norm="full",
        hybrid="layer-types",
        state=StateKind.GATED_DELTA_NET,
    ),
)
