"""The folder beside the store through which large files come in: private, and empty but while one is loaded."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calc.errors import StoreError
from calc.messages import msg

IN_MEMORY = ":memory:"
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
PARTS = "*.part"
"""Names of files on their way in: a word of the process that writes it, one of its own, and this ending."""
_OWN = uuid.uuid4().hex[:12]
"""A process number would come again after a crash, in a container at once."""


def incoming_folder(path: Path | str) -> Path:
    """Beside the store's file, one for each store; a store in memory has its own among the machine's temporary ones."""
    if str(path) == IN_MEMORY:
        return Path(tempfile.gettempdir()).resolve() / f"plimsoll-incoming-{uuid.uuid4().hex}"
    return Path(path).absolute().parent.resolve() / "incoming" / Path(path).name


@contextmanager
def incoming_file(folder: Path) -> Iterator[Path]:
    """A new, empty, private file that is gone afterwards, whatever happened."""
    path = folder / f"{_OWN}-{uuid.uuid4().hex}.part"
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.chmod(PRIVATE_FOLDER)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        yield path
    except OSError as error:
        raise StoreError(
            msg(
                "{path}: the file cannot be brought in there ({reason}): free some disk space or choose another place.",
                path=str(folder),
                reason=error.strerror or type(error).__name__,
            )
        ) from error
    finally:
        path.unlink(missing_ok=True)


def sweep(folder: Path, *, everything: bool = False) -> None:
    """Remove what a process that ended in the middle left behind; at the end also the folder."""
    for path in folder.glob(PARTS):
        if everything or not path.name.startswith(_OWN):
            path.unlink(missing_ok=True)
    if everything and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
