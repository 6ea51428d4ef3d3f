"""Published headline figures: computed again under their conditions, and on this scenario."""

from __future__ import annotations

import streamlit as st

from calc.claims.claim import Claim, Yours
from calc.claims.table import HEADLINES
from calc.errors import InputError
from calc.latency import LatencyReport
from data.shelf import shelf
from ui import parts, resources
from ui.resources import Asked
from ui.story import about_claims
from ui.text import t


@st.cache_resource(show_spinner=False)
def _claims() -> tuple[Claim, ...]:
    """The same for every visitor: they do not depend on a scenario."""
    stock = shelf()
    return tuple(headline.claim(stock) for headline in HEADLINES.values())


@st.cache_resource(max_entries=resources.KEPT, show_spinner=False)
def _yours(key: str, _asked: Asked) -> tuple[Yours, ...]:  # noqa: ARG001 - the key
    return tuple(_on_yours(code, _asked) for code in HEADLINES)


def _on_yours(code: str, asked: Asked) -> Yours:
    try:
        return HEADLINES[code].yours(asked.scenario)
    except InputError as error:
        return Yours(value=None, statement=error.message)


def show(asked: Asked, latency: LatencyReport) -> None:  # noqa: ARG001 - same signature for all views
    """All headlines side by side, then one with its conditions."""
    pairs = list(zip(_claims(), _yours(asked.key, asked), strict=True))
    parts.section(t("Headlines and their conditions"), about_claims.sentence(pairs))
    parts.prose(about_claims.rows(pairs))
    names = {claim.code: t(claim.title) for claim, _ in pairs}
    chosen = parts.pick(t("Headline"), names, "headline")
    claim, found = next(pair for pair in pairs if pair[0].code == chosen)
    parts.bullets(about_claims.details(claim, found))
    st.caption(parts.escape(about_claims.source(claim)))
