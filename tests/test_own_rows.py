"""GPUs, models and prices of one's own: what people type becomes checked rows that any machine reads alike."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from calc.errors import InputError, PlimsollError, UnknownArchitecture
from calc.memory import estimate_memory
from calc.units import GB, GIB, TERA
from calc.workload import Prices
from data import catalogue
from data.case import example_case, read_case, read_gpu, write_case
from data.case_fields import Fields
from data.own_hardware import gpu_case, gpu_entry, gpu_of, nearest, odd_figures, pcie_gb_per_s, price_entry, prices_of
from data.own_model import read_model, read_weight_bytes
from data.own_text import checked_date, one_line
from data.store import Store
from ui import fields, pricing
from ui.sheet.numbers import number_rows

H100 = {
    "name": "H100 lab", "memory_gib": 79.65, "bandwidth_gb_per_s": 3350, "bf16_tflops": 1979, "fp8_tflops": 3958,
    "link_gb_per_s": 900, "pcie_gb_per_s": 64, "sparse": True, "link_both": True,
}  # fmt: skip
"""As NVIDIA's H100 SXM data sheet prints it: peaks with sparsity, NVLink in both directions together."""
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
TODAY = date(2026, 11, 30)


def test_a_gpu_typed_from_its_data_sheet_has_the_figures_of_the_shipped_row() -> None:
    name, entry = gpu_entry(H100)
    gpu, shipped = read_gpu(Fields({"name": name, **entry})), catalogue.gpu("h100-sxm")
    assert gpu.flops_per_s["bf16"] == pytest.approx(shipped.flops_per_s["bf16"], rel=0.001)
    assert gpu.flops_per_s["fp8"] == pytest.approx(shipped.flops_per_s["fp8"], rel=0.001)
    assert gpu.nvlink_bytes_per_s == shipped.nvlink_bytes_per_s == 450 * GB
    assert "fp4" not in gpu.flops_per_s, "what was not typed stays unknown"


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""}, {"name": "\u202e\u200b"}, {"name": "x" * 10_000}, {"name": "h100-sxm"}, {"memory_gib": None},
        {"memory_gib": float("nan")}, {"memory_gib": -1}, {"memory_gib": 1e9}, {"bandwidth_gb_per_s": 0},
        {"bf16_tflops": 1e30}, {"link_gb_per_s": float("inf")}, {"name": "\ud800"},
    ],
    ids=str,
)  # fmt: skip
def test_a_gpu_that_cannot_be_is_refused_in_one_sentence(change: dict[str, Any]) -> None:
    with pytest.raises(PlimsollError) as refused:
        gpu_entry(H100 | change)
    assert ": " in str(refused.value)
    assert len(str(refused.value)) < 300


def test_wrong_units_are_said_and_not_corrected() -> None:
    def notes(**change: Any) -> list[str]:
        name, entry = gpu_entry(H100 | change)
        return [str(note) for note in odd_figures(read_gpu(Fields({"name": name, **entry})))]

    assert notes() == []
    assert "units" in notes(bandwidth_gb_per_s=10)[0], "10 GB/s beside a thousand TFLOP/s"
    assert "sparse" in notes(fp8_tflops=989)[0], "one peak dense, the other with sparsity"


def test_no_shipped_gpu_looks_odd() -> None:
    assert [gpu.id for gpu in catalogue.gpus().values() if odd_figures(gpu)] == []


def test_the_nearest_gpu_and_the_host_link_of_a_driver_report() -> None:
    assert nearest(79.6 * GIB, catalogue.gpus().values()).memory_bytes == pytest.approx(79.6 * GIB, rel=0.02)
    assert (pcie_gb_per_s(5, 16), pcie_gb_per_s(4, 8), pcie_gb_per_s(None, 16), pcie_gb_per_s(9, 16)) == (
        64, 16, None, None,
    )  # fmt: skip


def test_a_stored_gpu_travels_in_a_case_and_reads_as_the_same_gpu_elsewhere() -> None:
    with Store(":memory:") as store:
        name, entry = gpu_entry(H100)
        row = store.add_gpu(name, entry, source="data sheet", checked_on="2026-11-01")
    scenario, notes = read_case(example_case() | {"gpu": gpu_case(row)})
    assert notes == ()
    again, _ = read_case(json.loads(json.dumps(write_case(scenario))))
    assert again.deployment.gpu == scenario.deployment.gpu == gpu_of(row)
    assert (again.deployment.gpu.source, again.deployment.gpu.checked_on) == ("data sheet", "2026-11-01")


def test_a_link_to_an_own_gpu_opens_the_same_scenario_with_its_price() -> None:
    example = fields.to_values(example_case())
    values = example | {"gpu": "own:17"}
    linked, problems = fields.from_link(fields.to_link(values, example))
    assert problems == []
    assert linked == {"gpu": "own:17", "price": example["price"], "currency": example["currency"]}
    own = {"own:17": {"name": "lab", "memory_gib": 94.0, "bandwidth_gb_per_s": 4000, "bf16_tflops": 800}}
    case = fields.to_case(example | linked, own, {"source": "quote 7", "checked_on": "2026-11-01"})
    scenario, _ = read_case(case)
    assert scenario.deployment.gpu.memory_bytes == 94 * GIB
    assert scenario.deployment.gpu.flops_per_s == {"bf16": 800 * TERA}
    assert (scenario.prices.source, scenario.prices.checked_on) == ("quote 7", "2026-11-01")
    assert fields.to_values(write_case(scenario), None, "own:17")["gpu"] == "own:17"


def test_a_link_without_another_gpu_says_nothing_of_the_price() -> None:
    example = fields.to_values(example_case())
    assert set(fields.to_link(example | {"tp": 4}, example)) == {"tp"}


def test_a_config_alone_and_in_a_repository_answer_is_the_same_model() -> None:
    alone = read_model(json.dumps(LLAMA).encode(), name="team/llama")
    answer = {"id": "team/llama", "config": LLAMA, "safetensors": {"parameters": {"BF16": 70_553_706_496}}}
    wrapped = read_model(json.dumps(answer).encode())
    assert (wrapped.name, wrapped.config) == (alone.name, alone.config)
    assert wrapped.weights_bytes == 141_107_412_992, "Llama-3-70B: metadata.total_size of its published index"
    assert alone.weights_bytes is None
    assert alone.spec().parameters == 70_553_706_496


def test_a_weight_index_states_the_bytes() -> None:
    index = json.dumps({"metadata": {"total_size": 141107412992}, "weight_map": {"a": "b"}}).encode()
    model = read_model(json.dumps(LLAMA).encode(), index=index)
    assert model.spec().weights_bytes_declared == model.entry["weight_bytes"] == 141_107_412_992
    assert read_weight_bytes(b'{"metadata": {"total_size": "141107412992"}}') == 141_107_412_992
    assert read_weight_bytes(b"141107412992") == 141_107_412_992


@pytest.mark.parametrize(
    "index",
    [b"{}", b"[]", b"none", b'"12"', b"-5", b"1e400", b"NaN", b"true", b"0", b'{"metadata": {"total_size": "many"}}',
     b'{"metadata": []}', b"9" * 400, b"[" * 50_000],
    ids=lambda index: repr(index[:20]),
)  # fmt: skip
def test_a_weight_index_that_states_nothing_is_refused(index: bytes) -> None:
    with pytest.raises(PlimsollError) as refused:
        read_weight_bytes(index)
    assert len(str(refused.value)) < 300


def test_packed_weights_are_not_counted_from_elements() -> None:
    answer = {"id": "a/b", "config": LLAMA, "safetensors": {"parameters": {"BF16": 10, "F4": 20}}}
    assert read_model(json.dumps(answer).encode()).weights_bytes is None


def test_a_summary_of_a_config_asks_for_the_whole_one() -> None:
    summary = {"id": "a/b", "config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}}
    with pytest.raises(PlimsollError, match=r"config\.json among"):
        read_model(json.dumps(summary).encode())


def test_an_unknown_architecture_says_why() -> None:
    odd = LLAMA | {"architectures": ["NovelNet"], "model_type": "novel-net"}
    with pytest.raises(UnknownArchitecture):
        read_model(json.dumps(odd).encode()).spec()


def test_a_name_is_one_visible_line() -> None:
    assert one_line("  H100\t\u202elab\u2066 \n 名 \x00", "name") == "H100 lab 名"
    assert one_line("=1+1|<b>", "name") == "=1+1|<b>", "signs stay; whoever shows them escapes them"


@pytest.mark.parametrize("value", ["tomorrow", "2026-12-01", "1999-12-31", "", None, "2026-13-01"])
def test_a_day_that_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(InputError):
        checked_date(value, TODAY)


def test_the_newest_price_is_the_one_checked_last_not_the_one_typed_last() -> None:
    with Store(":memory:") as store:
        for amount, day in ((3.0, "2026-10-01"), (2.0, "2026-11-01"), (4.0, "2025-01-01")):
            entry = price_entry({"gpu_hour": amount, "currency": "EUR", "commitment": "on-demand", "region": " eu "})
            store.add_price("h100-sxm", entry, source="list", checked_on=day)
        rows = prices_of(store.own_prices(), "h100-sxm")
        assert [row.entry["gpu_hour"] for row in rows] == [2.0, 3.0, 4.0]
        assert rows[0].entry["region"] == "eu"
        assert prices_of(store.own_prices(), "h200") == ()


@pytest.mark.parametrize("amount", [None, -1, float("nan"), 1e10, "2"])
def test_a_price_that_cannot_be_is_refused(amount: Any) -> None:
    with pytest.raises(InputError):
        price_entry({"gpu_hour": amount, "currency": "USD", "commitment": "spot"})


def test_a_price_is_stale_after_ninety_days_and_without_a_date() -> None:
    assert [pricing.is_stale(day, TODAY) for day in ("2026-11-30", "2026-09-01", "2026-08-31", "")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_every_price_says_where_it_is_from() -> None:
    own = Prices(
        gpu_hour=2.1, currency="EUR", source="quote 7", region="eu", commitment="spot", checked_on="2026-11-01"
    )
    assert "Declared: eu" in pricing.origin(own, TODAY)
    assert "quote 7" in pricing.origin(own, TODAY)
    assert "stale" in pricing.origin(own, date(2027, 11, 30))
    assert "no source" in pricing.origin(Prices(gpu_hour=2.1), TODAY)
    assert "not a quoted price" in pricing.origin(Prices(gpu_hour=2.1, source=pricing.ASSUMED), TODAY)
    assert "No price is known" in pricing.origin(Prices(), TODAY)
    assert pricing.facts(2.1, "USD", [own]) == {}, "the same number in another currency is another price"


def test_a_price_travels_with_its_facts() -> None:
    prices = {"gpu_hour": 2.1, "currency": "EUR", "region": "eu", "commitment": "spot", "checked_on": "2026-11-01"}
    scenario, notes = read_case(example_case() | {"prices": prices})
    assert notes == ()
    assert write_case(scenario)["prices"] == prices


def test_the_cost_on_the_sheet_is_as_old_as_its_price() -> None:
    prices = {"gpu_hour": 2.1, "source": "quote 7", "checked_on": "2026-11-01"}
    scenario, _ = read_case(example_case() | {"prices": prices})
    memory = estimate_memory(scenario.deployment, scenario.workload)
    cost = next(row for row in number_rows(scenario, memory, None, None, (), (), 1.5) if row.key == "cost")
    assert [(figure.source, figure.date) for figure in cost.figures] == [("quote 7", "2026-11-01")]
