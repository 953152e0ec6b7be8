"""Lives without end: requests end and others come in their place; so do victims; other rooms arm holds too.

A request that follows another in its place has either a fresh room number or the same one. In both cases nothing of
the former request is under way any more. With the same number it meets what prefill keeps under it.
"""

from __future__ import annotations

from ..language import NONE, action, ghost_code, require
from .indices import Chunk, DecodeRank, PrefillRank, Request, Slot
from .messages import ReportKind
from .room_status import forget_targets
from .state import Drain
from .steps import BootstrapStep, Copy, Life, Restore, SchedulerStep, Sender, Status, VictimLife, WorkerStep
from .topology import room_of, served
from .transfer_queue import has_waiting_of


@action("client")
def take_fresh_number(s: Drain, request: Request) -> None:
    """The request has ended at both ends; another one comes in its place, with a room number that was never used.

    What either end keeps under the old number is of no more consequence.
    """
    require_over(s, request)
    room = room_of(s, request)
    for prefill in s.all(PrefillRank):
        s.status[prefill, room] = Status.MISSING
        s.outstanding[prefill, room] = 0
        s.poisoned[prefill, room] = False
        forget_targets(s, prefill, room)
        for decode in served(s, prefill):
            s.infos[prefill, room, decode] = NONE
            require(s.report[prefill, decode].some(lambda report: report.room == room) == 0)
    begin(s, request)


@action("client")
def use_number_again(s: Drain, request: Request) -> None:
    """The request has ended at both ends, and its room number is used again, for another one in its place.

    Prefill has none of decode's addresses any more. One ack may still be on each wire.
    """
    require_over(s, request)
    for prefill in s.all(PrefillRank):
        for decode in served(s, prefill):
            require(s.infos[prefill, room_of(s, request), decode] == NONE)
    begin(s, request)


def require_over(s: Drain, request: int) -> None:
    """Decode has given back what the request had, and no prefill rank is at it."""
    for decode in s.all(DecodeRank):
        require(s.life[decode, request] == Life.GONE)
    for prefill in s.all(PrefillRank):
        require(is_over(s, prefill, request))


def begin(s: Drain, request: int) -> None:
    """Neither end knows anything of the new request."""
    for decode in s.all(DecodeRank):
        begin_on_decode(s, decode, request)
    for prefill in s.all(PrefillRank):
        s.sender[prefill, request] = Sender.NONE
        s.produced[prefill, request] = 0
    forget_history(s, request)
    s.told_decode[request] = False
    s.told_prefill[request] = False
    s.stub[request] = False


def is_over(s: Drain, prefill: int, request: int) -> int:
    """Whether the rank has done with the request, and nothing of it is on a wire but one ack: one condition."""
    room = room_of(s, request)
    sender = s.sender[prefill, request]
    scheduler, bootstrap, worker = s.scheduler_step[prefill], s.bootstrap_step[prefill], s.worker_step[prefill]
    busy = (sender != Sender.GONE) & (sender != Sender.ABORTED)
    busy |= (scheduler != SchedulerStep.IDLE) & (s.scheduler_request[prefill] == request)
    busy |= (bootstrap != BootstrapStep.IDLE) & (s.bootstrap_room[prefill] == room)
    busy |= (worker != WorkerStep.IDLE) & (s.worker_request[prefill] == request)
    busy |= has_waiting_of(s, prefill, request)
    for decode in served(s, prefill):
        busy |= on_wire(s, prefill, decode, request)
    return busy == 0


def on_wire(s: Drain, prefill: int, decode: int, request: int) -> int:
    """Whether something of the request is between the two ranks, one ack excepted."""
    room = room_of(s, request)
    told = s.control[decode, prefill].some(lambda message: message.room == room)
    written = s.nic[prefill, decode].some(lambda write: write.addressee == request)
    reported = s.report[prefill, decode].some(
        lambda report: (report.room == room) & (report.kind != ReportKind.ABORT_ACK)
    )
    metadata = s.aux[prefill, decode].some(lambda message: message.request == request)
    acks = s.report[prefill, decode].count(lambda report: report.room == room)
    return told | written | reported | metadata | (acks > 1)


def begin_on_decode(s: Drain, decode: int, request: int) -> None:
    """Decode knows nothing of the new request."""
    s.life[decode, request] = Life.NEW
    s.notified[decode, request] = False
    s.cancelled[decode, request] = False
    s.restore[decode, request] = Restore.RUNNING
    s.copy[decode, request] = Copy.NONE
    for chunk in s.all(Chunk):
        s.destination[decode, request, chunk] = NONE


@ghost_code
def forget_history(s: Drain, request: int) -> None:
    """What happened to the former request says nothing of this one."""
    s.drained[request] = False
    s.landed_held[request] = False
    for decode in s.all(DecodeRank):
        s.failed[decode, request] = False
        for slot in s.all(Slot):
            for prefill in s.all(PrefillRank):
                if s.writer[decode, slot, prefill] == request:
                    s.writer[decode, slot, prefill] = NONE
            if s.cached[decode, slot] == request:
                s.cached[decode, slot] = NONE


@action("decode {decode} scheduler")
def arm_elsewhere(s: Drain, decode: DecodeRank) -> None:
    """A hold is armed for a room that the model does not have: one more number is taken.

    common/conn.py: register_deferred_abort_room; numbers are counted for the whole process.
    """
    s.generation[decode] += 1


@action("victim")
def come_again(s: Drain) -> None:
    """Another one wants memory."""
    require(s.victim == VictimLife.DONE)
    s.victim = VictimLife.WAITING
