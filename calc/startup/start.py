"""From a start-up log to the measured start a deployment can carry: what the log names, and who says the rest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from calc.deployment import Deployment
from calc.dtypes import is_auto
from calc.engine import resolve
from calc.messages import Message, msg
from calc.startup.log import Seen, StartupLog, number, whole
from calc.startup.match import listed, same_memory, short_name
from calc.startup.measured import MeasuredMemory
from calc.units import GIB

ROUNDED_BYTES = GIB // 100
"""Engines log memory to a hundredth of a GiB."""
DEEPEST_HUB_ID = 1
"""Slashes of a Hub id; a path of a machine has more."""


@dataclass(frozen=True, kw_only=True)
class MeasuredStart:
    """A measured start, and what was taken from the scenario beside it because the log does not say."""

    memory: MeasuredMemory
    assumed: tuple[Message, ...] = ()

    @property
    def note(self) -> Message | None:
        """What was assumed, in one sentence."""
        if not self.assumed:
            return None
        return msg("The log does not say: {parts}. Taken from the scenario at the side.", parts=listed(self.assumed))


def measured_start(
    log: StartupLog, beside: Deployment | None, *, log_id: str, date: str, known_models: Collection[str] = ()
) -> MeasuredStart:
    """What a log measured and of which start.

    What the engine does not list among its arguments was at its default. Where the log holds no list of arguments, the
    deployment ``beside`` it says what was started; ``known_models`` are short names that a path may end in.
    """
    builder = _Builder(log, beside, {name.lower() for name in known_models})
    return MeasuredStart(
        memory=MeasuredMemory(
            log_id=log_id,
            date=date,
            engine=log.engine,
            engine_version=builder.version(),
            model=builder.model(),
            gpu=builder.gpu(),
            gpu_memory_bytes=whole(log.gpu_memory_bytes),
            **builder.split(),
            **builder.settings(),
            **_figures(log),
        ),
        assumed=tuple(builder.assumed),
    )


class _Builder:
    """Takes settings from the log, else from the deployment beside it, and keeps note of the latter."""

    def __init__(self, log: StartupLog, beside: Deployment | None, known_models: Collection[str]) -> None:
        self._log, self._known = log, known_models
        self._beside = beside if beside is not None and beside.engine.id == log.engine else None
        self._resolved = None if self._beside is None else resolve(self._beside)
        self.assumed: list[Message] = []

    def version(self) -> str:
        if self._log.version is not None:
            return self._log.version.value
        if self._beside is None:
            return ""
        self.assumed.append(msg("engine version"))
        return self._beside.engine.version

    def model(self) -> str:
        logged = "" if self._log.model is None else self._log.model.value
        if self._beside is None:
            return logged
        name = self._beside.model.name
        if short_name(logged) == short_name(name):
            return name
        if logged and not self._is_path(logged):
            return logged
        self.assumed.append(msg("model"))
        return name

    def _is_path(self, model: str) -> bool:
        """True for a folder whose name is no known model's: what it holds is not said."""
        is_folder = model.startswith(("/", ".", "~")) or model.count("/") > DEEPEST_HUB_ID
        return is_folder and short_name(model) not in self._known

    def gpu(self) -> str | None:
        memory = number(self._log.gpu_memory_bytes)
        if self._beside is None or (memory is not None and not same_memory(memory, self._beside.gpu.memory_bytes)):
            return None
        self.assumed.append(msg("GPU"))
        return self._beside.gpu.id

    def split(self) -> dict[str, Any]:
        log, beside = self._log, self._beside
        found: dict[str, Any] = {}
        for name in ("tp", "pp", "dp"):
            logged: Seen[float] | None = getattr(log, name)
            usual = 1 if beside is None or log.tells_settings else getattr(beside, name)
            found[name] = usual if logged is None else round(logged.value)
        if log.engine == "sglang":
            found["dp"] = 1  # its data parallelism starts replicas, or splits attention inside the TP group
        if log.tp is None and not log.tells_settings and beside is not None:
            self.assumed.append(msg("parallel split"))
        found["ep"] = bool(log.ep and log.ep.value) if log.tells_settings or beside is None else beside.ep
        return found

    def settings(self) -> dict[str, Any]:
        log, beside = self._log, self._beside
        kv_dtype = None if log.kv_dtype is None or is_auto(log.kv_dtype.value) else log.kv_dtype.value
        named = log.spec_method is not None or log.tells_settings or beside is None
        return {
            "weight_dtype": None if beside is None else beside.weight_dtype,
            "kv_dtype": kv_dtype if log.kv_dtype is not None or beside is None else beside.kv_dtype,
            "spec_method": (log.spec_method.value if log.spec_method else None) if named else beside and
            beside.spec_method,
            "memory_fraction": self._fraction(),
            "max_num_batched_tokens": self._setting("max_num_batched_tokens", msg("batched tokens")),
            "max_num_seqs": self._setting("max_num_seqs", msg("max sequences")),
            "max_model_len_tokens": self._length(),
        }  # fmt: skip

    def _fraction(self) -> float | None:
        log = self._log
        total, budget = number(log.gpu_memory_bytes), number(log.budget_bytes)
        if log.memory_fraction is not None:
            return log.memory_fraction.value
        if total and budget and log.engine == "vllm":
            return round(budget / total, 3)
        if log.tells_settings or self._beside is None or self._resolved is None:
            return None
        self.assumed.append(msg("memory fraction"))
        return self._resolved.memory_fraction

    def _setting(self, name: str, label: Message) -> int | None:
        logged: Seen[float] | None = getattr(self._log, name)
        if logged is not None:
            return round(logged.value)
        if self._log.tells_settings or self._resolved is None:
            return None
        self.assumed.append(label)
        return int(getattr(self._resolved, name))

    def _length(self) -> int | None:
        log = self._log
        return whole(log.max_model_len_tokens) or whole(log.concurrency_tokens)


def _figures(log: StartupLog) -> dict[str, Any]:
    weights, consumed = whole(log.weights_bytes), whole(log.consumed_bytes)
    non_torch = whole(log.non_torch_bytes)
    if non_torch is None and weights is not None and consumed is not None and consumed >= weights:
        non_torch = consumed - weights
    return {
        "weights_bytes": weights,
        "activation_bytes": whole(log.activation_bytes),
        "non_torch_bytes": non_torch,
        "graph_bytes": whole(log.graph_bytes),
        "graph_reserved_bytes": whole(log.graph_estimate_bytes),
        "graphs_in_budget": _graphs_in_budget(log, weights, non_torch),
        "kv_pool_bytes": whole(log.kv_pool_bytes),
        "kv_tokens": whole(log.kv_tokens),
        "num_blocks": whole(log.num_blocks),
        "block_size_tokens": whole(log.block_size_tokens),
    }


def _graphs_in_budget(log: StartupLog, weights: int | None, non_torch: int | None) -> bool | None:
    """Whether graphs came out of the budget: as the log says, else as its parts add up; ``None`` = as the version."""
    if log.graphs_in_budget is not None:
        return log.graphs_in_budget.value
    parts = (weights, non_torch, whole(log.activation_bytes), whole(log.kv_pool_bytes))
    budget, graphs = whole(log.budget_bytes), whole(log.graph_bytes)
    known = [part for part in parts if part is not None]
    if budget is None or graphs is None or len(known) < len(parts) or log.engine != "vllm":
        return None
    rest = budget - sum(known)
    reserved = whole(log.graph_estimate_bytes) or graphs
    if abs(rest - reserved) == abs(rest) or min(abs(rest - reserved), abs(rest)) > ROUNDED_BYTES * len(parts):
        return None
    return abs(rest - reserved) < abs(rest)
