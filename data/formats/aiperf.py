"""Results of AIPerf (three shapes since October 2025) and genai-perf as JSON: metrics that name their unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from data.formats.collect import below, first_text, utc_text
from data.formats.document import Document
from data.formats.json_fields import count, number, text
from data.formats.json_objects import JsonObject, any_object, objects, part, read_runs
from data.formats.nvidia_metrics import Metric, Metrics, filled, has_reasoning
from data.records import BenchmarkRun, ReadResult

_SIGNS = (
    "request_throughput",
    "request_latency",
    "request_count",
    "time_to_first_token",
    "inter_token_latency",
    "output_token_throughput",
)
_GENAI_SETTINGS = frozenset({"perf_analyzer", "formatted_model_name", "subcommand", "backend_parameters"})
"""Settings that only genai-perf writes beside its results."""


def looks_like(document: Document) -> bool:
    """True when an object of the file holds metrics of AIPerf or genai-perf."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """Every result in the file."""
    found = [item for _, item in objects(document) if _has_signature(item)]
    reasoning = any(has_reasoning(_metrics(item)) for item in found)
    notes = ("reasoning_tokens",) if reasoning else ()
    return read_runs(document, _code(found[0]), signature=_has_signature, run=_run, notes=notes)


def _has_signature(item: JsonObject) -> bool:
    metrics = part(item, "records") or item
    return sum(isinstance(metrics.get(sign), dict) and "avg" in metrics[sign] for sign in _SIGNS) > 1


def _code(item: JsonObject) -> str:
    if part(item, "records"):
        return "aiperf_json_records"
    return "genai_perf_json" if _is_genai(item) else "aiperf_json"


def _is_genai(item: JsonObject) -> bool:
    settings = part(item, "input_config")
    if "schema_version" in item or "aiperf_version" in item or "benchmark_duration" in _metrics(item):
        return False
    return bool(_GENAI_SETTINGS & set(settings)) or not {"loadgen", "phases"} & set(settings)


def _metrics(item: JsonObject) -> Metrics:
    return {
        name: Metric(unit=text(entry, "unit"), statistics=entry)
        for name, entry in (part(item, "records") or item).items()
        if isinstance(entry, dict) and "avg" in entry
    }


def _run(item: JsonObject) -> BenchmarkRun:
    settings = part(item, "input_config")
    load = _load(settings)
    run = BenchmarkRun(
        tool="genai-perf" if _is_genai(item) else "aiperf",
        tool_version=text(item, "aiperf_version"),
        model=_model(settings),
        backend=_endpoint(settings),
        gpu=_gpu(item),
        date=utc_text(item.get("start_time")),
        request_rate_per_s=number(load, "rate") or number(load, "request_rate"),
        max_concurrency=count(load, "concurrency"),
        failed=_failed(item),
        flags=_flags(item, settings),
    )
    return filled(run, _metrics(item))


def _flags(item: JsonObject, settings: JsonObject) -> tuple[str, ...]:
    prompts = part(settings, "input")
    prefix, turns = below(prompts, "prompt", "prefix_prompt"), below(prompts, "conversation", "turn")
    named = {
        "incomplete_requests": item.get("was_cancelled") is True,
        "prompts_shared": bool(prefix.get("length")) or (number(turns, "mean") or 0) > 1,
    }
    return tuple(code for code, fires in named.items() if fires)


def _failed(item: JsonObject) -> int | None:
    """From the list of errors: AIPerf leaves it out when there are none, genai-perf gives up at the first one."""
    errors = item.get("error_summary")
    if not isinstance(errors, list):
        return 0
    return sum(count(error, "count") or 0 for error in errors if isinstance(error, dict))


def _load(settings: JsonObject) -> Mapping[str, Any]:
    """Concurrency and rate, wherever this version keeps them."""
    phases = settings.get("phases")
    measured = [
        phase
        for phase in (phases if isinstance(phases, list) else ())
        if isinstance(phase, dict) and "warmup" not in (phase.get("kind"), phase.get("name"))
    ]
    if measured:
        return measured[-1]
    stimulus = below(settings, "perf_analyzer", "stimulus")
    return part(settings, "loadgen") or stimulus or settings


def _model(settings: JsonObject) -> str | None:
    names = _names(part(settings, "endpoint").get("model_names")) or _names(settings.get("model_names"))
    other = _names(below(settings, "models").get("items")) or _names(settings.get("model"))
    return first_text(*names, *other, *_names(settings.get("models")), settings.get("formatted_model_name"))


def _names(value: Any) -> list[str]:
    """Model names of a list of names, of objects with a name, or of one name."""
    items = value if isinstance(value, list) else [value]
    named = [item.get("name") if isinstance(item, dict) else item for item in items]
    return [name for name in named if isinstance(name, str)]


def _endpoint(settings: JsonObject) -> str | None:
    endpoint = settings.get("endpoint")
    kind = endpoint.get("type") if isinstance(endpoint, dict) else None
    return first_text(kind, settings.get("endpoint_type"), settings.get("backend"))


def _gpu(item: JsonObject) -> str | None:
    """The GPU the telemetry saw, when all are of one kind; how many of them served the model it does not say."""
    names = set(_gpu_names(item))
    return names.pop() if len(names) == 1 else None


def _gpu_names(item: JsonObject) -> Iterator[str]:
    for endpoint in below(item, "telemetry_data", "endpoints").values():
        for gpu in below(endpoint, "gpus").values():
            name = text(gpu, "gpu_name") if isinstance(gpu, dict) else None
            if name:
                yield name
