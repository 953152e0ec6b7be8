"""What the server that forks the workers loads first: it ends with the process that has started it.

It would otherwise load all of the code before it saw that nobody is there any more, and hold the caller's pipe so long.
Imported by the server only.
"""

from __future__ import annotations

import ctypes
import signal
import sys

SET_DEATH_SIGNAL = 1
"""Linux: the signal that a process gets when the thread that started it ends. prctl(2), PR_SET_PDEATHSIG."""

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
