"""The timed model of the hold: integer time, closed bounds, timers that count down.

One held request, one prefill rank, and a victim that takes the slots as soon as they are free. Whatever has a bound
may happen at any moment up to the bound and in any order within a moment; time passes (`tick`) only when nothing is
due. So a landing and the release in the same moment come in either order, and equality is not safe.

It is the integer counterpart of properties/hold/theorem.py, explored by any engine: the two must agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ...protocol.language import DeclarationError, State, action, field, flag, ghost, ghost_code, require, upto
from ...protocol.language.check import Check
from ...protocol.language.model import Model, SlotView
from ...protocol.language.property import Kind, claim, invariant

LONGEST = 63
"""The largest bound of a timer, in ticks."""
MOST_CHUNKS = 7


@dataclass(frozen=True, kw_only=True)
class HoldBounds:
    """The bounds, in ticks: T, A, q, p, w and r of the theorem, and the number of chunks still to come.

    `told`: an ABORT is on its way to the rank. `acks`: the rank acknowledges a drain, and decode gets it.
    """

    hold: int
    propagation: int
    queue: int
    production: int
    write: int
    retries: int
    chunks: int
    told: bool = True
    acks: bool = False

    def __post_init__(self) -> None:
        due = self.queue + self.production
        for name, value in (*vars(self).items(), ("queue + production", due)):
            most = MOST_CHUNKS if name == "chunks" else LONGEST
            if not 0 <= value <= most:
                raise DeclarationError(f"timed hold: {name} is {value}; allowed are 0 to {most}")


class Owner(IntEnum):
    """Whose the slots are."""

    HELD = 0
    FREE = 1
    VICTIM = 2


class TimedHold(State[HoldBounds]):
    """Decode's hold and its timer, the rank's work, and what is still due within how many ticks."""

    bound_production = field(upto(LONGEST), means="p: ticks from a chunk to the next one, at most")
    bound_write = field(upto(LONGEST), means="w: ticks of a call, at most")
    bound_retries = field(upto(LONGEST), means="r: ticks of retries after a failed call, at most")
    acks = field(flag, means="a drain is acknowledged, and the ack arrives")
    owner = field(Owner, means="whose the slots are: still held, free, or the victim's")
    hold_left = field(upto(LONGEST), means="ticks until the release timer fires")
    abort_on_way = field(flag, means="an ABORT is on its way to the rank")
    abort_left = field(upto(LONGEST), means="ticks within which the ABORT takes effect")
    to_come = field(upto(MOST_CHUNKS), means="chunks not yet produced")
    next_left = field(upto(LONGEST), means="ticks within which the next chunk is produced")
    queued = field(upto(MOST_CHUNKS), means="chunks produced and not yet launched")
    writing = field(flag, means="a call is in flight")
    write_left = field(upto(LONGEST), means="ticks within which the call returns")
    retrying = field(flag, means="writes of a failed call are being retried")
    retry_left = field(upto(LONGEST), means="ticks within which they are over")
    failed = field(flag, means="a call has failed: nothing more is launched, and nothing acknowledged")
    aborted = field(flag, means="the rank has acted on the ABORT")
    late = ghost(flag, means="a write has landed in slots that were given away")


def begin(s: TimedHold) -> None:
    """Time 0: decode has sent ABORT, if it does, and holds. Bounds are cells: one compiled model serves them all."""
    s.bound_production = s.knobs.production
    s.bound_write = s.knobs.write
    s.bound_retries = s.knobs.retries
    s.acks = s.knobs.acks
    s.hold_left = s.knobs.hold
    s.abort_on_way = s.knobs.told
    s.abort_left = s.knobs.propagation
    s.to_come = s.knobs.chunks
    s.next_left = s.knobs.queue + s.knobs.production


@action("prefill")
def receive_abort(s: TimedHold) -> None:
    """The ABORT takes effect: the rank drops what is queued and what would still come."""
    require(s.abort_on_way)
    s.abort_on_way = False
    s.abort_left = 0
    s.aborted = True
    stop(s)


def stop(s: TimedHold) -> None:
    """Nothing of the room is launched any more."""
    s.to_come = 0
    s.queued = 0
    s.next_left = 0


@action("prefill")
def produce(s: TimedHold) -> None:
    """The next chunk is computed and queued; the one behind it is due within its own bound."""
    require(s.to_come > 0)
    s.to_come -= 1
    s.queued += 1
    s.next_left = s.bound_production if s.to_come > 0 else 0


@action("prefill", toward="NIC")
def launch(s: TimedHold) -> None:
    """The worker launches the oldest chunk; it does one call at a time."""
    require(s.queued > 0)
    require(not s.writing)
    s.queued -= 1
    s.writing = True
    s.write_left = s.bound_write


@action("NIC", toward="decode")
def land(s: TimedHold) -> None:
    """The write lands, and the call returns."""
    require(s.writing)
    s.writing = False
    s.write_left = 0
    note_landing(s)


@action("prefill")
def fail_call(s: TimedHold) -> None:
    """The call returns with an error while its writes go on, for a while."""
    require(s.writing)
    require(s.bound_retries > 0)
    s.writing = False
    s.write_left = 0
    s.retrying = True
    s.retry_left = s.bound_retries
    s.failed = True
    stop(s)


@action("NIC", toward="decode")
def land_retried(s: TimedHold) -> None:
    """The last write of the failed call lands."""
    require(s.retrying)
    s.retrying = False
    s.retry_left = 0
    note_landing(s)


@ghost_code
def note_landing(s: TimedHold) -> None:
    """Keeps whether the slots were somebody else's."""
    if s.owner == Owner.VICTIM:
        s.late = True


@action("decode")
def release(s: TimedHold) -> None:
    """The release timer fires."""
    require(s.owner == Owner.HELD)
    require(s.hold_left == 0)
    s.owner = Owner.FREE


@action("decode")
def drain(s: TimedHold) -> None:
    """The rank has acknowledged that nothing is in flight: the hold ends at once."""
    require(s.acks)
    require(s.owner == Owner.HELD)
    require(s.aborted and not s.failed)
    require(not s.writing)
    s.owner = Owner.FREE
    s.hold_left = 0


@action("victim")
def take(s: TimedHold) -> None:
    """The next request gets the slots, maybe at once."""
    require(s.owner == Owner.FREE)
    s.owner = Owner.VICTIM


@action("time")
def tick(s: TimedHold) -> None:
    """A tick passes: nothing is due, and every timer counts down."""
    require(not (s.owner == Owner.HELD and s.hold_left == 0))
    require(not (s.abort_on_way and s.abort_left == 0))
    require(not (s.to_come > 0 and s.next_left == 0))
    require(not (s.writing and s.write_left == 0))
    require(not (s.retrying and s.retry_left == 0))
    require(s.writing or s.queued == 0)
    require(is_pending(s))
    s.hold_left = max(0, s.hold_left - 1)
    s.abort_left = max(0, s.abort_left - 1)
    s.next_left = max(0, s.next_left - 1)
    s.write_left = max(0, s.write_left - 1)
    s.retry_left = max(0, s.retry_left - 1)


def is_pending(s: TimedHold) -> int:
    """Whether anything can still happen to the slots."""
    return s.owner == Owner.HELD or s.writing or s.retrying or s.to_come > 0 or s.queued > 0


def at_rest(s: TimedHold) -> int:
    """Terminal: the slots are the victim's, and nothing of the old request is left."""
    return s.owner == Owner.VICTIM and not is_pending(s)


def slot_views(s: TimedHold) -> list[SlotView]:
    """The slots of the request, which are one to this model."""
    return [SlotView("slots", Owner(int(s.owner)).name.lower(), "the ended request, late" if s.late else "-")]


def timed_hold(bounds: HoldBounds) -> Model:
    """The model under its bounds. Actions that the bounds rule out need not fire."""
    shown = {name: str(value) for name, value in vars(bounds).items()}
    actions = (receive_abort, produce, launch, land, fail_call, land_retried, release, drain, take, tick)
    return Model(
        name=f"timed hold T={bounds.hold}",
        state=TimedHold,
        actions=actions,
        sizes={},
        knobs=bounds,
        start=begin,
        terminal=at_rest,
        may_rest=frozenset(each.name for each in actions if each is not take),
        slots=slot_views,
        bounds=shown,
    )


@invariant(kind=Kind.MEMORY)
def no_late_write(s: TimedHold) -> None:
    """No write of the ended request lands in slots that another request has been given."""
    claim(not s.late, "no write has landed in the victim's slots", late=s.late)


def timed_hold_check(bounds: HoldBounds) -> Check:
    """The question to an engine."""
    return Check(timed_hold(bounds), (no_late_write,))
