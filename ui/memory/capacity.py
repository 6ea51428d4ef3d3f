"""Room for more: what prefixes, idle sessions, growing conversations and a second model do to the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from calc.errors import PlimsollError
from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.model import ModelSpec
from calc.room.capacity import Room, curve, share_prefix
from calc.room.neighbours import place_together
from calc.room.sessions import converse, keep_idle
from calc.units import GB
from calc.workload import MAX_TOKENS
from data import catalogue
from ui import charts, parts, resources, widgets
from ui.memory.found import Found, Points, found_for
from ui.resources import Asked
from ui.story import about_capacity, about_memory, about_sessions
from ui.text import t

LEAST_PAUSE_S = 1.0
SMALL = "meta-llama/Llama-3.1-8B-Instruct"
"""The second model at first: small enough to sit beside another."""
BLOCKS_SOURCE = "vLLM 0.32 v1/core/kv_cache_utils.py, single_type_kv_cache_manager.py"
EVICTION_SOURCE = "vLLM 0.32 v1/core/block_pool.py: least recently used block first"
FRACTION_SOURCE = "vLLM v1/worker/utils.py: request_memory; SGLang memory_hook.py; TensorRT-LLM kvcache.md"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a question comes back with: the answer, its few numbers, how they are made, and the changed curve."""

    sentence: str
    rows: about_capacity.Rows
    lines: Sequence[str]
    source: str
    curve: tuple[str, Points] | None


@st.cache_resource(show_spinner=False)
def _spec(model: str) -> ModelSpec:
    return catalogue.model(model).spec()


def show(asked: Asked, memory: MemoryReport) -> None:
    """Sequences at the user's lengths, the curve over all lengths, and four questions that change it."""
    if not memory.fits:
        st.info(about_memory.sentence(memory))
        return
    found = found_for(asked, memory)
    parts.section(t("Sequences the pool holds"), about_capacity.limit(found.marks[0], memory))
    parts.prose(about_capacity.lengths(found.marks, found.room))
    questions = {
        "prefix": (t("Shared prefix"), _prefix),
        "idle": (t("Idle sessions"), _idle),
        "turns": (t("Growing conversation"), _turns),
        "second": (t("Second model"), _second),
    }
    names = {code: name for code, (name, _) in questions.items()}
    chosen = parts.switch(t("What changes it"), names, "capacity_question", "prefix")
    reply = questions[chosen][1](found)
    if reply is not None:
        st.markdown(f"**{parts.escape(reply.sentence)}**")
    if reply is not None and reply.rows:
        parts.prose(reply.rows)
    _picture(found, reply.curve if reply else None)
    parts.remarks([about_capacity.tokens_meaning(found.room), about_capacity.provenance(memory)])
    _how(found, reply)


def _picture(found: Found, changed: tuple[str, Points] | None) -> None:
    memory = found.memory
    limits = {t("scheduler limit"): float(memory.num_seqs_limit), t("in flight"): memory.peak_concurrency}
    figure = charts.room_curve(found.points, changed, found.marks, limits, parts.tones())
    parts.chart(figure, about_capacity.curve_alt(found.marks, memory), "memory_room")


def _how(found: Found, reply: Reply | None) -> None:
    deployment = found.asked.scenario.deployment
    lines = [*about_capacity.base_formulas(found.marks, found.room), *(reply.lines if reply else ())]
    sources = [*about_memory.sources(deployment), BLOCKS_SOURCE, reply.source if reply else ""]
    parts.computed([*about_memory.formulas(deployment, found.memory), *map(parts.escape, lines)], sources)


def _number(label: str, key: str, default: float, low: float, high: float, step: float, help_text: str = "") -> float:
    """A number of this page; it is not part of the scenario and stays with the visitor. Emptied = the default."""
    whole = all(float(value).is_integer() for value in (default, low, high, step))
    kind = int if whole else float
    given = st.number_input(
        label, kind(low), kind(high), kind(default), kind(step), key=key, help=help_text or None,
        persist_state="session", format="%d" if whole else "%g",
    )  # fmt: skip
    return float(default if given is None else given)


def _prefix(found: Found) -> Reply | None:
    """A prefix kept once for the requests that begin with it."""
    longest = found.room.report.max_model_len_tokens
    left, right = st.columns(2)
    with left:
        tokens = min(longest, _number(t("Prefix (tokens)"), "room_prefix", 2000, 0, MAX_TOKENS, 16))
    with right:
        share = _number(t("Requests that begin with it (%)"), "room_prefix_share", 80, 0, 100, 5) / 100
    length = min(longest, max(found.marks[0].tokens, round(tokens) + 1))
    got = share_prefix(found.room, prefix_tokens=round(tokens), share=share, length_tokens=length)
    curve = [
        (size, share_prefix(found.room, prefix_tokens=round(tokens), share=share, length_tokens=round(size)).sequences)
        for size, _ in found.points
        if size > tokens
    ]
    return Reply(
        sentence=about_capacity.prefix_sentence(got),
        rows=about_capacity.prefix_rows(got),
        lines=about_capacity.prefix_formulas(got),
        source=BLOCKS_SOURCE,
        curve=(t("Prefix kept once"), curve) if len(curve) > 1 else None,
    )


def _idle(found: Found) -> Reply | None:
    """Sessions whose user pauses. Their share and context are part of the scenario: they count in the KV demand."""
    scenario = found.asked.scenario
    workload, deployment = scenario.workload, scenario.deployment
    nominal = (deployment.gpu.pcie_bytes_per_s or 0.0) / GB
    first, second = st.columns(2)
    with first:
        widgets.number("idle_share")
        pause_s = _number(t("Pause of a user (s)"), "room_pause", 60.0, LEAST_PAUSE_S, 86_400.0, 10.0)
    with second:
        widgets.number("idle_context")
        link = _number(
            t("Host link (GB/s)"), "room_link", nominal, 0.0, 2_000.0, 1.5, t("One direction, per GPU; nominal.")
        )
    latency = resources.latency_or_reason(found.asked)
    rate = latency.request_rate_per_s / deployment.replicas if isinstance(latency, LatencyReport) else None
    got = keep_idle(found.room, workload, request_rate_per_s=rate, pause_s=pause_s, link_bytes_per_s=link * GB or None)
    left_share = max(0.0, 1 - got.idle_bytes / got.pool_bytes)
    beside = [(size, held * left_share) for size, held in found.points] if got.idle and left_share else []
    return Reply(
        sentence=about_sessions.idle_sentence(got),
        rows=about_sessions.idle_rows(got, pause_s) if got.idle else [],
        lines=about_sessions.idle_formulas(got, workload.idle_share),
        source=EVICTION_SOURCE,
        curve=(t("Beside the idle sessions"), beside) if beside else None,
    )


def _turns(found: Found) -> Reply | None:
    """A conversation that sends its whole history with every turn."""
    first, second = st.columns(2)
    with first:
        turns = _number(t("Turns"), "room_turns", 10, 1, 1000, 1)
        new = _number(t("New prompt per turn (tokens)"), "room_turn_new", 150, 1, 1_000_000, 50)
    with second:
        system = _number(t("Instructions (tokens)"), "room_turn_system", 1000, 0, 1_000_000, 100)
        output = _number(t("Output per turn (tokens)"), "room_turn_output", 300, 1, 1_000_000, 50)
    got = converse(
        found.room,
        turns=round(turns),
        system_tokens=round(system),
        new_tokens=round(new),
        output_tokens=round(output),
    )
    path = [(turn.context_tokens, turn.sequences) for turn in got.turns]
    return Reply(
        sentence=about_sessions.turns_sentence(got),
        rows=about_sessions.turns_rows(got),
        lines=about_sessions.turns_formulas(got),
        source=BLOCKS_SOURCE,
        curve=(t("Turn by turn"), path) if len(path) > 1 else None,
    )


def _second(found: Found) -> Reply | None:
    """A second model on the same GPUs."""
    deployment, length = found.asked.scenario.deployment, found.marks[1].tokens
    names = {code: code for code in sorted(catalogue.models(), key=str.lower)}
    model = parts.pick(t("Second model"), names, "room_second", list(names).index(SMALL) if SMALL in names else 0)
    left, right = st.columns(2)
    with left:
        own = _number(t("Memory fraction of the first"), "room_fraction_own", 0.55, 0.01, 1.0, 0.05)
    with right:
        other = _number(t("Memory fraction of the second"), "room_fraction_other", 0.35, 0.01, 1.0, 0.05)
    try:
        got = place_together(
            deployment,
            _spec(model),
            first_fraction=own,
            second_fraction=other,
            length_tokens=length,
        )
    except PlimsollError as error:
        st.warning(t(error.message))
        return None
    first = got.first.report
    held = curve(Room.of(replace(deployment, memory_fraction=own), first)) if first.fits else None
    return Reply(
        sentence=about_capacity.neighbours_sentence(got),
        rows=about_capacity.neighbours_rows(got),
        lines=about_capacity.neighbours_words(got),
        source=FRACTION_SOURCE,
        curve=(t("With this fraction"), held) if held else None,
    )
