"""Z3, as everything here uses it."""

from __future__ import annotations

import signal
from functools import cache
from importlib import import_module
from typing import Any


@cache
def library() -> Any:
    """Z3, which has no types and takes a while to load.

    It puts a handler of its own in the place of the program's while it solves, and takes Ctrl-C for an answer: that
    nothing is known. Where the program has a handler, the program gets it.
    """
    z3 = import_module("z3")
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        z3.set_param("ctrl_c", False)
    return z3
