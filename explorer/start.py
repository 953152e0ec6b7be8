"""Where the program starts: until the code is loaded, which takes a moment, it ends in one line as well."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

DEBUG = "DRAINCHECK_DEBUG"
INTERRUPTED = 130


def main() -> None:
    """Runs the command line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    try:
        from .cli import main as commands
    except BaseException as error:
        if os.environ.get(DEBUG):
            raise
        described = " ".join(f"{type(error).__name__}: {error}".split())
        _end(
            3 if isinstance(error, MemoryError) else 70,
            f"the program cannot be loaded, nothing is decided: {described}",
        )
    else:
        commands()


def _interrupted(number: int, frame: FrameType | None) -> None:
    _end(INTERRUPTED, "interrupted; what was asked is not decided")


def _end(code: int, line: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        os.write(2, f"draincheck: {line}\n".encode())
    os._exit(code)


if __name__ == "__main__":
    main()
