"""Results kept on disk, under the key of their case, for the code that found them.

Only settled results are kept, so they hold under any limits. Whoever can write into a store can write verdicts into
it: what a search cannot have found is refused (`results.py`), but no check replaces the search.
"""

from __future__ import annotations

from pathlib import Path

from ..kept.entries import Entries
from .results import Result

MAX_BYTES = 2**24


class Store:
    """A folder of results. What cannot be written is not kept, and `trouble` then says why."""

    def __init__(self, root: Path) -> None:
        self._entries = Entries(root, "result", "json", MAX_BYTES)

    @property
    def trouble(self) -> str:
        """Why results are not kept, if they are not."""
        return self._entries.trouble

    def path(self, key: str) -> Path:
        """Where the result of a key is, or would be."""
        return self._entries.path(key)

    def read(self, key: str) -> Result | None:
        """The result of a key; None if there is none, or none that can be trusted."""
        content = self._entries.read(key)
        try:
            result = Result.model_validate_json(content) if content else None
        except ValueError:  # a ValidationError is one
            return None
        return result if result and result.settled else None

    def write(self, key: str, result: Result) -> None:
        """Keeps a result if it is settled."""
        if result.settled:
            self._entries.write(key, result.model_dump_json().encode())
