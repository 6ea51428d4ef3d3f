"""The model of a deployment as its checkpoint stores it, or as it would be stored in another weight format."""

from __future__ import annotations

from calc.deployment import Deployment
from calc.dtypes import is_auto
from calc.engine import Engine
from calc.model import ModelSpec
from calc.ways.launch import Launch, launch
from data import catalogue
from data.case import AUTO, read_deployment, write_deployment


def as_stored(deployment: Deployment) -> ModelSpec:
    """With the checkpoint's own weight and cache formats, whatever the deployment asks for."""
    if is_auto(deployment.weight_dtype) and is_auto(deployment.kv_dtype):
        return deployment.model
    return _read(deployment, {"weight_dtype": AUTO, "kv_dtype": AUTO})


def in_format(deployment: Deployment, weight_dtype: str) -> ModelSpec:
    """With every matrix that is quantised at all in ``weight_dtype``; all else as the deployment asks for it."""
    return _read(deployment, {"weight_dtype": weight_dtype})


def _read(deployment: Deployment, changes: dict[str, str]) -> ModelSpec:
    """Through the case, so that a button and a script read the very same model."""
    read, _ = read_deployment({**write_deployment(deployment), **changes})
    return read.model


def launch_of(deployment: Deployment) -> Launch:
    """The command that starts one replica, with what the catalogue knows of its engine version and checkpoint."""
    return launch(deployment, usual_of(deployment), as_stored(deployment))


def usual_of(deployment: Deployment) -> Engine:
    """The defaults of the deployment's engine version."""
    usual, _ = catalogue.engine(deployment.engine.id, deployment.engine.version)
    return usual
