"""Catalogue: the models, GPUs, engines and prices that answers rest on, and the team's own beside them."""

import streamlit as st

from ui import parts, resources, state
from ui.catalogue import desk, engines, gpus, models, prices
from ui.story import about_catalogue, words
from ui.text import t

parts.heading(t("Catalogue"), t("Which models, GPUs and prices do the answers rest on, and where is each from?"))
own = about_catalogue.Own(
    models=resources.own_models(), gpus=resources.own_gpus(), prices=resources.own_prices(), today=state.today()
)
parts.answer(about_catalogue.sentence(own), about_catalogue.figures(own), good=None if own.stale else True)
names = {"gpus": t("GPU types"), "models": t("Models"), "prices": t("Prices"), "engines": t("Engines")}
views = {"gpus": gpus, "models": models, "prices": prices, "engines": engines}
views[parts.switch(t("View"), names, desk.VIEW, "gpus")].show()
st.caption(words.versions())
