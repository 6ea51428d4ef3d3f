"""A calibration in words: what is in use, what a fit changed, how far it can be believed, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from calc import MODEL_VERSION
from calc.calibrate.calibration import MEANINGS, Calibration
from calc.calibrate.constants import Constant
from calc.calibrate.fit import Fit, Residual
from data.store import StoredCalibration
from ui import format as show
from ui.glossary import TERMS
from ui.story import words
from ui.text import t

ORDER = ("tpot", "itl", "ttft", "e2e", "throughput")
"""In which latencies are told."""
CENTRAL = ("mean", "p50")
SAME_SHARE = 0.01
"""Closer than this to the assumed value, a constant is as assumed."""
ID_DIGITS = 6

Rows = list[Mapping[str, str]]


def in_force(calibration: Calibration | None, used_name: str) -> str:
    """Which constants the predictions of this scenario rest on."""
    if calibration is None:
        return t("No calibration is in use: predictions rest on generic constants.")
    if used_name != calibration.name:
        return t(
            "Calibration {name} was chosen, but nothing of it holds for this deployment: generic constants are used.",
            name=calibration.name,
        )
    return t(
        "In use: {name}, fitted to {points:count} measured load points.",
        name=calibration.name,
        points=calibration.points,
    )


def headline(fit: Fit) -> str:
    """The errors before and after, the most telling latency first."""
    parts = [
        t(
            "{metric} {after:pct} off instead of {before:pct}",
            metric=_label(latency),
            after=_error(found, "after"),
            before=_error(found, "before"),
        )
        for latency in ORDER
        if (found := _central(fit.residuals, latency))
    ]
    if not parts:
        return t("Constants of the GPU, from a micro-benchmark of one layer.")
    return t(
        "{errors}; medians over {points:count} measured load points.",
        errors=t(", ").join(parts),
        points=fit.calibration.points,
    )


def left_out(fit: Fit) -> str:
    """The honest error: each point predicted by a fit to the others."""
    if fit.leave_one_out is None:
        return t("From one source alone nothing is left to check the fit with: measure a second load.")
    parts = [
        t("{metric} {error:pct}", metric=_label(one.latency), error=one.error_share)
        for one in sorted(fit.leave_one_out, key=lambda one: ORDER.index(one.latency))
    ]
    return t("Left out of the fit, a point is met with a median error of {errors}.", errors=t(", ").join(parts))


def unidentified(fit: Fit, constants: Sequence[Constant]) -> str:
    """What the points could not tell."""
    names = [t(MEANINGS[one.code]) for one in constants if one.code in fit.not_identified]
    if not names:
        return t("The points tell every constant that plays a part here.")
    return t(
        "These points cannot tell: {names}. They stay as assumed, or move only with what they cannot be told from.",
        names=t(", ").join(names),
    )


def valid_for(calibration: Calibration) -> str:
    """What was measured."""
    scope = calibration.scope
    split = " · ".join(
        f"{name.upper()} {getattr(scope, name)}"
        for name in ("tp", "pp", "dp")
        if name == "tp" or getattr(scope, name) > 1
    )
    return t(
        "Valid for {model} on {gpu}, {engine} {version}, {split}, weights {weights}, KV cache {kv}; elsewhere only the "
        "part that carries over is used, and a note says so.",
        model=scope.model,
        gpu=scope.gpu,
        engine=scope.engine,
        version=scope.engine_version,
        split=split,
        weights=scope.weight_dtype,
        kv=scope.kv_dtype,
    )


def in_words(one: Constant) -> str:
    """A constant as one sentence: its value, and how it differs from the assumed one."""
    if one.unit == "steps":
        if abs(one.fitted) < SAME_SHARE:
            return t("The first token comes when it is expected.")
        if one.fitted < 0:
            return t("The first token comes {steps:.3g} steps earlier than assumed.", steps=-one.fitted)
        return t("The first token comes {steps:.3g} steps later than assumed.", steps=one.fitted)
    value = _value(one, one.fitted)
    names = {
        "memory": t("Memory is read at {value} of peak", value=value),
        "compute": t("Matrix products reach {value} of peak", value=value),
        "link": t("Exchange between GPUs takes {value} per step", value=value),
        "step": t("Engine and launches take {value} per step", value=value),
        "sequence": t("Each running sequence adds {value} to a step", value=value),
        "request": t("Each admitted request adds {value}", value=value),
        "network": t("Client, HTTP and tokeniser take {value}", value=value),
    }
    return t("{fact}, {change}.", fact=names[one.code], change=_change(one))


def _change(one: Constant) -> str:
    change = one.change_share
    if abs(change) < SAME_SHARE:
        return t("as assumed")
    if change < 0:
        return t("{change:pct} less than assumed", change=-change)
    return t("{change:pct} more than assumed", change=change)


def constant_rows(constants: Sequence[Constant]) -> Rows:
    """Every constant: fitted, assumed, interval, and whether the points tell it."""
    return [
        {
            t("Constant"): t(MEANINGS[one.code]),
            t("Fitted"): _value(one, one.fitted),
            t("Assumed"): _value(one, one.assumed),
            t("Interval (95 %)"): f"{_value(one, one.low)} – {_value(one, one.high)}" if one.high > one.low else "–",
            t("Told by the points"): t("yes") if one.identified else t("no"),
        }
        for one in constants
    ]


def _value(one: Constant, value: float) -> str:
    if one.unit == "share":
        return show.percent(value)
    return show.decimal(value) if one.unit == "steps" else _short_ms(value)


SHORTEST_S = 1e-4
MICROSECONDS = 1e6
"""Of a second."""


def _short_ms(value_s: float) -> str:
    """Milliseconds, or microseconds where a tenth of a millisecond says nothing."""
    return show.ms(value_s) if value_s >= SHORTEST_S else t("{number:.3g} µs", number=value_s * MICROSECONDS)


def residual_rows(fit: Fit, names: Sequence[str]) -> Rows:
    """Every figure: measured, predicted before and after, and by the other points."""
    return [
        {
            t("Point"): names[one.observation],
            t("Figure"): _label(one.latency)
            + (
                ""
                if one.latency == "throughput"
                else " " + (t("mean") if one.statistic == "mean" else one.statistic.upper())
            ),
            t("Measured"): _figure(one, one.measured),
            t("Before"): _with_error(one, one.before),
            t("After"): _with_error(one, one.after),
            t("By the other points"): _with_error(one, one.left_out),
        }
        for one in fit.residuals
    ]


def _figure(one: Residual, value: float | None) -> str:
    return show.tokens_rate(value) if one.latency == "throughput" else show.ms(value)


def _with_error(one: Residual, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{_figure(one, value)} ({value / one.measured - 1:+.1%})"


def alt(fit: Fit) -> str:
    """The picture in words."""
    return t("Measured against predicted latencies, before and after the fit: {errors}", errors=headline(fit))


def stored_rows(kept: Sequence[StoredCalibration], used: str | None) -> Rows:
    """Stored calibrations, newest first; a dot marks the one in use."""
    return [
        {
            t("Calibration"): ("● " if row.calibration_id == used else "") + row.source,
            t("Measured on"): row.measured_on or show.missing(),
            t("Stored"): words.day(row.stored_at),
            t("Model"): row.model.split("/")[-1],
            t("GPU"): row.gpu,
            t("Points"): show.count(len(row.points) or None),
            t("Model version"): row.model_version
            + ("" if row.model_version == MODEL_VERSION else " " + t("(older: fit again)")),
        }
        for row in kept
    ]


def stored_names(kept: Sequence[StoredCalibration]) -> dict[str, str]:
    """Ids and names for a picker."""
    return {
        row.calibration_id: " · ".join(
            (
                row.source,
                row.measured_on or words.day(row.stored_at),
                row.model.split("/")[-1],
                row.gpu,
                row.calibration_id[:ID_DIGITS],
            )
        )
        for row in kept
    }


def formulas() -> list[str]:
    """How a fit is made."""
    return [
        t(
            "minimise Σ ρ(ln(predicted / measured) / σ) + Σ (ln factor / width)²; ρ is pseudo-Huber, σ the error a "
            "good model leaves in each figure, width how far a constant may be off before anything is measured."
        ),
        t("A factor is told by the points when its standard deviation shrinks below 0.7 of its width."),
    ]


def _label(latency: str) -> str:
    return t("Output tokens/s") if latency == "throughput" else TERMS[latency].label


def _central(residuals: Sequence[Residual], latency: str) -> list[Residual]:
    return [one for one in residuals if one.latency == latency and one.statistic in CENTRAL]


def _error(found: Sequence[Residual], state: str) -> float:
    values = ((one, float(getattr(one, state) or 0.0)) for one in found)
    return median(abs(value / one.measured - 1) for one, value in values)
