"""The views of Alternatives: a search beside the page, a candidate that cannot be timed, users, and stated costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import streamlit
from conftest import PATIENCE_S, ROOT
from streamlit.testing.v1 import AppTest

from calc.search import Space, search
from data import catalogue
from data.case import example_case, read_case
from data.store.export import to_csv
from ui import fields, state
from ui.alternatives import hunting
from ui.alternatives.hunt import Hunt
from ui.story import about_search


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    yield AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    streamlit.cache_resource.clear()


def view(app: AppTest, code: str) -> AppTest:
    app.switch_page("../pages/alternatives.py").run()
    return app.segmented_control(key="alternatives_view").set_value(code).run()


def clean(app: AppTest) -> AppTest:
    """No traceback and no sentence about bad input; a verdict may be red."""
    assert not app.exception
    assert not [box.value for box in app.error if box.icon == ":material/error:"]
    return app


def said(app: AppTest) -> str:
    return "\n".join(
        [*(element.value for element in (*app.markdown, *app.caption, *app.success, *app.warning)), *tables(app)]
    )


def tables(app: AppTest) -> list[str]:
    return [element.value.to_string().replace("\xa0", " ") for element in app.table]


def test_a_search_runs_beside_the_page_and_shows_ranked_rows(app: AppTest) -> None:
    view(app, "search")
    app.multiselect(key="search_gpus").set_value(["h100-sxm", "l40s"]).run()
    app.button(key="search_start").click().run()
    hunt = app.session_state["search"]
    assert hunt.wait(PATIENCE_S)
    clean(app.run())
    rows = app.dataframe[0].value
    assert rows["Deployment"].iloc[0].endswith(about_search.name(hunt.result.rows[0].scenario).rsplit(", ", 1)[-1])
    assert len(app.get("plotly_chart")) == 2
    assert "looked at" in said(app)
    app.number_input(key="rate").set_value(1.0).run()
    assert not clean(app).dataframe, "a result stands only beside the question it answers"


def test_a_row_becomes_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    base, _ = read_case(example_case())
    found = search(base, Space(gpus=(catalogue.gpu("h200"),), tps=(1, 2)))
    assert found is not None
    scenarios = [row.scenario for row in found.rows]
    loaded: list[Any] = []
    monkeypatch.setattr(state, "get", lambda _: {"row": 1, "label": ""})
    monkeypatch.setattr(state, "load", loaded.append)
    hunting.take(scenarios, "rows_take")
    read, _ = read_case(fields.to_case(fields.to_values(fields.filled_in(loaded[0], scenarios[1]))))
    assert replace(read.deployment, engine=base.deployment.engine) == scenarios[1].deployment


def test_a_cancelled_search_keeps_nothing() -> None:
    base, _ = read_case(example_case())
    gpus = tuple(catalogue.gpus().values())
    hunt = Hunt(question="", turn=Lock()).begin(base, Space(gpus=gpus, pps=(1, 2), kv_dtypes=(None, "fp8")), {})
    hunt.cancel()
    assert hunt.wait(PATIENCE_S)
    assert (hunt.result, hunt.problem, hunt.running) == (None, None, False)


def test_a_search_waits_for_its_turn_and_can_be_cancelled_there() -> None:
    base, _ = read_case(example_case())
    turn = Lock()
    turn.acquire()
    hunt = Hunt(question="", turn=turn).begin(base, Space(gpus=(catalogue.gpu("h200"),)), {})
    assert not hunt.wait(0.3)
    hunt.cancel()
    assert hunt.wait(PATIENCE_S)
    assert hunt.progress is None


def test_no_formula_reaches_a_spreadsheet() -> None:
    base, _ = read_case(example_case())
    gpu = replace(catalogue.gpu("h200"), id="x", name='=HYPERLINK("http://x")')
    found = search(base, Space(gpus=(gpu,), tps=(2,)))
    assert found is not None
    assert b"'=HYPERLINK" in to_csv(*about_search.csv(found))


def test_a_gpu_without_link_figures_is_one_remark_and_not_an_error(app: AppTest) -> None:
    view(app, "compare")
    app.selectbox(key="gpu").set_value("own").run()
    app.number_input(key="own_memory").set_value(141.0)
    app.number_input(key="own_bandwidth").set_value(4800.0)
    app.number_input(key="own_bf16").set_value(989.0).run()
    clean(app)
    assert "bandwidth" in said(app)
    clean(view(app, "search"))
    clean(view(app, "cost"))


@pytest.mark.parametrize("question", ["load", "users", "context", "boxes"])
def test_the_inverse_questions_are_answered(app: AppTest, question: str) -> None:
    view(app, "inverse")
    app.segmented_control(key="inverse_question").set_value(question).run()
    clean(app)
    assert question == "boxes" or app.metric


def test_a_stated_amount_is_in_the_table_the_link_and_the_cost(app: AppTest) -> None:
    view(app, "cost")
    before = app.metric[0].value
    app.selectbox(key="cost_name").set_value("monitoring")
    app.number_input(key="cost_amount").set_value(7300.0)
    app.button(key="FormSubmitter:cost_form-State it").click().run()
    clean(app)
    assert "10.00 USD" in said(app)
    assert json.loads(app.query_params["costs"])["lines"][0]["amount_per_month"] == 7300.0
    assert app.metric[0].value != before
    app.number_input(key="cost_spares").set_value(1.0).run()
    assert json.loads(app.query_params["costs"])["spare_replicas"] == 1
    app.button(key="cost_remove_monitoring").click().run()
    clean(app)
    assert "lines" not in json.loads(app.query_params["costs"])


def test_an_amount_left_empty_is_asked_for(app: AppTest) -> None:
    view(app, "cost")
    app.button(key="FormSubmitter:cost_form-State it").click().run()
    assert not app.exception
    assert any("expected an amount" in box.value for box in (*app.warning, *app.error))
