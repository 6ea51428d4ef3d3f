"""Every page renders in both languages, and each page's main input changes its main number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

from ui import measuring

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(page.stem for page in (ROOT / "pages").glob("*.py") if page.stem != "__init__")
METRICS_TEXT = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 7.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} 0.4375
"""
RUN = {
    "backend": "vllm", "model_id": "Qwen/Qwen3-32B", "date": "20261101-101500", "num_prompts": 400, "request_rate": 2.0,
    "burstiness": 1.0, "max_concurrency": None, "duration": 201.0, "completed": 400, "total_input_tokens": 1600000,
    "total_output_tokens": 160000, "request_throughput": 1.99, "output_throughput": 796.0,
    "total_token_throughput": 8756.0, "mean_ttft_ms": 420.0, "median_ttft_ms": 380.0, "std_ttft_ms": 120.0,
    "p99_ttft_ms": 900.0, "mean_tpot_ms": 28.0, "median_tpot_ms": 27.5, "std_tpot_ms": 3.0, "p99_tpot_ms": 40.0,
    "mean_itl_ms": 28.0, "median_itl_ms": 22.0, "std_itl_ms": 20.0, "p99_itl_ms": 130.0,
}  # fmt: skip


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The whole app on a store of its own, after its first run."""
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    yield AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    streamlit.cache_resource.clear()


def open_page(app: AppTest, page: str) -> AppTest:
    """Go to a page."""
    return app.switch_page(f"../pages/{page}.py").run()


def numbers(app: AppTest) -> list[str]:
    """Values of the answer row."""
    return [metric.value for metric in app.metric]


def assert_clean(app: AppTest) -> None:
    assert not app.exception, [error.message for error in app.exception]


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_renders(app: AppTest, page: str, language: str) -> None:
    app.segmented_control(key="lang").set_value(language).run()
    open_page(app, page)
    assert_clean(app)
    assert app.title
    assert page == "guide" or len(app.metric) >= 3


def paste_metrics(app: AppTest) -> None:
    app.segmented_control(key="live_view").set_value("paste").run()
    app.text_area(key="engine_text").set_value(METRICS_TEXT).run()


CHANGES: dict[str, Callable[[AppTest], object]] = {
    "overview": lambda app: app.number_input(key="rate").set_value(1.0).run(),
    "workload": lambda app: app.number_input(key="rate").set_value(1.0).run(),
    "memory": lambda app: app.selectbox(key="kv_dtype").set_value("fp8").run(),
    "latency": lambda app: app.number_input(key="rate").set_value(1.0).run(),
    "alternatives": lambda app: app.number_input(key="rate").set_value(1.0).run(),
    "decision": lambda app: app.number_input(key="rate").set_value(0.2).run(),
    "review_sheet": lambda app: app.number_input(key="rate").set_value(0.2).run(),
    "live_engine": lambda app: paste_metrics(app),
}


@pytest.mark.parametrize("page", CHANGES)
def test_the_main_input_changes_the_main_number(app: AppTest, page: str) -> None:
    before = numbers(open_page(app, page))
    CHANGES[page](app)
    assert_clean(app)
    assert numbers(app)[:2] != before[:2]


def test_an_uploaded_run_is_previewed_then_stored_and_compared(app: AppTest) -> None:
    before = numbers(open_page(app, "benchmarks"))
    app.file_uploader(key="bench_file").upload("result.json", json.dumps(RUN).encode()).run()
    assert numbers(app) == before, "nothing is stored before it was looked at"
    app.button(key="bench_store").click().run()
    assert_clean(app)
    assert numbers(app)[0] == "1"
    assert "not measured" not in numbers(app)[1]


def test_the_same_file_twice_is_stored_once(app: AppTest) -> None:
    open_page(app, "benchmarks")
    for _ in range(2):
        app.file_uploader(key="bench_file").upload("result.json", json.dumps(RUN).encode()).run()
        app.button(key="bench_store").click().run()
    assert numbers(app)[0] == "1"


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install torch to measure")
def test_the_probe_measures_in_its_own_process_and_shows_the_result(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "TIME_CAP_S", 3.0)
    before = numbers(open_page(app, "gpu_probe"))
    app.button(key="probe_start").click().run()
    end = monotonic() + 90
    while numbers(app) == before and monotonic() < end:
        sleep(1.0)
        app.run()
    assert_clean(app)
    assert numbers(app)[0] != before[0]


def test_the_glossary_finds_a_word(app: AppTest) -> None:
    rows = len(open_page(app, "guide").dataframe[0].value)
    app.text_input(key="guide_word").set_value("preemption").run()
    assert 0 < len(app.dataframe[0].value) < rows


def test_values_survive_page_changes(app: AppTest) -> None:
    app.number_input(key="rate").set_value(1.25).run()
    for page in ("memory", "guide", "latency"):
        open_page(app, page)
    assert app.number_input(key="rate").value == 1.25


def test_switching_the_language_keeps_every_input(app: AppTest) -> None:
    app.number_input(key="rate").set_value(1.25).run()
    app.selectbox(key="arrivals").set_value("constant").run()
    app.segmented_control(key="lang").set_value("zh_CN").run()
    assert app.number_input(key="rate").value == 1.25
    assert app.selectbox(key="arrivals").value == "constant"


def test_a_link_opens_its_scenario_and_is_kept_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    app.query_params["rate"], app.query_params["gpu"], app.query_params["lang"] = "1.5", "h200", "zh_CN"
    app.run()
    assert_clean(app)
    assert (app.number_input(key="rate").value, app.selectbox(key="gpu").value) == (1.5, "h200")
    app.number_input(key="rate").set_value(2.0).run()
    assert app.query_params["rate"] == "2"


def test_a_scenario_is_saved_versioned_and_loaded_back(app: AppTest) -> None:
    open_page(app, "alternatives")
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    app.button(key="scenario_save").click().run()
    app.number_input(key="rate").set_value(1.25).run()
    app.button(key="scenario_save").click().run()
    assert_clean(app)
    assert list(app.dataframe[-1].value["Version"]) == [2]
    app.number_input(key="rate").set_value(3.0).run()
    app.button(key="scenario_load").click().run()
    assert app.number_input(key="rate").value == 1.25


BAD: dict[str, Callable[[AppTest], object]] = {
    "TP that does not divide the heads": lambda app: (
        app.number_input(key="gpus").set_value(7),
        app.number_input(key="tp").set_value(7).run(),
    ),
    "GPUs that make no whole replica": lambda app: app.number_input(key="gpus").set_value(3).run(),
    "own GPU without bandwidth": lambda app: app.selectbox(key="gpu").set_value("own").run(),
    "nothing in a needed field": lambda app: app.number_input(key="rate").set_value(None).run(),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_clear_sentence(app: AppTest, what: str) -> None:
    open_page(app, "latency")
    BAD[what](app)
    assert_clean(app)
    assert len(app.error) == 1
    assert ":" in app.error[0].value


BAD_CONFIGS = {
    "no JSON": "{nope",
    "a list": "[1, 2]",
    "no layers": '{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}',
    "an unknown family": '{"model_type": "novel-net", "architectures": ["NovelNet"], "num_hidden_layers": 4}',
}


@pytest.mark.parametrize("what", BAD_CONFIGS)
def test_a_broken_config_json_gets_one_clear_sentence_and_is_not_stored(app: AppTest, what: str) -> None:
    from ui import resources

    app.session_state["own_model_text"] = BAD_CONFIGS[what]
    app.session_state["own_model_popover"] = True
    app.run()
    app.button(key="own_model_add").click().run()
    assert_clean(app)
    assert len([error for error in app.error if error.value]) >= 1
    assert resources.store().own_models() == ()
