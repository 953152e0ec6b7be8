"""What must come to an end, and not only by a timer; and what must be given back.

Each is asked of states in which all is quiet: no thread is busy and nothing is on its way, so that only a timer or a
new request could change anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ...models.drain.closed import quiet
from ...protocol.language import NONE, Access
from ...protocol.language.model import Model
from ...protocol.language.property import Kind, claim, invariant, probe, promise
from ...protocol.roles.indices import DecodeRank, PrefillRank, Request, Room, Slot
from ...protocol.roles.state import Drain
from ...protocol.roles.steps import DecodeStep, Life, Poll, Sender, Status
from ...protocol.roles.topology import partners, room_of, served


@invariant(kind=Kind.DELAY, without_timer=Kind.LEAK)
def holds_end_by_drain(s: Drain) -> None:
    """Where no send has failed, a hold ends by acks: once all is quiet, no request is held."""
    if (s.send_faults == 0) & quiet(s):
        for decode in s.all(DecodeRank):
            for request in s.all(Request):
                if (s.life[decode, request] == Life.HELD) & (s.notified[decode, request] != 0):
                    room = room_of(s, request)
                    claim(s.tracker[decode, room], "the held room's acks are counted", decode=decode, room=room)
                    for prefill in partners(s, decode):
                        claim(
                            s.acked[decode, room, prefill],
                            "the ack of the prefill rank has been counted",
                            decode=decode,
                            room=room,
                            prefill=prefill,
                        )


@invariant(kind=Kind.DELAY)
def transfers_end_without_timeout(s: Drain) -> None:
    """Nobody waits out its timeout for a transfer that prefill has given up or finished, once all is quiet."""
    if quiet(s):
        for request in s.all(Request):
            if ended_at_prefill(s, request) & (will_be_polled(s, request) == 0):
                for decode in s.all(DecodeRank):
                    claim(
                        s.life[decode, request] != Life.TRANSFERRING,
                        "the request does not wait for a transfer that nobody will make",
                        decode=decode,
                        request=request,
                    )


def will_be_polled(s: Drain, request: int) -> int:
    """Whether decode is about to act: a rank has seen a failure, all have seen success, or the router has told decode
    that the client has gone, or will drop what prefill has ended."""
    failed, succeeded = (s.told_decode[request] != 0) | s.knobs.router_drops, 1
    for decode in s.all(DecodeRank):
        poll = s.poll[decode, room_of(s, request)]
        failed |= (poll == Poll.FAILED) | (s.cancelled[decode, request] != 0)
        succeeded &= poll == Poll.SUCCESS
    return failed | succeeded


@invariant(kind=Kind.DELAY)
def prefill_ends_without_timeout(s: Drain) -> None:
    """Prefill does not wait out its timeout for a request that has ended on every decode rank, once all is quiet."""
    if quiet(s):
        for request in s.all(Request):
            gone, queued, polled, ready = 1, 1, 0, 1
            for decode in s.all(DecodeRank):
                gone &= s.life[decode, request] == Life.GONE
            for prefill in s.all(PrefillRank):
                status = s.status[prefill, room_of(s, request)]
                queued &= s.sender[prefill, request] == Sender.QUEUED
                polled |= (status == Status.FAILED) | (status == Status.MISSING)
                ready &= status == Status.WAITING
            claim(
                (gone & queued) == 0 or polled | ready,
                "prefill does not wait for decode's metadata of an ended request",
                request=request,
            )


@invariant(kind=Kind.LEAK)
def slots_come_back(s: Drain) -> None:
    """A slot or metadata buffer whose request has ended is free once all is quiet."""
    if quiet(s):
        for decode in s.all(DecodeRank):
            for request in s.all(Request):
                if s.life[decode, request] == Life.GONE:
                    for slot in s.all(Slot):
                        claim(
                            s.owner[decode, slot] != request,
                            "the slot of an ended request is free",
                            decode=decode,
                            slot=slot,
                        )
                    claim(s.row_owner[decode] != request, "its metadata buffer is free", decode=decode)


@invariant(kind=Kind.LEAK)
def rooms_are_forgotten(s: Drain) -> None:
    """Prefill keeps nothing of a room whose requests have ended at both ends, once all is quiet."""
    if quiet(s) & everything_ended(s):
        for prefill in s.all(PrefillRank):
            for room in s.all(Room):
                if s.dead[prefill]:
                    continue
                claim(
                    s.status[prefill, room] == Status.MISSING,
                    "the room has no status any more",
                    prefill=prefill,
                    room=room,
                )
                for decode in served(s, prefill):
                    claim(
                        s.infos[prefill, room, decode] == NONE,
                        "decode's addresses are forgotten",
                        prefill=prefill,
                        room=room,
                        decode=decode,
                    )


def ended_at_prefill(s: Drain, request: int) -> int:
    """Whether no prefill rank has the request any more, dead ranks included."""
    ended = 1
    for prefill in s.all(PrefillRank):
        sender = s.sender[prefill, request]
        ended &= (sender == Sender.GONE) | (sender == Sender.ABORTED) | (s.dead[prefill] != 0)
    return ended


def everything_ended(s: Drain) -> int:
    """Whether no request is left on any rank."""
    ended = 1
    for request in s.all(Request):
        for decode in s.all(DecodeRank):
            ended &= s.life[decode, request] == Life.GONE
        ended &= ended_at_prefill(s, request)
    return ended


@invariant(kind=Kind.LEAK)
def schedulers_survive(s: Drain) -> None:
    """No decode scheduler ends by an exception: all that its rank has would be lost."""
    for decode in s.all(DecodeRank):
        claim(s.decode_step[decode] != DecodeStep.CRASHED, "the scheduler has not crashed", decode=decode)


@dataclass(frozen=True)
class Kept:
    """What holds keep back in a state: slots of so many in all pools of decode, and metadata buffers."""

    slots: int
    pool: int
    buffers: int

    def __str__(self) -> str:
        buffers = f" and {self.buffers} metadata buffer{'s' * (self.buffers > 1)}" if self.buffers else ""
        return f"{self.slots} of decode's {self.pool} slots{buffers}"


def kept_by_holds(model: Model, values: Sequence[int]) -> Kept:
    """What holds keep back in a state of the drain, by direct execution."""
    s = cast(Drain, model.state_of(values, access=Access.PROPERTY))
    held = [(d, r) for d in s.all(DecodeRank) for r in s.all(Request) if s.life[d, r] == Life.HELD]
    return Kept(
        slots=sum(s.owner[decode, slot] == request for decode, request in held for slot in s.all(Slot)),
        pool=s.size(DecodeRank) * s.size(Slot),
        buffers=sum(s.row_owner[decode] == request for decode, request in held),
    )


@promise(kind=Kind.LEAK, by_timer=True, kept=kept_by_holds)
def holds_end(s: Drain) -> int:
    """Every hold ends, by acks or by its timer."""
    held = 0
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            held |= s.life[decode, request] == Life.HELD
    return held


@probe
def came_to_rest(s: Drain) -> int:
    """All is quiet, and every request has ended on decode: what progress is asked of, if no hold is in its way."""
    ended = 1
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            ended &= s.life[decode, request] == Life.GONE
    return quiet(s) & ended
