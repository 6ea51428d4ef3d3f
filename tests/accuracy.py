"""How far predictions are from recorded runs, as docs/accuracy.md: ``make accuracy``, where PLIMSOLL_CASES is at hand.

Only differences are written down, none of the records.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from conftest import ROOT, cases_folder
from memory_accuracy import lines, memory_page, percent, table, tell

from calc import MODEL_VERSION
from data.questions import predict

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
FEW = 3
"""A median of fewer points says nothing."""


def serving(folder: Path) -> str:
    """Predictions beside measured serving points, by kind of run."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    points: dict[str, int] = defaultdict(int)
    tell("serving points; this takes a minute or two")
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
{memory_page(folder / "memory")}

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
