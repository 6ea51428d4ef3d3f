"""What files leave out is asked for: one short form for one or more runs, with suggestions that nobody has to take."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calc.deployment import MAX_GPUS
from calc.errors import InputError
from calc.messages import msg
from data import catalogue
from data.case_declaration import cleaned
from data.engine_flags import MAX_CHARACTERS
from data.formats.name_facts import name_facts
from data.own_text import one_line
from data.records import RunDeclaration
from data.store import StoredRun
from ui import parts, resources, state
from ui.benchmarks import found
from ui.story import about_facts
from ui.text import t

BY, DONE = "declared_by", "facts_done"
"""The visitor's name, kept over pages; what the last answer did."""
MOST_CHARACTERS = 120
BOX_PIXELS = 220
"""Least width of a box: three in a row, one on a phone."""
Suggestions = Mapping[str, str | int]


def ask(run_ids: Sequence[str], suggestions: Suggestions | None = None) -> None:
    """The form for these runs; it asks only what at least one of them lacks.

    ``suggestions`` are facts that a path hints at; without them the stored file's name is looked at.
    """
    wanted = set(run_ids)
    stored = [one for one in resources.runs() if one.run_id in wanted]
    done_for, done = state.get(DONE) or ("", None)
    if done and done_for == _token(run_ids):
        st.success(parts.escape(t(done)), icon=":material/check_circle:")
    facts = about_facts.missing(stored)
    if not facts:
        st.caption(t("These runs say everything that is asked."))
        return
    st.markdown(parts.escape(about_facts.question(stored, facts)))
    given = _of_names(stored) if suggestions is None else suggestions
    gpus = about_facts.likely_first(_gpu_names(), given)
    hints = about_facts.from_name(given, gpus)
    keys = _widgets(facts, hints, gpus, _token(run_ids))
    if said := about_facts.hint_of_hits(stored):
        st.caption(f":material/lightbulb: {parts.escape(said)}")
    if hints.keys() & set(facts):
        filled = t("Filled in from the name of the file: check it.")
        st.caption(f":material/lightbulb: {parts.escape(filled)}")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(t("Your name"), key=BY, max_chars=MOST_CHARACTERS, persist_state="session")
        st.button(
            t("Declare for these runs"), key=f"facts_save_{_token(run_ids)}",
            type="primary", icon=":material/edit_note:", on_click=_save,
            args=([one.run_id for one in stored], keys, _token(run_ids)),
        )  # fmt: skip


def choose(stored: Sequence[StoredRun]) -> None:
    """The form for the runs of one file that leave something out, whichever is chosen."""
    by_file: dict[str, list[StoredRun]] = {}
    for one in stored:
        if about_facts.missing([one]):
            by_file.setdefault(one.file_id, []).append(one)
    if not by_file:
        st.caption(t("Every stored run says what is asked."))
        return
    names = {row.file_id: row.name for row in found.files() if row.file_id in by_file}
    shown = {
        code: t("{name} · load points: {number:count}", name=names.get(code, code[:6]), number=len(runs))
        for code, runs in by_file.items()
    }
    if state.get("facts_file") not in shown:
        state.put(facts_file=next(iter(shown)))
    chosen = parts.pick(t("File"), shown, "facts_file")
    ask([one.run_id for one in by_file.get(chosen, [])])


def _of_names(stored: Sequence[StoredRun]) -> Suggestions:
    """What the names of their files suggest, where they all suggest the same."""
    files = {one.file_id for one in stored}
    told = [name_facts(row.name) for row in found.files() if row.file_id in files]
    return {} if not told else {k: v for k, v in told[0].items() if all(other.get(k) == v for other in told)}


def _gpu_names() -> dict[str, str]:
    own = {row.name: t("{name} (own)", name=row.name) for row in resources.own_gpus()}
    return own | {gpu.id: gpu.name for gpu in catalogue.gpus().values()}


def _token(run_ids: Sequence[str]) -> str:
    """Answers for other runs are other answers."""
    return hashlib.sha256("".join(sorted(run_ids)).encode()).hexdigest()[:8]


def _widgets(facts: Sequence[str], hints: Suggestions, gpus: Mapping[str, str], token: str) -> dict[str, str]:
    """One widget a fact; the keys under which their values are found."""
    keys = {fact: f"facts_{fact}_{token}" for fact in facts}
    flags = str((state.get(keys["engine_flags"]) if "engine_flags" in keys else "") or "")
    answers = {**about_facts.from_flags(flags), **hints}
    for fact in about_facts.TOLD_BY_FLAGS & keys.keys():
        keys[fact] += str(answers.get(fact, ""))  # other start options mean another answer, so its box begins anew
    with st.grid(3, min_column_width=BOX_PIXELS, gap="small"):
        for fact in facts:
            _widget(fact, keys[fact], answers.get(fact), gpus)
    return keys


def _widget(fact: str, key: str, hint: str | int | None, gpus: Mapping[str, str]) -> None:
    options: dict[str, Any] = {"label": about_facts.label(fact), "key": key, "help": about_facts.explanation(fact)}
    if fact == "gpu_count":
        st.number_input(min_value=1, max_value=MAX_GPUS, value=int(hint) if hint else None, step=1, **options)
    elif fact == "gpu":
        _box(gpus, str(hint) if hint else None, options)
    elif fact in ("model", "engine"):
        known = list(catalogue.models()) if fact == "model" else sorted({row.id for row in catalogue.engines()})
        given = str(hint) if hint else None
        names = [*([given] if given and given not in known else []), *known]
        st.selectbox(
            options=names, index=names.index(given) if given else None, accept_new_options=True,
            placeholder=t("choose or type"), **options,
        )  # fmt: skip
    elif fact in about_facts.AXES:
        _box(about_facts.choices(fact), str(hint) if hint else None, options)
    else:
        st.text_input(max_chars=MAX_CHARACTERS if fact == "engine_flags" else MOST_CHARACTERS, **options)


def _box(names: Mapping[str, str], chosen: str | None, options: Mapping[str, Any]) -> None:
    codes = list(names)
    st.selectbox(
        options=codes, index=codes.index(chosen) if chosen else None, format_func=lambda code: names[code],
        placeholder=t("not known"), **options,
    )  # fmt: skip


@state.callback
def _save(run_ids: Sequence[str], keys: Mapping[str, str], token: str) -> None:
    state.put(**{DONE: None})
    given: dict[str, Any] = {fact: state.get(key) or None for fact, key in keys.items()}
    declaration = cleaned(RunDeclaration(**given))
    if declaration == RunDeclaration():
        raise InputError(msg("no fact was chosen: choose at least one."))
    by = one_line(state.get(BY) or "", t("Your name"))
    resources.store().declarations.declare(run_ids, declaration, by=by)
    state.put(**{DONE: (token, msg("Declared. Load points: {number:count}.", number=len(run_ids)))})
