"""The NIC of a prefill rank: launched writes, in the order of their queue pair, which nobody can cancel."""

from __future__ import annotations

from ..language import NONE, action, ghost_code
from .indices import DecodeRank, PrefillRank, Request
from .messages import WriteKind
from .state import Drain
from .steps import Life, WorkerStep
from .topology import room_of, same_room, served, writes


@action("NIC {prefill}", toward="decode {decode} memory")
def land(s: Drain, prefill: PrefillRank, decode: DecodeRank) -> None:
    """The oldest write arrives in decode's memory, whoever owns it by now.

    If the worker still waits for it, its call is complete; the write of a failed call lands as well.
    """
    write = s.nic[prefill, decode].receive()
    if write.kind == WriteKind.KV:
        if s.knobs.staging:
            s.arrived[decode, write.addressee, write.chunk] = True
        note_landing(s, prefill, decode, write.request, write.addressee, write.slot)
    else:
        fill_buffer(s, decode, write.request)
    if s.nic[prefill, decode].length == 0 and waits_for(s, prefill, decode):
        s.completed[prefill, decode] = True


def waits_for(s: Drain, prefill: int, decode: int) -> int:
    """Whether the worker has a call to the decode rank in flight: it is then the newest write on that queue pair."""
    if s.addressee[prefill, decode] == NONE or s.completed[prefill, decode]:
        return False
    step = s.worker_step[prefill]
    if step == WorkerStep.AUX_POSTED:
        return True
    if posts_at_once(s):
        posted = step == WorkerStep.POSTED
        reached = (s.worker_at[prefill] > decode) | ((s.worker_at[prefill] == decode) & posted)
        return ((step == WorkerStep.TO_POST) | posted) & reached
    return (step == WorkerStep.POSTED) & (s.worker_at[prefill] == decode)


def posts_at_once(s: Drain) -> bool:
    """Whether the worker posts to all decode ranks before it waits for any; with a staging ring it may not."""
    return s.knobs.prefill.posts_at_once and not (s.knobs.staging and s.knobs.prefill.defer_waits)


def fill_buffer(s: Drain, decode: int, request: int) -> None:
    """Metadata content arrives in the rank's buffer, whoever owns it by now."""
    s.row_content[decode] = request
    note_buffer(s, decode, request)


@ghost_code
def note_buffer(s: Drain, decode: int, request: int) -> None:
    """Keeps whether the metadata buffer was somebody else's by then."""
    if s.row_owner[decode] != NONE and s.row_owner[decode] != request:
        s.struck_row[decode] = request


@ghost_code
def note_landing(s: Drain, prefill: int, decode: int, request: int, addressee: int, slot: int) -> None:
    """Keeps whose KV cache the slot has now, and whether it was somebody else's by then."""
    s.writer[decode, slot, prefill] = request
    if s.life[decode, addressee] == Life.HELD:
        s.landed_held[addressee] = True
    if s.owner[decode, slot] != NONE and s.owner[decode, slot] != addressee:
        s.struck[decode, slot] = addressee


@ghost_code
def note_ack(s: Drain, decode: int, prefill: int, room: int) -> None:
    """Keeps whether a counted ack is false: a write of the prefill rank is in flight for a request that it is for."""
    for request in same_room(s, room):
        if awaits_acks(s, decode, request):
            for write in s.nic[prefill, decode].waiting():
                if write.addressee == request:
                    s.false_ack[decode] = request


@ghost_code
def note_post(s: Drain, decode: int, prefill: int, addressee: int) -> None:
    """Keeps whether a write is launched though the prefill rank has acknowledged that none will be."""
    if s.acked[decode, room_of(s, addressee), prefill] and awaits_acks(s, decode, addressee):
        s.false_ack[decode] = addressee


def awaits_acks(s: Drain, decode: int, request: int) -> int:
    """Whether the request is on its way into a hold, or held."""
    life = s.life[decode, request]
    return (s.notified[decode, request] != 0) & (life != Life.GONE) & (life != Life.DECODING)


def write_is_live(s: Drain, request: Request) -> bool:
    """Whether a write to memory that was meant for the request is in flight."""
    for prefill in s.all(PrefillRank):
        for decode in served(s, prefill):
            if writes(s, prefill):
                for write in s.nic[prefill, decode].waiting():
                    if write.addressee == request:
                        return True
    return False
