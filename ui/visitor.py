"""Who is at the screen, where Streamlit's login knows."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from data.store import NOT_SIGNED_IN

NAMED_BY = ("email", "preferred_username", "name", "sub")
"""Claims of an OIDC login that tell people apart, most telling first."""


def signed_in() -> str:
    """The visitor of this thread; without a login, and outside a visit, nobody can be told from another."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return NOT_SIGNED_IN
    user = st.user.to_dict()
    named = next((user[claim] for claim in NAMED_BY if user.get(claim)), None)
    return str(named) if named and user.get("is_logged_in") else NOT_SIGNED_IN
