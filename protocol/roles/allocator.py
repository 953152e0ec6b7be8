"""Decode's KV-cache allocator: what is freed can be given away at once.

mem_cache allocators and common.py: release_kv_cache; decode.py: DecodePreallocQueue.pop_preallocated.
"""

from __future__ import annotations

from ..language import NONE, ghost_code, require
from .indices import Chunk, Slot
from .state import Drain


def allocate(s: Drain, decode: int, request: int) -> None:
    """Gives the request the lowest free slots of the rank, one for each chunk; disabled if there are too few.

    With metadata buffers, it needs the rank's buffer as well.
    """
    given = 0
    for slot in s.all(Slot):
        if given < s.size(Chunk) and s.owner[decode, slot] == NONE:
            s.owner[decode, slot] = request
            s.slot[decode, request, given] = slot
            given += 1
    require(given == s.size(Chunk))
    if s.knobs.metadata:
        require(s.row_owner[decode] == NONE)
        s.row_owner[decode] = request


def release(s: Drain, decode: int, request: int, *, cache: bool = False) -> None:
    """Gives back what the request was given and still has, whoever may write to it by now.

    With `cache`, what it holds enters the radix tree, for other requests to read.
    """
    for chunk in s.all(Chunk):
        slot = s.slot[decode, request, chunk]
        if slot != NONE:
            note_release(s, decode, request, slot)
            if cache:
                note_cached(s, decode, request, slot)
            s.owner[decode, slot] = NONE
            s.slot[decode, request, chunk] = NONE
    release_row(s, decode, request)


def release_row(s: Drain, decode: int, request: int) -> None:
    """Gives back the metadata buffer, emptied."""
    if s.knobs.metadata and s.row_owner[decode] == request:
        s.row_owner[decode] = NONE
        s.row_content[decode] = NONE


@ghost_code
def note_cached(s: Drain, decode: int, request: int, slot: int) -> None:
    """Keeps whose KV cache entered the tree."""
    s.cached[decode, slot] = request


@ghost_code
def note_release(s: Drain, decode: int, request: int, slot: int) -> None:
    """Keeps whether a slot is given back by somebody who does not own it."""
    if s.owner[decode, slot] != request:
        s.stray_free[decode] = slot
