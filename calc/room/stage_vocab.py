"""Matrices over the vocabulary that engines keep on every pipeline stage, needed there or not."""

from __future__ import annotations

from calc.hub.families import Family

EMBEDDING_EVERYWHERE = frozenset({"Qwen3.5", "Qwen3.5-MoE", "LFM2", "LFM2-MoE"})
"""Families whose classes create the input embedding on every stage (vLLM 0.32 ``models/qwen3_5.py``, ``lfm2.py``)."""
BOTH_EVERYWHERE = frozenset(
    {
        *("Qwen2-MoE", "Qwen3-MoE", "Qwen3-Next", "Mixtral", "gpt-oss", "OLMoE", "Phi-3.5-MoE", "Granite MoE"),
        *(
            "Gemma",
            "Gemma 2",
            "Gemma 3",
            "Gemma 4",
            "Command R",
            "Command R7B",
            "Nemotron-H",
            "Granite 4 hybrid",
            "Jamba",
        ),
        *("OPT", "GPT-2", "GPT-J", "BLOOM", "StableLM", "Falcon", "InternLM2", "DBRX", "Mamba", "Mamba-2"),
        "Zamba2",
    }
)
"""Families whose classes create embedding and output head without asking for the stage (vLLM 0.32 ``models/*.py``)."""


def vocab_copies(family: Family, tied: bool) -> int:
    """Matrices over the vocabulary on a stage that needs none."""
    if family.name in BOTH_EVERYWHERE:
        return 1 if tied else 2
    return 1 if family.name in EMBEDDING_EVERYWHERE else 0
