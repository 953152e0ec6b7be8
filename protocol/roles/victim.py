"""Another request of decode that wants memory: whoever comes next, and gets what was just freed."""

from __future__ import annotations

from ..language import NONE, action, require
from .decode_scheduler import idle
from .state import Drain, Request, Slot, VictimLife


def victim(s: Drain) -> int:
    """The request that is no room: the last one."""
    return s.size(Request) - 1


@action("victim", toward="allocator")
def victim_takes(s: Drain, slot: Slot) -> None:
    """The victim is given a free slot and puts its own KV cache there."""
    require(idle(s) and s.victim == VictimLife.WAITING and s.owner[slot] == NONE)
    s.owner[slot] = victim(s)
    s.victim = VictimLife.RUNNING


@action("victim", toward="allocator")
def victim_finishes(s: Drain, slot: Slot) -> None:
    """The victim has its last token and gives the slot back."""
    require(idle(s) and s.victim == VictimLife.RUNNING and s.owner[slot] == victim(s))
    s.owner[slot] = NONE
    s.victim = VictimLife.DONE
