"""What the timed model of the hold must satisfy, and the sum that decides whether it does."""

from __future__ import annotations

from ..models.small.timed_hold import HoldBounds, TimedHold, timed_hold
from ..protocol.language.check import Check
from ..protocol.language.property import claim, invariant


@invariant
def no_late_write(s: TimedHold) -> None:
    """No write of the ended request lands in slots that another request has been given."""
    claim(not s.late, "no write has landed in the victim's slots", late=s.late)


def timed_hold_check(bounds: HoldBounds) -> Check:
    """The question to an engine."""
    return Check(timed_hold(bounds), (no_late_write,))
