"""Decode's KV-cache allocator: what is freed can be given away at once.

mem_cache allocators and common.py: release_kv_cache; decode.py: DecodePreallocQueue.pop_preallocated.
"""

from __future__ import annotations

from ..language import NONE, ghost_code, require
from .state import Chunk, Drain, Slot


def allocate(s: Drain, room: int) -> None:
    """Gives the room the lowest free slots, one for each chunk; disabled if there are too few."""
    given = 0
    for slot in s.all(Slot):
        if given < s.size(Chunk) and s.owner[slot] == NONE:
            s.owner[slot] = room
            s.slot[room, given] = slot
            given += 1
    require(given == s.size(Chunk))


def release(s: Drain, room: int) -> None:
    """Gives back what the room was given, whoever may write to it by now."""
    for chunk in s.all(Chunk):
        slot = s.slot[room, chunk]
        note_release(s, room, slot)
        s.owner[slot] = NONE
        s.slot[room, chunk] = NONE


@ghost_code
def note_release(s: Drain, room: int, slot: int) -> None:
    """Keeps whether a slot is given back by somebody who does not own it."""
    if s.owner[slot] != room:
        s.stray_free = slot
