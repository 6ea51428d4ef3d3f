"""A load curve at once, and a finer one a moment later: five points of 1,000 requests, then twelve of 5,000."""

from __future__ import annotations

import streamlit as st

from calc.latency import LoadSweep
from ui import resources, state
from ui.resources import Asked

POINTS, REQUESTS = 12, 5_000
AFTER_S = 0.4
"""Pause before the finer curve, so that a slider still moving is not held up."""
_SHOWN, _DONE = "_curve_shown", "_curve_refined"


def pause_s(asked: Asked) -> float | None:
    """How often the curve's fragment runs by itself: until it is refined, then no more."""
    state.put(**{_SHOWN: None})
    return None if state.get(_DONE) == asked.key else AFTER_S


def curve(asked: Asked) -> LoadSweep:
    """The coarse sweep on the page's run, the fine one from the fragment's next run on."""
    if state.get(_DONE) == asked.key:
        return resources.load_sweep(asked, points=POINTS, requests=REQUESTS)
    if state.get(_SHOWN) == asked.key:
        resources.load_sweep(asked, points=POINTS, requests=REQUESTS)
        state.put(**{_DONE: asked.key})
        st.rerun()
    state.put(**{_SHOWN: asked.key})
    return resources.load_sweep(asked)
