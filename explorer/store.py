"""Results kept on disk: one file each, under the key of its case, in a folder of the code that found it.

A file is two lines of JSON: the key with a checksum of the second line, and the result. A file that is damaged, or is
not what its name says, counts as not there. Only settled results are kept, so they hold under any limits. Processes may
share a store: a file appears whole or not at all.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

from .identity import fingerprint
from .results import Result
from .storage import Strict

CODE_FOLDER = re.compile(r"code-[0-9a-f]{16}")
RESULT_FILE = re.compile(r"[0-9a-f]{64}\.json(\.\d+\.tmp)?")


class Heading(Strict):
    """The first line of a file. `digest` is the SHA-256 of the second."""

    format: Literal["draincheck-result"]
    version: Literal[1]
    key: str
    digest: str


class Store:
    """A folder of results. What cannot be written is not kept, and `trouble` then says why."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / f"code-{fingerprint()[:16]}"
        self._writes = 0
        self.trouble = ""

    def path(self, key: str) -> Path:
        """Where the result of a key is, or would be."""
        return self._folder / f"{key}.json"

    def read(self, key: str) -> Result | None:
        """The result of a key; None if there is none, or none that can be trusted."""
        try:
            first, second = self.path(key).read_bytes().split(b"\n", 1)
            heading = Heading.model_validate_json(first)
            if (heading.key, heading.digest) != (key, sha256(second).hexdigest()):
                return None
            result = Result.model_validate_json(second)
        except (OSError, ValueError):  # a ValidationError is a ValueError
            return None
        return result if result.settled else None

    def write(self, key: str, result: Result) -> None:
        """Keeps a result if it is settled. The first one that other code finds makes room: it removes older ones."""
        if not result.settled or self.trouble:
            return
        path = self.path(key)
        second = result.model_dump_json().encode()
        heading = Heading(format="draincheck-result", version=1, key=key, digest=sha256(second).hexdigest())
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(heading.model_dump_json().encode() + b"\n" + second)
            os.replace(unfinished, path)
        except OSError as error:
            self.trouble = f"{path.parent}: cannot be written: {error.strerror}"
            return
        self._writes += 1
        if self._writes == 1:
            self._remove_older()

    def _remove_older(self) -> None:
        """Removes results of other code: files with our names, and folders that are empty then; nothing else."""
        with suppress(OSError):
            for folder in self._root.iterdir():
                if folder != self._folder and CODE_FOLDER.fullmatch(folder.name) and not folder.is_symlink():
                    with suppress(OSError):  # another process is at it, or it is not ours to remove: it does no harm
                        _remove(folder)


def _remove(folder: Path) -> None:
    for each in folder.iterdir():
        if RESULT_FILE.fullmatch(each.name):
            each.unlink(missing_ok=True)
    folder.rmdir()
