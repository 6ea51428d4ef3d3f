"""What crosses the border of the measuring process: one JSON object per line.

Progress goes to standard error, ``{"progress": 0.4, "step": "Prefill of 512 tokens", …}``; the last line of standard
output is the result or ``{"error": "one sentence", …}``. Sentences carry their msgid, so that pages can translate them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from calc.errors import InputError
from calc.messages import Message, msg
from calc.model import LatentAttention
from probe.nvml import GpuFacts, NvmlReport
from probe.result import DecodePoint, PrefillPoint, ProbeResult, Timing
from probe.shape import GATED_MATRICES, TWO_PROJECTIONS, LayerShape

TOOL = "plimsoll-probe"
"""How a reader recognises a stored result."""
FORMAT_VERSION = 1


def shape_line(shape: LayerShape) -> str:
    """The request: the layer to measure."""
    return _line(_shape_fields(shape))


def parse_shape(text: str) -> LayerShape:
    """The layer in a request; says which field is missing or wrong."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            msg("A layer is one JSON object, got text that is none ({reason}): correct it.", reason=str(error))
        ) from error
    return _shape(found)


def progress_line(share: float, step: Message) -> str:
    """How far the run is and what it does now."""
    return _line({"progress": round(share, 3), "step": str(step), **_message_fields(step)})


def parse_progress(text: str) -> tuple[float, Message] | None:
    """Share and step; ``None`` for any other line a library may write."""
    found = _object(text)
    if found is None or "progress" not in found:
        return None
    return float(found["progress"]), _message(found)


def error_line(error: Message) -> str:
    """Why nothing was measured."""
    return _line({"error": str(error), **_message_fields(error)})


def result_line(result: ProbeResult) -> str:
    """The whole result, storable as it is."""
    return _line(
        {
            "tool": TOOL,
            "format_version": FORMAT_VERSION,
            **asdict(result),
            "scaled": result.scaled,
            "shape": _shape_fields(result.shape),
            "notes": [_message_fields(note) for note in result.notes],
        }
    )


def parse_outcome(text: str) -> ProbeResult | Message | None:
    """The result, or the error the process told; ``None`` when the line is neither or from another version."""
    found = _object(text)
    if found is None:
        return None
    if "error" in found:
        return _message(found)
    return _result(found) if found.get("tool") == TOOL and found.get("format_version") == FORMAT_VERSION else None


def report_line(report: NvmlReport) -> str:
    """What the driver said, whole."""
    gpus = [{**asdict(gpu), "throttle_reasons": _messages_fields(gpu.throttle_reasons)} for gpu in report.gpus]
    reason = None if report.reason is None else _message_fields(report.reason)
    return _line({**asdict(report), "gpus": gpus, "reason": reason})


def parse_report(text: str) -> NvmlReport | None:
    """The driver's report; ``None`` for any other line."""
    found = _object(text)
    if found is None or "available" not in found:
        return None
    gpus = tuple(GpuFacts(**{**gpu, "throttle_reasons": _messages(gpu["throttle_reasons"])}) for gpu in found["gpus"])
    reason = None if found["reason"] is None else _message(found["reason"])
    return NvmlReport(**{**found, "gpus": gpus, "reason": reason})


def _messages_fields(messages: tuple[Message, ...] | None) -> list[dict[str, Any]] | None:
    return None if messages is None else [_message_fields(message) for message in messages]


def _messages(found: list[Mapping[str, Any]] | None) -> tuple[Message, ...] | None:
    return None if found is None else tuple(_message(one) for one in found)


def _result(found: Mapping[str, Any]) -> ProbeResult:
    plain = {field.name: found[field.name] for field in fields(ProbeResult)}
    return ProbeResult(
        **{
            **plain,
            "shape": _shape(found["shape"]),
            "prefill": tuple(PrefillPoint(**_with_timing(point)) for point in found["prefill"]),
            "decode": tuple(DecodePoint(**_with_timing(point)) for point in found["decode"]),
            "notes": tuple(_message(note) for note in found["notes"]),
        }
    )


def _with_timing(point: Mapping[str, Any]) -> dict[str, Any]:
    return {**point, "timing": Timing(**point["timing"])}


def _shape_fields(shape: LayerShape) -> dict[str, Any]:
    return {**asdict(shape), "notes": [_message_fields(note) for note in shape.notes]}


_SIZES = ("hidden_size", "heads", "kv_heads", "head_dim", "v_head_dim", "intermediate_size")
_DEFAULTS: Mapping[str, Any] = {
    "name": "",
    "mlp_matrices": GATED_MATRICES,
    "kv_projections": TWO_PROJECTIONS,
    "tp": 1,
    "latent": None,
    "notes": (),
}


def _shape(found: object) -> LayerShape:
    values = {**_DEFAULTS, **_checked(found, (*_SIZES, "dtype"), tuple(_DEFAULTS))}
    _check_whole(values, (*_SIZES, "mlp_matrices", "kv_projections", "tp"))
    values["latent"] = None if values["latent"] is None else _latent(values["latent"])
    values["notes"] = tuple(_message(_checked(note, ("msgid", "params"))) for note in values["notes"])
    return LayerShape(**values)


def _latent(found: object) -> LatentAttention:
    values = _checked(found, tuple(field.name for field in fields(LatentAttention)))
    _check_whole(values, tuple(name for name in values if name != "q_rank" or values[name] is not None))
    return LatentAttention(**values)


def _checked(found: object, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """``found`` as an object with all needed and no unknown fields."""
    if not isinstance(found, dict) or not set(needed) <= set(found) <= {*needed, *optional}:
        raise InputError(
            msg(
                "A layer needs the fields {needed} and no others, got {got}: correct them.",
                needed=", ".join(needed),
                got=", ".join(found) if isinstance(found, dict) else str(found),
            )
        )
    return found


def _check_whole(values: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        value = values[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(
                msg(
                    "The layer's {name} must be a whole number above 0, got {value}: correct it.",
                    name=name,
                    value=str(value),
                )
            )


def _message_fields(message: Message) -> dict[str, Any]:
    return {"msgid": message.msgid, "params": dict(message.params)}


def _message(found: Mapping[str, Any]) -> Message:
    return Message(found["msgid"], found["params"])


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _line(found: Mapping[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, allow_nan=False)
