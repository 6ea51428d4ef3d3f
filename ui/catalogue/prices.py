"""Prices of a GPU-hour: the team's own with their history. None ships: a list price is nobody's contract."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from data import catalogue
from data.own_hardware import OWN_PRICE, price_entry, price_of
from data.store import OwnEntry
from ui import format as show_as
from ui import pricing, resources, state
from ui.catalogue import desk
from ui.story import about_catalogue
from ui.text import t

FORM = "price_"


def show() -> None:
    """The whole view."""
    fold = desk.fold(t("Add a price"), "price_fold")
    if fold.open:
        with fold:
            _form()
    desk.outcome()
    rows = resources.own_prices()
    names = {row.entry_id: _label(row) for row in rows}
    chosen = desk.own_table("own_price", about_catalogue.price_rows(rows, state.today()), names)
    if chosen is not None:
        _use_button(next(row for row in rows if row.entry_id == chosen))
    st.caption(t("No price ships with Plimsoll: the worked example's is an assumption, and says so."))


def _label(row: OwnEntry) -> str:
    price = price_of(row)
    amount = show_as.money(price.gpu_hour, price.currency)
    return " · ".join(
        [about_catalogue.priced_gpu(row.name), amount, pricing.commitment(price.commitment), row.checked_on]
    )


def _use_button(row: OwnEntry) -> None:
    fits = row.name == state.price_name(state.get("gpu"))
    refused = "" if fits else t("It is the price of another GPU than the scenario's.")
    desk.use_button("own_price", _use, row, refused=refused)


def _form() -> None:
    names = _gpus()
    if state.get("price_gpu") not in names:
        now = state.price_name(state.get("gpu"))
        state.put(price_gpu=now if now in names else next(iter(names)))
    desk.select("price_gpu", names)
    left, middle, right = st.columns(3)
    with left:
        desk.number("price_gpu_hour")
    with middle:
        desk.select("price_currency", {code: code for code in pricing.CURRENCIES})
    with right:
        desk.select("price_commitment", {code: t(words) for code, words in pricing.COMMITMENTS.items()})
    desk.line("price_region")
    desk.origin(FORM)
    st.button(t("Store this price"), key="price_add", type="primary", icon=":material/save:", on_click=_add)


def _gpus() -> Mapping[str, str]:
    """What a price can be of: the team's own GPUs first."""
    own = {OWN_PRICE + row.name: row.name for row in resources.own_gpus()}
    return own | {code: gpu.name for code, gpu in catalogue.gpus().items()}


@desk.action
def _add() -> str:
    typed = {name: state.get(FORM + name) for name in ("gpu_hour", "currency", "commitment", "region")}
    gpu = str(state.get("price_gpu"))
    resources.add_price(gpu, price_entry(typed), **desk.told_origin(FORM))
    state.put(price_fold=False)
    if gpu == state.price_name(state.get("gpu")):
        state.fill_price()
    return t("The price of {gpu} is stored.", gpu=about_catalogue.priced_gpu(gpu))


@desk.action
def _use(row: OwnEntry) -> str:
    state.use_price(price_of(row))
    return t("The scenario is priced with it now.")
