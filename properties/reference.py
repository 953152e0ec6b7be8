"""What the reference model must satisfy."""

from __future__ import annotations

from ..models.small.reference import Phase, PrefillRank, Reference, Room
from ..protocol.language.property import claim, invariant, probe


@invariant
def no_late_write(s: Reference) -> None:
    """No write lands in a slot that another room owns."""
    claim(not s.bad, "no write has landed in another room's slot", bad=s.bad)


@probe
def drained_while_held(s: Reference) -> int:
    """A held room has the ack of every rank."""
    return any(s.phase[q] == Phase.HELD and all(s.acked[q, p] for p in s.all(PrefillRank)) for q in s.all(Room))
