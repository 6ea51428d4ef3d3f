"""A start-up log as a scenario: its own arguments in place of the scenario's, load and targets kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calc.errors import UnknownName
from calc.hardware import Gpu
from calc.messages import msg
from calc.startup.match import same_memory, short_name
from calc.startup.measured import MeasuredMemory
from calc.units import GIB
from data import catalogue
from data.case_measured import KEY

SETTINGS = (
    "memory_fraction",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
    "kv_dtype",
    "weight_dtype",
    "block_size",
    "kv_tokens",
    "kv_pool_bytes_per_gpu",
    "async_scheduling",
    KEY,
)
"""Keys of a case that the log's start says anew."""


def case_of_log(case: Mapping[str, Any], measured: MeasuredMemory, gpu: Gpu) -> dict[str, Any]:
    """``case`` with model, GPU, split, engine and settings of the log; ``gpu`` is the one the case has now."""
    started: dict[str, Any] = {
        "model": _model(case, measured),
        "gpu": case["gpu"] if _fits(measured, gpu) else _nearest_gpu(measured),
        "tp": measured.tp,
        "pp": measured.pp,
        "dp": measured.dp,
        "ep": measured.ep,
        "engine": measured.engine,
        "engine_version": measured.engine_version or None,
        "memory_fraction": measured.memory_fraction,
        "max_model_len": measured.max_model_len_tokens,
        "max_num_batched_tokens": measured.max_num_batched_tokens,
        "max_num_seqs": measured.max_num_seqs,
        "kv_dtype": measured.kv_dtype,
    }
    kept = {key: value for key, value in case.items() if key not in (*SETTINGS, *started)}
    return kept | {key: value for key, value in started.items() if value is not None}


def _model(case: Mapping[str, Any], measured: MeasuredMemory) -> Any:
    now = case["model"]
    name = now["name"] if isinstance(now, Mapping) else str(now)
    if not measured.model or short_name(name) == short_name(measured.model):
        return now
    return catalogue.model(short_name(measured.model)).id


def _fits(measured: MeasuredMemory, gpu: Gpu) -> bool:
    return measured.gpu_memory_bytes is None or same_memory(measured.gpu_memory_bytes, gpu.memory_bytes)


def _nearest_gpu(measured: MeasuredMemory) -> str:
    """The catalogue's GPU whose memory is nearest, the fastest of equals; engines do not log which it is."""
    wanted = measured.gpu_memory_bytes or 0
    near = min(
        catalogue.gpus().values(),
        key=lambda gpu: (abs(gpu.memory_bytes - wanted), -max(gpu.flops_per_s.values(), default=0.0)),
    )
    if not same_memory(wanted, near.memory_bytes):
        raise UnknownName(
            msg("No GPU of the catalogue shows {size:.2f} GiB: enter your own figures.", size=wanted / GIB)
        )
    return near.id
