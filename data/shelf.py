"""Models and GPUs of the catalogue for setups that were published."""

from __future__ import annotations

from calc.claims.claim import Shelf
from data import catalogue

ENGINE = "vllm"


def shelf() -> Shelf:
    """What the headline figures are computed with; the newest engine version known."""
    engine, _ = catalogue.engine(ENGINE)
    return Shelf(
        model=lambda name, weights: catalogue.model(name).spec(weight_dtype=weights), gpu=catalogue.gpu, engine=engine
    )
