"""What we know by name: models, GPUs, engine versions and business types, each row with its source and date."""

from data.catalogue.completed import completed
from data.catalogue.doubts import doubts
from data.catalogue.named import gpus_named, model_named, short_name
from data.catalogue.presets import Preset, presets
from data.catalogue.tables import ModelEntry, engine, engines, gpu, gpus, model, models, runtimes

__all__ = [
    "ModelEntry",
    "Preset",
    "completed",
    "doubts",
    "engine",
    "engines",
    "gpu",
    "gpus",
    "gpus_named",
    "model",
    "model_named",
    "models",
    "presets",
    "runtimes",
    "short_name",
]
