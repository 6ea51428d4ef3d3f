"""How far predictions are from recorded runs, as docs/accuracy.md: ``make accuracy``, where PLIMSOLL_CASES is at hand.

Only differences are written down, none of the records.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from conftest import ROOT, cases_folder

from calc import MODEL_VERSION
from calc.errors import PlimsollError
from calc.units import GIB
from data.questions import estimate, predict

PAGE = ROOT / "docs" / "accuracy.md"
GROUPS = {
    "blis-dense": "vLLM 0.15 over HTTP, dense models of 7 to 70 B, H100, A100, L40S",
    "blis-moe": "vLLM 0.15 over HTTP, mixture of experts",
    "inferencex-vllm": "vLLM, FP8 and FP4, closed loop, version not stated",
    "inferencex-sglang": "SGLang, FP8 and FP4, closed loop, version not stated",
    "inferencex-tensorrt-llm": "TensorRT-LLM, FP8 and FP4, closed loop, version not stated",
    "recorded": "recordings inside the engine, some overloaded",
    "other": "single published points",
}
"""Groups of serving points in words."""
LATENCY = {
    "TPOT": ("tpot_ms", "mean"),
    "TTFT": ("ttft_ms", "mean"),
    "E2E": ("e2e_ms", "mean"),
    "P99 TTFT": ("ttft_ms", "p99"),
}
"""Column → metric and statistic compared."""
LOGGED = {
    "KV pool": ("kv_pool_bytes_per_gpu", "kv_cache_memory_gib", GIB),
    "KV tokens": ("kv_tokens", "kv_cache_tokens", 1),
    "sequences of the longest length": ("max_concurrency", "max_concurrency", 1),
    "weights": ("weights_bytes_per_gpu", "weight_memory_gib", GIB),
    "activations": ("activation_bytes_per_gpu", "activation_memory_gib", GIB),
}
"""Row → our key, the start-up log's key, and the log's unit in ours."""
ALLOCATED = ("num_blocks", "kv_tokens", "max_concurrency")
EQUAL_SHARE = 0.005
"""Up to here an allocation counts as equal: logs are rounded to two digits."""
FEW = 3
"""A median of fewer points says nothing."""


def lines(path: Path) -> Iterator[Any]:
    """The objects of a JSON Lines file."""
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def percent(share: float, *, signed: bool = False) -> str:
    """A share as text: 0.0342 → 3.4 %."""
    shown = share * 100
    return f"{shown:{'+' if signed else ''}.{1 if abs(shown) < 9.95 else 0}f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def starts(folder: Path) -> str:
    """Estimates beside the figures that the engine logged when it started."""
    errors: dict[str, list[float]] = defaultdict(list)
    for line in lines(folder / "memory" / "estimate_cases.jsonl"):
        ours = estimate(line["case"])
        for row, (key, logged, unit) in LOGGED.items():
            if line["truth"].get(logged):
                errors[row].append(ours[key] / (line["truth"][logged] * unit) - 1)
    head = ("vLLM 0.19 starts on an H100", "starts", "mean error", "median", "worst", "median with sign")
    return table(head, [[row, str(len(found)), *_spread(found)] for row, found in errors.items()])


def _spread(errors: Sequence[float]) -> tuple[str, ...]:
    size = np.abs(errors)
    return (
        percent(float(size.mean())),
        percent(float(np.median(size))),
        percent(float(size.max())),
        percent(float(np.median(errors)), signed=True),
    )


def allocations(folder: Path) -> str:
    """Blocks, tokens and sequences beside what vLLM's own allocation code makes of the same pool."""
    equal, different, refused = 0, [], 0
    for line in lines(folder / "memory" / "oracle_cases.jsonl"):
        try:
            ours = estimate(line["case"])
        except PlimsollError:
            refused += 1
            continue
        if _same(ours, line["truth"]):
            equal += 1
        else:
            different.append(line["case"]["model"]["name"])
    names = ", ".join(sorted(set(different))) or "none"
    return (
        f"Of {equal + len(different)} pools whose architecture is known, {equal} give the same blocks, tokens and "
        f"sequences as vLLM 0.32's own allocation code (within {percent(EQUAL_SHARE)}). Different: {names}. "
        f"{refused} more are refused: their layers keep a state that is not modelled."
    )


def _same(ours: Mapping[str, Any], truth: Mapping[str, Any]) -> bool:
    if "refused" in truth:
        return not ours["fits"]
    return bool(ours["fits"]) and all(abs(ours[key] / truth[key] - 1) < EQUAL_SHARE for key in ALLOCATED)


def serving(folder: Path) -> str:
    """Predictions beside measured serving points, by kind of run."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    points: dict[str, int] = defaultdict(int)
    for line in lines(folder / "latency" / "predict_cases.jsonl"):
        ours = predict(line["case"])
        points[line["group"]] += 1
        for column, (metric, statistic) in LATENCY.items():
            measured, predicted = line["measured"].get(metric, {}).get(statistic), ours[metric][statistic]
            if measured and predicted:
                for group in (line["group"], "all"):
                    errors[group, column].append(predicted / measured - 1)
    rows = [
        [words, str(count), *(_median(errors[group, column]) for column in LATENCY)]
        for group, words, count in [
            *((group, words, points[group]) for group, words in GROUPS.items() if points[group]),
            ("all", "all", sum(points.values())),
        ]
    ]
    return table(("runs", "points", *LATENCY), rows)


def _median(errors: Sequence[float]) -> str:
    if len(errors) < FEW:
        return "–"
    return f"{percent(float(np.median(np.abs(errors))))} ({percent(float(np.median(errors)), signed=True)})"


def page(folder: Path) -> str:
    """The whole document."""
    today = datetime.now(UTC).date()
    return f"""# How close the numbers are

Made by `make accuracy` on {today} with model version {MODEL_VERSION}, uncalibrated.
An error is predicted ÷ recorded − 1.

## Memory
{starts(folder)}

The constants for activations, graphs and memory outside the allocator were fitted on starts of this kind (37, one
H100), so these rows say how well the fit holds. Other GPUs, engines and versions have a wider band and no such check.
The largest errors in weights are checkpoints with a vision encoder, given with the config of their text part only;
those in activations are starts with pipeline stages, whose activations are overestimated.

{allocations(folder)}

## Latency under load
Median size of the error of means, and of P99 for TTFT; in brackets the median with its sign: + is predicted too slow.

{serving(folder)}

The efficiencies of kernels were fitted on runs of the first family, so its row, too, says how well the fit holds.
Where the version is not stated, the newest one of the run's date is taken.

What is off: TTFT is predicted too short in every family. Under closed loops SGLang and TensorRT-LLM answer the first
token much later than predicted, though their steps take about as long as predicted. On overloaded servers a few percent
in the time of a step become many in the time of waiting. A predicted TTFT just inside its target may be outside it.
"""


def main() -> int:
    folder = cases_folder()
    if not folder.is_dir():
        print("no folder of real observations: set PLIMSOLL_CASES", file=sys.stderr)  # noqa: T201
        return 1
    PAGE.write_text(page(folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
