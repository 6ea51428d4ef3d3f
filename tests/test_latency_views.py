"""The views of the Latency page: each answers in both languages, follows its inputs, shows nothing beyond the limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent
VIEWS = ("load", "path", "requests", "textbook", "strategies", "offload", "claims", "calibration")
OWN = ("load", "path", "requests", "textbook")
PICTURES = ("ttft", "itl", "e2e", "slo", "kv")


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


def load(app: AppTest, rate_per_s: float) -> None:
    app.number_input(key="rate").set_value(rate_per_s).run()


def charts(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def alts(app: AppTest) -> list[str]:
    return [chart.proto.alt for chart in app.get("plotly_chart")]


def said(app: AppTest) -> str:
    """Every sentence outside tables."""
    texts = (*app.caption, *app.markdown, *app.info, *app.error, *app.success, *app.warning)
    return "\n".join(text.value for text in texts).replace("\\", "")


def cells(app: AppTest) -> str:
    tables = (*app.table, *app.dataframe)
    return "\n".join(str(cell) for table in tables for row in table.value.to_numpy() for cell in row)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_view_answers_in_both_languages(app: AppTest, language: str) -> None:
    app.segmented_control(key="lang").set_value(language).run()
    for view in VIEWS:
        look(app, view)
        assert len(app.metric) >= 4


@pytest.mark.parametrize("view", OWN)
def test_every_picture_has_words_and_a_fixed_height(app: AppTest, view: str) -> None:
    look(app, view)
    if view == "requests":
        app.toggle(key="latency_hour").set_value(True).run()
    assert all(len(words) > 20 for words in alts(app))
    assert all(chart["layout"]["height"] >= 200 for chart in charts(app))
    assert view == "textbook" or charts(app)


@pytest.mark.parametrize("view", OWN)
def test_every_view_says_how_it_is_computed_once(app: AppTest, view: str) -> None:
    look(app, view)
    assert [fold.label for fold in app.expander].count("How this is computed") == 1


@pytest.mark.parametrize("view", OWN)
def test_the_load_moves_every_view(app: AppTest, view: str) -> None:
    look(app, view)
    before = (said(app), cells(app))
    load(app, 1.0)
    assert (said(app), cells(app)) != before


def test_the_address_names_the_view_and_the_view_survives_other_pages(app: AppTest) -> None:
    look(app, "path")
    assert app.query_params["latency_view"] in ("path", ["path"])
    app.switch_page("../pages/memory.py").run()
    app.switch_page("../pages/latency.py").run()
    assert app.segmented_control(key="latency_view").value == "path"
    look(app, "load")
    assert "latency_view" not in app.query_params


def test_a_link_opens_its_view_and_an_unknown_one_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    for linked, opened in (("textbook", "textbook"), ("nonsense", "load")):
        app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
        app.query_params["latency_view"] = linked
        app.run().switch_page("../pages/latency.py").run()
        assert app.segmented_control(key="latency_view").value == opened
        assert not app.exception


def test_the_curve_has_the_band_of_the_slos_percentile_the_target_and_the_planned_load(app: AppTest) -> None:
    load(app, 1.6)
    app.segmented_control(key="latency_metric").set_value("ttft").run()
    (chart,) = charts(app)
    names = [trace.get("name") for trace in chart["data"]]
    assert "95 % band of P95" in names
    assert {"P50", "P95", "P99"} <= set(names)
    words = " ".join(note["text"] for note in chart["layout"]["annotations"])
    assert "SLO" in words
    assert "planned 1.6" in words
    by_name = {trace["name"]: trace["y"] for trace in chart["data"]}
    high = [trace["y"] for trace in chart["data"] if trace["name"] == "95 % band of P95"][-1]
    assert all(upper >= middle for upper, middle in zip(high, by_name["P95"], strict=False))


def test_every_picture_over_load_is_drawn(app: AppTest) -> None:
    for picture in PICTURES:
        app.segmented_control(key="latency_metric").set_value(picture).run()
        assert not app.exception
        assert len(charts(app)) == (2 if picture in ("slo", "kv") else 1)


def test_the_knee_the_headroom_and_the_limit_are_said(app: AppTest) -> None:
    load(app, 1.0)
    assert "headroom" in said(app)
    assert "above the planned 1.00 requests/s" in said(app)
    load(app, 2.6)
    assert "less than the planned 2.60 requests/s" in said(app)
    assert "set by" in said(app)


def test_curve_and_cards_agree_or_the_difference_is_explained(app: AppTest) -> None:
    load(app, 1.6)
    assert "Each point simulates 1,000 requests." in said(app)
    app.session_state["_curve_refined"] = app.session_state["_curve_shown"]  # as if the fragment had ticked once
    app.run()
    assert "Each point simulates 5,000 requests, the cards above 1,000" in said(app)
    assert "there; the difference is chance" in said(app)


@pytest.mark.parametrize("view", OWN)
def test_a_load_beyond_the_limit_is_saturated_not_a_number(app: AppTest, view: str) -> None:
    load(app, 9.0)
    look(app, view)
    assert "Saturated" in app.error[0].value
    assert [metric.value for metric in app.metric[:3]] == ["unstable"] * 3
    if view == "load":
        assert "unstable" in cells(app)
        (chart,) = charts(app)
        assert any("saturated at" in note["text"] for note in chart["layout"]["annotations"])
        crosses = next(trace for trace in chart["data"] if trace.get("name") == "saturated")
        assert max(crosses["x"]) == 9.0
        lines = [trace for trace in chart["data"] if trace.get("name") == "P95"]
        assert all(x < 9.0 for trace in lines for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None)
    if view == "textbook":
        assert "no queue settles" in said(app)


def test_users_of_a_closed_loop_wait_a_finite_time(app: AppTest) -> None:
    app.selectbox(key="arrivals").set_value("closed").run()
    app.number_input(key="concurrency").set_value(90).run()
    assert "unstable" not in [metric.value for metric in app.metric]
    for view in OWN:
        look(app, view)
    assert "fixed point" in cells(app)
    look(app, "requests")
    assert "no rates to play" in said(app)


def test_slow_requests_are_taken_apart(app: AppTest) -> None:
    look(app, "path")
    app.segmented_control(key="latency_split").set_value("ttft").run()
    bars = charts(app)[0]["data"]
    assert [bar["name"] for bar in bars] == ["T_queue", "T_prefill", "T_network"]
    totals = [sum(bar["x"][row] for bar in bars) for row in range(4)]
    assert totals[1] < totals[2] < totals[3]
    assert "What makes a slow TTFT slow is" in said(app)


def test_the_path_names_what_a_faster_gpu_would_save(app: AppTest) -> None:
    look(app, "path")
    assert "FLOP per byte read" in said(app)
    assert "Twice the FLOP/s would shorten the mean step by at most" in said(app)
    assert "share their step with a prefill" in said(app)


def test_token_budgets_are_tried_behind_a_switch(app: AppTest) -> None:
    look(app, "path")
    assert "8,192 ●" not in cells(app)
    app.toggle(key="latency_budgets").set_value(True).run()
    assert not app.exception
    assert "8,192 ●" in cells(app)
    assert "2,048" in cells(app)


def test_short_prompts_wait_behind_long_ones(app: AppTest) -> None:
    look(app, "requests")
    assert "The shortest prompts wait" in said(app)
    assert len(charts(app)[0]["data"]) == 5


def test_an_hour_is_played_by_the_minute(app: AppTest) -> None:
    app.selectbox(key="arrivals").set_value("per-minute").run()
    app.text_input(key="minute_rates").set_value("0.5, 0.5, 4, 4, 0.5, 0.5").run()
    look(app, "requests")
    app.toggle(key="latency_hour").set_value(True).run()
    assert not app.exception
    assert "of 60 minutes miss the SLO" in said(app)
    assert "understate waiting" in said(app)
    for picture in ("ttft", "e2e", "queue", "kv"):
        app.segmented_control(key="latency_minutes").set_value(picture).run()
        assert not app.exception
    assert len(charts(app)[-1]["data"][0]["y"]) == 60


def test_a_plain_rate_may_take_the_shape_of_a_trace_marked_as_an_assumption(app: AppTest) -> None:
    load(app, 1.2)
    look(app, "requests")
    app.toggle(key="latency_hour").set_value(True).run()
    assert "An assumption" not in said(app)
    app.selectbox(key="latency_shape").set_value("code").run()
    assert "An assumption" in said(app)
    assert "Azure LLM inference trace 2023" in said(app)
    before = app.metric[-1].value
    app.number_input(key="latency_hour_seed").set_value(2).run()
    assert app.metric[-1].value != before


def test_the_textbooks_burstiness_can_be_set(app: AppTest) -> None:
    look(app, "textbook")
    before = cells(app)
    app.number_input(key="latency_cv2").set_value(6.0).run()
    assert not app.exception
    assert cells(app) != before
    app.number_input(key="latency_cv2").set_value(None).run()
    assert cells(app) == before


def test_without_a_target_nothing_is_missed(app: AppTest) -> None:
    for key in ("slo_ttft", "slo_itl", "slo_e2e"):
        app.number_input(key=key).set_value(None)
    app.run()
    for view in OWN:
        look(app, view)
    look(app, "load")
    assert "No target is set" in said(app)
    app.segmented_control(key="latency_metric").set_value("slo").run()
    assert "No target is set" in app.info[0].value


def test_what_does_not_fit_has_no_latency_and_says_why(app: AppTest) -> None:
    app.selectbox(key="gpu").set_value("t4").run()
    assert not app.exception
    assert len(app.error) == 1
    assert "does not fit" in app.error[0].value
    assert not app.metric
