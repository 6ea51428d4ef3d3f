"""Token lengths of a JSON case, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from calc.errors import InputError
from calc.lengths import Empirical, Fixed, LengthDistribution, LogNormal, Uniform
from calc.messages import msg
from data.case_fields import Fields, as_list, as_number

DISTRIBUTIONS = ("fixed", "uniform", "lognormal", "empirical")
"""How token lengths can be given."""
MAX_QUANTILES = 1000
"""Of one distribution; a hundred name every percentile."""
OF_LOG = (*(step / 20 for step in range(20)), 0.99, 1.0)
"""Quantiles kept of a log's lengths: every twentieth, the tail, the longest."""


def read_lengths(fields: Fields) -> LengthDistribution:
    """One distribution, as its kind is given."""
    match fields.one_of("distribution", DISTRIBUTIONS):
        case "fixed":
            return Fixed(value_tokens=fields.needed_number("value"))
        case "uniform":
            return Uniform(low_tokens=fields.needed_number("low"), high_tokens=fields.needed_number("high"))
        case "lognormal":
            return LogNormal(p50_tokens=fields.needed_number("p50"), p95_tokens=fields.needed_number("p95"))
        case _:
            return Empirical(quantiles=_read_quantiles(fields))


def _read_quantiles(fields: Fields) -> tuple[tuple[float, float], ...]:
    name = fields.name_of("quantiles")
    pairs = [as_list(pair, name) for pair in as_list(fields.needed("quantiles"), name, MAX_QUANTILES)]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004 - a pair
        raise InputError(msg("{name} must be pairs [share, tokens]: correct the list.", name=name))
    return tuple((as_number(share, name), as_number(tokens, name)) for share, tokens in pairs)


def lengths_of_log(tokens: tuple[int, ...]) -> Empirical:
    """How the lengths of a log spread, for what is asked of a distribution."""
    values = np.quantile(np.array(tokens), OF_LOG)
    return Empirical(quantiles=tuple(zip(OF_LOG, (float(value) for value in values), strict=True)))


def write_lengths(lengths: LengthDistribution) -> dict[str, Any]:
    """As :func:`read_lengths` reads it."""
    match lengths:
        case Fixed():
            return {"distribution": "fixed", "value": lengths.value_tokens}
        case Uniform():
            return {"distribution": "uniform", "low": lengths.low_tokens, "high": lengths.high_tokens}
        case LogNormal():
            return {"distribution": "lognormal", "p50": lengths.p50_tokens, "p95": lengths.p95_tokens}
        case Empirical():
            return {"distribution": "empirical", "quantiles": [list(pair) for pair in lengths.quantiles]}
