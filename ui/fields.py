"""Widget values ↔ case: the one JSON form that links, saved scenarios, the command line and the sheet share.

Pure functions over plain values, so that they are tested without a browser. Percent and the flat keys of the screen
end here; ``data.case`` turns the case into the one frozen ``Scenario``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from calc.errors import ImpossibleDeployment, InputError
from calc.messages import Message, msg
from calc.scenario import Scenario
from data.case import MODEL_LENGTH, write_case
from data.case_calibration import KEY as CALIBRATION
from data.case_calibration import calibration_of_text, calibration_text, parse_calibration, write_calibration
from data.case_measured import KEY as MEASURED
from data.case_measured import measured_of_text, measured_text, parse_measured, write_measured
from data.case_prices import further_of_text, further_text
from ui.fields_load import LOAD, load_not_on_screen, workload_case, workload_values
from ui.fields_serving import SERVING, SPECULATION, serving_case, serving_not_on_screen, serving_values
from ui.glossary import FIELDS

Values: TypeAlias = dict[str, Any]
Case: TypeAlias = dict[str, Any]

MAX_LINKED_LOG = 1500
LONG = ("trace", "minute_rates")
"""Values too long for an address when they come from a log."""
"""Characters of a log that an address carries; mail programs break longer ones."""
NEWEST = "newest"
"""Version code: the newest row of the chosen engine."""
EMPTY: Mapping[str, Any] = {
    "name": "", "model": None, "gpu": None,
    "own_memory": 80.0, "own_bandwidth": None, "own_bf16": None, "own_fp8": None, "own_link": None,
    "gpus": 1, "tp": 1, "pp": 1, "dp": 1, "ep": False,
    "engine": "vllm", "version": "newest", "fraction": None, "max_len": None, "max_batched": None, "max_seqs": None,
    "kv_dtype": "auto", "weight_dtype": "auto", "prefix_caching": "auto",
    "block_size": None, "chunked_prefill": "auto", "kv_tokens": None, "async_scheduling": "auto", "hybrid_kv": "auto",
    **SERVING, **LOAD,
    "slo_ttft": None, "slo_itl": None, "slo_e2e": None, "percentile": 0.95,
    "price": None, "currency": "USD", "costs": "", "measured": "", "calibration": "",
}  # fmt: skip
"""Every widget key with the value it has when a case says nothing about it."""

PLAIN: Mapping[str, str] = {
    "name": "name", "tp": "tp", "pp": "pp", "dp": "dp", "ep": "ep", "engine": "engine", "version": "engine_version",
    "fraction": "memory_fraction", "max_len": "max_model_len", "max_batched": "max_num_batched_tokens",
    "max_seqs": "max_num_seqs", "kv_dtype": "kv_dtype", "weight_dtype": "weight_dtype",
    "block_size": "block_size", "kv_tokens": "kv_tokens",
}  # fmt: skip
"""Widget key → case key where the value is the same."""

OWN_GPU: Mapping[str, str] = {
    "own_memory": "memory_gib", "own_bandwidth": "bandwidth_gb_per_s", "own_bf16": "bf16_tflops",
    "own_fp8": "fp8_tflops", "own_link": "link_gb_per_s",
}  # fmt: skip
SLO: Mapping[str, str] = {"slo_ttft": "ttft_ms", "slo_itl": "itl_ms", "slo_e2e": "e2e_s"}
SWITCH: Mapping[str, bool | None] = {"auto": None, "on": True, "off": False}
SWITCHED: Mapping[str, str] = {
    "prefix_caching": "enable_prefix_caching", "chunked_prefill": "enable_chunked_prefill",
    "async_scheduling": "async_scheduling",
}  # fmt: skip
"""Widget key → case key of what is on, off, or left to the engine."""
CODE: Mapping[bool | None, str] = {flag: code for code, flag in SWITCH.items()}
HYBRID_OFF = "disable_hybrid_kv_cache_manager"
WHOLE = frozenset({
    "gpus", "tp", "pp", "dp", "max_len", "max_batched", "max_seqs", "concurrency", "block_size", "kv_tokens",
    "num_requests", "prefix_groups", "retries", "tier_concurrency", "spec_tokens", "prefill_replicas",
})  # fmt: skip
"""Keys whose widgets hold whole numbers."""

FLAGS = frozenset({"ep", "http"})
NEEDED = ("gpus", "tp", "pp", "dp", "hit", "idle_share", "spec_tokens")
"""Keys that may not be empty."""


def to_case(
    values: Mapping[str, Any],
    own: Mapping[str, Any] | None = None,
    price_facts: Mapping[str, str] | None = None,
) -> Case:
    """The case these widget values describe.

    ``own``: ids of stored models and GPUs → their case form; ``price_facts``: where the price is from.
    """
    _check_filled(values)
    case = {target: values[key] for key, target in PLAIN.items() if values.get(key) not in (None, "", NEWEST)}
    case["model"] = (own or {}).get(values["model"], values["model"])
    case.setdefault("max_model_len", MODEL_LENGTH)
    case["gpu"] = (own or {}).get(values["gpu"]) or _gpu(values)
    case["replicas"] = _replicas(values)
    case |= {target: switch for key, target in SWITCHED.items() if (switch := SWITCH.get(values[key])) is not None}
    if (hybrid := SWITCH.get(values["hybrid_kv"])) is not None:
        case[HYBRID_OFF] = not hybrid
    case |= serving_case(values)
    case["workload"] = workload_case(values)
    slo = {target: values[key] for key, target in SLO.items() if values.get(key) is not None}
    if slo:
        case["slo"] = {**slo, "percentile": values["percentile"]}
    if values.get("measured"):
        case[MEASURED] = write_measured(measured_of_text(values["measured"]))
    if values.get("calibration"):
        case[CALIBRATION] = write_calibration(calibration_of_text(values["calibration"]))
    if values.get("price") is not None:
        case["prices"] = {"gpu_hour": values["price"], "currency": values["currency"], **(price_facts or {})}
    if values.get("costs"):
        case["prices"] = {"currency": values["currency"], **case.get("prices", {}), **further_of_text(values["costs"])}
    return case


def _check_filled(values: Mapping[str, Any]) -> None:
    """Fields that say nothing by being empty; the reader of the case tells of the others."""
    for key in NEEDED:
        if values[key] is None:
            raise InputError(msg("{name} is missing: add it.", name=FIELDS[key].label))


def _gpu(values: Mapping[str, Any]) -> Any:
    if values["gpu"] != "own":
        return values["gpu"]
    figures = {target: values[key] for key, target in OWN_GPU.items() if values.get(key) is not None}
    return {"name": "own", **figures}


def _replicas(values: Mapping[str, Any]) -> int:
    """Of all GPUs, what is left beside the replicas that only prefill."""
    per_replica, split = values["tp"] * values["pp"] * values["dp"], values["prefill_replicas"] or 0
    if values["gpus"] < per_replica or values["gpus"] % per_replica:
        raise ImpossibleDeployment(
            msg(
                "{gpus} GPUs do not make whole replicas of TP {tp} · PP {pp} · DP {dp} = {each} GPUs: "
                "set the number of GPUs to a multiple of {each}.",
                gpus=values["gpus"],
                tp=values["tp"],
                pp=values["pp"],
                dp=values["dp"],
                each=per_replica,
            )
        )
    if split and values["gpus"] // per_replica <= split:
        raise ImpossibleDeployment(
            msg(
                "{split} replicas that only prefill leave none of {gpus} GPUs to decode: set the GPUs to at least "
                "{least}, or use fewer.",
                split=split,
                gpus=values["gpus"],
                least=(split + 1) * per_replica,
            )
        )
    return int(values["gpus"] // per_replica - split)


def to_values(case: Mapping[str, Any], model_id: str | None = None, gpu_id: str | None = None) -> Values:
    """Widget values that :func:`to_case` turns back into ``case``; the ids stand for a stored model and GPU."""
    values: Values = dict(EMPTY)
    values |= {key: case[target] for key, target in PLAIN.items() if case.get(target) is not None}
    values["model"] = model_id or case["model"]
    if values["max_len"] == MODEL_LENGTH:
        values["max_len"] = None
    values |= {"gpu": gpu_id} if gpu_id else _gpu_values(case["gpu"])
    values |= {key: CODE[case.get(target)] for key, target in SWITCHED.items()}
    values["hybrid_kv"] = CODE[None if case.get(HYBRID_OFF) is None else not case[HYBRID_OFF]]
    values |= serving_values(case) | workload_values(case.get("workload", {}))
    values["http"] = case.get("http") is not False
    replicas = case.get("replicas", 1) + values["prefill_replicas"]
    values["gpus"] = values["tp"] * values["pp"] * values["dp"] * replicas
    slo, prices = case.get("slo", {}), case.get("prices", {})
    values |= {key: slo[target] for key, target in SLO.items() if slo.get(target) is not None}
    values["percentile"] = slo.get("percentile", values["percentile"])
    values["measured"] = measured_text(parse_measured(case[MEASURED])) if case.get(MEASURED) else ""
    fitted = case.get(CALIBRATION)
    values["calibration"] = calibration_text(parse_calibration(fitted)) if fitted else ""
    values["price"], values["currency"] = prices.get("gpu_hour"), prices.get("currency", "USD")
    values["costs"] = further_text(prices)
    return {key: _within(key, _typed(key, value)) for key, value in values.items()}


def filled_in(case: Mapping[str, Any], scenario: Scenario) -> Case:
    """``case`` in full, in the words of :func:`write_case`; left to the newest engine, it stays so."""
    full = write_case(scenario)
    return full if case.get("engine_version") else {key: full[key] for key in full if key != "engine_version"}


def is_typed(gpu: Mapping[str, Any]) -> bool:
    """Whether the widgets of the screen's own figures hold the whole of a GPU written out in a case."""
    return gpu.get("name") == "own" and set(gpu) <= {*OWN_GPU.values(), "name"}


def not_on_screen(case: Mapping[str, Any]) -> list[str]:
    """Settings of a case in full that no widget holds. A GPU written out is stored, so nothing of it is lost."""
    shown = {*PLAIN.values(), *SWITCHED.values(), HYBRID_OFF, SPECULATION, MEASURED, CALIBRATION}
    shown |= {"model", "gpu", "replicas", "serving", "workload", "slo", "prices", "http"}
    lost = [key for key in case if key not in shown]
    return lost + serving_not_on_screen(case) + load_not_on_screen(case["workload"])


def _within(key: str, value: Any) -> Any:
    """``value`` if its widget can hold it; the same bounds as on the screen."""
    field = FIELDS.get(key)
    if field is None or field.low is None or field.high is None or not isinstance(value, int | float):
        return value
    if not field.low <= value <= field.high:
        raise InputError(
            msg(
                "{key} must be from {low:g} to {high:g}, got {value:g}.",
                key=key,
                low=field.low,
                high=field.high,
                value=value,
            )
        )
    return value


def _typed(key: str, value: Any) -> Any:
    """Number widgets keep the type they were born with: whole ones ``int``, the others ``float``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return int(value) if key in WHOLE else float(value)


def _gpu_values(gpu: Any) -> Values:
    if isinstance(gpu, str):
        return {"gpu": gpu}
    return {"gpu": "own"} | {key: gpu.get(target) for key, target in OWN_GPU.items()}


def to_link(values: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, str]:
    """Query parameters for every value that differs from the worked example; codes and plain numbers, no language.

    A price is that of one GPU: a link that names another GPU names the price too. A long log stays out.
    """
    changed = {key for key, value in values.items() if value != example.get(key)}
    changed -= {key for key in LONG if len(values.get(key) or "") > MAX_LINKED_LOG}
    if "gpu" in changed:
        changed |= {"price", "currency"} & set(values)
    return {key: _written(values[key]) for key in values if key in changed}


def fits_link(values: Mapping[str, Any]) -> bool:
    """Whether the log of arrivals is short enough for an address."""
    return all(len(values.get(key) or "") <= MAX_LINKED_LOG for key in LONG)


def _written(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def from_link(query: Mapping[str, str]) -> tuple[Values, list[Message]]:
    """Widget values named in a link, and a sentence for each that cannot be read."""
    values: Values = {}
    problems: list[Message] = []
    for key, written in query.items():
        if key in EMPTY:
            try:
                values[key] = _within(key, _parsed(key, written))
            except ValueError:
                problems.append(msg("The link says {key} = {value}, which is not a number.", key=key, value=written))
            except InputError as error:
                problems.append(error.message)
    return values, problems


NUMBERS = frozenset(key for key, field in FIELDS.items() if field.low is not None) | {"percentile"}
"""Keys that hold numbers."""


def _parsed(key: str, written: str) -> Any:
    if key in FLAGS:
        return written == "True"
    if key == "costs" and written:
        return further_text(further_of_text(written))
    if key == "measured" and written:
        return measured_text(measured_of_text(written))
    if key == "calibration" and written:
        return calibration_text(calibration_of_text(written))
    if key not in NUMBERS:
        return written
    if written == "" and key not in NEEDED:
        return None
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(written)
    return int(number) if key in WHOLE else number
