"""The memory part of docs/accuracy.md: every recorded start, log and allocation beside our figure of it."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fit_runtime import Held, Start, estimate, first_stage_bytes, fit, leave_one_out
from logged import Row, public_figure, public_starts, read_logs

from calc.errors import PlimsollError
from calc.room.runtime_constants import RuntimeConstants
from calc.units import GIB
from data.questions import estimate as estimate_case

EQUAL_SHARE = 0.005
"""Up to here an allocation counts as equal: logs are rounded to two digits."""
ALLOCATED = ("num_blocks", "kv_tokens", "max_concurrency")
FREE = {
    "activations: base, GiB": ("activation_base_bytes", GIB),
    "activations: hidden states beside the MLP": ("mlp_hidden_copies", 1),
    "activations: hidden states beside the sampler": ("sampler_hidden_copies", 1),
    "activations: run of a vision encoder, GiB": ("encoder_bytes", GIB),
    "non-torch: one GPU, GiB": ("non_torch_large_bytes", GIB),
    "non-torch: pipeline stage, GiB": ("non_torch_pipeline_bytes", GIB),
    "non-torch: TP 2 with NVLink SHARP, GiB": ("non_torch_pair_nvls_bytes", GIB),
    "non-torch: each further rank, GiB": ("non_torch_per_rank_bytes", GIB),
}
"""The constants that are fitted, in words, and the unit they are shown in."""
POOL = "pool GiB"
THOUSAND = 1000
IN_GIB = "non-torch memory of the first stage"
"""Shown as a difference: a share of a few hundredths of a GiB says nothing."""


def lines(path: Path) -> Iterator[Any]:
    """The objects of a JSON Lines file."""
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def percent(share: float, *, signed: bool = False) -> str:
    """A share as text: 0.0342 → 3.4 %; small ones with two digits."""
    shown = share * 100
    digits = 2 if abs(shown) < 0.095 else 1 if abs(shown) < 9.95 else 0
    return f"{shown:{'+' if signed else ''}.{digits}f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def tell(text: str) -> None:
    """Progress, to the terminal."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def memory_page(folder: Path) -> str:
    """The sections on memory; ``folder`` holds the recorded starts, logs and allocations."""
    tell("starts: estimated, refitted and left out")
    starts = [Start.read(line) for line in lines(folder / "estimate_cases.jsonl")]
    constants = starts[0].deployment.engine.runtime
    now, held = [estimate(start, constants) for start in starts], leave_one_out(starts)
    tell("logs from public threads")
    rows = list(read_logs(folder))
    tell("allocations")
    return "\n\n".join(
        [
            "### Starts of vLLM 0.19 on an H100",
            _summary(now, held),
            _fit_words(starts, now, held),
            _constants(starts, constants, held),
            "Every start:",
            _starts(now, held),
            "### Logs from public threads",
            _logs_words(rows),
            *_logs(rows),
            "Further starts, one figure each:",
            _public(),
            "### Blocks, tokens and sequences",
            _allocations(folder / "oracle_cases.jsonl"),
        ]
    )


def _errors(held: Sequence[Held]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for one in held:
        truth, report = one.start.truth, one.report
        first = first_stage_bytes(one.start, one.constants)
        found["KV pool"].append(report.kv_pool_bytes / GIB / truth["kv_cache_memory_gib"] - 1)
        found["KV tokens"].append(report.kv_tokens / truth["kv_cache_tokens"] - 1)
        found["sequences of the longest length"].append(report.max_concurrency / truth["max_concurrency"] - 1)
        if not report.weights_declared:
            found["weights, where not declared"].append(report.weights_bytes / GIB / truth["weight_memory_gib"] - 1)
        activations = first["activation_memory_gib"] / GIB
        found["activations of the first stage"].append(activations / truth["activation_memory_gib"] - 1)
        found[IN_GIB].append(first["non_torch_forward_gib"] / GIB - truth["non_torch_forward_gib"])
    return found


def _summary(now: Sequence[Held], held: Sequence[Held]) -> str:
    head = ("figure", "starts", "mean error", "median", "worst", "model left out: mean", "median", "worst")
    left = _errors(held)
    rows = [
        [words, str(len(errors)), *_spread(words, errors), *_spread(words, left[words])]
        for words, errors in _errors(now).items()
    ]
    return table(head, rows)


def _spread(words: str, errors: Sequence[float]) -> list[str]:
    size = np.abs(errors)
    figures = (float(size.mean()), float(np.median(size)), float(size.max()))
    return [f"{figure:.2f} GiB" if words == IN_GIB else percent(figure) for figure in figures]


def _inside(one: Held) -> bool:
    low, high = one.report.kv_pool_band_bytes
    return low <= one.start.truth["kv_cache_memory_gib"] * GIB <= high


def _fit_words(starts: Sequence[Start], now: Sequence[Held], held: Sequence[Held]) -> str:
    models: dict[str, list[bool]] = defaultdict(list)
    for one in held:
        models[one.start.model].append(_inside(one))
    shares = [float(np.mean([_inside(one) for one in each])) for each in (now, held)]
    shipped, left_out, per_model = map(percent, (*shares, float(np.mean([np.mean(each) for each in models.values()]))))
    return f"""The constants were fitted on these {len(starts)} starts of {len(models)} models. Left out means: fitted
again on the starts of all other models, every precision and split of the one removed, and then asked for it
(`tests/fit_runtime.py`). The 80 % band of the pool holds {shipped} of the logged pools as shipped, {left_out} with the
model left out, and {per_model} if every model counts once.

With pipeline stages the log is the first stage's, while the pool is that of the fullest stage, the last: it also
samples, and the tokens are counted from it. This is all that the two largest errors of the pool are. Two Granite
starts logged 0.2 GiB more non-torch memory than the others on one GPU, for a reason the log does not give."""


def _constants(starts: Sequence[Start], shipped: RuntimeConstants, held: Sequence[Held]) -> str:
    fitted = fit(starts, shipped)
    rows = []
    for words, (name, unit) in FREE.items():
        left = [getattr(one.constants, name) / unit for one in held]
        own, again = getattr(shipped, name) / unit, getattr(fitted, name) / unit
        rows.append([words, f"{own:.3g}", f"{again:.3g}", f"{min(left):.3g} to {max(left):.3g}"])
    return table(("fitted constant", "shipped", "fitted on all", "with one model left out"), rows)


def _starts(now: Sequence[Held], held: Sequence[Held]) -> str:
    left = {one.start.id: one for one in held}
    rows = []
    for one in sorted(now, key=lambda h: -abs(_pool_error(h))):
        truth, other = one.start.truth, left[one.start.id]
        first = first_stage_bytes(one.start, one.constants)
        rows.append(
            [
                one.start.id.replace("_", " "),
                *_pair(one.report.kv_pool_bytes / GIB, truth["kv_cache_memory_gib"]),
                percent(_pool_error(one), signed=True),
                percent(_pool_error(other), signed=True),
                percent(one.report.kv_tokens / truth["kv_cache_tokens"] - 1, signed=True),
                *_pair(first["weight_memory_gib"] / GIB, truth["weight_memory_gib"]),
                *_pair(first["activation_memory_gib"] / GIB, truth["activation_memory_gib"]),
            ]
        )
    head = ("start", "pool GiB", "logged", "error", "left out", "tokens", "weights GiB", "logged", "activations GiB",
            "logged")  # fmt: skip
    return table(head, rows)


def _pair(estimated: float, logged: float) -> tuple[str, str]:
    return f"{estimated:.2f}", f"{logged:.2f}"


def _pool_error(one: Held) -> float:
    return one.report.kv_pool_bytes / GIB / one.start.truth["kv_cache_memory_gib"] - 1


def _logs_words(rows: Sequence[Row]) -> str:
    logs, silent = {row.id for row in rows}, {row.id for row in rows if row.estimated is None}
    rates = [row.error for row in rows if row.what.startswith("bytes per token") and row.error is not None]
    pools = [row for row in rows if row.what == POOL and row.error is not None]
    refused = [row for row in rows if row.what == "refused" and row.estimated is not None]
    right = sum(row.estimated == row.logged for row in refused)
    tests = [row for row in pools if not row.gave]
    near = sum(abs(error) <= EQUAL_SHARE for error in rates)
    return f"""{len(logs)} logs, {len(logs) - len(silent)} of them with something to compare; how each is read is in
`tests/golden/logged_readings.json`. Bytes per token are within 0.5 % in {near} of {len(rates)} logs; {right} of
{len(refused)} starts that the engine refused are refused here. Of {len(pools)} logged pools
{sum(row.inside is True for row in pools)} lie in our 80 % band; of the {len(tests)} whose log gave no constant,
{sum(row.inside is True for row in tests)}."""


def _logs(rows: Sequence[Row]) -> Iterator[str]:
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.what if row.estimated is not None else ""].append(row)
    for what in sorted(kind for kind in kinds if kind):
        yield f"Logged: {what}"
        shown = sorted(kinds[what], key=_size, reverse=True)
        head = ("log", "engine", "estimate", "logged", "error", "remark")
        yield table(head, [_log_row(row) for row in shown])
    yield "Not compared:"
    silent = {row.id: row for row in kinds[""]}
    yield table(("log", "engine", "why"), [[row.id, row.engine, row.remark] for row in silent.values()])


def _size(row: Row) -> float:
    """How large an error is within its kind."""
    if row.estimated is None or row.logged is None:
        return 0.0
    return abs(row.estimated - row.logged) / (1 if row.what.endswith(("GiB", "refused")) else row.logged)


def _log_row(row: Row) -> list[str]:
    if row.what == "refused":
        yes = {1.0: "yes", 0.0: "no"}
        agrees = "" if row.estimated == row.logged else "not foreseen"
        return [row.id, row.engine, yes[row.estimated or 0.0], yes[row.logged or 0.0], agrees, row.remark]
    return [row.id, row.engine, _figure(row.estimated), _figure(row.logged), _difference(row), row.remark]


def _difference(row: Row) -> str:
    """Sizes in GiB, since a share of next to nothing says nothing; else a share."""
    if row.error is None or row.estimated is None or row.logged is None:
        return "–"
    if row.what.endswith("GiB"):
        return f"{row.estimated - row.logged:+.2f} GiB"
    return percent(row.error, signed=True)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= THOUSAND else f"{value:.2f}"


def _public() -> str:
    head = ("engine", "model", "GPU", "TP", "figure", "estimate", "logged", "gave a constant", "source")
    rows = []
    for row in public_starts():
        engine = f"{row['engine']} {row['version']}"
        figures = (_figure(public_figure(row)), _figure(float(row["logged"])))
        rows.append(
            [engine, row["model"], row["gpu"], row["tp"], row["figure"], *figures, row["fitted"], row["source"]]
        )
    return table(head, rows)


def _allocations(path: Path) -> str:
    models: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    reasons: dict[str, str] = {}
    for line in lines(path):
        name = line["case"]["model"]["name"]
        models[name]["cases"] += 1
        try:
            ours = estimate_case(line["case"])
        except PlimsollError as error:
            models[name]["refused"] += 1
            reasons[name] = str(error)
            continue
        models[name]["equal" if _same(ours, line["truth"]) else "differing"] += 1
    total = {key: sum(counts[key] for counts in models.values()) for key in ("cases", "equal", "differing", "refused")}
    words = (
        f"Of {total['cases']} pools, {total['equal']} give the same blocks, tokens and sequences as vLLM 0.32's own "
        f"allocation code (within {percent(EQUAL_SHARE)}), {total['differing']} others, and {total['refused']} are "
        "refused here."
    )
    order = sorted(models, key=lambda name: (-models[name]["refused"], -models[name]["differing"], name))
    rows = [[name, *(str(models[name][key]) for key in total), reasons.get(name, "")] for name in order]
    return words + "\n\n" + table(("model", *total, "why refused"), rows)


def _same(ours: Mapping[str, Any], truth: Mapping[str, Any]) -> bool:
    if "refused" in truth:
        return not ours["fits"]
    return bool(ours["fits"]) and all(abs(ours[key] / truth[key] - 1) < EQUAL_SHARE for key in ALLOCATED)
