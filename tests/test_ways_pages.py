"""Where nothing fits, the pages say what to do, and a button does it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The whole app on a store of its own, asked for 61 GiB of weights and 8 GiB for one sequence on one 80 GB GPU."""
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    started = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    started.query_params |= {"tp": "1", "gpus": "1"}
    yield started.run()
    streamlit.cache_resource.clear()


def open_page(app: AppTest, page: str) -> AppTest:
    app.switch_page(f"../pages/{page}.py").run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def way_buttons(app: AppTest) -> list[str]:
    return [button.key for button in app.button if str(button.key).startswith("way_")]


def sentences(app: AppTest) -> str:
    return " ".join(block.value for kind in ("markdown", "caption", "error", "warning") for block in getattr(app, kind))


def test_the_memory_page_opens_on_the_ways_where_nothing_fits(app: AppTest) -> None:
    open_page(app, "memory")
    assert app.segmented_control(key="memory_view").value == "ways"
    assert "Does not fit" in sentences(app)
    assert len(way_buttons(app)) >= 5


@pytest.mark.parametrize("page", ["memory", "alternatives"])
def test_a_way_used_makes_it_fit(app: AppTest, page: str) -> None:
    open_page(app, page)
    app.button(key="way_0").click().run()
    assert not app.exception
    open_page(app, "memory")
    assert "Does not fit" not in sentences(app)


def test_alternatives_offers_the_ways_and_the_shelf_where_nothing_fits(app: AppTest) -> None:
    open_page(app, "alternatives")
    assert way_buttons(app)
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    assert app.button(key="scenario_save")
    assert not [box for box in app.selectbox if box.key == "alternative"]


def test_a_version_left_open_stays_open(app: AppTest) -> None:
    open_page(app, "memory")
    app.button(key="way_0").click().run()
    assert app.selectbox(key="version").value == "newest"


def test_the_overview_leads_to_the_ways(app: AppTest) -> None:
    open_page(app, "overview")
    assert "Ways to make it fit" in [link.proto.label for link in app.get("page_link")]


def test_every_gpu_type_is_counted_when_asked(app: AppTest) -> None:
    open_page(app, "memory")
    app.toggle(key="ways_types").set_value(True).run()
    assert not app.exception
    assert len(app.dataframe[0].value) >= 30


@pytest.mark.parametrize(("engine", "words", "files"), [("vllm", "vllm serve", 0), ("tensorrt-llm", "trtllm-serve", 1)])
def test_the_launch_line_is_there_to_copy(app: AppTest, engine: str, words: str, files: int) -> None:
    open_page(app, "memory")
    app.selectbox(key="engine").set_value(engine).run()
    app.selectbox(key="kv_dtype").set_value("fp8").run()
    app.segmented_control(key="memory_view").set_value("launch").run()
    assert not app.exception
    assert app.code[0].value.startswith(f"{words} Qwen/Qwen3-32B")
    assert len(app.code) == 1 + files


def test_the_views_speak_chinese_without_failing(app: AppTest) -> None:
    app.segmented_control(key="lang").set_value("zh_CN").run()
    open_page(app, "memory")
    assert way_buttons(app)
