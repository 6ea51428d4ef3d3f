"""The Reuse view: without block hashes it says what is missing, with them what is found, and a click plans with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import PATIENCE_S, ROOT
from streamlit.testing.v1 import AppTest

from calc.evidence import Provenance
from data.logs.given import GivenLog
from data.logs.load import load_log
from data.store.store import Store


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    app.switch_page("../pages/workload.py").run()
    yield app.segmented_control(key="workload_view").set_value("reuse").run()
    streamlit.cache_resource.clear()


def conversations() -> bytes:
    """Forty conversations of five turns: every turn repeats what was said and adds four blocks of 512 tokens."""
    rows = []
    for turn in range(5):
        for talk in range(40):
            blocks = [0, *(1 + talk * 100 + place for place in range(4 * (turn + 1)))]
            row = {"timestamp": (turn * 40 + talk) * 1500, "input_length": 512 * len(blocks), "output_length": 200}
            rows.append(json.dumps(row | {"hash_ids": blocks}))
    return "\n".join(rows).encode()


def test_the_view_asks_for_hashes_then_shows_the_curve_and_plans_with_it(app: AppTest) -> None:
    assert not app.exception
    assert any("chained hashes" in text.value for text in app.markdown)
    assert not app.get("plotly_chart")

    from ui import resources

    store: Store = resources.store()
    load_log(store.database, GivenLog.of_bytes(conversations(), "talks.jsonl"))
    app.run()
    assert not app.exception, [error.message for error in app.exception]
    assert len(app.get("plotly_chart")) == 2
    assert any("160 of 200 requests go on" in text.value for text in app.markdown)

    app.button(key="reuse_take").click().run()
    taken = {one.metric: one for one in app.session_state["_measured"]}
    # Of 5 + 9 + 13 + 17 + 21 blocks a talk, later turns repeat 5 + 9 + 13 + 17; all but one first turn repeat one.
    assert taken["prefix_share"].value == pytest.approx((40 * 44 + 39) / (40 * 65))
    assert taken["prefix_share"].provenance is Provenance.MEASURED
    assert app.session_state["hit"] == round(taken["hit_rate_share"].value * 100, 1)
    assert "talks.jsonl" in taken["hit_rate_share"].source
    app.button(key="reuse_forget").click().run()
    assert not app.session_state["_measured"]
