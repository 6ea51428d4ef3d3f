"""How long the Memory page takes on each question about capacity and waste; run with ``pytest --benchmark-only``."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from test_bench_pages import BEFORE, MAX_MEDIAN_S, app

__all__ = ["app"]
ROUNDS = 20
QUESTIONS = [
    *(("capacity", "capacity_question", question) for question in ("prefix", "idle", "turns", "second")),
    *(("corrections", "correction", question) for question in ("waste", "blocks", "eviction", "formats")),
]


@pytest.mark.parametrize(("view", "key", "question"), QUESTIONS, ids=[question for _, _, question in QUESTIONS])
def test_a_question_is_answered_at_once(benchmark: Any, app: AppTest, view: str, key: str, question: str) -> None:
    """The hit share moves to a value nobody asked before, so no answer comes from memory."""
    app.switch_page("../pages/memory.py").run()
    app.segmented_control(key="memory_view").set_value(view).run()
    app.segmented_control(key=key).set_value(question).run()
    unasked = iter(range(26, 26 + ROUNDS + BEFORE))

    def move() -> None:
        app.slider(key="hit").set_value(next(unasked))

    benchmark.pedantic(app.run, setup=move, rounds=ROUNDS, warmup_rounds=BEFORE)
    assert not app.exception
    assert benchmark.stats.stats.median <= MAX_MEDIAN_S
