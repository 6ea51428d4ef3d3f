"""Where the pool goes besides tokens: preallocation, blocks, eviction budgets, cache formats."""

from __future__ import annotations

import json
from collections.abc import Sequence

import streamlit as st

from calc.cache.block_size import block_size_row
from calc.cache.eviction import Budgets, evict
from calc.cache.formats import alignment_of, formats_of
from calc.cache.lives import NO_ATTENTION
from calc.cache.waste import BLOCK_SIZES_TOKENS, WasteReport, waste_of
from calc.memory import MemoryReport
from calc.workload import MAX_TOKENS
from ui import charts, parts, resources
from ui.memory.found import Found, found_for
from ui.resources import Asked
from ui.story import about_capacity, about_corrections, about_memory
from ui.text import t

WASTE_SOURCE = "Kwon et al., PagedAttention, SOSP 2023; vLLM launch post, June 2023"
BLOCKS_SOURCE = "NVIDIA, 5x faster time to first token with early KV cache reuse, November 2024; vLLM block tables"
EVICTION_SOURCE = "H2O and Scissorhands, NeurIPS 2023"
FORMATS_SOURCE = "vLLM utils/torch_utils.py, triton_attn.py; NVIDIA, NVFP4 KV cache, December 2025"
PREFIX_TOKENS, WINDOW_TOKENS, KEPT_PERCENT, FULL_LAYERS_PERCENT = 2000, 2048, 20, 10
"""What the inputs say at first: a long system prompt, a common window, H2O's budget, a layer in ten kept whole."""


def _without_load(asked: Asked) -> str:
    """The case without what waste does not depend on: another rate or target asks nothing new."""
    workload = {name: asked.case["workload"][name] for name in ("prompt_tokens", "output_tokens")}
    return json.dumps({**asked.case, "workload": workload, "slo": None, "prices": None}, sort_keys=True)


def _pool(memory: MemoryReport) -> tuple[int, int, int]:
    return memory.kv_pool_bytes, memory.block_size_tokens, memory.max_model_len_tokens


@st.cache_resource(
    max_entries=resources.KEPT, show_spinner=False, hash_funcs={Asked: _without_load, MemoryReport: _pool}
)
def _waste_of(asked: Asked, memory: MemoryReport) -> WasteReport:
    return waste_of(asked.scenario.deployment, memory, asked.scenario.workload)


def show(asked: Asked, memory: MemoryReport) -> None:
    """One of four corrections to the plain formula, each with the user's own numbers."""
    if not memory.fits:
        st.info(about_memory.sentence(memory))
        return
    questions = {
        "waste": (t("Reserved and empty"), _waste),
        "blocks": (t("Block size"), _blocks),
        "eviction": (t("Eviction"), _eviction),
        "formats": (t("Cache formats"), _formats),
    }
    names = {code: name for code, (name, _) in questions.items()}
    chosen = parts.switch(t("Correction"), names, "correction", "waste")
    questions[chosen][1](found_for(asked, memory))


def _say(sentence: str) -> None:
    st.markdown(f"**{parts.escape(sentence)}**")


def _how(found: Found, remarks: Sequence[str], lines: Sequence[str], source: str) -> None:
    """What to mind, where the figures come from, and how they are made from the pool."""
    deployment = found.asked.scenario.deployment
    parts.remarks([*remarks, about_capacity.provenance(found.memory)])
    formulas = [*about_memory.formulas(deployment, found.memory), *map(parts.escape, lines)]
    parts.computed(formulas, [*about_memory.sources(deployment), source])


def _waste(found: Found) -> None:
    """Reserving the maximum, powers of two, and blocks of each size."""
    if found.asked.scenario.deployment.model.attention == NO_ATTENTION:
        st.info(t("This model keeps a state per sequence and no tokens: nothing is reserved ahead."))
        return
    waste = _waste_of(found.asked, found.memory)
    _say(about_corrections.waste_sentence(waste))
    figure = charts.waste_bars(about_corrections.pictured(waste), parts.tones())
    parts.chart(figure, about_corrections.waste_alt(waste), "memory_waste")
    parts.prose(about_corrections.waste_rows(waste))
    _how(found, (), about_corrections.waste_formulas(waste), WASTE_SOURCE)


def _whole(label: str, key: str, default: int, low: int, high: int, step: int) -> int:
    given = st.number_input(label, low, high, default, step, key=key, persist_state="session", format="%d")
    return default if given is None else int(given)


def _blocks(found: Found) -> None:
    """How much of a shared prefix each block size loses, and what it costs to keep books."""
    longest, own = found.memory.max_model_len_tokens, found.memory.block_size_tokens
    prefix = min(longest, _whole(t("Prefix (tokens)"), "room_prefix", PREFIX_TOKENS, 0, MAX_TOKENS, 16))
    tables = len(found.room.plan.groups)
    rows = [
        block_size_row(size, prefix_tokens=prefix, block_tables=tables) for size in sorted({*BLOCK_SIZES_TOKENS, own})
    ]
    rest = max(0.0, found.asked.scenario.workload.prompt_tokens.mean() - prefix)
    _say(about_corrections.blocks_sentence(rows, own, prefix))
    parts.prose(about_corrections.blocks_rows(rows))
    _how(found, about_corrections.blocks_words(rest), about_corrections.blocks_formulas(rest), BLOCKS_SOURCE)


def _length(found: Found) -> int:
    """Length of every sequence; empty = the load's own P95."""
    longest, own = found.memory.max_model_len_tokens, found.marks[1].tokens
    given = st.number_input(
        t("Length of every sequence (tokens)"), 1, MAX_TOKENS, None, 512, key="room_length", persist_state="session",
        format="%d", placeholder=t("your P95: {length:tok}", length=own),
    )  # fmt: skip
    return own if given is None else min(int(given), longest)


def _eviction(found: Found) -> None:
    """Budgets that drop tokens."""
    left, right = st.columns(2)
    with left:
        length = _length(found)
        share = _whole(t("Tokens kept by score (%)"), "room_kept", KEPT_PERCENT, 1, 100, 5) / 100
    with right:
        window = _whole(t("Window (tokens)"), "room_window", WINDOW_TOKENS, 1, MAX_TOKENS, 512)
        full = _whole(t("Layers that keep all (%)"), "room_full_layers", FULL_LAYERS_PERCENT, 0, 100, 5) / 100
    budgets = Budgets(window_tokens=window, kept_share=share, full_layers_share=full)
    rows = evict(found.room, length, budgets)
    _say(about_corrections.eviction_sentence(rows, length))
    parts.prose(about_corrections.eviction_rows(rows, budgets))
    _how(found, about_corrections.eviction_words(), about_corrections.eviction_formulas(rows), EVICTION_SOURCE)


def _formats(found: Found) -> None:
    """The same pool in every cache format, and what this model's blocks round away."""
    length = _length(found)
    rows = formats_of(found.asked.scenario.deployment, found.memory, length)
    rounded = alignment_of(found.room, length)
    lines = [*about_corrections.formats_words(rows), about_corrections.alignment_words(rounded)]
    _say(about_corrections.formats_sentence(rows, length))
    parts.prose(about_corrections.formats_rows(rows, found.memory.kv_dtype))
    _how(found, lines, about_corrections.formats_formulas(rows, rounded), FORMATS_SOURCE)
