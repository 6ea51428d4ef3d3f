"""The team's own GPUs, models and prices on the screen: add, use, share, remove, undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit
from conftest import PATIENCE_S
from streamlit.testing.v1 import AppTest

from data import catalogue
from data.case import example_case
from ui import resources

ROOT = Path(__file__).resolve().parent.parent
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "head_dim": 64, "tie_word_embeddings": True,
}  # fmt: skip
GPU = {
    "gpu_name": "Lab card", "gpu_memory_gib": 94.0, "gpu_bandwidth_gb_per_s": 4000.0, "gpu_bf16_tflops": 800.0,
    "gpu_source": "data sheet 4, https://example.org/a?b=<c>",
}  # fmt: skip
HOSTILE = "<script>alert(1)</script> **b** [a](javascript:x) $x$ :red[r] | =1+1 \u202etxt"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    streamlit.cache_resource.clear()
    yield fresh()
    streamlit.cache_resource.clear()


def fresh(**query: str) -> AppTest:
    """A new visitor, with or without a link."""
    app = AppTest.from_file(str(ROOT / "ui" / "shell.py"), default_timeout=PATIENCE_S)
    for key, value in query.items():
        app.query_params[key] = value
    return clean(app.switch_page("../pages/catalogue.py").run())


def clean(app: AppTest) -> AppTest:
    assert not app.exception, [error.message for error in app.exception]
    return app


def name_of(gpu: str) -> str:
    """What the picker shows."""
    return catalogue.gpus()[gpu].name


def link_of(app: AppTest) -> dict[str, str]:
    """The address of the page; the test runtime gives a value or a list of one."""
    return {key: value if isinstance(value, str) else value[0] for key, value in app.query_params.items()}


def view(app: AppTest, name: str, **values: Any) -> AppTest:
    """The Catalogue page with a view, and the fields of its form filled in."""
    app.switch_page("../pages/catalogue.py")
    for key, value in {"catalogue_view": name, **values}.items():
        app.session_state[key] = value
    return clean(app.run())


def add_gpu(app: AppTest, **changes: Any) -> AppTest:
    view(app, "gpus", gpu_fold=True, **(GPU | changes))
    return clean(app.button(key="gpu_add").click().run())


def add_price(app: AppTest, gpu: str, amount: float, **changes: Any) -> AppTest:
    typed = {"price_gpu": gpu, "price_gpu_hour": amount, "price_source": "quote 7"} | changes
    view(app, "prices", price_fold=True, **typed)
    return clean(app.button(key="price_add").click().run())


def said(app: AppTest) -> str:
    """Everything of the page that is not a table."""
    boxes = (*app.success, *app.error, *app.warning, *app.caption, *app.markdown)
    return "\n".join(str(box.value) for box in boxes)


def test_a_gpu_is_added_used_linked_removed_and_brought_back(app: AppTest) -> None:
    add_gpu(app)
    (row,) = resources.own_gpus()
    assert (row.name, row.source, row.version) == ("Lab card", GPU["gpu_source"], 1)
    app.button(key="own_gpu_use").click().run()
    code = f"own:{row.entry_id}"
    assert app.session_state["gpu"] == link_of(app)["gpu"] == code

    linked = fresh(gpu=code)
    assert linked.session_state["gpu"] == code
    linked.switch_page("../pages/memory.py").run()
    assert "Lab card" in said(clean(linked))

    view(app, "gpus")
    app.button(key="own_gpu_remove").click().run()
    assert resources.own_gpus() == ()
    assert app.session_state["gpu"] != code
    app.button(key="catalogue_undo").click().run()
    clean(app)
    assert resources.own_gpus() == (row,)


def test_a_second_gpu_of_the_name_is_a_version_and_an_old_link_opens_the_old_one(app: AppTest) -> None:
    add_gpu(app)
    add_gpu(app, gpu_memory_gib=96.0)
    new, old = resources.own_versions("own_gpu")
    assert (new.version, old.version) == (2, 1)
    assert [row.entry_id for row in resources.own_gpus()] == [new.entry_id]
    linked = fresh(gpu=f"own:{old.entry_id}")
    assert linked.session_state["gpu"] == f"own:{old.entry_id}"
    assert "Lab card (v1)" in linked.selectbox(key="gpu").options


def test_a_shipped_gpu_is_a_beginning_for_ones_own(app: AppTest) -> None:
    view(app, "gpus", gpu_fold=True, gpu_start="h200", gpu_name="Ours")
    app.button(key="gpu_fill").click().run()
    assert app.number_input(key="gpu_bandwidth_gb_per_s").value == pytest.approx(4800)
    app.button(key="gpu_add").click().run()
    clean(app)
    assert resources.own_gpus()[0].entry["link_gb_per_s"] == 450


@pytest.mark.parametrize(
    "change", [{"gpu_name": ""}, {"gpu_source": ""}, {"gpu_memory_gib": None}, {"gpu_name": "x" * 10**4}]
)
def test_a_gpu_that_lacks_what_it_needs_is_one_sentence_and_not_stored(app: AppTest, change: dict[str, Any]) -> None:
    add_gpu(app, **change)
    assert len(app.error) == 1
    assert ": " in app.error[0].value
    assert resources.own_gpus() == ()


def test_without_a_driver_the_form_says_so_and_stays_as_it_was(app: AppTest) -> None:
    view(app, "gpus", gpu_fold=True, **GPU)
    app.button(key="gpu_driver").click().run()
    clean(app)
    assert app.error or resources.driver().available
    assert resources.driver().available or app.number_input(key="gpu_memory_gib").value == 94.0


def test_own_gpus_are_candidates_of_the_decision_at_once(app: AppTest) -> None:
    before = len(resources.candidate_gpus())
    add_gpu(app)
    assert [gpu.name for gpu in resources.candidate_gpus()[before:]] == ["Lab card"]
    clean(app.switch_page("../pages/decision.py").run())


def test_a_case_with_a_gpu_of_another_machine_is_opened_whole(app: AppTest) -> None:
    gpu = {"name": "Theirs", "memory_gib": 64.5, "bandwidth_gb_per_s": 2000, "bf16_tflops": 300, "fp4_tflops": 900,
           "pcie_gb_per_s": 64, "source": "their sheet", "checked_on": "2026-05-05"}  # fmt: skip
    prices = {"gpu_hour": 1.5, "currency": "EUR", "source": "their quote", "checked_on": "2026-05-06", "region": "eu"}
    for _ in range(2):
        app.switch_page("../pages/alternatives.py").run()
        app.segmented_control(key="alternatives_view").set_value("saved").run()
        content = json.dumps(example_case() | {"gpu": gpu, "prices": prices}).encode()
        app.file_uploader(key="scenario_file").upload("scenario.json", content).run()
        app.button(key="scenario_import").click().run()
        clean(app)
    assert [(row.name, row.source, row.checked_on) for row in resources.own_versions("own_gpu")] == [
        ("Theirs", "their sheet", "2026-05-05")
    ]
    app.button(key="scenario_save").click().run()
    (saved,) = resources.store().scenarios()
    assert saved.case["gpu"] == gpu
    assert saved.case["prices"] == prices


def test_a_name_in_a_foreign_case_loses_what_cannot_be_seen(app: AppTest) -> None:
    gpu = {
        "name": "The\u202eirs",
        "memory_gib": 80,
        "bandwidth_gb_per_s": 2000,
        "bf16_tflops": 300,
        "pcie_gb_per_s": 64,
    }
    for _ in range(2):
        app.switch_page("../pages/alternatives.py").run()
        app.segmented_control(key="alternatives_view").set_value("saved").run()
        content = json.dumps(example_case() | {"gpu": gpu}).encode()
        app.file_uploader(key="scenario_file").upload("scenario.json", content).run()
        app.button(key="scenario_import").click().run()
    clean(app)
    assert [row.name for row in resources.own_versions("own_gpu")] == ["Theirs"]


def test_a_model_shows_what_was_read_before_it_is_stored(app: AppTest) -> None:
    index = json.dumps({"metadata": {"total_size": 2_471_628_800}})
    typed = {"model_name": "team/one", "model_config": json.dumps(CONFIG), "model_index": index}
    view(app, "models", model_fold=True, **typed)
    assert "16 × full attention" in said(app).replace("\\", "")
    assert "KV cache 32 KiB per token" in said(app), "16 layers × 2 × 8 heads × 64 × 2 bytes"
    assert resources.own_models() == ()
    app.session_state["model_source"] = "our repository"
    app.run()
    app.button(key="model_add").click().run()
    clean(app)
    (row,) = resources.own_models()
    assert (row.source, row.entry["weight_bytes"]) == ("our repository", 2_471_628_800)
    app.button(key="own_model_use").click().run()
    assert app.session_state["model"] == f"own:{row.entry_id}"
    app.button(key="own_model_remove").click().run()
    assert resources.own_models() == ()
    clean(app.button(key="catalogue_undo").click().run())
    assert resources.own_models() == (row,)


@pytest.mark.parametrize(
    "config", ["{", "[]", '{"architectures": ["NovelNet"], "model_type": "novel", "num_hidden_layers": 2}']
)
def test_a_model_that_cannot_be_read_gives_the_reason_at_once(app: AppTest, config: str) -> None:
    view(app, "models", model_fold=True, model_config=config, model_source="x")
    assert any(": " in warning.value for warning in app.warning)
    app.button(key="model_add").click().run()
    assert len(clean(app).error) == 1
    assert resources.own_models() == ()


def test_the_price_of_the_example_is_an_assumption_and_another_gpu_has_none(app: AppTest) -> None:
    usual = app.session_state["price"]
    app.session_state["fold_catalogue_prices"] = True
    app.run()
    assert "not a quoted price" in said(app)
    app.selectbox(key="gpu").set_value(name_of("h200")).run()
    assert app.session_state["price"] is None
    assert "No price is known" in said(clean(app))
    app.selectbox(key="gpu").set_value(name_of(example_case()["gpu"])).run()
    assert app.session_state["price"] == usual


def test_a_stored_price_fills_the_scenario_and_a_typed_one_stays(app: AppTest) -> None:
    add_price(app, "h200", 3.25, price_currency="EUR", price_region="eu-1")
    assert app.session_state["price"] != 3.25, "it is the price of another GPU"
    app.session_state["fold_catalogue_prices"] = True
    app.selectbox(key="gpu").set_value(name_of("h200")).run()
    assert (app.session_state["price"], app.session_state["currency"]) == (3.25, "EUR")
    assert "quote 7" in said(clean(app))
    add_price(app, "h200", 3.0, price_currency="USD")
    assert (app.session_state["price"], app.session_state["currency"]) == (3.0, "USD"), "the newest one"
    app.number_input(key="price").set_value(9.0).run()
    app.selectbox(key="gpu").set_value(name_of("a100-80-sxm")).run()
    assert app.session_state["price"] == 9.0


def test_a_reopened_link_keeps_the_price_and_its_source(app: AppTest) -> None:
    add_price(app, "h200", 3.25)
    linked = fresh(gpu="h200")
    assert linked.session_state["price"] == 3.25
    again = fresh(**link_of(linked))
    again.session_state["fold_catalogue_prices"] = True
    assert "quote 7" in said(clean(again.run()))
    other = fresh(gpu="a100-80-sxm")
    assert other.session_state["price"] is None, "never another GPU's price"


def test_prices_keep_their_history_and_go_one_by_one(app: AppTest) -> None:
    add_price(app, "h100-sxm", 2.0)
    add_price(app, "h100-sxm", 1.9)
    rows = resources.own_prices()
    assert [row.entry["gpu_hour"] for row in rows] == [1.9, 2.0]
    app.selectbox(key="own_price_chosen").select_index(0).run()
    app.button(key="own_price_remove").click().run()
    assert [row.entry["gpu_hour"] for row in resources.own_prices()] == [2.0]
    app.button(key="catalogue_undo").click().run()
    assert resources.own_prices() == rows


def test_an_old_price_is_marked_stale(app: AppTest) -> None:
    resources.add_price("h100-sxm", {"gpu_hour": 2.0, "currency": "USD"}, source="old list", checked_on="2024-01-01")
    view(app, "prices")
    assert "older than 90 days" in said(app)
    assert any("stale" in str(cell) for table in app.dataframe for cell in table.value.to_numpy().ravel())


def test_hostile_names_are_only_names(app: AppTest) -> None:
    add_gpu(app, gpu_name=HOSTILE, gpu_source=HOSTILE)
    view(app, "models", model_fold=True, model_name=HOSTILE, model_config=json.dumps(CONFIG), model_source=HOSTILE)
    app.button(key="model_add").click().run()
    clean(app.button(key="own_model_use").click().run())
    view(app, "gpus")
    clean(app.button(key="own_gpu_use").click().run())
    add_price(app, f"own:{resources.own_gpus()[0].name}", 2.0)
    for name in ("overview", "memory", "alternatives", "decision", "review_sheet", "catalogue"):
        clean(app.switch_page(f"../pages/{name}.py").run())
    assert "\u202e" not in resources.own_gpus()[0].name
    assert "<script>" not in said(app)


def test_a_filter_finds_shipped_rows(app: AppTest) -> None:
    view(app, "models")
    every = len(app.dataframe[-1].value)
    app.text_input(key="model_find").set_value("qwen3 32b").run()
    assert 0 < len(clean(app).dataframe[-1].value) < every
    app.text_input(key="model_find").set_value("no such thing").run()
    assert "No row" in said(clean(app))


def test_figures_typed_at_the_side_are_a_beginning_too(app: AppTest) -> None:
    app.session_state["gpu"], app.session_state["own_memory"], app.session_state["own_bandwidth"] = "own", 48.0, 900.0
    view(app, "gpus", gpu_fold=True, gpu_name="Kept", gpu_start="own", gpu_source="my notes")
    app.button(key="gpu_fill").click().run()
    app.button(key="gpu_add").click().run()
    clean(app)
    assert resources.own_gpus()[0].entry == {"memory_gib": 48.0, "bandwidth_gb_per_s": 900.0}


def test_costs_in_two_currencies_are_said_to_be_not_comparable(app: AppTest) -> None:
    app.switch_page("../pages/alternatives.py").run()
    app.segmented_control(key="alternatives_view").set_value("saved").run()
    app.button(key="scenario_save").click().run()
    add_price(app, "h100-sxm", 2.0, price_currency="EUR")
    app.switch_page("../pages/alternatives.py").run()
    app.segmented_control(key="alternatives_view").set_value("compare").run()
    saved = resources.store().scenarios()[0].scenario_id
    app.session_state["alternative"] = f"saved:{saved}"
    assert "not comparable" in said(clean(app.run()))
