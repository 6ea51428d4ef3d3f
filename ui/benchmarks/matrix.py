"""The evaluation matrix: which cells have evidence, which are missing, and what to run next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import streamlit as st

from calc.messages import Message
from calc.poc.coverage import CellEvidence, evidence_of
from calc.poc.plan import Plan, PlannedCell, PlanSet, plan_notes
from calc.poc.script import Target, model_of, runs_of, script
from calc.poc.tools import TOOL_NAMES, TOOLS, remarks
from data.plan_answer import cell_line, check, target_of
from ui import parts
from ui.benchmarks import found, progress
from ui.benchmarks.found import Kept
from ui.benchmarks.runs import rows
from ui.resources import Asked
from ui.story import about_poc
from ui.text import t

ANY_HOST = "http://HOST:8000"


def show(asked: Asked) -> None:
    """The cells with their evidence, or the commands of one cell and the plan to take away."""
    names = {"cells": t("Evidence"), "commands": t("Commands")}
    look = parts.switch(t("Show"), names, "poc_show", "cells", linked=True)
    kept = found.kept(asked)
    if look == "cells":
        progress.show(asked, kept)
        parts.section(t("Matrix"), t("Strategies × repetition × your contexts × your concurrencies."))
    which = PlanSet(parts.switch(t("Set"), about_poc.sets(), "poc_set", PlanSet.RECOMMENDED.value))
    plan = found.plan_of(asked, which)
    if isinstance(plan, Message):
        st.warning(t(plan), icon=":material/block:")
    elif look == "cells":
        _cells(plan, kept)
    else:
        _cell(asked, plan, kept)


def _cells(plan: Plan, kept: Kept) -> None:
    evidence = evidence_of((one.cell for one in plan.cells), kept.ours)
    planned = {one.cell for one in plan.cells}
    in_plan = [one for one in evidence if one.cell in planned]
    st.markdown(f"**{parts.escape(about_poc.set_sentence(plan, plan.cells, in_plan))}**")
    _grid(evidence)
    for line in about_poc.contradictions(evidence):
        st.warning(parts.escape(line), icon=":material/compare_arrows:")
    parts.notes(plan_notes(plan))
    if others := len(kept.placed) - len(kept.ours):
        parts.remarks([t("Runs of other models, GPUs or engines are left out: {count:count}.", count=others)])


def _grid(evidence: Sequence[CellEvidence]) -> None:
    contexts = sorted({one.cell.context_tokens for one in evidence})
    names = {str(tokens): t("{context:tok}", context=tokens) for tokens in contexts}
    chosen = parts.switch(t("Context"), names, "poc_context", str(contexts[0]))
    shown = int(chosen) if chosen in names else contexts[0]
    st.table(about_poc.grid(evidence, shown), hide_index=True, border="horizontal", width="stretch")
    st.caption(" · ".join(f"{about_poc.badge_word(code)}: {word}" for code, word in about_poc.state_words().items()))


def _cell(asked: Asked, plan: Plan, kept: Kept) -> None:
    cells = plan.cells
    left, middle, right = st.columns([3, 2, 2], gap="medium")
    by_name = {one.name: one for one in cells}
    with left:
        name = parts.pick(t("Cell"), {one.name: about_poc.planned_name(one) for one in cells}, "poc_cell")
    with middle:
        tool = parts.pick(t("Load generator"), TOOL_NAMES, "poc_tool")
    with right:
        url = st.text_input(t("Server address"), ANY_HOST, key="poc_url", persist_state="session")
    planned = by_name.get(name, cells[0])
    target = target_of(asked.scenario, url)
    parts.bullets([about_poc.why(planned), *about_poc.facts(planned)])
    _commands(plan, planned, target, tool)
    _filled(planned, evidence_of([planned.cell], kept.ours), kept)
    _downloads(plan, cells, target, tool)


def _commands(plan: Plan, planned: PlannedCell, target: Target, tool: str) -> None:
    start = target.start(plan, planned.cell.strategy)
    st.caption(t("1 · Start the server"))
    st.code(start.lines, language="bash", wrap_lines=True)
    for name, text in start.files.items():
        st.caption(t("It reads {file}:", file=name))
        st.code(text, language="yaml")
    made = [TOOLS[tool](run) for run in runs_of(planned, target, model_of(start, target.deployment.engine.id))]
    st.caption(t("2 · Before every run: empty the cache, read the counters, watch the GPUs"))
    st.code(about_poc.before(planned, target), language="bash", wrap_lines=True)
    st.caption(t("3 · The load, once a seed"))
    for one in made:
        for name, text in one.files.items():
            st.caption(t("It reads {file}:", file=name))
            st.code(text, language="yaml")
    st.code("\n".join(one.command if len(made) > 1 else one.lines for one in made), language="bash", wrap_lines=True)
    st.caption(t("4 · After every run: read the counters again, then upload everything"))
    st.code(about_poc.after(planned, target), language="bash", wrap_lines=True)
    notes = (*start.notes, *remarks(made[0], planned.expected_hit_share, planned.drawn_hit_share))
    parts.bullets(dict.fromkeys([t(check(planned)), *map(t, notes)]))


def _filled(planned: PlannedCell, evidence: Sequence[CellEvidence], kept: Kept) -> None:
    here = next((one for one in evidence if one.cell == planned.cell), None)
    if here is None or not here.runs:
        st.info(t("No run of this cell is stored: run the commands, upload the results and declare what they lack."))
        return
    if here.why is not None:
        st.warning(t(here.why), icon=":material/compare_arrows:")
    parts.table(rows([kept.run(run.run_id).run for run in here.runs]), key="poc_cell_runs")


def _downloads(plan: Plan, cells: Sequence[PlannedCell], target: Target, tool: str) -> None:
    with st.container(horizontal=True):
        st.download_button(
            t("This set as a shell script"), partial(_shell, plan, cells, target, tool), "plimsoll-plan.sh",
            "text/x-shellscript", key="poc_script", on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        st.download_button(
            t("This set as JSON Lines"), partial(_json, plan, cells, target), "plimsoll-plan.jsonl",
            "application/jsonl", key="poc_json", on_click="ignore", icon=":material/download:",
        )  # fmt: skip


def _shell(plan: Plan, cells: Sequence[PlannedCell], target: Target, tool: str) -> bytes:
    return script(plan, cells, target, tool).encode()


def _json(plan: Plan, cells: Sequence[PlannedCell], target: Target) -> bytes:
    lines = (json.dumps(cell_line(plan, one, target, tuple(TOOLS)), ensure_ascii=False) for one in cells)
    return "".join(f"{line}\n" for line in lines).encode()
