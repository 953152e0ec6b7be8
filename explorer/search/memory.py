"""Memory ahead of need: a thread of its own asks the system for pages that the search will touch next.

A page that is touched for the first time costs the toucher a trip into the kernel, and on a virtual machine often one
into the host as well: for a search that fills gigabytes that is a third of its time. The contents are not changed, so
nothing has to be agreed with the searching thread; where the system cannot do it, nothing happens.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

POPULATE_WRITE = 23
"""Linux (5.14 and later): make pages present and writable. madvise(2), MADV_POPULATE_WRITE."""

PIECE = 16 << 20
"""Bytes asked for at once: a long request would hold up the searching thread's own."""


@cache
def _madvise() -> Any:
    try:
        return ctypes.CDLL(None, use_errno=True).madvise
    except (OSError, AttributeError):
        return None


@cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")


def _populate(owner: Any, first: int, length: int) -> None:
    # `owner` is the array: it must not be freed, and its addresses used again, before this is done.
    madvise = _madvise()
    for at in range(first, first + length, PIECE):
        size = min(PIECE, first + length - at)
        if madvise is None or madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), POPULATE_WRITE) != 0:
            return


class Ahead:
    """Keeps the pages of one array present up to some distance ahead of the part in use.

    `array` is a one-dimensional numpy array; `distance` is in bytes.
    """

    def __init__(self, array: Any, distance: int) -> None:
        self._array = array
        self._distance = distance
        self._asked = 0

    def use(self, in_use: int, most: int) -> None:
        """Says how many bytes from the start are in use, and how many may be at most; asks for more pages if they come
        near the end."""
        until = min(self._array.nbytes, most, in_use + self._distance)
        if in_use < PIECE or until - self._asked < self._distance // 2 or (os.cpu_count() or 1) < 2:
            return
        page = mmap.PAGESIZE
        first = -(-(self._array.ctypes.data + max(self._asked, in_use)) // page) * page
        last = (self._array.ctypes.data + until) // page * page
        self._asked = until
        if last > first:
            _worker().submit(_populate, self._array, first, last - first)
