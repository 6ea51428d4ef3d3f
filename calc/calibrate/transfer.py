"""What of a calibration holds for the deployment at hand: all, a part, or nothing, and a sentence that says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from calc.calibrate.calibration import MEANINGS, UNCALIBRATED, Calibration, Factors, Scope
from calc.calibrate.scale import scaled
from calc.deployment import Deployment
from calc.engine import resolve
from calc.messages import Message, msg
from calc.step.efficiency import Efficiency, efficiency_of

HARDWARE = ("memory", "compute", "link")
"""Factors of the GPU and its kernels."""
ENGINE = ("step", "sequence", "request", "network", "first_token_steps")
"""Factors of the engine and what stands before it."""


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
        return (*HARDWARE, *ENGINE), _version_note(calibration, here)
    if "gpu" in changed:
        return (), (
            msg(
                "Calibration {name} was measured on {there}: nothing of it is used on {here}.",
                name=calibration.name,
                there=there.gpu,
                here=here.gpu,
            ),
        )
    kept = tuple(_transferring(changed))
    dropped = [code for code in (*HARDWARE, *ENGINE) if code not in kept]
    note = msg(
        "Calibration {name} was measured on {there}; here it is {here}. Still used: {kept}. Not used: {dropped}.",
        name=calibration.name,
        there=_facts(there, changed),
        here=_facts(here, changed),
        kept=_words(kept),
        dropped=_words(dropped) if dropped else "–",
    )
    return kept, (note,)


def _transferring(changed: tuple[str, ...]) -> Iterator[str]:
    """Kernels keep their efficiency on the same GPU while the weights keep their format; an engine keeps its own
    costs whatever it serves."""
    if "weight_dtype" not in changed:
        yield from ("memory", "compute")
    if not {"tp", "dp", "ep"} & set(changed):
        yield "link"
    if "engine" not in changed:
        yield from ENGINE


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


def _words(codes: tuple[str, ...] | list[str]) -> Message:
    """A list of meanings as one message, so that each is translated."""
    return Message(", ".join(f"{{{code}}}" for code in codes), {code: MEANINGS[code] for code in codes})
