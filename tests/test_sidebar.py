"""The fields at the side: sections fold and unfold, each choice shows its fields, each field reaches the case."""

# ruff: noqa: F811 - a fixture taken from a neighbour
from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from test_case_serving import full
from test_pages import app, assert_clean, open_page  # noqa: F401

from data.case import read_case
from ui import fields

SECTIONS = ("lengths", "clients", "targets", "engine", "details", "serving", "prices")


def unfold(app: AppTest, *names: str, page: str = "catalogue") -> AppTest:
    """The cheapest page, with sections of the sidebar open."""
    for name in names:
        app.session_state[f"fold_{page}_{name}"] = True
    return open_page(app, page)


def drawn(app: AppTest) -> set[str]:
    """Keys of the widgets at the side."""
    kinds = ("selectbox", "number_input", "text_input", "text_area", "slider", "toggle")
    return {widget.key for kind in kinds for widget in app.sidebar.get(kind) if widget.key}


def case_now(app: AppTest) -> dict[str, Any]:
    values = {key: app.session_state[key] for key in fields.EMPTY}
    return fields.to_case(values)


def test_a_folded_section_is_not_drawn(app: AppTest) -> None:
    open_page(app, "catalogue")
    assert not drawn(app) & set(fields.SERVING)
    assert "block_size" not in drawn(app)
    assert "classes" not in drawn(app)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_section_unfolds(app: AppTest, language: str) -> None:
    app.segmented_control(key="lang").set_value(language)
    unfold(app, *SECTIONS)
    assert_clean(app)
    shown = drawn(app)
    assert {"classes", "cancel_share", "patience", "num_requests", "http"} <= shown
    assert {"block_size", "chunked_prefill", "kv_tokens", "async_scheduling", "hybrid_kv"} <= shown
    assert {"tier_name", "spec_method", "prefill_replicas", "routing", "prefix_groups", "batching"} <= shown
    assert not {"tier_bandwidth", "spec_tokens", "transfer_bandwidth", "swap_bandwidth", "retries"} & shown


OPENS: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"tier_name": "cpu"}, {"tier_bandwidth", "tier_latency", "tier_concurrency", "tier_capacity", "tier_share"}),
    ({"tier_name": "disk"}, {"offload_hit", "further_tiers", "tier_link"}),
    ({"spec_method": "ngram"}, {"spec_tokens", "accepted"}),
    ({"prefill_replicas": 1}, {"transfer_bandwidth", "transfer_ms"}),
    ({"preemption": "swap"}, {"swap_bandwidth"}),
    ({"patience": 10.0}, {"retries"}),
    ({"patience": 10.0, "retries": 2}, {"retry_after"}),
    ({"arrivals": "mmpp"}, {"state_rates", "state_stays"}),
    ({"arrivals": "per-minute"}, {"minute_rates"}),
    ({"arrivals": "trace"}, {"trace_pasted"}),
)


@pytest.mark.parametrize(("values", "opened"), OPENS, ids=[",".join(values) for values, _ in OPENS])
def test_a_choice_shows_the_fields_it_needs(app: AppTest, values: dict[str, Any], opened: set[str]) -> None:
    for key, value in values.items():
        app.session_state[key] = value
    unfold(app, "serving", "clients")
    assert_clean(app)
    assert opened <= drawn(app)


def test_a_known_link_fills_in_the_tier_and_says_that_it_is_assumed(app: AppTest) -> None:
    app.session_state["tier_name"] = "cpu"
    unfold(app, "serving")
    assert any("Nothing is assumed" in caption.value for caption in app.sidebar.caption)
    app.sidebar.selectbox(key="tier_link").set_value("pcie5").run()
    assert app.session_state["tier_bandwidth"] == 100.0  # 50 GB/s of each of two GPUs
    assert any("An assumption until you measure" in caption.value for caption in app.sidebar.caption)
    app.sidebar.number_input(key="tier_bandwidth").set_value(83.0).run()
    assert any("Your own figures" in caption.value for caption in app.sidebar.caption)
    assert case_now(app)["serving"]["offload"][0]["gb_per_s"] == 83


def test_a_tier_without_bandwidth_is_asked_for_and_never_filled_in(app: AppTest) -> None:
    app.session_state["tier_name"] = "disk"
    open_page(app, "workload")
    assert [error.value for error in app.error if "no bandwidth" in error.value]


def test_a_pasted_log_becomes_the_arrivals_and_its_lengths_the_loads(app: AppTest) -> None:
    app.session_state["arrivals"] = "trace"
    open_page(app, "catalogue")
    app.sidebar.text_area(key="trace_pasted").set_value("time,prompt,output\n0,100,20\n2,4000,10\n1,300,30").run()
    assert_clean(app)
    assert app.session_state["trace"] == "0,100,20\n1,300,30\n2,4000,10"
    assert any("3 arrivals over 2.00 s" in caption.value for caption in app.sidebar.caption)
    case = case_now(app)
    assert case["workload"]["prompt_tokens"]["quantiles"][-1] == [1, 4000]
    assert case["workload"]["arrivals"]["output_tokens"] == [20, 30, 10]
    app.sidebar.button(key="trace_forget").click().run()
    assert app.session_state["trace"] == ""
    assert "trace_pasted" in drawn(app)


def test_a_log_from_a_file_keeps_what_a_wrong_one_would_lose(app: AppTest) -> None:
    app.session_state["arrivals"] = "trace"
    open_page(app, "catalogue")
    app.sidebar.file_uploader(key="trace_file").upload("log.csv", b"when\nlong ago\n").run()
    assert any("neither a time nor a head" in error.value for error in app.sidebar.error)
    app.sidebar.file_uploader(key="trace_file").upload("log.csv", b"0\n0.5\n7\n").run()
    assert_clean(app)
    assert case_now(app)["workload"]["arrivals"] == {"kind": "trace", "times_s": [0, 0.5, 7]}


def test_a_long_log_says_that_no_link_carries_it(app: AppTest) -> None:
    app.session_state["arrivals"] = "trace"
    app.session_state["trace"] = "\n".join(str(second) for second in range(2000))
    open_page(app, "catalogue")
    assert any("Too long for a link" in caption.value for caption in app.sidebar.caption)
    assert "trace" not in app.query_params
    assert app.query_params["arrivals"] in ("trace", ["trace"])


def test_kinds_of_requests_with_a_mistake_are_one_sentence_on_the_page(app: AppTest) -> None:
    app.session_state["classes"] = "chat 90"
    unfold(app, "clients", page="workload")
    assert_clean(app)
    assert [error.value for error in app.error if "'chat 90' is not understood" in error.value]


def test_a_case_with_everything_loads_into_the_fields_and_comes_back(app: AppTest) -> None:
    case = full()
    scenario, _ = read_case(case)
    for key, value in fields.to_values(fields.filled_in(case, scenario)).items():
        app.session_state[key] = value
    unfold(app, *SECTIONS)
    assert_clean(app)
    assert read_case(case_now(app))[0] == scenario


def test_own_figures_with_a_split_ask_for_the_link(app: AppTest) -> None:
    app.session_state["gpu"] = "own"
    open_page(app, "catalogue")
    assert any("needs the GPU-to-GPU link" in caption.value for caption in app.sidebar.caption)
    app.session_state["own_link"] = 450.0
    app.run()
    assert not any("needs the GPU-to-GPU link" in caption.value for caption in app.sidebar.caption)
