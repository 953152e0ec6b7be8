"""Ctrl-C and SIGTERM: whatever runs, they end it, within two seconds.

Python raises KeyboardInterrupt as soon as it runs Python again. Three things can be in its way, and each has its answer
here. Native code that is long at it: a thread of its own hears of the signal at once, and tells Z3 to stop. A place in
which no exception leaves, as `__del__` or a callback from native code: the signal is sent again. And what does not end
all the same: then this thread ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_SECONDS = 1.8
"""How long a command may take to end by itself, and to print what it knows."""
AGAIN_SECONDS = 0.05
EXIT_CODE = 130
LAST_WORDS = b"draincheck: interrupted; what was asked is not decided\n"
SHOW_CURSOR = b"\x1b[?25h"


class Heard:
    """Whether a signal has come. What goes wrong after it is its doing: native code gives its exception other names."""

    def __init__(self) -> None:
        self.signalled = False

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """The handler of both signals."""
        self.signalled = True
        raise KeyboardInterrupt


@contextmanager
def heard() -> Generator[Heard]:
    """Within it both signals raise KeyboardInterrupt, and what does not end by that is ended.

    Gives whether a signal has come. Does nothing outside the main thread: only that one is interrupted.
    """
    known = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield known
        return
    hears, tells = socket.socketpair()
    tells.setblocking(False)
    watch = _Watch(hears, known)
    fd_before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    hook_before, sys.unraisablehook = sys.unraisablehook, watch.hook(sys.unraisablehook)
    handlers_before = {number: signal.signal(number, known.interrupt) for number in SIGNALS}
    try:
        yield known
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook_before
        signal.set_wakeup_fd(fd_before)
        tells.close()


class _Watch:
    """The thread that hears of signals, whatever the main thread is at. It ends when nobody can tell it any more."""

    def __init__(self, hears: socket.socket, known: Heard) -> None:
        self._hears = hears
        self._known = known
        self._swallowed = False
        threading.Thread(target=self._run, name="interruption", daemon=True).start()

    def hook(self, before: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """What to do with an exception that could not be raised: the one of a signal comes again."""

        def hook(swallowed: Any) -> None:
            if self._known.signalled or issubclass(swallowed.exc_type, KeyboardInterrupt):
                self._swallowed = True
            else:
                before(swallowed)

        return hook

    def _run(self) -> None:
        until = float("inf")
        with self._hears:
            while time.monotonic() < until:
                try:
                    numbers = self._hears.recv(64)
                except TimeoutError:
                    numbers = bytes(SIGNALS[:1])
                if not numbers:
                    return
                if until == float("inf") and set(numbers) & set(SIGNALS):
                    until = time.monotonic() + PATIENCE_SECONDS
                    self._hears.settimeout(AGAIN_SECONDS)
                if until < float("inf"):
                    self._push()
        os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + LAST_WORDS)
        os._exit(EXIT_CODE)

    def _push(self) -> None:
        z3: Any = sys.modules.get("z3.z3")
        if getattr(z3, "_main_ctx", None) is not None:
            z3.main_ctx().interrupt()
        if self._swallowed:
            self._swallowed = False
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
