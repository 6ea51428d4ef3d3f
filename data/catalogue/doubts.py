"""What is shaky about catalogue rows: said beside every result that rests on them."""

from __future__ import annotations

from calc.deployment import Deployment
from calc.engine import FractionOf
from calc.messages import Message, msg
from data.catalogue.tables import gpus, models

LOW = "low"


def doubts(deployment: Deployment) -> tuple[Message, ...]:
    """Sentences for figures that were recalled or derived instead of read; own models and GPUs are the user's word."""
    return (*_model_doubts(deployment), *_gpu_doubts(deployment), *_engine_doubts(deployment))


def _model_doubts(deployment: Deployment) -> tuple[Message, ...]:
    model = deployment.model
    entry = models().get(model.name)
    if entry is None or model.config_json or entry.confidence != LOW:
        return ()
    return (
        msg(
            "The config of {model} was recalled, not looked up: check it, or give the Hub's own config.json.",
            model=model.name,
        ),
    )


def _gpu_doubts(deployment: Deployment) -> tuple[Message, ...]:
    gpu = deployment.gpu
    if gpu.id not in gpus():
        return ()
    found = []
    if gpu.memory_is_declared:
        found.append(
            msg(
                "No driver log of {gpu} was seen: its {memory:gib} are derived from the nominal size.",
                gpu=gpu.name,
                memory=gpu.memory_bytes,
            )
        )
    if gpu.confidence == LOW:
        found.append(
            msg(
                "Peak figures of {gpu} are recalled or conflicting ({source}): check them.",
                gpu=gpu.name,
                source=gpu.source,
            )
        )
    return tuple(found)


def _engine_doubts(deployment: Deployment) -> tuple[Message, ...]:
    engine = deployment.engine
    if engine.runtime.fitted or engine.fraction_of is not FractionOf.TOTAL:
        return ()
    return (
        msg(
            "What a start of {engine} {version} takes beside weights and cache rests on a few public logs.",
            engine=engine.id,
            version=engine.version,
        ),
    )
