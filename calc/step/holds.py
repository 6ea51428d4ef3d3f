"""Engine settings that make an arrival wait on purpose, so that prompts are prefilled together or polled for less."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from calc.deployment import Deployment
from calc.messages import Message, msg

MEAN_WAITS: Mapping[str, float] = MappingProxyType(
    {
        "scheduler_recv_interval": 0.5,
        "batch_wait_timeout_iters": 1.0,
    }
)
"""Setting → mean steps an arrival waits, per unit of its value.

SGLang looks for new requests once in so many decode steps (``SchedulerRecvSkipper``): an arrival waits half of them on
average. TensorRT-LLM holds new requests back for so many iterations (``PyExecutor._waiting_requests``), unless enough
of them gather first: an upper bound where requests come thick.
"""
EXTRA = "extra_engine_args"
MOST_STEPS = 1000.0
"""Beyond this a setting is a slip."""


def hold_steps(deployment: Deployment) -> tuple[float, tuple[Message, ...]]:
    """Mean steps by which settings kept with the deployment delay a first token, and a sentence for each."""
    total, notes = 0.0, []
    for name, value in _kept(deployment.other_args).items():
        setting = name.lstrip("-").replace("-", "_")
        per_unit = MEAN_WAITS.get(setting)
        if per_unit is None or not isinstance(value, int | float) or not 0 < value * per_unit <= MOST_STEPS:
            continue
        total += per_unit * value
        notes.append(
            msg(
                "{setting} {value:count} makes an arrival wait {steps:.3g} steps on average before its prefill.",
                setting=setting,
                value=value,
                steps=per_unit * value,
            )
        )
    return total, tuple(notes)


def _kept(other_args: str) -> Mapping[str, object]:
    extra = json.loads(other_args).get(EXTRA) if other_args else None
    return extra if isinstance(extra, Mapping) else {}
