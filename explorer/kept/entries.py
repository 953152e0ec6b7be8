"""What is kept between runs: entries in a folder of the code that made them, each whole or not at all.

An entry is a file: a line of JSON with its name and a checksum of the rest, and the rest. One that is damaged, larger
than it may be, no regular file, or not what its name says counts as not there. Processes may share a folder.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ...models.reading import ReadingError, read_bytes
from .identity import NoKey, fingerprint
from .writing import write_whole

ENTRY_FILE = re.compile(r"[0-9a-f]{64}\.\w+(\.\d+\.tmp)?")
UNFINISHED = re.compile(r"\..*\.tmp|[0-9a-f]{64}\.\w+\.\d+\.tmp")
UNFINISHED_SECONDS = 3600
"""What is unfinished for so long was left over by a process that has died."""


class Heading(BaseModel):
    """The first line of an entry. `digest` is the SHA-256 of all that follows."""

    model_config = ConfigDict(strict=True, extra="forbid")

    format: str
    version: Literal[1]
    key: str
    digest: str


class Entries:
    """The entries of one kind, for the code that runs. What cannot be written is not kept; `trouble` then says why."""

    def __init__(self, root: Path, kind: str, suffix: str, limit: int) -> None:
        """Entries of at most `limit` bytes, in the folder `kind`-... of a root."""
        self._root = root
        self._kind = kind
        self._suffix = suffix
        self._limit = limit
        self._tidied = False
        self._trouble = ""
        self._in_the_way = ""

    @property
    def trouble(self) -> str:
        """Why entries are not kept, if they are not."""
        try:
            fingerprint()
        except NoKey as error:
            return str(error)
        return self._trouble or self._in_the_way

    def path(self, key: str) -> Path:
        """Where the entry of a key is, or would be. Raises NoKey if it is not known which code runs."""
        return self._root / f"{self._kind}-{fingerprint()[:16]}" / f"{key}.{self._suffix}"

    def read(self, key: str) -> bytes | None:
        """The content of an entry; None if there is none, or none that can be trusted."""
        try:
            first, content = read_bytes(self.path(key), self._limit, "an entry", pipes=False).split(b"\n", 1)
            heading = Heading.model_validate_json(first)
        except (NoKey, ReadingError, ValueError):  # a ValidationError is a ValueError
            return None
        expected = (f"draincheck-{self._kind}", key, sha256(content).hexdigest())
        return content if (heading.format, heading.key, heading.digest) == expected else None

    def write(self, key: str, content: bytes) -> None:
        """Keeps an entry. The first one removes those of other code, and what processes that died have left over."""
        if self._trouble:
            return
        digest = sha256(content).hexdigest()
        heading = Heading(format=f"draincheck-{self._kind}", version=1, key=key, digest=digest)
        try:
            path = self.path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, heading.model_dump_json().encode() + b"\n" + content)
        except NoKey:
            return
        except IsADirectoryError:  # of this entry alone
            self._in_the_way = f"{self.path(key)}: a folder is where an entry belongs; remove it"
            return
        except OSError as error:
            self._trouble = f"{self._root}: cannot be written: {error.strerror}"
            return
        if not self._tidied:
            self._tidied = True
            self._tidy(path.parent)

    def _tidy(self, own: Path) -> None:
        """Removes what is of other code and files left over: those with our names, and folders that are empty then."""
        folder_name = re.compile(rf"{self._kind}-[0-9a-f]{{16}}")
        with suppress(OSError):
            for folder in self._root.iterdir():
                if folder_name.fullmatch(folder.name) and not folder.is_symlink():
                    with suppress(OSError):  # another process is at it, or it is not ours to remove: it does no harm
                        _remove_left_over(folder) if folder == own else _remove(folder)


def _remove(folder: Path) -> None:
    for each in folder.iterdir():
        if ENTRY_FILE.fullmatch(each.name) or UNFINISHED.fullmatch(each.name):
            each.unlink(missing_ok=True)
    folder.rmdir()


def _remove_left_over(folder: Path) -> None:
    for each in folder.iterdir():
        if UNFINISHED.fullmatch(each.name) and each.lstat().st_mtime < time.time() - UNFINISHED_SECONDS:
            each.unlink(missing_ok=True)
