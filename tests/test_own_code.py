"""Blocks, groups and weights against what vLLM 0.32's own model classes and allocation code make of the same config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calc.room.weights import stage_weights_bytes
from data.case import read_deployment
from data.questions import estimate

GOLDEN = json.loads((Path(__file__).parent / "golden" / "vllm_0_32_layouts.json").read_text("utf-8"))
TRUTH = ("refused", "num_blocks", "block_sizes", "num_groups", "kv_tokens", "max_concurrency", "model")
BASE = {"gpu": {"name": "H100-80GB", "memory_gib": 79.19}, "engine": "vllm", "engine_version": "0.32.0"}


def _named(row: dict[str, Any]) -> str:
    return f"{row['model'].rsplit('/', 1)[-1]}-tp{row['tp']}-pp{row['pp']}-{row.get('max_model_len', '')}"


def _case(row: dict[str, Any]) -> dict[str, Any]:
    settings = {key: value for key, value in row.items() if key not in TRUTH}
    name = row["model"]
    config = GOLDEN["configs"].get(name)
    return {**BASE, "model": {"name": name, "config": config} if config else name, **settings}


@pytest.mark.parametrize("row", GOLDEN["layouts"], ids=_named)
def test_blocks_and_concurrency_are_those_of_the_engines_own_code(row: dict[str, Any]) -> None:
    answer = estimate(_case(row))
    if row.get("refused"):
        assert not answer["fits"]
        return
    assert answer["fits"]
    assert answer["num_blocks"] == row["num_blocks"]
    assert answer["kv_tokens"] == row["kv_tokens"]
    assert answer["max_concurrency"] == pytest.approx(row["max_concurrency"], rel=1e-6)


@pytest.mark.parametrize("row", GOLDEN["weights"], ids=_named)
def test_weights_of_every_stage_are_those_the_engines_classes_create(row: dict[str, Any]) -> None:
    deployment, _ = read_deployment(_case({key: value for key, value in row.items() if key != "stage_bytes"}))
    stages = stage_weights_bytes(deployment.model, row["tp"], row["pp"])
    assert stages == pytest.approx(row["stage_bytes"], rel=GOLDEN["tolerance"]["weights"])
