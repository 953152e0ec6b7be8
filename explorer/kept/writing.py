"""Files that are written whole or not at all: a full disk leaves nothing under the final name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from ...protocol.language.errors import DraincheckError


class WritingError(DraincheckError):
    """A file or folder that cannot be written; the message names it."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside its place, and then puts it there, instead of whatever was there: a file, a link, a pipe.

    Raises OSError.
    """
    unfinished = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # some file systems find out only then that there is no room
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_output(path: Path, content: bytes) -> None:
    """Writes a file that a user has named, in place of the one that was there. Raises WritingError.

    Where a link leads, that file is replaced. What is no regular file, such as a pipe or /dev/stdout, is written to.
    """

    def attempt() -> None:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            write_whole(Path(os.path.realpath(path)), content)

    _as_ours(path, attempt)


def folder_for_output(folder: Path) -> None:
    """Makes a folder if there is none, and tries whether files can be written there. Raises WritingError."""
    if folder.exists() and not folder.is_dir():
        raise WritingError(f"{folder}: is no folder")

    def attempt() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / f".{uuid4().hex}.tmp"
        try:
            trial.touch(exist_ok=False)
        finally:
            trial.unlink(missing_ok=True)

    _as_ours(folder, attempt)


def _as_ours(path: Path, attempt: Callable[[], None]) -> None:
    try:
        attempt()
    except OSError as error:
        raise WritingError(f"{path}: cannot be written: {error.strerror or error}") from None
