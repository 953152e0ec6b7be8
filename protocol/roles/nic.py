"""The NIC of a prefill rank: launched writes, in the order of their queue pair, which nobody can cancel."""

from __future__ import annotations

from ..language import NONE, action, ghost_code
from .state import Drain, Life, PrefillRank, WorkerStep


@action("NIC {rank}", toward="decode memory")
def land(s: Drain, rank: PrefillRank) -> None:
    """The oldest write arrives in decode's memory, whoever owns the slot by now.

    If the worker still waits for it, its call is complete; the write of a failed call lands as well.
    """
    write = s.nic[rank].receive()
    note_landing(s, rank, write.room, write.slot)
    waiting = s.worker_step[rank] == WorkerStep.POSTED
    if waiting and s.worker_room[rank] == write.room and s.worker_chunk[rank] == write.chunk:
        s.completed[rank] = True


@ghost_code
def note_landing(s: Drain, rank: PrefillRank, room: int, slot: int) -> None:
    """Keeps who wrote the slot, and whether it was somebody else's by then."""
    s.writer[slot, rank] = room
    if s.life[room] == Life.HELD:
        s.landed_held[room] = True
    if s.owner[slot] != NONE and s.owner[slot] != room:
        s.struck[slot] = room
