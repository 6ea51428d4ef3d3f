"""A scenario as JSON, the "case" of the command line, share links and saved scenarios, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeAlias, TypedDict

from calc.deployment import Deployment
from calc.engine import Engine
from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import ModelSpec
from calc.scenario import Scenario
from calc.units import GB, GIB, TERA
from calc.workload import MAX_CONCURRENCY, MAX_TOKENS
from data import catalogue
from data.case_calibration import KEY as CALIBRATION
from data.case_calibration import read_calibration, write_calibration
from data.case_engine import read_engine_args, with_drafts, write_engine_args
from data.case_fields import Fields, as_object, plain_json, scaled
from data.case_measured import KEY as MEASURED
from data.case_measured import read_measured, write_measured
from data.case_prices import read_prices, write_prices
from data.case_serving import read_serving, write_serving
from data.case_window import cut_notes, shortest_window
from data.case_workload import read_slo, read_workload, write_slo, write_workload

AUTO = "auto"
"""A dtype as the checkpoint stores it."""
MODEL_LENGTH = "model"
"""``max_model_len`` as long as the model allows."""
MAX_MEMORY_GIB = 4096
"""Largest memory of one GPU accepted; ten times what is sold."""
MAX_BANDWIDTH_GB_PER_S = 1e6
"""Highest bandwidth accepted, memory or link."""
MAX_TFLOPS = 1e6
"""Highest peak of one GPU accepted."""
MAX_WEIGHT_BYTES = 2**47
"""Most weights of one replica accepted: 128 TiB."""
MAX_POOL_TOKENS = 10**12
"""Most KV tokens of one replica accepted."""
MAX_BLOCK_TOKENS = 4096
"""Largest KV block accepted; engines use 16 to 256, and some thousands where recurrent layers set the page."""
DEFAULT_ENGINE = "vllm"
FLOP_CODES = ("bf16", "fp16", "fp8", "int8", "fp4")

OwnObjects: TypeAlias = Mapping[str, Mapping[str, Any]]
"""A user's own models or GPUs by name, each written as a case writes it."""


@dataclass(frozen=True)
class _Own:
    models: OwnObjects
    gpus: OwnObjects


class _Split(TypedDict):
    tp: int
    pp: int
    dp: int
    ep: bool
    replicas: int


def read_case(
    case: Mapping[str, Any], *, own_models: OwnObjects | None = None, own_gpus: OwnObjects | None = None
) -> tuple[Scenario, tuple[Message, ...]]:
    """A predict case as a scenario, with a note for every default worth knowing and every field not used."""
    fields = _opened(case)
    workload = read_workload(fields.needed_child("workload"), fields.flag("http"))
    deployment, notes = _read_deployment(fields, _Own(own_models or {}, own_gpus or {}))
    if fields.raw("max_model_len") is None:
        length_tokens, too_long = shortest_window(workload, deployment.model)
        deployment, notes = replace(deployment, max_model_len_tokens=length_tokens), notes + too_long
    notes += cut_notes(workload, deployment)
    scenario = Scenario(
        name=fields.text("name") or "",
        deployment=deployment,
        workload=workload,
        slo=read_slo(fields.child("slo")),
        prices=read_prices(fields.child("prices")),
        calibration=read_calibration(fields, case, read_case),
    )
    return scenario, notes + fields.unknown()


def read_deployment(
    case: Mapping[str, Any], *, own_models: OwnObjects | None = None, own_gpus: OwnObjects | None = None
) -> tuple[Deployment, tuple[Message, ...]]:
    """An estimate case: the deployment alone. A load in the case is noted and not used."""
    fields = _opened(case)
    fields.text("name")
    deployment, notes = _read_deployment(fields, _Own(own_models or {}, own_gpus or {}))
    return deployment, notes + fields.unknown()


def _opened(case: Mapping[str, Any]) -> Fields:
    fields = Fields(case)
    fields.raw("id")  # the caller's own mark, echoed by the command line
    return fields


def _read_deployment(fields: Fields, own: _Own) -> tuple[Deployment, tuple[Message, ...]]:
    dtypes = {"weight_dtype": _dtype(fields, "weight_dtype"), "kv_dtype": _dtype(fields, "kv_dtype")}
    engine, notes = _read_engine(fields)
    engine_args, arg_notes = read_engine_args(fields)
    deployment = Deployment(
        model=with_drafts(_read_model(fields, own, **dtypes), engine_args["spec_method"]),
        gpu=_read_gpu(fields, own),
        engine=engine,
        **_read_split(fields),
        memory_fraction=fields.number("memory_fraction"),
        max_model_len_tokens=_read_length(fields),
        max_num_batched_tokens=fields.count("max_num_batched_tokens", MAX_TOKENS),
        max_num_seqs=fields.count("max_num_seqs", MAX_CONCURRENCY),
        block_size_tokens=fields.count("block_size", MAX_BLOCK_TOKENS),
        weight_dtype=dtypes["weight_dtype"],
        kv_dtype=dtypes["kv_dtype"],
        prefix_caching=fields.flag("enable_prefix_caching"),
        chunked_prefill=fields.flag("enable_chunked_prefill"),
        kv_pool_bytes_per_gpu=_read_pool(fields),
        kv_tokens=fields.count("kv_tokens", MAX_POOL_TOKENS),
        measured_memory=read_measured(fields),
        serving=read_serving(fields.child("serving"), engine_args["spec_tokens"]),
        **engine_args,
    )
    return deployment, notes + arg_notes + catalogue.doubts(deployment)


def _dtype(fields: Fields, key: str) -> str | None:
    text = fields.text(key)
    return None if text == AUTO else text


def _read_split(fields: Fields) -> _Split:
    def degree(key: str) -> int:
        whole = fields.whole(key)
        return 1 if whole is None else whole

    return {
        "tp": degree("tp"),
        "pp": degree("pp"),
        "dp": degree("dp"),
        "ep": bool(fields.flag("ep")),
        "replicas": degree("replicas"),
    }


def _read_length(fields: Fields) -> int | None:
    return None if fields.raw("max_model_len") == MODEL_LENGTH else fields.count("max_model_len", MAX_TOKENS)


def _read_pool(fields: Fields) -> int | None:
    pool = fields.positive("kv_pool_bytes_per_gpu", MAX_MEMORY_GIB * GIB)
    return None if pool is None else round(pool)


def _read_engine(fields: Fields) -> tuple[Engine, tuple[Message, ...]]:
    """The defaults of the nearest row, under the version that was asked for."""
    version = (fields.text("engine_version") or "").strip() or None
    engine, notes = catalogue.engine(fields.text("engine") or DEFAULT_ENGINE, version, fields.text("date"))
    asynchronous = fields.flag("async_scheduling")
    return replace(
        engine,
        version=version or engine.version,
        async_scheduling=engine.async_scheduling if asynchronous is None else asynchronous,
    ), notes


def _read_model(fields: Fields, own: _Own, *, weight_dtype: str | None, kv_dtype: str | None) -> ModelSpec:
    named = fields.needed("model")
    if isinstance(named, str) and named not in own.models:
        return catalogue.model(named).spec(weight_dtype=weight_dtype, kv_dtype=kv_dtype)
    given = Fields(own.models[named], "model") if isinstance(named, str) else fields.needed_child("model")
    name = given.needed_text("name")
    config = given.raw("config")
    declared = given.positive("weight_bytes", MAX_WEIGHT_BYTES)
    weights_bytes = None if declared is None else round(declared)
    if config is None:
        spec = catalogue.model(name).spec(weight_dtype=weight_dtype, kv_dtype=kv_dtype)
        return replace(spec, weights_bytes_declared=weights_bytes)
    content = as_object(config, given.name_of("config"))
    spec = ModelSpec.from_config(
        content, name, weight_dtype=weight_dtype, kv_dtype=kv_dtype, weights_bytes_declared=weights_bytes
    )
    spec = catalogue.completed(spec, content)
    return replace(spec, config_json=json.dumps(plain_json(config), sort_keys=True))


def _read_gpu(fields: Fields, own: _Own) -> Gpu:
    named = fields.needed("gpu")
    if isinstance(named, str) and named not in own.gpus:
        return catalogue.gpu(named)
    return read_gpu(Fields(own.gpus[named], "gpu") if isinstance(named, str) else fields.needed_child("gpu"))


def read_gpu(given: Fields) -> Gpu:
    """A GPU written out in full: GiB, GB/s and dense TFLOP/s, as the driver and the data sheet print them."""
    name = given.needed_text("name")
    memory_gib = given.positive("memory_gib", MAX_MEMORY_GIB)
    if memory_gib is None:
        raise InputError(msg("{name} is missing: enter what the driver shows.", name=given.name_of("memory_gib")))
    flops = {code: given.positive(f"{code}_tflops", MAX_TFLOPS) for code in FLOP_CODES}
    return Gpu(
        id=given.text("id") or name,
        name=name,
        memory_bytes=round(memory_gib * GIB),
        bandwidth_bytes_per_s=_per_s(given, "bandwidth_gb_per_s"),
        flops_per_s={code: peak * TERA for code, peak in flops.items() if peak is not None},
        nvlink_bytes_per_s=_per_s(given, "link_gb_per_s"),
        pcie_bytes_per_s=_per_s(given, "pcie_gb_per_s"),
        source=given.text("source") or Gpu.source,
        checked_on=given.text("checked_on") or "",
    )


def _per_s(fields: Fields, key: str) -> float | None:
    gb_per_s = fields.positive(key, MAX_BANDWIDTH_GB_PER_S)
    return None if gb_per_s is None else gb_per_s * GB


def example_case() -> dict[str, Any]:
    """The worked example every page opens with: answers over documents, close to what its GPUs can carry."""
    text = files("data").joinpath("samples/example.json").read_text(encoding="utf-8")
    example: dict[str, Any] = json.loads(text)
    return example


def write_case(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a case that reads back as the same scenario; settings left to the engine stay out."""
    return {
        "name": scenario.name,
        **write_deployment(scenario.deployment),
        "http": scenario.workload.http,
        "workload": write_workload(scenario.workload),
        "slo": write_slo(scenario.slo),
        "prices": write_prices(scenario.prices),
        **({CALIBRATION: write_calibration(scenario.calibration)} if scenario.calibration else {}),
    }


def write_deployment(deployment: Deployment) -> dict[str, Any]:
    """The deployment alone as a case writes it."""
    engine = deployment.engine
    usual, _ = catalogue.engine(engine.id, engine.version, None)
    settings = {
        "memory_fraction": deployment.memory_fraction,
        "max_num_batched_tokens": deployment.max_num_batched_tokens,
        "max_num_seqs": deployment.max_num_seqs,
        "block_size": deployment.block_size_tokens,
        "enable_prefix_caching": deployment.prefix_caching,
        "enable_chunked_prefill": deployment.chunked_prefill,
        "kv_pool_bytes_per_gpu": deployment.kv_pool_bytes_per_gpu,
        "kv_tokens": deployment.kv_tokens,
        "async_scheduling": engine.async_scheduling if engine.async_scheduling != usual.async_scheduling else None,
    }
    return {
        "model": _write_model(deployment.model),
        "gpu": _write_gpu(deployment.gpu),
        "tp": deployment.tp,
        "pp": deployment.pp,
        "dp": deployment.dp,
        "ep": deployment.ep,
        "replicas": deployment.replicas,
        "engine": engine.id,
        "engine_version": engine.version,
        "weight_dtype": deployment.weight_dtype or AUTO,
        "kv_dtype": deployment.kv_dtype or AUTO,
        "max_model_len": deployment.max_model_len_tokens or MODEL_LENGTH,
        **{key: value for key, value in settings.items() if value is not None},
        **write_engine_args(deployment),
        **({"serving": serving} if (serving := write_serving(deployment.serving)) else {}),
        **({MEASURED: write_measured(deployment.measured_memory)} if deployment.measured_memory else {}),
    }


def _write_model(model: ModelSpec) -> str | dict[str, Any]:
    written: dict[str, Any] = {"name": model.name}
    if model.config_json:
        written["config"] = json.loads(model.config_json)
    if model.weights_bytes_declared is not None:
        written["weight_bytes"] = model.weights_bytes_declared
    return model.name if len(written) == 1 else written


def _write_gpu(gpu: Gpu) -> str | dict[str, Any]:
    if catalogue.gpus().get(gpu.id) == gpu:
        return gpu.id
    figures = {
        "id": None if gpu.id == gpu.name else gpu.id,
        "bandwidth_gb_per_s": gpu.bandwidth_bytes_per_s and scaled(gpu.bandwidth_bytes_per_s, GB),
        "link_gb_per_s": gpu.nvlink_bytes_per_s and scaled(gpu.nvlink_bytes_per_s, GB),
        "pcie_gb_per_s": gpu.pcie_bytes_per_s and scaled(gpu.pcie_bytes_per_s, GB),
        "source": None if gpu.source == Gpu.source else gpu.source,
        "checked_on": gpu.checked_on or None,
        **{f"{code}_tflops": scaled(peak, TERA) for code, peak in gpu.flops_per_s.items()},
    }
    known = {key: value for key, value in figures.items() if value is not None}
    return {"name": gpu.name, "memory_gib": gpu.memory_bytes / GIB, **known}
