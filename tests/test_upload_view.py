"""The upload view: several files and archives at once, chosen ones stored, open columns asked, and what is left out."""

# ruff: noqa: F811 - a fixture taken from a neighbour
from __future__ import annotations

import json

from streamlit.testing.v1 import AppTest
from test_bundle import RUN, TABLE, as_json, evalscope, packed
from test_pages import app, assert_clean, open_page  # noqa: F401

from data.formats import propose_columns
from ui import resources
from ui.benchmarks import columns, reading


def test_files_and_an_archive_are_read_chosen_stored_and_asked_about(app: AppTest) -> None:
    open_page(app, "benchmarks")
    archive = packed(evalscope("4xH100/") | {"plot.png": b"x", "../../up.csv": TABLE})
    files = [
        ("run.json", as_json(RUN), "application/json"),
        ("copy.json", json.dumps(RUN).encode(), "application/json"),
        ("all.zip", archive, "application/zip"),
        ("broken.json", b"{", "application/json"),
    ]
    app.file_uploader(key="bench_file").set_value(files).run()
    assert_clean(app)
    assert [error.value.split(":")[0].replace("\\", "") for error in app.error] == ["broken.json"]
    shown = " ".join(text.value for text in app.markdown).replace("\\", "")
    assert "8 files: 3 hold 3 load points, 1 could not be read, 4 add nothing of their own" in shown
    assert resources.store().runs() == ()
    app.button(key="bench_store").click().run()
    assert_clean(app)
    stored = resources.store().runs()
    assert len(stored) == 3
    assert {run.run.model for run in stored} == {"m", "Qwen3", None}
    assert any("What the files leave out" in head.value for head in app.subheader)
    app.button(key="bench_store").click().run()
    assert len(resources.store().runs()) == 3, "stored twice is stored once"


def test_only_corrections_that_differ_from_the_guess_are_kept() -> None:
    guessed = propose_columns(b"concurrency,Latency (ms),TPS\n8,400,900\n", "x")
    chosen = columns.edits(guessed, {1: {"field": "ttft.mean:ms"}, 0: {"field": "max_concurrency"}})
    assert reading.changed(guessed, chosen) == {"Latency (ms)": "ttft.mean:ms"}


def test_a_shelf_keeps_the_last_readings_only() -> None:
    shelf = reading.Shelf()
    for number in range(reading.KEPT + 1):
        assert shelf.get(number, lambda number=number: number * 10) == number * 10
    assert shelf.get(1, lambda: "made again") == 10
    assert shelf.get(0, lambda: "made again") == "made again"
