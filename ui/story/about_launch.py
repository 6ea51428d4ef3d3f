"""The start command in words: what it starts, and what to mind."""

from __future__ import annotations

from calc.deployment import Deployment
from calc.ways.launch import Launch
from ui.text import t


def sentence(deployment: Deployment) -> str:
    """What the command is."""
    return t(
        "{engine} {version}, one replica on {each:count} GPUs. What the estimate rests on is written out; "
        "everything else is left to the version's defaults.",
        engine=deployment.engine.id,
        version=deployment.engine.version,
        each=deployment.gpus_per_replica,
    )


def notes(launch: Launch) -> list[str]:
    """Remarks on flags and their spelling, each said once."""
    return list(dict.fromkeys(t(note) for note in launch.notes))
