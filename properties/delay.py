"""What must not take longer than it has to: a hold that only its timer can end, though nothing went wrong."""

from __future__ import annotations

from ..models.drain import quiet
from ..protocol.roles.state import Drain, Life, PrefillRank, Room
from .property import claim, invariant


@invariant
def holds_end_by_drain(s: Drain) -> None:
    """Where no send has failed, a hold ends by acks: once all is quiet, every rank's ack has been counted."""
    if s.send_faults == 0 and quiet(s):
        for room in s.all(Room):
            if s.life[room] == Life.HELD:
                claim(s.tracker[room], "the held room's acks are counted", room=room)
                for rank in s.all(PrefillRank):
                    claim(s.acked[room, rank], "the ack of the rank has been counted", room=room, rank=rank)
