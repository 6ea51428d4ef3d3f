"""A calibration on its ways: in a case, on the command line, in the store, on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit
from click.testing import CliRunner
from conftest import PATIENCE_S
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import cli
from calc import MODEL_VERSION
from calc.calibrate.calibration import CODES
from calc.errors import PlimsollError
from calc.latency import predict
from data.case import example_case, read_case, write_case
from data.case_calibration import calibration_of_text, calibration_text, parse_calibration
from data.formats import read
from data.store import Store, content_id
from ui import resources

ROOT = Path(__file__).resolve().parent.parent
LOAD = {
    "prompt_tokens": {"distribution": "fixed", "value": 500},
    "output_tokens": {"distribution": "fixed", "value": 100},
    "arrivals": {"kind": "poisson", "rate_per_s": 4},
    "num_requests": 300,
}
CASE: dict[str, Any] = {"model": "Qwen/Qwen3-14B", "gpu": "h100-sxm", "engine_version": "0.15.1", "workload": LOAD}


def point(rate_per_s: float, ttft_ms: float, tpot_ms: float, **more: Any) -> dict[str, Any]:
    case = {**CASE, "workload": {**LOAD, "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s}}}
    return {"case": case, "measured": {"ttft_ms": {"mean": ttft_ms}, "tpot_ms": tpot_ms}, **more}


POINTS = [
    point(2, 60, 13.5, source="lab", date="2026-11-29"),
    point(12, 80, 17.0, source="lab", date="2026-11-30"),
]


def test_points_in_a_case_are_fitted_and_named() -> None:
    scenario, notes = read_case({**CASE, "calibration": POINTS})
    assert scenario.calibration is not None
    assert (scenario.calibration.name, scenario.calibration.points) == ("lab, 2026-11-30", 2)
    assert not [note for note in notes if "not known" in str(note)]
    plain, fitted = predict(read_case(CASE)[0]), predict(scenario)
    assert fitted.calibration == "lab, 2026-11-30"
    assert fitted.tpot != plain.tpot


def test_a_calibrated_scenario_is_written_short_and_reads_back_the_same() -> None:
    scenario, notes = read_case({**CASE, "calibration": POINTS})
    written = write_case(scenario)
    assert len(json.dumps(written["calibration"])) < 700
    assert read_case(written) == (scenario, notes)
    assert write_case(read_case(written)[0]) == written
    assert scenario.calibration is not None
    assert calibration_of_text(calibration_text(scenario.calibration)) == scenario.calibration


def test_a_point_of_the_same_deployment_needs_only_its_load() -> None:
    short = [{**one, "case": {"workload": one["case"]["workload"]}} for one in POINTS]
    assert read_case({**CASE, "calibration": short})[0] == read_case({**CASE, "calibration": POINTS})[0]


def test_a_point_keeps_no_calibration_of_its_own() -> None:
    nested = [{**one, "case": {**one["case"], "calibration": POINTS}} for one in POINTS]
    assert read_case({**CASE, "calibration": nested})[0] == read_case({**CASE, "calibration": POINTS})[0]


BROKEN: dict[str, tuple[Any, str]] = {
    "a number": (3, "calibration must be a list"),
    "no case": ([{"measured": {}}], "calibration.case must be a JSON object|case is missing"),
    "nothing measured": ([{"case": CASE, "measured": {}}], "figure that tells"),
    "a text": ([{"case": CASE, "measured": {"ttft_ms": "fast"}}], "point 1: .*ttft_ms must be a number"),
    "below zero": ([{"case": CASE, "measured": {"ttft_ms": -4}}], "point 1: measured TTFT mean"),
    "an unknown model": ([{"case": {**CASE, "model": "no/such"}, "measured": {"ttft_ms": 4}}], "point 1: "),
    "seconds for milliseconds": ([point(2, 0.06, 0.0135)], "milliseconds or seconds"),
    "no factors": ({"source": "x"}, "valid_for is missing"),
    "too many": ([POINTS[0]] * 51, "at most 50 entries|choose some"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_calibration_is_one_sentence(name: str) -> None:
    given_, reason = BROKEN[name]
    with pytest.raises(PlimsollError, match=reason) as refused:
        read_case({**CASE, "calibration": given_})
    assert "\n" not in str(refused.value)


FACTORS = {
    "source": "lab",
    "valid_for": {
        "model": "a",
        "gpu": "b",
        "engine": "c",
        "engine_version": "1",
        "weight_dtype": "fp8",
        "kv_dtype": "fp8",
    },
    "factors": {"memory": 1.1},
}


@pytest.mark.parametrize("value", [0, -1, 1e9, "x", True, [1]])
@pytest.mark.parametrize("code", CODES)
def test_hostile_factors_are_refused(code: str, value: Any) -> None:
    if code == "first_token_steps" and value in (0, -1):
        assert parse_calibration({**FACTORS, "factors": {code: value}}).factors.first_token_steps == value
        return
    with pytest.raises(PlimsollError):
        parse_calibration({**FACTORS, "factors": {code: value}})


@given(st.text(max_size=80))
def test_any_text_of_a_link_is_read_or_refused(text: str) -> None:
    with pytest.raises(PlimsollError):
        calibration_of_text(text)


def lines_of(*asked: Any, verb: str = "calibrate", code: int = 0) -> list[dict[str, Any]]:
    found = CliRunner().invoke(cli.main, [verb, "-"], input="\n".join(json.dumps(one) for one in asked))
    assert found.exit_code == code, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_the_calibrate_verb_answers_constants_residuals_and_errors() -> None:
    (answer,) = lines_of(*({"id": f"r{place}", **one} for place, one in enumerate(POINTS)))
    assert answer["points"] == ["r0", "r1"]
    assert set(answer["leave_one_out_error"]) == {"ttft", "tpot"}
    assert set(answer["not_identified"]) <= set(CODES)
    assert answer["constants"]["memory"]["unit"] == "share"
    assert {row["figure"] for row in answer["residuals"]} == {"ttft_ms mean", "tpot_ms mean"}
    assert answer["median_error"]["tpot"]["after"] < answer["median_error"]["tpot"]["before"]
    (predicted,) = lines_of({**CASE, "calibration": answer["calibration"]}, verb="predict")
    (same,) = lines_of({**CASE, "calibration": POINTS}, verb="predict")
    assert predicted == same
    assert predicted["calibration"] == answer["name"]


def test_one_point_has_no_leave_one_out_error() -> None:
    assert lines_of(POINTS[0])[0]["leave_one_out_error"] is None


def test_each_deployment_is_a_line_of_its_own_and_a_bad_line_an_error() -> None:
    other = {**POINTS[0], "case": {**POINTS[0]["case"], "model": "Qwen/Qwen3-8B"}}
    bad, first, second = lines_of(POINTS[0], {"id": 7, "case": 3}, other, POINTS[1], code=1)
    assert bad == {"id": 7, "error": "case must be a JSON object, got 3: put it in braces."}
    assert first["points"] == [1, 2]
    assert second["valid_for"]["model"] == "Qwen/Qwen3-8B"


def test_a_refused_fit_is_an_error_line_with_its_points() -> None:
    (answer,) = lines_of(point(2, 0.06, 0.0135, id="a"), code=1)
    assert answer["points"] == ["a"]
    assert "milliseconds or seconds" in answer["error"]


def test_a_calibration_is_stored_with_its_points_once_and_can_be_brought_back(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store(path) as store:
        first = store.add_calibration(FACTORS, points=POINTS, fit={"a": 1}, model_version=MODEL_VERSION)
        again = store.add_calibration(FACTORS, points=POINTS, fit={"a": 1}, model_version=MODEL_VERSION)
        assert (first.already_there, again.already_there, again.file_id) == (False, True, first.file_id)
    with Store(path) as store:
        (row,) = store.calibrations()
        assert (row.source, row.gpu, list(row.points)) == ("lab", "b", POINTS)
        removed = store.delete("calibration", row.calibration_id)
        assert store.calibrations() == ()
        store.undo(removed)
        assert store.calibrations() == (row,)
        assert b"lab" in store.export_csv("calibration")


RUN = {
    "backend": "vllm", "model_id": "Qwen/Qwen3-32B", "date": "20261101-101500", "num_prompts": 400, "request_rate": 2.0,
    "burstiness": 1.0, "max_concurrency": None, "duration": 201.0, "completed": 400, "total_input_tokens": 1600000,
    "total_output_tokens": 160000, "request_throughput": 1.99, "output_throughput": 796.0,
    "total_token_throughput": 8756.0, "mean_ttft_ms": 420.0, "median_ttft_ms": 380.0, "std_ttft_ms": 120.0,
    "p99_ttft_ms": 900.0, "mean_tpot_ms": 41.0, "median_tpot_ms": 40.5, "std_tpot_ms": 3.0, "p99_tpot_ms": 55.0,
}  # fmt: skip


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    content = json.dumps(RUN).encode()
    resources.store().add_file(read(content, "run.json"), file_id=content_id(content), size_bytes=len(content))
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    app.query_params["latency_view"] = "calibration"
    yield clean(app.switch_page("../pages/latency.py").run())
    streamlit.cache_resource.clear()


def clean(app: AppTest) -> AppTest:
    assert not app.exception, [error.message for error in app.exception]
    return app


def view(app: AppTest, **values: Any) -> AppTest:
    app.switch_page("../pages/latency.py")
    for key, value in {"latency_view": "calibration", **values}.items():
        app.session_state[key] = value
    return clean(app.run())


def press(app: AppTest, key: str) -> AppTest:
    return clean(app.button(key=key).click().run())


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.success, app.info, app.error, app.caption)
    return "\n".join(element.value for kind in kinds for element in kind)


def test_the_page_fits_uses_keeps_and_stops_using(app: AppTest) -> None:
    assert example_case()["model"] == RUN["model_id"]
    view(app)
    assert "generic constants" in said(app)
    press(app, "calibration_fit")
    assert "instead of" in said(app)
    press(app, "calibration_store")
    press(app, "calibration_use")
    assert "In use" in said(app)
    assert resources.store().calibrations()[0].calibration["source"] in said(app)
    assert len(resources.store().calibrations()) == 1
    press(app, "calibration_stop")
    assert "No calibration is in use" in said(app)
    press(app, "calibration_use_stored")
    assert "In use" in said(app)
    press(app, "calibration_remove")
    assert resources.store().calibrations() == ()
    press(app, "calibration_restore")
    assert len(resources.store().calibrations()) == 1


def test_a_link_with_a_calibration_opens_calibrated(app: AppTest) -> None:
    view(app)
    press(app, "calibration_fit")
    press(app, "calibration_use")
    text = app.session_state["calibration"]
    other = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    other.query_params["calibration"] = text
    clean(other.switch_page("../pages/latency.py").run())
    assert json.loads(text)["source"] in said(other)


def test_without_runs_typed_figures_are_asked_for(app: AppTest) -> None:
    view(app, model="Qwen/Qwen3-8B")
    assert "No stored run names this model" in said(app)
    view(app, calibration_from="typed")
    view(app, calibration_from="probe")
    assert "No GPU has been measured" in said(app)
