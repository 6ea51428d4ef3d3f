"""Strategies, offload and headlines on the Latency page: each view answers in both languages, each input moves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

from calc.claims.table import HEADLINES
from calc.strategies.table import STRATEGIES
from calc.units import GB
from ui.charts import Tones, fetch_curve
from ui.charts.offload import Line

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    started = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    yield started.switch_page("../pages/latency.py").run()
    streamlit.cache_resource.clear()


def look(app: AppTest, view: str) -> AppTest:
    app.segmented_control(key="latency_view").set_value(view).run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def cells(app: AppTest, table: int) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in app.table[table].value.to_numpy()]


def sentence(app: AppTest) -> str:
    return next(text.value for text in app.markdown if text.value.startswith("**"))


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("view", ["strategies", "offload", "claims"])
def test_a_view_answers_in_both_languages(app: AppTest, view: str, language: str) -> None:
    app.segmented_control(key="lang").set_value(language).run()
    look(app, view)
    assert app.table
    assert len(app.error) <= 1  # the page's own answer may be that the SLO is missed


def test_the_table_of_strategies_fills_itself_step_by_step(app: AppTest) -> None:
    look(app, "strategies")
    waiting = [sum(row[2] == "…" for row in cells(app, 0))]
    for _ in range(len(STRATEGIES)):
        if waiting[-1] == 0:
            break
        app.run()
        waiting.append(sum(row[2] == "…" for row in cells(app, 0)))
    assert waiting[0] > 0
    assert waiting[-1] == 0
    assert waiting == sorted(waiting, reverse=True)


def test_a_goal_shows_its_own_strategies(app: AppTest) -> None:
    look(app, "strategies")
    every = len(cells(app, 0))
    app.segmented_control(key="strategy_goal").set_value("long-context").run()
    assert 0 < len(cells(app, 0)) < every == len(STRATEGIES)


def test_choosing_strategies_computes_them_together_and_warns(app: AppTest) -> None:
    look(app, "strategies")
    app.multiselect(key="strategy_stack").set_value(["fp8-kv", "fp8-weights"]).run()
    assert not app.exception
    assert any("0." in text.value for text in app.markdown if text.value.startswith("**"))
    assert any("answers" in caption.value for caption in app.caption)


def test_an_assumption_moves_its_strategy(app: AppTest) -> None:
    look(app, "strategies")
    app.selectbox(key="strategy_one").set_value("eviction").run()
    before = cells(app, 1)
    app.number_input(key="assume_kept").set_value(60).run()
    assert not app.exception
    assert cells(app, 1) != before


def test_a_longer_prefix_moves_the_break_even(app: AppTest) -> None:
    look(app, "offload")
    before = sentence(app)
    app.number_input(key="offload_prefix").set_value(20_000).run()
    assert not app.exception
    assert sentence(app) != before


def test_the_load_is_simulated_only_when_asked(app: AppTest) -> None:
    look(app, "offload")
    tables = len(app.dataframe)
    app.toggle(key="offload_simulate").set_value(True).run()
    assert not app.exception
    assert len(app.dataframe) == tables + 1


def test_every_headline_is_listed_and_opens(app: AppTest) -> None:
    look(app, "claims")
    assert len(cells(app, 0)) == len(HEADLINES)
    app.selectbox(key="headline").set_value("nvfp4-kv").run()
    assert not app.exception


def test_a_scenario_that_does_not_fit_says_so_instead_of_a_view(app: AppTest) -> None:
    app.selectbox(key="model").set_value("meta-llama/Llama-3.1-70B-Instruct").run()
    assert not app.exception
    assert app.error


def test_the_picture_marks_where_fetching_begins_to_pay() -> None:
    from calc.offload.fetch import Offload, crossing_tokens, curve
    from calc.serving import Tier
    from data.shelf import shelf

    engine = Offload.of(shelf().deploy("meta-llama/Meta-Llama-3-70B-Instruct", "h100-sxm", tp=4))
    tier = Tier(name="cpu", bytes_per_s=50 * GB, latency_s=20e-3)
    drawn = curve(engine, (tier,), rest_tokens=500, longest_tokens=32_768)
    at = crossing_tokens(engine, tier, rest_tokens=500, longest_tokens=32_768)
    figure = fetch_curve(drawn, [Line(name="CPU", crossing_tokens=at)], 4000, Tones.of(dark=False))
    names = [trace.name for trace in figure.data if trace.mode == "lines"]
    assert len(names) == 2
    ring = next(trace for trace in figure.data if trace.mode == "markers")
    assert ring.x[0] == at
