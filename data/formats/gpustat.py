"""``gpustat --json``: one moment of all GPUs, or several one after another; who used them is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from data.formats.document import Document
from data.formats.gpu_readings import Reading, figure, log_result, mib, share
from data.formats.json_fields import text
from data.formats.json_objects import JsonObject, any_object, objects
from data.records import ReadResult

CODE = "gpustat_json"


def looks_like(document: Document) -> bool:
    """True when an object lists GPUs with their memory."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """The log."""
    return log_result(document, CODE, "gpustat", _readings(document))


def _has_signature(item: JsonObject) -> bool:
    return any("memory.used" in gpu or "utilization.gpu" in gpu for gpu in _gpus(item))


def _gpus(item: JsonObject) -> Iterator[JsonObject]:
    gpus = item.get("gpus")
    for gpu in gpus if isinstance(gpus, list) else ():
        if isinstance(gpu, dict):
            yield gpu


def _readings(document: Document) -> Iterator[Reading]:
    for _, item in objects(document):
        at = text(item, "query_time")
        for place, gpu in enumerate(_gpus(item)):
            yield Reading(
                gpu=str(gpu.get("index", place)),
                name=text(gpu, "name"),
                busy_share=share(gpu.get("utilization.gpu")),
                memory_used_bytes=mib(gpu.get("memory.used")),
                memory_total_bytes=mib(gpu.get("memory.total")),
                power_w=figure(gpu.get("power.draw")),
                temperature_c=figure(gpu.get("temperature.gpu")),
                power_limit_w=figure(gpu.get("enforced.power.limit")),
                at=at,
            )
