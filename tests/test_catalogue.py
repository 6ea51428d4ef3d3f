"""The catalogue: every row usable and sourced, names forgiving, engine versions chosen in words."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import pytest

from calc.engine import FractionOf, batch_defaults
from calc.errors import UnknownName
from calc.hardware import Gpu
from calc.units import GIB
from calc.workload import Closed
from data import catalogue
from data.case import read_deployment

GOLDEN = Path(__file__).parent / "golden"


def test_there_are_enough_models_and_gpus() -> None:
    published = {
        row["model"]
        for row in csv.DictReader((GOLDEN / "published_parameters.csv").read_text(encoding="utf-8").splitlines())
    }
    assert len(published & set(catalogue.models())) >= 60
    assert len(catalogue.gpus()) >= 35


@pytest.mark.parametrize("name", catalogue.models())
def test_every_model_can_be_read_and_says_where_it_is_from(name: str) -> None:
    entry = catalogue.models()[name]
    assert entry.spec().parameters > 0
    assert entry.source
    assert date.fromisoformat(entry.checked_on)
    assert entry.confidence in ("high", "medium", "low")


@pytest.mark.parametrize("gpu", catalogue.gpus().values(), ids=catalogue.gpus())
def test_every_gpu_has_plausible_figures_and_a_source(gpu: Gpu) -> None:
    assert 4 * GIB < gpu.memory_bytes < 320 * GIB
    assert gpu.source
    assert date.fromisoformat(gpu.checked_on)
    assert gpu.bandwidth_bytes_per_s is not None
    assert 100e9 < gpu.bandwidth_bytes_per_s < 10e12
    assert all(1e12 < peak < 20e15 for peak in gpu.flops_per_s.values())


def test_h100_figures_are_those_of_the_data_sheet() -> None:
    gpu = catalogue.gpu("H100-SXM")
    assert gpu.memory_bytes == pytest.approx(79.19 * GIB, rel=1e-6)
    assert gpu.bandwidth_bytes_per_s == 3350e9
    assert gpu.flops_per_s["bf16"] == 989e12
    assert gpu.nvlink_bytes_per_s == 450e9
    assert gpu.pcie_bytes_per_s == 64e9


def test_unknown_figures_stay_unknown() -> None:
    assert "bf16" not in catalogue.gpu("t4").flops_per_s
    assert "fp8" not in catalogue.gpu("a100-80-sxm").flops_per_s
    assert catalogue.gpu("l40s").nvlink_bytes_per_s is None


def test_memory_no_driver_showed_is_marked() -> None:
    assert catalogue.gpu("h20-96").memory_is_declared
    assert not catalogue.gpu("h100-sxm").memory_is_declared


def test_names_may_be_written_in_any_case_and_short() -> None:
    assert catalogue.model("QWEN/qwen3-8b").id == "Qwen/Qwen3-8B"
    assert catalogue.model("qwen3-8b").id == "Qwen/Qwen3-8B"


def test_a_wrong_name_offers_the_closest() -> None:
    with pytest.raises(UnknownName, match="Qwen/Qwen3-8B"):
        catalogue.model("Qwen/Qwen3-8")
    with pytest.raises(UnknownName, match="h100-sxm"):
        catalogue.gpu("h100-smx")
    with pytest.raises(UnknownName, match="vllm"):
        catalogue.engine("vlm")


def test_rows_of_an_engine_stand_in_order_and_have_sources() -> None:
    for code in ("vllm", "sglang", "tensorrt-llm"):
        rows = [row for row in catalogue.engines() if row.id == code]
        assert [row.released for row in rows] == sorted(row.released for row in rows)
        assert all(row.source and date.fromisoformat(row.checked_on) for row in rows)


def test_a_version_between_rows_takes_the_older_row_and_says_so() -> None:
    row, notes = catalogue.engine("vllm", "0.20.2")
    assert row.version == "0.19.0"
    assert "0.20.2" in str(notes[0])
    assert catalogue.engine("vllm", "0.19.0") == (row, ())


def test_versions_compare_as_numbers() -> None:
    assert catalogue.engine("vllm", "0.9.2")[0].version == "0.9.0"
    assert catalogue.engine("vllm", "v0.11.1rc2")[0].version == "0.11.0"


def test_without_a_version_the_date_decides() -> None:
    assert catalogue.engine("vllm", on_date="2026-04-10")[0].version == "0.19.0"
    assert catalogue.engine("vllm")[0].version == "0.32.0"
    assert catalogue.engine("vllm", on_date="2020-01-01")[1]


def test_defaults_that_changed_between_versions_differ() -> None:
    old, new = catalogue.engine("vllm", "0.19.0")[0], catalogue.engine("vllm", "0.32.0")[0]
    assert (old.memory_fraction, new.memory_fraction) == (0.90, 0.92)
    assert (old.graphs_in_budget, new.graphs_in_budget) == (False, True)
    assert catalogue.engine("tensorrt-llm")[0].fraction_of is FractionOf.FREE


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ("b200", (16384, 1024)),
        ("h100-sxm", (8192, 1024)),
        ("a100-80-sxm", (2048, 256)),
        ("a10", (2048, 256)),
    ],
)
def test_vllm_batch_defaults_follow_the_memory_class(gpu: str, expected: tuple[int, int]) -> None:
    assert batch_defaults(catalogue.engine("vllm", "0.32.0")[0], catalogue.gpu(gpu)) == expected


def test_the_five_business_types_are_complete() -> None:
    presets = catalogue.presets()
    assert list(presets) == ["online-service", "knowledge-rag", "agent", "code-completion", "offline-batch"]
    for preset in presets.values():
        assert preset.key_metrics
        assert len(preset.questions) >= 3
        assert preset.source
        assert preset.workload.business_type == preset.id
    assert isinstance(presets["offline-batch"].workload.arrivals, Closed)


def test_a_recalled_model_and_a_derived_memory_are_said_to_be_so() -> None:
    case = {"model": "01-ai/Yi-6B", "gpu": "a100-80-pcie"}
    _, notes = read_deployment(case)
    assert any("recalled" in str(note) for note in notes)
    assert any("derived" in str(note) for note in notes)


def test_a_model_read_from_a_source_needs_no_remark() -> None:
    _, notes = read_deployment({"model": "Qwen/Qwen3-32B", "gpu": "h100-sxm", "tp": 2})
    assert notes == ()
