"""Capacity, and waste and formats, on the Memory page: each question answers, each input moves its answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {
    "capacity": ("capacity_question", ("prefix", "idle", "turns", "second")),
    "corrections": ("correction", ("waste", "blocks", "eviction", "formats")),
}
ALL = [(view, question) for view, (_, questions) in QUESTIONS.items() for question in questions]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    started = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    yield started.switch_page("../pages/memory.py").run()
    streamlit.cache_resource.clear()


def ask(app: AppTest, view: str, question: str) -> AppTest:
    app.segmented_control(key="memory_view").set_value(view).run()
    app.segmented_control(key=QUESTIONS[view][0]).set_value(question).run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def answer(app: AppTest) -> str:
    """The view's sentence in bold."""
    return next(text.value for text in app.markdown if text.value.startswith("**"))


def cells(app: AppTest, table: int = -1) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in app.table[table].value.to_numpy()]


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_question_answers_in_both_languages(app: AppTest, language: str) -> None:
    app.segmented_control(key="lang").set_value(language).run()
    for view, question in ALL:
        ask(app, view, question)
        assert answer(app)
        assert not app.error
        assert not app.warning


MOVES = {
    ("capacity", "prefix"): ("room_prefix", 3000),
    ("capacity", "idle"): ("idle_share", 50.0),
    ("capacity", "turns"): ("room_turns", 20),
    ("capacity", "second"): ("room_fraction_other", 0.2),
    ("corrections", "waste"): ("max_len", 16_384),
    ("corrections", "blocks"): ("room_prefix", 3001),
    ("corrections", "eviction"): ("room_kept", 50),
    ("corrections", "formats"): ("room_length", 12_000),
}


@pytest.mark.parametrize("view", QUESTIONS)
def test_every_input_moves_its_answer_at_once(app: AppTest, view: str) -> None:
    for question in QUESTIONS[view][1]:
        ask(app, view, question)
        before = (answer(app), cells(app))
        key, value = MOVES[view, question]
        app.number_input(key=key).set_value(value).run()
        assert not app.exception
        assert (answer(app), cells(app)) != before, question


def test_idle_sessions_belong_to_the_scenario(app: AppTest) -> None:
    ask(app, "capacity", "idle")
    demand = app.metric[3].value
    app.number_input(key="idle_share").set_value(60.0).run()
    assert app.metric[3].value != demand
    assert "idle" in answer(app)
    assert "idle sessions" in (app.error or app.success)[0].value + app.metric[3].label
    assert app.query_params["idle_share"] == ["60"] or app.query_params["idle_share"] == "60"
    app.segmented_control(key="memory_view").set_value("budget").run()
    assert any("idle" in caption.value for caption in app.caption)


def test_a_page_of_its_own_numbers_keeps_them(app: AppTest) -> None:
    ask(app, "capacity", "turns")
    app.number_input(key="room_turns").set_value(7).run()
    app.switch_page("../pages/latency.py").run()
    app.switch_page("../pages/memory.py").run()
    assert app.number_input(key="room_turns").value == 7


def test_an_emptied_number_is_its_default_again(app: AppTest) -> None:
    ask(app, "capacity", "prefix")
    before = answer(app)
    app.number_input(key="room_prefix").set_value(None).run()
    assert not app.exception
    assert answer(app) == before


def test_a_number_beyond_the_maximum_length_is_taken_as_that(app: AppTest) -> None:
    ask(app, "corrections", "formats")
    app.number_input(key="room_length").set_value(1_000_000).run()
    assert not app.exception
    assert "32,768" in answer(app)
    ask(app, "capacity", "prefix")
    app.number_input(key="room_prefix").set_value(1_000_000).run()
    assert not app.exception


def test_what_does_not_fit_says_so_in_place_of_numbers(app: AppTest) -> None:
    app.selectbox(key="gpu").set_value("t4").run()
    for view in QUESTIONS:
        app.segmented_control(key="memory_view").set_value(view).run()
        assert not app.exception
        assert app.info
        assert not app.table


def test_the_second_model_that_cannot_be_split_gets_one_sentence(app: AppTest) -> None:
    app.number_input(key="gpus").set_value(8)
    app.number_input(key="tp").set_value(8).run()
    ask(app, "capacity", "second")
    app.selectbox(key="room_second").set_value("Qwen/Qwen2.5-0.5B").run()
    assert not app.exception
    assert len(app.warning) == 1
