"""Lives without end: a request and its room number begin anew, and so does the victim; other rooms arm holds too.

A room number is used again when nothing of its former life is left but what prefill keeps under the number, and on
each wire one ack at most.
"""

from __future__ import annotations

from ..language import NONE, action, ghost_code, require
from .indices import Chunk, DecodeRank, PrefillRank, Request
from .messages import ReportKind
from .state import Drain
from .steps import BootstrapStep, Copy, Life, Restore, SchedulerStep, Sender, VictimLife, WorkerStep
from .topology import room_of, served
from .transfer_queue import has_waiting_of


@action("client")
def renew(s: Drain, request: Request) -> None:
    """The request has ended at both ends, and its room number is given to another one."""
    for decode in s.all(DecodeRank):
        require(s.life[decode, request] == Life.GONE)
    for prefill in s.all(PrefillRank):
        require(is_over(s, prefill, request))
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
