"""Models: the team's own, a form to add one from its config.json, and those that ship."""

from __future__ import annotations

import streamlit as st

from calc.errors import PlimsollError
from data.own_model import Pasted, read_model
from ui import parts, resources, state
from ui.catalogue import desk
from ui.story import about_catalogue
from ui.text import t

FORM = "model_"


def show() -> None:
    """The whole view."""
    fold = desk.fold(t("Add a model"), "model_fold")
    if fold.open:
        with fold:
            _form()
    desk.outcome()
    rows = resources.own_versions("own_model")
    chosen = desk.own_rows("own_model", rows, about_catalogue.own_models(rows))
    if chosen is not None:
        desk.use_button("own_model", _use, chosen.entry_id, chosen.name)
    desk.shipped_table("model", about_catalogue.shipped_models())


def _form() -> None:
    st.caption(
        t(
            "A config.json of the Hub, or a JSON object that holds one under config. The weight index is optional: "
            "with it, or with a number of bytes, the weights are as large as stated."
        )
    )
    st.text_input(t("Name"), key="model_name", placeholder="team/model", persist_state="session")
    left, right = st.columns(2)
    with left:
        st.text_area("config.json", key="model_config", height=160, persist_state="session")
        st.file_uploader("config.json", type=["json"], key="model_config_file", max_upload_size=2)
    with right:
        st.text_area("model.safetensors.index.json", key="model_index", height=160, persist_state="session")
        st.file_uploader("model.safetensors.index.json", type=["json"], key="model_index_file", max_upload_size=20)
    desk.origin(FORM)
    _preview()
    st.button(t("Store this model"), key="model_add", type="primary", icon=":material/save:", on_click=_add)


def _pasted() -> Pasted:
    name = str(state.get("model_name") or "")
    return read_model(desk.upload("model_config"), name=name, index=desk.upload("model_index"))


def _preview() -> None:
    """What was read, before anything is stored; or why it cannot be."""
    if not desk.upload("model_config").strip():
        return
    try:
        pasted = _pasted()
        facts = about_catalogue.read_of(pasted.spec())
    except PlimsollError as error:
        st.warning(parts.escape(t(error.message)))
        return
    st.markdown(f"**{parts.escape(pasted.name)}**")
    parts.bullets(facts)


@desk.action
def _add() -> str:
    pasted = _pasted()
    pasted.spec()
    row = resources.add_own_model(pasted.name, pasted.entry, **desk.told_origin(FORM))
    state.put(model_fold=False)
    return t("{name} is stored as version {number:count}.", name=row.name, number=row.version)


@desk.action
def _use(entry_id: str, name: str) -> str:
    state.put(model=state.OWN_PREFIX + entry_id)
    return t("{name} is the scenario's model now.", name=name)
