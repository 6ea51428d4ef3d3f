"""Start-up logs from public threads beside our estimate of the same start; how each is read is a golden table.

``golden/logged_readings.json``: id → the case as far as the log states it and what can
be compared, or why nothing can.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from calc.deployment import Deployment
from calc.errors import PlimsollError
from calc.memory import estimate_memory
from calc.units import GIB
from data import catalogue
from data.questions import estimate

Case: TypeAlias = Mapping[str, Any]
READINGS = Path(__file__).parent / "golden" / "logged_readings.json"
SWAP_BYTES = 4 * GIB
"""Swap space of old vLLM per GPU: its CPU blocks give the bytes of a block."""
SWAP_BLOCK_TOKENS = 16
OLD_BLOCK_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of one log; without figures ``remark`` says why there are none."""

    id: str
    engine: str
    what: str = ""
    estimated: float | None = None
    logged: float | None = None
    remark: str = ""
    inside: bool | None = None
    """Whether a logged pool lies in our 80 % band."""
    gave: bool = False
    """The log gave one of the constants, so that it is no test of them."""

    @property
    def error(self) -> float | None:
        """Estimated ÷ logged − 1; ``None`` where the figure is a yes or no."""
        if self.estimated is None or not self.logged or self.what == "refused":
            return None
        return self.estimated / self.logged - 1


def read_logs(folder: Path) -> Iterator[Row]:
    """A row for every figure of every log, in the order of the file."""
    readings = json.loads(READINGS.read_text(encoding="utf-8"))
    configs = _configs(folder / "oracle_cases.jsonl")
    for line in _lines(folder / "logged_capacity.jsonl"):
        yield from _rows(line, readings.get(line["id"], {"why": "nobody has read this log yet"}), configs)


def _rows(line: Case, reading: Case, configs: Mapping[str, Any]) -> Iterator[Row]:
    engine = f"{line['engine']} {line['engine_version']}"
    if "why" in reading:
        yield Row(id=line["id"], engine=engine, remark=reading["why"])
        return
    case = dict(reading["case"])
    if isinstance(case["model"], str) and "/" not in case["model"]:
        case["model"] = {"name": case["model"], "config": configs[case["model"]]}
    for what in reading["of"]:
        name, figure = FIGURES[what]
        try:
            estimated, logged = figure(case, line)
        except PlimsollError as error:
            yield Row(id=line["id"], engine=engine, what=name, remark=str(error))
        else:
            yield Row(
                id=line["id"],
                engine=engine,
                what=name,
                estimated=estimated,
                logged=logged,
                remark=reading.get("remark", ""),
                inside=_in_band(case, logged) if what == "pool" else None,
                gave=reading.get("gave", False),
            )


def _in_band(case: Case, logged_gib: float) -> bool:
    low, high = estimate(case)["kv_pool_band_bytes"]
    return bool(low <= logged_gib * GIB <= high)


def _lines(path: Path) -> Iterator[Any]:
    return (json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text.strip())


def _configs(path: Path) -> Mapping[str, Any]:
    models = (line["case"]["model"] for line in _lines(path))
    return {model["name"]: model["config"] for model in models}


def _pool_gib(line: Case) -> float:
    seen = line["observed"]
    return float(seen.get("kv_size_gib") or seen["available_kv_gib"])


def _tokens(line: Case) -> float:
    seen = line["observed"]
    return float(seen.get("kv_tokens") or seen["gpu_blocks"] * OLD_BLOCK_TOKENS)


def _in_logged_pool(case: Case, line: Case) -> dict[str, Any]:
    return estimate({**case, "kv_pool_bytes_per_gpu": _pool_gib(line) * GIB})


def _rate(case: Case, line: Case) -> tuple[float, float]:
    if "kv_plus_index_gib" in line["observed"]:
        whole = line["observed"]["kv_plus_index_gib"] * GIB
        return estimate(case)["kv_bytes_per_token_per_gpu"], whole / _tokens(line)
    logged = (line.get("check") or {}).get("observed_bytes_per_token_per_gpu")
    return estimate(case)["kv_bytes_per_token_per_gpu"], logged or _pool_gib(line) * GIB / _tokens(line)


def _swap(case: Case, line: Case) -> tuple[float, float]:
    per_token = SWAP_BYTES / line["observed"]["cpu_blocks"] / SWAP_BLOCK_TOKENS
    return estimate(case)["kv_bytes_per_token_per_gpu"], per_token


def _fp8_gain(case: Case, line: Case) -> tuple[float, float]:
    pool = {"kv_pool_bytes_per_gpu": 32 * GIB}
    wide = estimate({**case, **pool, "kv_dtype": "auto"})["kv_tokens"]
    return estimate({**case, **pool})["kv_tokens"] / wide, FP8_GAIN[line["id"]]


FP8_GAIN = {"nemo-1212-fp8kv": 598_672 / 299_344}
"""Tokens with an FP8 cache ÷ tokens with a BF16 cache of the same start."""


def _part(key: str, *names: str) -> Callable[[Case, Case], tuple[float, float]]:
    def figure(case: Case, line: Case) -> tuple[float, float]:
        seen = line["observed"]
        return estimate(case)[key] / GIB, float(next(seen[name] for name in names if name in seen))

    return figure


FIGURES: Mapping[str, tuple[str, Callable[[Case, Case], tuple[float, float]]]] = {
    "pool": ("pool GiB", lambda case, line: (estimate(case)["kv_pool_bytes_per_gpu"] / GIB, _pool_gib(line))),
    "capacity": ("tokens", lambda case, line: (estimate(case)["kv_tokens"], _tokens(line))),
    "tokens": ("tokens in the logged pool", lambda c, line: (_in_logged_pool(c, line)["kv_tokens"], _tokens(line))),
    "sequences": (
        "sequences in the logged pool",
        lambda c, line: (_in_logged_pool(c, line)["max_concurrency"], line["observed"]["max_concurrency"]),
    ),
    "rate": ("bytes per token", _rate),
    "swap": ("bytes per token, from the swap space", _swap),
    "ratio": ("tokens gained by an FP8 cache", _fp8_gain),
    "weights": ("weights GiB", _part("weights_bytes_per_gpu", "weights_gib", "weights_gb_as_logged")),
    "activations": ("activations GiB", _part("activation_bytes_per_gpu", "activation_peak_gib")),
    "non-torch": ("non-torch GiB", _part("non_torch_bytes_per_gpu", "non_torch_gib")),
    "graphs": (
        "CUDA graphs GiB",
        lambda c, line: (estimate(c)["graph_bytes_per_gpu"] / GIB, line["observed"]["cuda_graph_mib"] / 1024),
    ),
    "block": (
        "block, tokens",
        lambda case, line: (estimate(case)["block_size_tokens"], line["observed"]["attention_block_size_tokens"]),
    ),
    "fits-in-pool": (
        "refused",
        lambda c, line: (float(not _in_logged_pool(c, line)["fits"]), float(line["observed"]["refused"])),
    ),
    "fits": ("refused", lambda case, line: (float(not estimate(case)["fits"]), float(line["observed"]["refused"]))),
}
"""What a reading names → its words, and (estimated, logged)."""


PUBLIC = Path(__file__).parent / "golden" / "public_starts.csv"
"""Single figures of further starts, each with its source; ``fitted`` says whether it gave a constant."""


def public_starts() -> list[dict[str, str]]:
    """The rows of ``golden/public_starts.csv``."""
    return list(csv.DictReader(PUBLIC.read_text(encoding="utf-8").splitlines()))


def public_figure(row: Mapping[str, str]) -> float:
    """Our figure of a public start, in the unit its name says."""
    gpu = catalogue.gpu(row["gpu"])
    got = estimate_memory(
        Deployment(
            model=catalogue.model(row["model"]).spec(),
            gpu=replace(gpu, memory_bytes=round(float(row["memory_gib"]) * GIB)) if row["memory_gib"] else gpu,
            engine=catalogue.engine(row["engine"], row["version"])[0],
            tp=int(row["tp"]),
            memory_fraction=float(row["fraction"]) if row["fraction"] else None,
            max_model_len_tokens=int(row["max_model_len"]) if row["max_model_len"] else None,
            max_num_batched_tokens=int(row["batched_tokens"]) if row["batched_tokens"] else None,
        )
    )
    figures = {
        "pool GiB": got.kv_pool_bytes / GIB,
        "room GiB": (got.budget_bytes - got.weights_bytes - got.runtime_in_budget_bytes) / GIB,
        "activations GiB": got.activation_bytes / GIB,
        "tokens": float(got.kv_tokens),
        "fits": float(got.fits),
    }
    return figures[row["figure"]]
