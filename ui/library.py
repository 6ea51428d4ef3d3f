"""The shelf of saved scenarios: save, list, load, compare, export, import; every save is a new version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from calc.errors import PlimsollError, UnreadableFile
from calc.messages import msg
from data.case import read_case, write_case
from data.store import ScenarioVersion
from ui import parts, resources, state
from ui.resources import Asked
from ui.text import t

SAVED, LEVER = "saved:", "lever:"
MAX_SCENARIO_BYTES = 2_000_000
"""A scenario with an own config.json is a few kilobytes."""


def alternatives(asked: Asked) -> Mapping[str, str]:
    """Codes and names of what the scenario can be compared with: levers that apply, then saved scenarios."""
    levers = {
        LEVER + what_if.lever: t(what_if.title)
        for what_if in resources.decision(asked).what_ifs
        if what_if.scenario is not None
    }
    return levers | {SAVED + row.scenario_id: f"{row.name} (v{row.version})" for row in resources.store().scenarios()}


def first_choice(asked: Asked, options: Mapping[str, str]) -> int:
    """The position of the decision's first lever, else of the first one."""
    code = f"{LEVER}{resources.decision(asked).first_lever}"
    return list(options).index(code) if code in options else 0


def alternative(asked: Asked, code: str) -> Asked:
    """The second scenario behind a code of :func:`alternatives`."""
    if code.startswith(SAVED):
        row = next(row for row in resources.store().scenarios() if row.scenario_id == code.removeprefix(SAVED))
        return resources.ask(row.case)
    what_ifs = {what_if.lever: what_if for what_if in resources.decision(asked).what_ifs}
    scenario = what_ifs[code.removeprefix(LEVER)].scenario
    return asked if scenario is None else resources.ask(write_case(scenario))


def shelf(asked: Asked) -> None:
    """Buttons to save, export and import, and the list of what is saved."""
    with st.container(horizontal=True):
        st.button(t("Save this scenario"), key="scenario_save", icon=":material/save:", on_click=_save, args=(asked,))
        st.download_button(
            t("Export as JSON"), json.dumps(state.canonical(asked), ensure_ascii=False, indent=2),
            file_name="scenario.json", mime="application/json", key="scenario_export", on_click="ignore",
            icon=":material/download:",
        )  # fmt: skip
        with st.popover(t("Import JSON"), icon=":material/upload:"):
            st.file_uploader(t("Scenario file"), type=["json"], key="scenario_file", max_upload_size=2)
            st.button(t("Open"), key="scenario_import", on_click=_import)
    if problem := state.get("scenario_problem"):
        st.error(t(problem))
    if saved := resources.store().scenarios():
        _list(saved)
    else:
        st.caption(t("Nothing saved yet. Give the scenario a name at the side and save it."))


def _list(saved: Sequence[ScenarioVersion]) -> None:
    parts.table(
        [
            {t("Name"): row.name, t("Version"): row.version, t("Saved"): row.saved_at, t("Model"): _model(row.case)}
            for row in saved
        ],
        key="scenario_table",
    )
    names = {row.scenario_id: f"{row.name} (v{row.version})" for row in saved}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = parts.pick(t("Saved scenario"), names, "scenario_chosen")
        case = next(row.case for row in saved if row.scenario_id == chosen)
        st.button(t("Open"), key="scenario_load", on_click=state.load, args=(case,))


def _model(case: Mapping[str, object]) -> str:
    model = case.get("model")
    return str(model.get("name")) if isinstance(model, Mapping) else str(model)


@state.callback
def _save(asked: Asked) -> None:
    state.put(scenario_problem=None)
    name = str(state.get("name") or asked.scenario.deployment.model.name)
    resources.store().save_scenario(name, state.canonical(asked))


def _import() -> None:
    upload = state.get("scenario_file")
    state.put(scenario_problem=None)
    try:
        if upload is None:
            raise UnreadableFile(msg("expected a scenario file, got none: choose a JSON file first."))
        case = _parse(upload.getvalue())
        read_case(case)
        state.load(case)
    except PlimsollError as error:
        state.put(scenario_problem=error.message)


def _parse(content: bytes) -> Mapping[str, object]:
    if len(content) > MAX_SCENARIO_BYTES:
        raise UnreadableFile(msg("expected a scenario of a few kilobytes, got more than 2 MB: choose the right file."))
    try:
        case = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(
            msg("expected a scenario as JSON, got text that is not JSON: export one to see the form.")
        ) from error
    if not isinstance(case, dict):
        raise UnreadableFile(msg("expected one scenario as a JSON object, got a list or value: export one to compare."))
    return case
