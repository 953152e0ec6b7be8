"""What must hold in the abort/drain protocol, whatever is aborted, fails or is late."""

from __future__ import annotations

from ..protocol.language import NONE
from ..protocol.roles.state import Chunk, Drain, Life, PrefillRank, Request, Room, Slot
from .property import claim, invariant, probe


@invariant
def no_late_write(s: Drain) -> None:
    """No write lands in a slot that another request owns."""
    for slot in s.all(Slot):
        claim(
            s.struck[slot] == NONE,
            "no write landed in the slot while another request owned it",
            slot=slot,
            owner=s.owner[slot],
            written_by_room=s.struck[slot],
        )


@invariant
def reads_what_was_written_for_it(s: Drain) -> None:
    """A request that decodes finds in each of its slots what every prefill rank wrote for it."""
    for room in s.all(Room):
        if s.life[room] == Life.DECODING:
            for chunk in s.all(Chunk):
                for rank in s.all(PrefillRank):
                    claim(
                        s.writer[s.slot[room, chunk], rank] == room,
                        "the rank's part of the slot was written for the room that reads it",
                        room=room,
                        chunk=chunk,
                        rank=rank,
                    )


@invariant
def frees_only_its_own(s: Drain) -> None:
    """A request gives back only slots that it owns, and each once."""
    claim(s.stray_free == NONE, "no slot was given back by a request that did not own it", slot=s.stray_free)


@probe
def live_write_of_ended_request(s: Drain) -> int:
    """A write is in flight whose request has ended on decode, or is held."""
    for rank in s.all(PrefillRank):
        for write in s.nic[rank].waiting():
            if s.life[write.room] == Life.HELD or s.life[write.room] == Life.GONE:
                return True
    return False


@probe
def drained_hold(s: Drain) -> int:
    """A hold has ended because every rank acknowledged."""
    return any(s.drained[room] for room in s.all(Room))


@probe
def reuse_after_drain(s: Drain) -> int:
    """A write has landed in a held slot, every rank has acknowledged, and the victim has got the slot."""
    for room in s.all(Room):
        if s.landed_held[room] and s.drained[room]:
            for slot in s.all(Slot):
                for rank in s.all(PrefillRank):
                    if s.owner[slot] == s.size(Request) - 1 and s.writer[slot, rank] == room:
                        return True
    return False


@probe
def release_under_live_write(s: Drain) -> int:
    """The release timer has fired while a write of the room was live."""
    return s.released_live != NONE
