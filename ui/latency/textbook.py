"""Queueing theory beside the simulation: limits, the first token as a sum, and formulas with their conditions."""

from __future__ import annotations

import streamlit as st

from calc.latency import LatencyReport
from calc.textbook.results import QueueReport
from ui import parts, resources
from ui.latency import found
from ui.resources import Asked
from ui.story import about_latency, about_latency_textbook
from ui.text import t

HIGHEST_CV2 = 10_000.0


def show(asked: Asked, latency: LatencyReport) -> None:  # noqa: ARG001 - every view is asked in the same way
    """Stability limits, the first token as a sum, then one row for each formula."""
    own, deployment = found.queue(asked), asked.scenario.deployment
    split = deployment.replicas * deployment.dp
    parts.section(t("How much can be served for ever"), about_latency_textbook.limit_sentence(own, split))
    parts.prose(about_latency_textbook.limits(own, split))
    if own.first_token is not None:
        parts.section(t("The first token as a sum"))
        parts.prose(about_latency_textbook.first_token_rows(own.first_token))
    parts.section(t("Textbook queue beside the simulation"))
    queue = own if own.rate_per_s is None else _with_variability(asked, own)
    st.markdown(f"**{parts.escape(about_latency_textbook.sentence(queue))}**")
    parts.verdicts(about_latency_textbook.rows(queue))
    formulas = about_latency.formulas(asked.scenario, resources.memory(asked))
    parts.computed([*formulas, *about_latency_textbook.formulas(queue)], about_latency_textbook.SOURCES)


def _with_variability(asked: Asked, own: QueueReport) -> QueueReport:
    """Kingman's formula takes the variability of arrivals, which the visitor may know better."""
    given = st.number_input(
        t("Variability of arrivals c_a²"), 0.0, HIGHEST_CV2, None, 0.5, key="latency_cv2", persist_state="session",
        placeholder=f"{own.given_cv2:.3g}", format="%g",
    )  # fmt: skip
    st.caption(parts.escape(about_latency_textbook.variability(own)))
    return own if given is None else found.queue(asked, float(given))
