"""The runtime constants of vLLM 0.19 refitted on recorded starts, one model left out at a time.

Free constants: base, MLP copies and sampler copies of the activations, the encoder's run, and non-torch memory alone,
in a pipeline, and at TP 2 and beyond with NVLink SHARP. Everything else follows from the model and the settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calc.deployment import Deployment
from calc.engine import Settings, resolve
from calc.memory import MemoryReport, estimate_memory
from calc.room.budget import plan_stages
from calc.room.runtime import warm_up
from calc.room.runtime_constants import RuntimeConstants
from calc.units import GIB
from data.case import read_deployment

Vector: TypeAlias = npt.NDArray[np.float64]
ROUNDS = 30
"""Which branch of the peak binds, and what counts as an outlier, depends on the constants: fitted again and again."""
ROUNDING_GIB = 0.01
"""Logs are rounded to this; a smaller residual weighs no more."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """One recorded start. The log is that of the first rank, so of the first pipeline stage."""

    id: str
    model: str
    """What is left out together: every precision, split and length of one model."""
    deployment: Deployment
    truth: Mapping[str, float]

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> Start:
        deployment, _ = read_deployment(line["case"])
        model = deployment.model
        family = f"{model.architecture} {model.layers} layers of {model.hidden_size}, vocabulary {model.vocab_size}"
        return cls(id=line["id"], model=family, deployment=deployment, truth=line["truth"])


@dataclass(frozen=True, kw_only=True)
class Held:
    """A start estimated with constants fitted without its model."""

    start: Start
    constants: RuntimeConstants
    report: MemoryReport


def fit(starts: Sequence[Start], begun: RuntimeConstants) -> RuntimeConstants:
    """Least absolute errors on the logged activations, every model with the same weight; medians for non-torch memory.

    A constant that no start speaks of keeps its value in ``begun``.
    """
    count = Counter(start.model for start in starts)
    now, weights = begun, np.array([1 / count[start.model] for start in starts])
    for _ in range(ROUNDS):
        now = _fit_activations(starts, weights, now)
    return _fit_non_torch(starts, now)


def leave_one_out(starts: Sequence[Start]) -> list[Held]:
    """Every start estimated with constants fitted on the starts of all other models."""
    found = []
    for model in sorted({start.model for start in starts}):
        others = [start for start in starts if start.model != model]
        constants = fit(others, _neutral(starts[0].deployment.engine.runtime))
        found += [estimate(start, constants) for start in starts if start.model == model]
    return found


def estimate(start: Start, constants: RuntimeConstants) -> Held:
    """The start under other constants."""
    return Held(start=start, constants=constants, report=estimate_memory(_with(start.deployment, constants)))


def _neutral(constants: RuntimeConstants) -> RuntimeConstants:
    """Where a fit begins, and what it keeps where no start speaks."""
    return replace(constants, activation_base_bytes=0, mlp_hidden_copies=2.0, sampler_hidden_copies=1.0)


def _with(deployment: Deployment, constants: RuntimeConstants) -> Deployment:
    return replace(deployment, engine=replace(deployment.engine, runtime=constants))


def _fit_activations(starts: Sequence[Start], weights: Vector, now: RuntimeConstants) -> RuntimeConstants:
    """One round of reweighted least squares, which leads to the least absolute errors."""
    rows, rest = [], []
    for start in starts:
        deployment = _with(start.deployment, now)
        coefficients, known = _activation_row(deployment, resolve(deployment))
        rows.append(coefficients)
        rest.append(start.truth["activation_memory_gib"] - known)
    matrix, values = np.array(rows), np.array(rest)
    residual = np.abs(matrix @ _free(now) - values)
    scale = np.sqrt(weights / np.maximum(residual, ROUNDING_GIB))
    spoken = np.flatnonzero(np.abs(matrix).sum(axis=0) > 0)
    solved, *_ = np.linalg.lstsq(matrix[:, spoken] * scale[:, None], values * scale, rcond=None)
    free = _free(now)
    free[spoken] = solved
    return replace(
        now,
        activation_base_bytes=round(free[0] * GIB),
        mlp_hidden_copies=float(free[1]),
        sampler_hidden_copies=float(free[2]),
        encoder_bytes=round(free[3] * GIB),
    )


def _free(now: RuntimeConstants) -> Vector:
    base, encoder = now.activation_base_bytes / GIB, now.encoder_bytes / GIB
    return np.array([base, now.mlp_hidden_copies, now.sampler_hidden_copies, encoder])


def _activation_row(deployment: Deployment, settings: Settings) -> tuple[tuple[float, ...], float]:
    """Coefficients of the free constants and what is known, in GiB, for the first pipeline stage."""
    sizes, constants = warm_up(deployment, settings), deployment.engine.runtime
    hidden = sizes.hidden_bytes / GIB
    mlp = sizes.mlp_bytes / GIB
    sampler = sizes.sampler_bytes / GIB
    samples = deployment.pp == 1 and (
        sampler + constants.sampler_hidden_copies * hidden > mlp + constants.mlp_hidden_copies * hidden
    )
    known = (sampler if samples else mlp) + (sizes.pipeline_bytes + sizes.expert_bytes) / GIB
    encoder = 1.0 if deployment.model.multimodal else 0.0
    return (1.0, 0.0 if samples else hidden, hidden if samples else 0.0, encoder), known


def _fit_non_torch(starts: Sequence[Start], now: RuntimeConstants) -> RuntimeConstants:
    """Medians of the starts alone, in a pipeline, at TP 2, and per rank beyond."""

    def of(tp: int, *, staged: bool) -> list[float]:
        chosen = [s for s in starts if s.deployment.tp == tp and (s.deployment.pp > 1) == staged]
        return [start.truth["non_torch_forward_gib"] * GIB for start in chosen]

    alone = _median(of(1, staged=False), now.non_torch_large_bytes)
    pair = _median(of(2, staged=False), now.non_torch_pair_nvls_bytes)
    beyond = [
        (start.truth["non_torch_forward_gib"] * GIB - pair) / (start.deployment.tp - 2)
        for start in starts
        if start.deployment.tp > 2
    ]
    return replace(
        now,
        non_torch_large_bytes=alone,
        non_torch_pipeline_bytes=_median(of(1, staged=True), alone),
        non_torch_pair_nvls_bytes=pair,
        non_torch_per_rank_bytes=_median(beyond, now.non_torch_per_rank_bytes),
    )


def _median(found: Sequence[float], otherwise: int) -> int:
    return round(float(np.median(found))) if found else otherwise


def first_stage_bytes(start: Start, constants: RuntimeConstants) -> Mapping[str, int]:
    """What the log of the first rank would say: weights, activations, non-torch memory and room of its stage."""
    deployment = _with(start.deployment, constants)
    stage = plan_stages(deployment, resolve(deployment))[0]
    return {
        "weight_memory_gib": stage.weights_bytes,
        "activation_memory_gib": stage.runtime.activation_bytes,
        "non_torch_forward_gib": stage.runtime.non_torch_bytes,
        "kv_cache_memory_gib": stage.room_bytes,
    }
