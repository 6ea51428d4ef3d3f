"""What the name of a file or folder suggests of a run: offered to whoever declares the missing facts, never taken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_MAX_COUNT = 4096
_SEPARATED = r"(?:^|[/_\-.\s(])"
_END = r"(?=$|[/_\-.\s)])"
_GPU_FAMILIES = (
    "gb300 gb200 b300 b200 h200 h100 h800 h20 gh200 a100 a800 a40 a30 a10g a10 l40s l40 l4 v100 t4 "
    "mi355x mi355 mi325x mi325 mi300x mi300 mi250x rtx6000 rtx4090 4090 rtx5090 5090 910b 910c"
)
_GPU = "|".join(_GPU_FAMILIES.split())
_NAMED_GPU = re.compile(
    rf"{_SEPARATED}(?:(\d{{1,3}})x)?((?:{_GPU})(?:-(?:\d{{2,3}}gb|sxm\d?|pcie|nvl|hbm3e?))*){_END}", re.I
)
_COUNTS = (
    ("gpu_count", re.compile(rf"{_SEPARATED}(?:n?gpus?[_\-]?(\d{{1,4}})|(\d{{1,4}})gpus?){_END}", re.IGNORECASE)),
    ("tensor_parallel", re.compile(rf"{_SEPARATED}tp[_\-=]?(\d{{1,3}}){_END}", re.IGNORECASE)),
    (
        "max_concurrency",
        re.compile(rf"{_SEPARATED}(?:conc(?:urrency)?|parallel)[_\-=]?(\d{{1,4}}){_END}", re.IGNORECASE),
    ),
)
_ENGINE = re.compile(rf"{_SEPARATED}(vllm|sglang|trt-?llm|tensorrt-?llm|lmdeploy|tgi){_END}", re.IGNORECASE)


def name_facts(path: str) -> dict[str, str | int]:
    """Facts in a path: ``gpu``, ``gpu_count``, else ``tensor_parallel``, ``max_concurrency``, ``engine``.

    Of several mentions the one deepest in the path counts.
    """
    found: dict[str, str | int] = {}
    for match in _NAMED_GPU.finditer(path):
        found["gpu"] = match.group(2)
        if match.group(1):
            found["gpu_count"] = int(match.group(1))
    for name, pattern in _COUNTS:
        for count in _counts(pattern, path):
            found.setdefault(name, count)
    if "gpu_count" in found:
        found.pop("tensor_parallel", None)
    for match in _ENGINE.finditer(path):
        found["engine"] = match.group(1).lower()
    return found


def _counts(pattern: re.Pattern[str], path: str) -> Iterator[int]:
    """Counts in the path, the last first."""
    matches = [next(group for group in match.groups() if group) for match in pattern.finditer(path)]
    return (int(count) for count in reversed(matches) if 0 < int(count) <= _MAX_COUNT)


def suggested(path: str, known: Mapping[str, object]) -> dict[str, str | int]:
    """What the path suggests of facts that are not known."""
    return {name: value for name, value in name_facts(path).items() if known.get(name) is None}
