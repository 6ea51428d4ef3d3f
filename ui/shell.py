"""The frame around every page: navigation, language, the scenario at the side, and one clear sentence on bad input."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # Streamlit puts only this script's own folder there
    sys.path.insert(0, str(ROOT))

from calc.errors import PlimsollError  # noqa: E402
from ui import inputs, state  # noqa: E402
from ui.text import t  # noqa: E402

MARK = str(ROOT / "ui" / "mark.svg")

st.set_page_config(
    page_title="Plimsoll", page_icon=str(ROOT / "ui" / "icon.png"), layout="wide", initial_sidebar_state="auto"
)
state.begin()
st.logo(str(ROOT / "ui" / "logo.svg"), size="large", icon_image=MARK)


def _page(name: str, title: str, icon: str, *, default: bool = False) -> st.Page:
    return st.Page(
        ROOT / "pages" / f"{name}.py",
        title=title,
        icon=f":material/{icon}:",
        url_path="" if default else name,
        default=default,
    )


page = st.navigation(
    {
        "": [_page("overview", t("Overview"), "dashboard", default=True)],
        t("Plan"): [
            _page("workload", t("Workload"), "groups"),
            _page("memory", t("Memory"), "memory"),
            _page("latency", t("Latency"), "speed"),
            _page("alternatives", t("Alternatives"), "compare_arrows"),
            _page("catalogue", t("Catalogue"), "inventory_2"),
        ],
        t("Measure"): [
            _page("gpu_probe", t("GPU probe"), "developer_board"),
            _page("benchmarks", t("Benchmarks"), "upload_file"),
            _page("live_engine", t("Live engine"), "monitor_heart"),
        ],
        t("Decide"): [
            _page("decision", t("Decision"), "balance"),
            _page("review_sheet", t("Review sheet"), "description"),
        ],
        t("Help"): [_page("guide", t("Guide"), "menu_book")],
    },
    position="top",
)
try:
    inputs.sidebar(page.url_path)
    for problem in state.link_problems():
        st.warning(t(problem), icon=":material/link_off:")
    page.run()
except PlimsollError as error:
    st.error(t(error.message), icon=":material/error:")
