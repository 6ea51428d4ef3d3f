"""Errors a user can fix. Everything else is a bug and surfaces as one.

    PlimsollError
     ├─ InputError             a value or field is not usable
     │   ├─ UnknownName          no such model, GPU, engine … in the catalogue
     │   ├─ UnknownArchitecture  a config.json whose KV layout is not known
     │   ├─ ImpossibleDeployment the parallel split or a limit cannot exist
     │   └─ CalibrationRefused   measurements that no physical constants explain
     ├─ UnreadableFile         an uploaded file cannot be what it should be
     ├─ StoreError             the database cannot be opened or written
     └─ ProbeError             the GPU measurement could not run

Each message says what was expected, what came and what to do.
"""

from __future__ import annotations

from calc.messages import Message


class PlimsollError(Exception):
    """Base of all errors a user can fix; carries one :class:`Message`."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class InputError(PlimsollError):
    """A value or field is not usable."""


class UnknownName(InputError):
    """No such model, GPU or engine in the catalogue."""


class UnknownArchitecture(InputError):
    """A config.json whose cache layout is not known; never guessed."""


class ImpossibleDeployment(InputError):
    """The parallel split or a limit cannot exist."""


class CalibrationRefused(InputError):
    """Measurements that no physical constants explain."""


class UnreadableFile(PlimsollError):
    """An uploaded file cannot be what it should be."""


class StoreError(PlimsollError):
    """The database cannot be opened or written."""


class ProbeError(PlimsollError):
    """The GPU measurement could not run."""
