"""The Logs view of the Workload page: give a log, settle it, load it, read it, use it, remove it and bring it back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit
from conftest import ROOT
from streamlit.testing.v1 import AppTest

from data.logs.given import GivenLog
from data.store import Store
from ui.charts.frame import Tones
from ui.charts.request_log import MAX_STEPS, over_time
from ui.workload.desk import LogDesk

LOG = "timestamp,input,output_tokens,tenant\n" + "".join(
    f"{i},{100 + i % 900},{20 + i % 50},{'<b>a</b>' if i % 3 else 'b*c'}\n" for i in range(0, 600, 2)
)
BAD = "a,b\n1,2\n"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "large.csv").write_text("timestamp_s,prompt_tokens,output_tokens\n0,5,2\n70,9,3\n", encoding="utf-8")
    (tmp_path / "plimsoll.toml").write_text(f'[logs]\nfolder = "{folder}"\n', encoding="utf-8")
    monkeypatch.setenv("PLIMSOLL_CONFIG", str(tmp_path / "plimsoll.toml"))
    streamlit.cache_resource.clear()
    shown = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=120)
    shown.query_params["workload_view"] = "log"
    shown.run()
    yield shown.switch_page("../pages/workload.py").run()
    streamlit.cache_resource.clear()


def loaded(app: AppTest) -> None:
    """Press the button and wait until the desk is free again."""
    next(button for button in app.button if button.label == "Load this log").click().run()
    deadline = time.monotonic() + 30
    while not any("stored" in box.value for box in [*app.success, *app.warning]) and time.monotonic() < deadline:
        time.sleep(0.1)
        app.run()


def test_a_log_is_given_settled_loaded_used_removed_and_brought_back(app: AppTest) -> None:
    assert not app.exception
    app.file_uploader(key="log_file").upload("bad.csv", BAD.encode()).run()
    assert "no line of headers" in app.error[0].value
    app.file_uploader(key="log_file").upload("team.csv", LOG.encode()).run()
    asked = {box.label for box in app.selectbox}
    assert "In which unit are the times in timestamp?" in asked
    loaded(app)
    assert not app.exception
    assert any("300 requests were stored, 0 rows left out" in box.value for box in app.success)
    assert "team.csv · 300 requests" in app.selectbox(key="log_chosen").options
    app.button(key="log_use").click().run()
    assert not app.exception
    assert any("The scenario's workload is this log." in box.value for box in app.success)
    assert any("from the log team.csv" in caption.value.replace("\\", "") for caption in app.caption)
    assert "measured" in app.metric[0].delta
    app.button(key="log_remove").click().run()
    assert "log_remove" not in {button.key for button in app.button}
    app.button(key="log_undo").click().run()
    assert app.selectbox(key="log_chosen").options == ["team.csv · 300 requests"]
    next(group for group in app.button_group if group.key == "log_from").set_value("folder").run()
    assert app.selectbox(key="log_file_chosen").options == ["large.csv"]
    loaded(app)
    assert any("2 requests were stored" in box.value for box in app.success)


def test_the_desk_tells_how_far_it_is_and_stops_when_asked(tmp_path: Path) -> None:
    body = "".join(f"{i},10,2\n" for i in range(60_000))
    given = GivenLog.of_bytes(("timestamp_s,prompt_tokens,output_tokens\n" + body).encode(), "log.csv")
    with Store(tmp_path / "s.duckdb") as store:
        desk = LogDesk(store)
        job = desk.begin(given, {}, done=lambda: None)
        job.stop.set()
        assert desk.begin(given, {}, done=lambda: None) is job or job.over
        while desk.job is not None and not desk.job.over:
            threading.Event().wait(0.02)
        ended = desk.take()
        assert ended is not None
        assert desk.take() is None
        assert (ended.added is None) == (ended.problem is not None)


def test_minutes_of_a_long_log_are_drawn_together_and_keep_their_peak() -> None:
    values = [1.0] * 10_000
    values[777] = 50.0
    figure = over_time(values, "Requests", 1.0, Tones.of(dark=False))
    assert len(figure.data[0].x) <= MAX_STEPS + 1
    assert max(figure.data[0].y) == 50.0
