"""What of a calibration holds for the deployment at hand: all, a part, or nothing, and a sentence that says so.

The parts were chosen by calibrating each of 20 published setups on two points and predicting the points of the others
(median errors of TTFT and TPOT, uncalibrated → with the part): another split, kernels and first token 49 → 14 % and
6.8 → 5.0 %; another model, first token alone 13 → 8 %, while kernels made TPOT worse (4.9 → 6.2 %); another weight
format, first token alone 20 → 10 %. Across engines and across GPUs every part made one of the two worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calc.calibrate.calibration import CODES, UNCALIBRATED, Calibration, Factors, Scope
from calc.calibrate.scale import scaled
from calc.deployment import Deployment
from calc.engine import resolve
from calc.messages import Message, msg
from calc.step.efficiency import Efficiency, efficiency_of

KERNELS = ("memory", "compute")
"""What one engine's kernels reach on one GPU, with one model's shapes in one format."""
FRONT = ("network", "first_token_steps")
"""What stands between the engine's steps and the client."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A calibration as one deployment uses it."""

    efficiency: Efficiency | None = None
    """``None`` = the generic constants."""
    first_token_steps: float = 0.0
    name: str = UNCALIBRATED
    notes: tuple[Message, ...] = ()


def scope_of(deployment: Deployment) -> Scope:
    """What a measurement of this deployment would be valid for."""
    return Scope(
        model=deployment.model.name,
        gpu=deployment.gpu.id,
        engine=deployment.engine.id,
        engine_version=deployment.engine.version,
        weight_dtype=deployment.model.storage.code,
        kv_dtype=resolve(deployment).kv_dtype,
        tp=deployment.tp,
        pp=deployment.pp,
        dp=deployment.dp,
        ep=deployment.ep,
    )


def differences(there: Scope, here: Scope) -> tuple[str, ...]:
    """Names of the facts in which two scopes differ, the engine's version aside."""
    names = ("model", "gpu", "engine", "weight_dtype", "kv_dtype", "tp", "pp", "dp", "ep")
    return tuple(name for name in names if getattr(there, name) != getattr(here, name))


def applied(calibration: Calibration | None, deployment: Deployment) -> Applied:
    """The constants for ``deployment``, and what of the calibration could not be used."""
    if calibration is None:
        return Applied()
    here = scope_of(deployment)
    kept, note = _kept(calibration, here)
    if not kept:
        return Applied(notes=note)
    usual = Factors()
    factors = replace(usual, **{code: getattr(calibration.factors, code) for code in kept})
    return Applied(
        efficiency=scaled(efficiency_of(deployment.gpu), factors),
        first_token_steps=factors.first_token_steps,
        name=calibration.name,
        notes=note,
    )


def _kept(calibration: Calibration, here: Scope) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    there = calibration.scope
    changed = differences(there, here)
    if not changed:
        return CODES, _version_note(calibration, here)
    facts = {"name": calibration.name, "there": _facts(there, changed), "here": _facts(here, changed)}
    if {"gpu", "engine"} & set(changed):
        return (), (msg("Calibration {name} was measured with {there}: nothing of it is used with {here}.", **facts),)
    other_kernels = bool({"model", "weight_dtype"} & set(changed))
    note = msg(
        "Calibration {name} was measured with {there}; here it is {here}. Of it only this is used: {kept}.",
        **facts,
        kept=msg("client, HTTP and delay of the first token")
        if other_kernels
        else msg("efficiency of kernels, client, HTTP and delay of the first token"),
    )
    return FRONT if other_kernels else (*KERNELS, *FRONT), (note,)


def _version_note(calibration: Calibration, here: Scope) -> tuple[Message, ...]:
    there = calibration.scope
    if there.engine_version == here.engine_version:
        return ()
    return (
        msg(
            "Calibration {name} was measured with version {there} of the engine; here it is {here}.",
            name=calibration.name,
            there=there.engine_version,
            here=here.engine_version,
        ),
    )


def _facts(scope: Scope, names: tuple[str, ...]) -> str:
    return ", ".join(_fact(name, getattr(scope, name)) for name in names)


def _fact(name: str, value: object) -> str:
    if name in ("tp", "pp", "dp", "ep"):
        return f"{name.upper()} {value}"
    return f"KV {value}" if name == "kv_dtype" else str(value)
