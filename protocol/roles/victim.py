"""Another request of decode that wants memory: whoever comes next, and gets what was just freed.

Decode's ranks admit it together; each looks at its own pool only.
"""

from __future__ import annotations

from ..language import NONE, action, require
from .decode_scheduler import all_idle, note_parting
from .indices import DecodeRank, Owner, Request, Slot
from .state import Drain
from .steps import Life, VictimLife


def victim(s: Drain) -> int:
    """The owner that is no transfer: the last one."""
    return s.size(Owner) - 1


@action("victim", toward="allocator")
def victim_takes(s: Drain, slot: Slot) -> None:
    """The victim is given a free slot and puts its own KV cache there.

    A rank on which the slot is free admits it, one on which it is not does not: then the ranks have parted.
    """
    require(all_idle(s) and s.victim == VictimLife.WAITING and at_same_admission(s))
    admitting = 0
    for decode in s.all(DecodeRank):
        if s.owner[decode, slot] == NONE:
            s.owner[decode, slot] = victim(s)
            admitting += 1
    require(admitting > 0)
    if admitting < s.size(DecodeRank):
        note_parting(s)
    s.victim = VictimLife.RUNNING


def at_same_admission(s: Drain) -> bool:
    """Whether the ranks have taken in the same requests so far: they do so in the same turn of their loops."""
    for request in s.all(Request):
        for decode in s.all(DecodeRank):
            if (s.life[decode, request] == Life.NEW) != (s.life[0, request] == Life.NEW):
                return False
    return True


@action("victim", toward="allocator")
def victim_takes_buffer(s: Drain, decode: DecodeRank) -> None:
    """The victim is given the metadata buffer, to be filled for it."""
    require(all_idle(s) and s.victim == VictimLife.RUNNING and s.row_owner[decode] == NONE)
    s.row_owner[decode] = victim(s)


@action("victim", toward="allocator")
def victim_finishes(s: Drain, slot: Slot) -> None:
    """The victim has its last token and gives its memory back."""
    require(all_idle(s) and s.victim == VictimLife.RUNNING)
    holding = 0
    for decode in s.all(DecodeRank):
        if s.owner[decode, slot] == victim(s):
            s.owner[decode, slot] = NONE
            holding += 1
            if s.knobs.metadata and s.row_owner[decode] == victim(s):
                s.row_owner[decode] = NONE
                s.row_content[decode] = NONE
    require(holding > 0)
    s.victim = VictimLife.DONE
