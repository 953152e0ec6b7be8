"""The files of our code, and whether they still are what this process has loaded.

A process runs what it has loaded. A file that is edited while the process runs, in a notebook or between two tests,
is not what runs, so nothing may be concluded from it. Every floor loads this module before any other of its own.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGE = __name__.split(".")[0]
FLOORS = ("protocol", "models", "properties", "explorer")


def code_files() -> dict[str, Path]:
    """All Python files of ours, in order, by floor and path in it."""
    found: dict[str, Path] = {}
    for floor in FLOORS:
        spec = find_spec(f"{PACKAGE}.{floor}")
        if spec and spec.origin:
            folder = Path(spec.origin).parent
            found |= {f"{floor}/{path.relative_to(folder).as_posix()}": path for path in sorted(folder.rglob("*.py"))}
    return found


def _mark(path: Path) -> tuple[int, int, int]:
    """What the system says of a file. The time of its last change cannot be set back by writing to it."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


_LOADED = {path: _mark(path) for path in code_files().values()}


def unchanged() -> bool:
    """Whether every file of our code is what it was before this process has loaded the first of them."""
    try:
        return all(_mark(path) == mark for path, mark in _LOADED.items())
    except OSError:  # one was taken away
        return False
