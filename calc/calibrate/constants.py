"""The factors of a calibration as the constants they stand for on one deployment: assumed, and as fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calc.calibrate.calibration import CODES, Factors
from calc.calibrate.fit import Fitted
from calc.calibrate.scale import scaled
from calc.deployment import Deployment
from calc.step.efficiency import efficiency_of
from calc.step.kernels import peak_flops_per_s
from calc.step.roofline import StepModel, step_model


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One factor in its own unit."""

    code: str
    unit: str
    """``share`` of a peak, ``s``, or ``steps``."""
    assumed: float
    fitted: float
    low: float
    high: float
    """95 % interval."""
    identified: bool

    @property
    def change_share(self) -> float:
        """How far the fitted value lies above the assumed one (shares 0-1); of steps their number."""
        return self.fitted - self.assumed if self.unit == "steps" else self.fitted / self.assumed - 1


def constants_of(fitted: Sequence[Fitted], deployment: Deployment, *, http: bool = True) -> tuple[Constant, ...]:
    """Those that play a part on this deployment, assumed and fitted; factors that cost nothing here are left out."""
    usual = step_model(deployment, http=http)
    assumed = _values(usual, deployment)
    found = []
    for one in fitted:
        base = assumed[one.code]
        if one.code != "first_token_steps" and not base:
            continue
        values = (one.value, one.low, one.high)
        if one.code in ("memory", "compute"):  # costs; their inverses are the shares
            unit, (value, high, low) = "share", (base / cost for cost in values)
        elif one.code == "first_token_steps":
            unit, (value, low, high) = "steps", values
        else:
            unit, (value, low, high) = "s", (base * times for times in values)
        found.append(
            Constant(
                code=one.code,
                unit=unit,
                assumed=base,
                fitted=value,
                low=low,
                high=high,
                identified=one.identified,
            )
        )
    return tuple(found)


def plain(factors: Factors, not_identified: Sequence[str]) -> tuple[Fitted, ...]:
    """Factors of a stored calibration, whose intervals were not kept."""
    return tuple(
        Fitted(code=code, value=value, low=value, high=value, identified=code not in not_identified)
        for code in CODES
        for value in (getattr(factors, code),)
    )


def _values(model: StepModel, deployment: Deployment) -> dict[str, float]:
    """The assumed constants: of kernels the largest class, of the link one step of a single token."""
    largest = max(model.classes, key=lambda kernel: kernel.weight_bytes)
    peak, _ = peak_flops_per_s(deployment.gpu, deployment.model.storage.compute_dtype)
    unlinked = step_model(deployment, efficiency=scaled(efficiency_of(deployment.gpu), Factors(link=_NEARLY_FREE)))
    one = np.ones(1)
    return {
        "memory": largest.bytes_per_s / model.bandwidth_bytes_per_s,
        "compute": largest.flops_per_s / peak,
        "link": float((model.tokens_s(one) - unlinked.tokens_s(one))[0]),
        "step": model.fixed_s,
        "sequence": model.sequence_s,
        "request": model.prefill_s,
        "network": model.http_s,
        "first_token_steps": 0.0,
    }


_NEARLY_FREE = 1e-3
