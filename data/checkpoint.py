"""The model of a deployment as its checkpoint stores it, or as it would be stored in another weight format."""

from __future__ import annotations

import json
from dataclasses import replace

from calc.deployment import Deployment
from calc.engine import Engine
from calc.launch import Launch, launch
from calc.model import ModelSpec
from data import catalogue


def as_stored(deployment: Deployment) -> ModelSpec:
    """With the checkpoint's own weight and cache formats, whatever the deployment asks for."""
    return _read(deployment.model, None, None)


def in_format(deployment: Deployment, weight_dtype: str) -> ModelSpec:
    """With every matrix that is quantised at all in ``weight_dtype``; the cache as the deployment asks for it."""
    return _read(deployment.model, weight_dtype, deployment.kv_dtype)


def _read(model: ModelSpec, weight_dtype: str | None, kv_dtype: str | None) -> ModelSpec:
    if not model.config_json:
        entry, declared = catalogue.model(model.name), model.weights_bytes_declared
        return entry.spec(weight_dtype=weight_dtype, kv_dtype=kv_dtype, weights_bytes_declared=declared)
    spec = ModelSpec.from_config(
        json.loads(model.config_json),
        model.name,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
        weights_bytes_declared=model.weights_bytes_declared,
    )
    return replace(spec, config_json=model.config_json)


def launch_of(deployment: Deployment) -> Launch:
    """The command that starts one replica, with what the catalogue knows of its engine version and checkpoint."""
    return launch(deployment, usual_of(deployment), as_stored(deployment))


def usual_of(deployment: Deployment) -> Engine:
    """The defaults of the deployment's engine version."""
    usual, _ = catalogue.engine(deployment.engine.id, deployment.engine.version)
    return usual
