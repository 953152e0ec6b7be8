"""The drain without bounds in time: what proofs are about.

One decode rank and one request at a time, whose room number is used any number of times, or is fresh each time; any
number of chunks, generations, failing sends and victims. Other rooms are not lost by this: rooms share slots, threads
and wires, and nothing else. What another room owns is the victim's; a thread that is busy with another room only waits
in this one, and a wire keeps the order of what it carries for one room (docs/proofs.md).
"""

from __future__ import annotations

from ...protocol.language.model import Model
from ..catalogue.profile import Profile
from .circumstances import Timer
from .closed import drain_model
from .scenario import Scenario

ENDS = ("disconnect", "early-disconnect", "waiting-timeout", "bootstrap-timeout", "prefill-abort")


def endless(*, ranks: int = 1, slots: int = 1) -> Scenario:
    """The scenario, with so many prefill ranks; a request has so many slots, and decode's pool one more."""
    return Scenario(
        name="endless",
        sentence="rooms, chunks, generations, failing sends and victims without number; whatever can end a request may",
        ends=ENDS,
        send_faults=1,
        lives="endless",
        endless_chunks=True,
        ranks=ranks,
        chunks=slots,
        slots=slots + 1,
    )


def endless_model(profile: Profile, *, ranks: int = 1, slots: int = 1, late_timer: bool = False) -> Model:
    """The model of a profile at both ends. `late_timer`: a hold may also end once the writes of its room are over."""
    timer = Timer.LATE if late_timer else Timer.OFF
    return drain_model(profile.name, profile.knobs, profile.knobs, endless(ranks=ranks, slots=slots), timer=timer)
