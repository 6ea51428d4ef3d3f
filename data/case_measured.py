"""A measured start as JSON, the ``measured_memory`` of a case, both ways; a start-up log as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from calc.deployment import MAX_GPUS
from calc.errors import InputError
from calc.messages import msg
from calc.startup.log import StartupLog
from calc.startup.measured import MeasuredMemory
from calc.units import GIB
from calc.workload import MAX_CONCURRENCY, MAX_TOKENS
from data.case_fields import Fields, as_object

KEY = "measured_memory"
MAX_BYTES = 4096 * GIB
MAX_POOL_TOKENS = 10**12
_NAMES = {"max_model_len_tokens": "max_model_len"}
"""Field → key, where a case already has a name for it."""


def read_measured(case: Fields) -> MeasuredMemory | None:
    """The measured start in a case."""
    given = case.child(KEY)
    if given is None:
        return None
    used = given.flag("used")
    return MeasuredMemory(
        log_id=given.needed_text("log_id"),
        date=given.text("date") or "",
        used=True if used is None else used,
        engine=given.needed_text("engine"),
        engine_version=given.needed_text("engine_version"),
        model=given.needed_text("model"),
        gpu=given.text("gpu"),
        tp=given.count("tp", MAX_GPUS) or 1,
        pp=given.count("pp", MAX_GPUS) or 1,
        dp=given.count("dp", MAX_GPUS) or 1,
        ep=bool(given.flag("ep")),
        spec_method=given.text("spec_method"),
        weight_dtype=given.text("weight_dtype"),
        kv_dtype=given.text("kv_dtype"),
        memory_fraction=given.positive("memory_fraction", 1),
        max_num_batched_tokens=given.count("max_num_batched_tokens", MAX_TOKENS),
        max_num_seqs=given.count("max_num_seqs", MAX_CONCURRENCY),
        max_model_len_tokens=given.count("max_model_len", MAX_TOKENS),
        graphs_in_budget=given.flag("graphs_in_budget"),
        kv_tokens=given.count("kv_tokens", MAX_POOL_TOKENS),
        num_blocks=given.count("num_blocks", MAX_POOL_TOKENS),
        block_size_tokens=given.count("block_size_tokens", MAX_TOKENS),
        gpu_memory_bytes=_bytes(given, "gpu_memory_bytes"),
        weights_bytes=_bytes(given, "weights_bytes"),
        activation_bytes=_bytes(given, "activation_bytes"),
        non_torch_bytes=_bytes(given, "non_torch_bytes"),
        graph_bytes=_bytes(given, "graph_bytes"),
        graph_reserved_bytes=_bytes(given, "graph_reserved_bytes"),
        kv_pool_bytes=_bytes(given, "kv_pool_bytes"),
    )


def _bytes(given: Fields, name: str) -> int | None:
    """Bytes of one GPU; a pool may be below zero: by so much the rest was too large."""
    value = given.whole(name)
    least = -MAX_BYTES if name == "kv_pool_bytes" else 0
    if value is not None and not least <= value <= MAX_BYTES:
        raise InputError(
            msg(
                "{name} must be between {least} and {limit} bytes, got {value}: check its unit.",
                name=given.name_of(name),
                least=least,
                limit=MAX_BYTES,
                value=value,
            )
        )
    return value


def write_measured(measured: MeasuredMemory) -> dict[str, Any]:
    """The JSON form that reads back as the same start; what is not known or usual stays out."""
    usual = {"tp": 1, "pp": 1, "dp": 1, "ep": False, "used": True}
    return {
        _NAMES.get(name, name): value
        for name, value in asdict(measured).items()
        if value is not None and value != usual.get(name)
    }


def parse_measured(value: Any) -> MeasuredMemory:
    """A measured start given by itself."""
    found = read_measured(Fields({KEY: as_object(value, KEY)}))
    assert found is not None  # the key is there
    return found


def measured_text(measured: MeasuredMemory) -> str:
    """A measured start in one short line, as a link carries it."""
    return json.dumps(write_measured(measured), separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def measured_of_text(text: str) -> MeasuredMemory:
    """The measured start in such a line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            msg("The measured memory of this link cannot be read: ask for the link again, or store the log here.")
        ) from error
    return parse_measured(value)


def log_answer(log: StartupLog) -> dict[str, Any]:
    """A start-up log as JSON: every figure with the words and the line it was read from."""
    return {
        "engine": log.engine,
        "starts": log.starts,
        "lines": log.lines,
        "tells_settings": log.tells_settings,
        "figures": {
            name: {
                "value": seen.value,
                "line": seen.line,
                "line_number": seen.line_number,
                "times": seen.times,
                **({"low": seen.low, "high": seen.high} if seen.differs else {}),
            }
            for name, seen in log.seen().items()
        },
        "refusals": [
            {"kind": refusal.kind, "text": str(refusal.text), "line": refusal.line, "line_number": refusal.line_number}
            for refusal in log.refusals
        ],
    }
