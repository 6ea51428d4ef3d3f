"""How long a page takes after a slider has moved; run with ``pytest --benchmark-only`` on a quiet machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from calc.simulator.warm import warm_up

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(page.stem for page in (ROOT / "pages").glob("*.py") if page.stem != "__init__")
MAX_MEDIAN_S = 0.100
"""An answer within a tenth of a second feels like the user's own hand: Nielsen, Usability Engineering, 1993."""
MAX_P95_S = 0.200
ROUNDS = 40
BEFORE = 3
"""Runs that are not counted: imports, the example itself, the first answers."""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The whole app on a store of its own, compiled and after its first run."""
    warm_up()
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    yield AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=60).run()
    streamlit.cache_resource.clear()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_answers_a_moved_slider_at_once(benchmark: Any, app: AppTest, page: str) -> None:
    """The hit share moves to a value nobody asked before, so no answer comes from memory."""
    app.switch_page(f"../pages/{page}.py").run()
    unasked = iter(range(26, 26 + ROUNDS + BEFORE))

    def move() -> None:
        app.slider(key="hit").set_value(next(unasked))

    benchmark.pedantic(app.run, setup=move, rounds=ROUNDS, warmup_rounds=BEFORE)
    assert not app.exception
    times_s = benchmark.stats.stats.data
    p95_s = float(np.quantile(times_s, 0.95))
    benchmark.extra_info["p95_ms"] = round(p95_s * 1e3, 1)
    assert (benchmark.stats.stats.median <= MAX_MEDIAN_S, p95_s <= MAX_P95_S) == (True, True), (
        f"{page}: median {benchmark.stats.stats.median * 1e3:.0f} ms, P95 {p95_s * 1e3:.0f} ms"
    )


MEMORY_QUESTIONS = [
    *(("capacity", "capacity_question", question) for question in ("prefix", "idle", "turns", "second")),
    *(("corrections", "correction", question) for question in ("waste", "blocks", "eviction", "formats")),
]


@pytest.mark.parametrize(("view", "key", "question"), MEMORY_QUESTIONS, ids=[row[-1] for row in MEMORY_QUESTIONS])
def test_a_question_about_capacity_is_answered_at_once(
    benchmark: Any, app: AppTest, view: str, key: str, question: str
) -> None:
    app.switch_page("../pages/memory.py").run()
    app.segmented_control(key="memory_view").set_value(view).run()
    app.segmented_control(key=key).set_value(question).run()
    unasked = iter(range(26, 26 + ROUNDS + BEFORE))

    def move() -> None:
        app.slider(key="hit").set_value(next(unasked))

    benchmark.pedantic(app.run, setup=move, rounds=ROUNDS, warmup_rounds=BEFORE)
    assert not app.exception
    assert benchmark.stats.stats.median <= MAX_MEDIAN_S
