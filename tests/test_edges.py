"""Unusual scenarios on every page: what does not fit, what is not known, too much load, broken links and files."""

# ruff: noqa: F811 - a fixture taken from a neighbour
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest
from test_pages import PAGES, ROOT, app, assert_clean, numbers, open_page  # noqa: F401

from data.case import example_case
from ui import fields, resources
from ui.glossary import FIELDS

TOO_LARGE = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "l4", "gpus": 1, "tp": 1}
SCENARIO_PAGES = ("overview", "workload", "memory", "latency", "alternatives", "decision", "review_sheet")
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "intermediate_size": 5632,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


def ask(app: AppTest, **values: Any) -> AppTest:
    """Widget values as if a visitor had set them."""
    for key, value in values.items():
        app.session_state[key] = value
    return app.run()


def errors(app: AppTest) -> list[str]:
    return [error.value for error in app.error if error.value]


def test_a_model_that_does_not_fit_is_an_answer_or_one_sentence_on_every_page(app: AppTest) -> None:
    ask(app, **TOO_LARGE)
    for page in PAGES:
        open_page(app, page)
        assert_clean(app)
        assert len(errors(app)) <= 1, page


def test_what_does_not_fit_still_has_its_hull_a_decision_and_a_sheet(app: AppTest) -> None:
    open_page(ask(app, **TOO_LARGE), "memory")
    assert "over" in errors(app)[0]
    assert len(app.get("plotly_chart")) >= 1
    assert len(numbers(open_page(app, "decision"))) >= 3
    open_page(app, "review_sheet")
    assert errors(app) == []
    assert len(numbers(app)) == 4


def test_an_own_gpu_without_figures_is_named_and_never_guessed(app: AppTest) -> None:
    ask(app, gpu="own")
    for page in PAGES:
        open_page(app, page)
        assert_clean(app)
        if page != "live_engine":  # there it is the verdict on the sample that is red
            assert all("not known" in error for error in errors(app)), page


def test_what_cannot_be_predicted_is_to_be_measured_first(app: AppTest) -> None:
    open_page(ask(app, gpu="own"), "decision")
    assert numbers(app)[0] == "Measure first"


@pytest.mark.parametrize("load", [{"rate": 10_000.0}, {"arrivals": "closed", "concurrency": 100_000}])
def test_far_too_much_load_is_an_answer_on_every_page(app: AppTest, load: dict[str, Any]) -> None:
    ask(app, **load)
    for page in SCENARIO_PAGES:
        open_page(app, page)
        assert_clean(app)
        assert len(numbers(app)) >= 3


BOUNDED = [key for key, field in FIELDS.items() if field.low is not None and field.high is not None]


NEEDS = {"concurrency": {"arrivals": "closed"}, "cv": {"arrivals": "gamma"}}


def test_the_least_the_most_and_nothing_in_any_number_field_is_answered(app: AppTest) -> None:
    open_page(app, "latency")
    usual = fields.to_values(example_case())
    for key in BOUNDED:
        kind = int if key in fields.WHOLE else float
        values = [kind(bound) for bound in (FIELDS[key].low, FIELDS[key].high) if bound is not None]
        for value in values if key == "hit" else [*values, None]:  # a slider always has a value
            ask(app, **usual | NEEDS.get(key, {}) | {key: value})
            assert_clean(app)
            assert len(errors(app)) <= 1, (key, value)


HOSTILE = ("<script>alert(1)</script>", "1e999", "abc", "", "-1", "nan", "x" * 5000, "own:none", "**b** [a](http://b)")


LINKED = ("model", "gpu", "tp", "hit", "rate", "version", "preset", "name", "percentile", "lang", "unknown")


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: value[:10])
def test_a_hostile_link_opens_the_page_and_says_what_it_did_not_use(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    for key in LINKED:
        app.query_params[key] = value
    assert_clean(app.run())
    assert app.warning
    assert all(len(warning.value) < 600 for warning in app.warning)


def import_file(app: AppTest, content: bytes) -> AppTest:
    open_page(app, "alternatives")
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    app.file_uploader(key="scenario_file").upload("scenario.json", content).run()
    return app.button(key="scenario_import").click().run()


def changed(**fields_of_case: Any) -> bytes:
    return json.dumps(example_case() | fields_of_case).encode()


BROKEN = {
    "empty": b"",
    "truncated": changed()[:-20],
    "a list": b"[]",
    "an image": b"\x89PNG\r\n\x1a\n\x00",
    "nested": b"[" * 100_000,
    "no fields": b"{}",
    "a load of text": changed(workload="much"),
    "a GPU in a list": changed(gpu=["h100-sxm"]),
    "a model without a name": changed(model={"config": CONFIG}),
    "NaN": changed(memory_fraction=float("nan")),
    "half a character in the name": changed(name="\ud800"),
    "a name without end": changed(name="x" * 10_000),
    "more GPUs than exist": changed(tp=8, replicas=4000),
}


def test_a_broken_scenario_file_changes_nothing_and_says_one_sentence(app: AppTest) -> None:
    before = {key: app.session_state[key] for key in fields.EMPTY}
    for what, content in BROKEN.items():
        import_file(app, content)
        assert_clean(app)
        assert [error for error in errors(app) if ": " in error], what
        assert {key: app.session_state[key] for key in fields.EMPTY} == before, what


LOADABLE: dict[str, tuple[bytes, Callable[[AppTest], bool]]] = {
    "nulls for defaults": (
        changed(slo=None, prices=None, replicas=None, engine=None),
        lambda app: app.session_state["slo_ttft"] is None,
    ),
    "targets in seconds and percent": (
        changed(slo={"ttft_s": 1.5, "e2e_ms": 20_000, "percentile": 99}),
        lambda app: (
            (app.session_state["slo_ttft"], app.session_state["slo_e2e"], app.session_state["percentile"])
            == (1500, 20, 0.99)
        ),
    ),
    "the model's own length": (
        changed(max_model_len="model"),
        lambda app: app.session_state["max_len"] is None,
    ),
    "a catalogue model with weights of its own": (
        changed(model={"name": "Qwen/Qwen3-32B", "weight_bytes": 70e9}),
        lambda app: resources.own_models()[0].entry == {"weight_bytes": 70_000_000_000},
    ),
    "a catalogue model in braces": (
        changed(model={"name": "Qwen/Qwen3-8B"}),
        lambda app: app.session_state["model"] == "Qwen/Qwen3-8B",
    ),
    "settings the screen has no field for": (
        changed(kv_pool_bytes_per_gpu=3e10, limit_mm_per_prompt={"image": 0}),
        lambda app: any("kv_pool_bytes_per_gpu, limit_mm" in warning.value for warning in app.warning),
    ),
    "settings that fold away": (
        changed(block_size=32, kv_tokens=200_000),
        lambda app: (app.session_state["block_size"], app.session_state["kv_tokens"]) == (32, 200_000),
    ),
}


def test_an_unusual_scenario_file_is_opened_whole_or_says_what_is_left_out(app: AppTest) -> None:
    for what, (content, holds) in LOADABLE.items():
        import_file(app, content)
        assert_clean(app)
        assert holds(app), what


NAMES = ("**bold** [link](http://x) <b>x</b> $x^2$ :red[hi] | a", "../名前 '; DROP TABLE runs; --")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_an_own_model_is_only_a_name(app: AppTest, name: str) -> None:
    ask(app, own_model_popover=True, own_model_name=name, own_model_text=json.dumps(CONFIG))
    app.button(key="own_model_add").click().run()
    for page in SCENARIO_PAGES:
        assert_clean(open_page(app, page))
        assert errors(app) == [error for error in errors(app) if error.startswith("**")]
    open_page(app, "alternatives")
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    app.button(key="scenario_save").click().run()
    app.button(key="scenario_load").click().run()
    assert_clean(app)
    assert [own.name for own in resources.own_models()] == [name.strip()]


REFUSED_CONFIGS = {
    "an endless name": ("x" * 20_000, json.dumps(CONFIG)),
    "half a character": ("a", json.dumps(CONFIG | {"architectures": ["\ud800"]})),
    "no layers": ("a", json.dumps(CONFIG | {"num_hidden_layers": 0})),
    "a thousand million layers": ("a", json.dumps(CONFIG | {"num_hidden_layers": 10**9})),
    "text for a number": ("a", json.dumps(CONFIG | {"hidden_size": "2048"})),
}


def test_an_impossible_config_json_is_refused(app: AppTest) -> None:
    for what, (name, text) in REFUSED_CONFIGS.items():
        ask(app, own_model_popover=True, own_model_name=name, own_model_text=text)
        app.button(key="own_model_add").click().run()
        assert_clean(app)
        assert resources.store().own_models() == (), what


def test_infinities_of_a_real_config_json_are_accepted(app: AppTest) -> None:
    text = json.dumps(CONFIG | {"time_step_limit": [0.0, float("inf")]})
    ask(app, own_model_popover=True, own_model_name="a", own_model_text=text)
    app.button(key="own_model_add").click().run()
    assert_clean(app)
    assert app.session_state["model"].startswith("own:")


def test_another_engine_forgets_a_version_it_has_not(app: AppTest) -> None:
    open_page(app, "memory")
    app.selectbox(key="version").set_value("0.6.0").run()
    app.selectbox(key="engine").set_value("sglang").run()
    assert_clean(app)
    assert app.session_state["version"] == fields.NEWEST


def test_a_store_that_cannot_be_opened_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_STORE", "/proc/nowhere/store.duckdb")
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S).run()
    assert_clean(app)
    assert len(errors(app)) == 1
    streamlit.cache_resource.clear()


def test_a_store_that_fails_while_saving_is_one_sentence(app: AppTest) -> None:
    open_page(app, "alternatives")
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    resources.store().close()
    app.button(key="scenario_save").click().run()
    assert_clean(app)
    assert errors(app)
