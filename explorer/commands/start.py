"""Where the program starts: until the code is loaded, which takes a moment, it ends in one line as well."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from ..search.budget import available_address_space

DEBUG = "DRAINCHECK_DEBUG"
UNDETERMINED, INNER_FAULT, INTERRUPTED = 3, 70, 130
LEAST_ADDRESS_SPACE = 1 << 30
"""Bytes. With less, some of the libraries end the process in their own ways, one of them with exit code 1."""


def main() -> None:
    """Runs the command line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    left = available_address_space() >> 20
    if left < LEAST_ADDRESS_SPACE >> 20:
        needed = LEAST_ADDRESS_SPACE >> 20
        _end(UNDETERMINED, f"UNDETERMINED: ulimit -v leaves {left:,} MiB of addresses; {needed:,} MiB are needed")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing is asked of it, and each thread of it takes memory
    try:
        from .cli import main as commands
    except BaseException as error:
        if os.environ.get(DEBUG):
            raise
        described = " ".join(f"{type(error).__name__}: {error}".split())
        code = UNDETERMINED if isinstance(error, MemoryError) else INNER_FAULT
        _end(code, f"the program cannot be loaded, nothing is decided: {described}")
    else:
        try:
            commands()
        except SystemExit as leaving:
            if leaving.code == INTERRUPTED:  # at once: what Python does at its end may take seconds
                os._exit(INTERRUPTED)
            raise


def _interrupted(number: int, frame: FrameType | None) -> None:
    _end(INTERRUPTED, "interrupted; what was asked is not decided")


def _end(code: int, line: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        os.write(2, f"draincheck: {line}\n".encode())
    os._exit(code)


if __name__ == "__main__":
    main()
