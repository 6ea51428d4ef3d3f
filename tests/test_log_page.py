"""The view for start-up logs: paste, compare, store, use, undo, and make it the scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import PATIENCE_S, ROOT
from streamlit.testing.v1 import AppTest

LOG = """(APIServer pid=1) INFO vLLM API server version 0.32.0
(APIServer pid=1) INFO non-default args: {'model': 'Qwen/Qwen3-32B', 'tensor_parallel_size': 2, 'max_model_len': 32768,\
 'gpu_memory_utilization': 0.9, 'api_key': ['sk-live-0123456789abcdef']}
(Worker_TP0 pid=2) INFO Model loading took 30.6 GiB memory and 20.1 seconds
(Worker_TP0 pid=2) INFO Available KV cache memory: 33.5 GiB
(Worker_TP1 pid=3) INFO Available KV cache memory: 33.9 GiB
(EngineCore pid=1) INFO GPU KV cache size: 274,432 tokens, Maximum concurrency for 32,768 tokens per request: 8.38x
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The Memory page with the log view open, on a store of its own."""
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    app.switch_page("../pages/memory.py").run()
    app.segmented_control(key="memory_view").set_value("log").run()
    yield app
    streamlit.cache_resource.clear()


def paste(app: AppTest, text: str) -> AppTest:
    app.text_area(key="log_text").set_value(text).run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def pool(app: AppTest) -> str:
    return str(app.metric[0].value)


def provenance(app: AppTest) -> str:
    return str(app.metric[0].delta)


def test_a_pasted_log_is_compared_and_its_text_is_not_kept(app: AppTest) -> None:
    paste(app, LOG)
    assert "33.50 GiB" in app.info[0].value
    assert app.text_area(key="log_text").value == ""
    assert "sk-live" not in json.dumps({key: repr(app.session_state[key]) for key in ("log_read", "measured")})
    assert app.button(key="log_store").disabled is False


def test_a_stored_log_is_used_until_the_estimate_is_asked_for_again(app: AppTest) -> None:
    estimated = pool(app)
    paste(app, LOG)
    app.button(key="log_store").click().run()
    assert not app.exception
    assert pool(app) == "33.5 GiB" != estimated
    assert provenance(app).startswith("measured")
    assert "measured" in app.query_params
    app.button(key="log_estimate").click().run()
    assert pool(app) == estimated
    assert provenance(app).startswith("estimated")
    app.button(key="log_measured").click().run()
    assert pool(app) == "33.5 GiB"


def test_a_changed_batch_budget_goes_back_to_the_estimate_with_a_note(app: AppTest) -> None:
    paste(app, LOG)
    app.button(key="log_store").click().run()
    app.number_input(key="max_batched").set_value(2048).run()
    assert not app.exception
    assert pool(app) != "33.5 GiB"
    assert any("similar start" in caption.value for caption in app.caption)
    app.number_input(key="max_batched").set_value(None).run()
    assert pool(app) == "33.5 GiB"


def test_a_link_carries_the_measured_memory_to_a_server_without_the_log(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paste(app, LOG)
    app.button(key="log_store").click().run()
    link = dict(app.query_params)
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "other.duckdb"))
    streamlit.cache_resource.clear()
    other = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    for key, value in link.items():
        other.query_params[key] = value
    other.run()
    other.switch_page("../pages/memory.py").run()
    assert pool(other) == "33.5 GiB"


def test_a_removed_log_is_no_longer_used_and_can_be_brought_back(app: AppTest) -> None:
    estimated = pool(app)
    paste(app, LOG)
    app.button(key="log_store").click().run()
    app.button(key="log_remove").click().run()
    assert not app.exception
    assert pool(app) == estimated
    app.button(key="log_restore").click().run()
    assert pool(app) == "33.5 GiB"


def test_the_sample_is_shown_but_cannot_be_stored_as_measured(app: AppTest) -> None:
    app.button(key="log_sample").click().run()
    assert not app.exception
    assert app.button(key="log_store").disabled is True


def test_a_log_of_something_else_can_be_made_the_scenario(app: AppTest) -> None:
    paste(
        app,
        LOG.replace("Qwen/Qwen3-32B", "/models/Qwen3-8B").replace("'tensor_parallel_size': 2", "'max_num_seqs': 64"),
    )
    app.button(key="log_scenario").click().run()
    assert not app.exception
    assert app.selectbox(key="model").value == "Qwen/Qwen3-8B"
    assert (app.number_input(key="tp").value, app.number_input(key="max_seqs").value) == (1, 64)


@pytest.mark.parametrize("text", ["hello", "Traceback (most recent call last):\n" * 1000, "\x01\x02 {[ \u202e"])
def test_a_text_without_memory_gets_one_sentence(app: AppTest, text: str) -> None:
    paste(app, text)
    assert len(app.error) == 1
    assert "No line about GPU memory" in app.error[0].value


def test_the_view_reads_in_chinese_too(app: AppTest) -> None:
    paste(app, LOG)
    app.segmented_control(key="lang").set_value("zh_CN").run()
    assert not app.exception
