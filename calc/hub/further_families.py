"""The table of further families: older ones with names of their own for the same widths, and young mixtures."""

from __future__ import annotations

from calc.hub.families import LAYER_NORM_MLP, Family, family_row

_GPT_NAMES = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
_GPT = {**_GPT_NAMES, "n_inner": "intermediate_size", "n_positions": "max_position_embeddings"}
_CHATGLM = {
    "num_layers": "num_hidden_layers",
    "kv_channels": "head_dim",
    "multi_query_group_num": "num_key_value_heads",
    "ffn_hidden_size": "intermediate_size",
    "padded_vocab_size": "vocab_size",
    "seq_length": "max_position_embeddings",
}
_MPT = {
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "max_seq_len": "max_position_embeddings",
    "attn_config.kv_n_heads": "num_key_value_heads",
}
_DBRX = {
    **_MPT,
    "ffn_config.ffn_hidden_size": "intermediate_size",
    "ffn_config.moe_num_experts": "num_local_experts",
    "ffn_config.moe_top_k": "num_experts_per_tok",
}
_STEP = {
    "num_attention_groups": "num_key_value_heads",
    "max_seq_len": "max_position_embeddings",
    "moe_top_k": "num_experts_per_tok",
}
_NORM_BIASES = {"norm_has_bias": True}

FURTHER: tuple[Family, ...] = (
    family_row("InternLM", "InternLMForCausalLM", "internlm", qkv_bias=True, output_bias=True),
    family_row("Apertus", "ApertusForCausalLM", "apertus", gated_mlp=False, qk_norm="head"),
    family_row("Arcee", "ArceeForCausalLM", "arcee", gated_mlp=False),
    family_row("Nemotron", "NemotronForCausalLM", "nemotron", gated_mlp=False, **_NORM_BIASES),
    family_row("ERNIE 4.5 dense", "Ernie4_5ForCausalLM", "ernie4_5", tied=True),
    family_row("Solar", "SolarForCausalLM", "solar"),
    family_row("Orion", "OrionForCausalLM", "orion", **_NORM_BIASES),
    family_row("MiniCPM", "MiniCPMForCausalLM", "minicpm", tied=True),
    family_row("MiniCPM-V", "MiniCPMV MiniCPMO", "minicpmv minicpmo", qkv_bias=True),
    family_row("Keye", "KeyeForConditionalGeneration KeyeVL1_5ForConditionalGeneration", "keye", qk_norm="head"),
    family_row("dots.ocr", "DotsOCRForCausalLM", "dots_ocr", qkv_bias=True),
    family_row(
        "ChatGLM",
        "ChatGLMModel ChatGLMForConditionalGeneration GLM4VForCausalLM",
        "chatglm",
        qkv_bias=True,
        aliases=_CHATGLM,
    ),
    family_row(
        "GPT-2",
        "GPT2LMHeadModel",
        "gpt2",
        tied=True,
        learned_positions=0,
        mlp_times_hidden=4,
        aliases=_GPT,
        **LAYER_NORM_MLP,
    ),
    family_row(
        "GPT-BigCode",
        "GPTBigCodeForCausalLM",
        "gpt_bigcode",
        tied=True,
        learned_positions=0,
        mlp_times_hidden=4,
        aliases=_GPT,
        **LAYER_NORM_MLP,
    ),
    family_row(
        "GPT-J",
        "GPTJForCausalLM",
        "gptj",
        gated_mlp=False,
        mlp_bias=True,
        norm_has_bias=True,
        norms_per_layer=1,
        head_bias=True,
        mlp_times_hidden=4,
        aliases=_GPT,
    ),
    family_row(
        "BLOOM",
        "BloomForCausalLM",
        "bloom",
        tied=True,
        mlp_times_hidden=4,
        positions_default=2048,
        aliases={**_GPT_NAMES, "n_embed": "hidden_size", "seq_length": "max_position_embeddings"},
        **LAYER_NORM_MLP,
    ),
    family_row("MPT", "MPTForCausalLM", "mpt", gated_mlp=False, tied=True, mlp_times_hidden=4, aliases=_MPT),
    family_row("DBRX", "DbrxForCausalLM", "dbrx", experts="plain", aliases=_DBRX),
    family_row("DeepSeek-MoE", "DeepseekForCausalLM", "deepseek", experts="deepseek"),
    family_row(
        "Ling",
        "BailingMoeForCausalLM BailingMoeV2ForCausalLM",
        "bailing_moe bailing_moe_v2",
        experts="deepseek",
        router_bias=True,
    ),
    family_row(
        "K-EXAONE",
        "ExaoneMoEForCausalLM ExaoneMoeForCausalLM",
        "exaone_moe",
        qk_norm="head",
        experts="deepseek",
        router_bias=True,
        window="every-nth-full",
        full_every=4,
    ),
    family_row(
        "Trinity",
        "AfmoeForCausalLM",
        "afmoe",
        qk_norm="head",
        output_gate=True,
        norms_per_layer=4,
        experts="deepseek",
        router_bias=True,
        window="every-nth-full",
        full_every=4,
    ),
    family_row("Step-3", "Step3TextForCausalLM", "step3_text", experts="deepseek", aliases=_STEP),
    family_row(
        "Step-3.5",
        "Step3p5ForCausalLM Step3p7FlashForCausalLM Step3p7ForConditionalGeneration",
        "step3p5 step3p7",
        qk_norm="head",
        experts="deepseek",
        router_bias=True,
        window="every-nth-full",
        full_every=4,
        local_widths="step",
        aliases=_STEP,
    ),
    family_row(
        "MiniMax-M3",
        "MiniMaxM3ForCausalLM MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration",
        "minimax_m3",
        qk_norm="head",
        experts="deepseek",
        router_bias=True,
    ),
)
