"""What the micro-benchmark of one layer says about a GPU: the rates its kernels reached, against those assumed.

A layer in a plain framework is not an engine: its kernels differ by about 10 %, weighed here against the prior. What
it does not run (engine, links, network) stays as assumed.
"""

from __future__ import annotations

import math

from calc.calibrate import prior
from calc.calibrate.calibration import CODES, MEANINGS, Calibration, Factors
from calc.calibrate.fit import Fit, Fitted
from calc.calibrate.transfer import scope_of
from calc.deployment import Deployment
from calc.errors import CalibrationRefused
from calc.messages import Message, msg
from calc.step.efficiency import efficiency_of
from calc.step.kernels import needed, peak_flops_per_s

KERNEL_SIGMA = 0.10
"""Log difference between a framework's kernels and an engine's on the same GPU."""
LEAST_SHARE = 0.05
"""A rate below this share of the peak says that something else was measured."""


def calibrate_probe(
    deployment: Deployment,
    *,
    dtype: str,
    bytes_per_s: float | None,
    flops_per_s: float | None,
    source: str,
    date: str = "",
) -> Fit:
    """Factors of memory and compute from the best rates of a probe in ``dtype`` on this deployment's GPU."""
    shares, gpu = efficiency_of(deployment.gpu), deployment.gpu
    found: dict[str, float] = {}
    if bytes_per_s is not None:
        peak = needed(gpu.bandwidth_bytes_per_s, gpu, msg("memory bandwidth (GB/s)"))
        found["memory"] = shares.bandwidth_share.get(dtype, shares.bandwidth_share["bf16"]) / _share(
            bytes_per_s, peak, MEANINGS["memory"]
        )
    if flops_per_s is not None:
        peak, code = peak_flops_per_s(gpu, dtype)
        assumed = shares.compute_share.get(code, shares.compute_share["bf16"])
        found["compute"] = assumed / _share(flops_per_s, peak, MEANINGS["compute"])
    if not found:
        raise CalibrationRefused(msg("The probe reached neither a decode nor a prefill step: measure again."))
    fitted = tuple(_fitted(code, found.get(code)) for code in CODES)
    calibration = Calibration(
        source=source,
        date=date,
        points=1,
        scope=scope_of(deployment),
        factors=Factors(**{one.code: one.value for one in fitted}),
        not_identified=tuple(code for code in CODES if code not in found),
    )
    return Fit(calibration=calibration, factors=fitted, residuals=(), leave_one_out=None)


def _share(reached: float, peak: float, what: Message) -> float:
    share = reached / peak
    if not LEAST_SHARE <= share <= prior.PEAK_SHARE:
        raise CalibrationRefused(
            msg(
                "The probe reached {share:pct} of the peak for {what}: it ran on another GPU, or beside other work.",
                share=share,
                what=what,
            )
        )
    return share


def _fitted(code: str, measured: float | None) -> Fitted:
    """The measured factor drawn to 1 as far as its uncertainty says."""
    usual: float = getattr(Factors(), code)
    if measured is None:
        return Fitted(code=code, value=usual, low=usual, high=usual, identified=False)
    width = prior.WIDTHS[code]
    weight = width**2 / (width**2 + KERNEL_SIGMA**2)
    log, half = weight * math.log(measured), prior.Z95 * KERNEL_SIGMA * math.sqrt(weight)
    low, value, high = (float(f"{math.exp(log + side * half):.4g}") for side in (-1, 0, 1))
    return Fitted(code=code, value=value, low=low, high=high, identified=True)
