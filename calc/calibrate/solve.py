"""Levenberg-Marquardt with a Gaussian prior and a loss that one bad figure bends little, for costly functions.

Minimises Σ ρ(rᵢ(z)) + |z|², z in units of the prior's width and ρ(r) = 2c²(√(1 + r²/c²) − 1), pseudo-Huber. The
Jacobian comes from finite differences and is carried on by Broyden's rank-one update while steps succeed; at the
minimum it is taken anew, because intervals rest on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calc.workload import FloatArray

Residuals: TypeAlias = Callable[[FloatArray], FloatArray]

DIFFERENCE = 0.2
"""Step of the finite differences in prior widths: far above what chance in a simulated queue moves."""
MOST_ROUNDS = 12
LARGEST_STEP = 1.5
"""Of one round, in prior widths."""
SMALLEST_STEP = 0.01
ENOUGH = 1e-3
"""A round that lowers the loss by less is the last."""
FIRST_DAMPING, MOST_DAMPING, STRONGER, WEAKER = 1e-2, 1e6, 8.0, 0.2


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Where the loss is least, with what it takes to judge it."""

    z: FloatArray
    residuals: FloatArray
    jacobian: FloatArray
    covariance: FloatArray
    """Of z: (Jᵀ W J + 1)⁻¹, at most that of the prior."""
    loss: float


def weights(residuals: FloatArray, robust: float) -> FloatArray:
    """Of each residual in the least-squares step: less the farther it lies out."""
    w: FloatArray = 1 / np.sqrt(1 + (residuals / robust) ** 2)
    return w


def loss_of(residuals: FloatArray, z: FloatArray, robust: float) -> float:
    """What is minimised."""
    outer = 2 * robust**2 * (np.sqrt(1 + (residuals / robust) ** 2) - 1)
    return float(outer.sum() + z @ z)


def solve(residuals_of: Residuals, start: FloatArray, robust: float) -> Solution:
    """The minimum from ``start``."""
    z, r = start, residuals_of(start)
    jacobian, fresh = differences(residuals_of, z, r), True
    loss, damping = loss_of(r, z, robust), FIRST_DAMPING
    for _ in range(MOST_ROUNDS):
        step = gauss_newton(r, jacobian, z, robust, damping)
        tried = residuals_of(z + step)
        found = loss_of(tried, z + step, robust)
        if found < loss:
            gained = loss - found
            jacobian = jacobian + np.outer(tried - r - jacobian @ step, step) / float(step @ step)
            z, r, loss, damping, fresh = z + step, tried, found, damping * WEAKER, False
            if gained < ENOUGH:
                break
        elif not fresh:
            jacobian, fresh = differences(residuals_of, z, r), True
        elif (damping := damping * STRONGER) > MOST_DAMPING or float(np.abs(step).max()) < SMALLEST_STEP:
            break
    if not fresh:
        jacobian = differences(residuals_of, z, r)
    return Solution(z=z, residuals=r, jacobian=jacobian, covariance=_covariance(r, jacobian, robust), loss=loss)


def gauss_newton(r: FloatArray, jacobian: FloatArray, z: FloatArray, robust: float, damping: float = 0.0) -> FloatArray:
    """The damped step from z."""
    w = weights(r, robust)
    normal = jacobian.T @ (jacobian * w[:, None]) + np.eye(z.size)
    gradient = jacobian.T @ (w * r) + z
    step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
    return np.asarray(np.clip(step, -LARGEST_STEP, LARGEST_STEP), np.float64)


def differences(residuals_of: Residuals, z: FloatArray, r: FloatArray) -> FloatArray:
    """The Jacobian by forward differences."""
    columns = []
    for index in range(z.size):
        moved = z.copy()
        moved[index] += DIFFERENCE
        columns.append((residuals_of(moved) - r) / DIFFERENCE)
    return np.stack(columns, axis=1)


def _covariance(r: FloatArray, jacobian: FloatArray, robust: float) -> FloatArray:
    normal = jacobian.T @ (jacobian * weights(r, robust)[:, None]) + np.eye(jacobian.shape[1])
    return np.asarray(np.linalg.inv(normal), np.float64)
