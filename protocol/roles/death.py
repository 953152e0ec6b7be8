"""Threads that end by an exception, and processes that die and are started anew."""

from __future__ import annotations

from ..language import NONE, action, require
from .indices import Chunk, DecodeRank, PrefillRank, Request, Room, Slot
from .nic import waits_for
from .room_status import forget_targets
from .state import Drain
from .steps import BootstrapStep, DecodeStep, Life, Poll, SchedulerStep, Sender, Status, WorkerStep
from .topology import partners, room_of, served


@action("prefill {prefill} worker")
def worker_dies(s: Drain, prefill: PrefillRank) -> None:
    """The worker meets a room that vanishes between its two looks, and ends with KeyError; its chunk stays counted.

    mooncake/conn.py: transfer_worker looks whether the room is there, and then again for its status.
    """
    require(s.worker_step[prefill] == WorkerStep.COUNTED)
    require(s.status[prefill, room_of(s, s.worker_request[prefill])] == Status.MISSING)
    s.worker_step[prefill] = WorkerStep.DEAD


@action("prefill {prefill} process")
def prefill_dies(s: Drain, prefill: PrefillRank) -> None:
    """The whole process of a prefill rank dies. What its NIC has launched may land all the same."""
    require(not s.dead[prefill])
    s.dead[prefill] = True
    s.worker_step[prefill] = WorkerStep.DEAD
    s.bootstrap_step[prefill] = BootstrapStep.DEAD
    s.scheduler_step[prefill] = SchedulerStep.DEAD


@action("prefill {prefill} process")
def prefill_restarts(s: Drain, prefill: PrefillRank) -> None:
    """A new process takes the place of the dead one, and knows nothing.

    It takes long enough for what the old one had launched to be over: its queue pairs went with it.
    """
    require(s.dead[prefill])
    for decode in served(s, prefill):
        require(s.nic[prefill, decode].length == 0)
    s.dead[prefill] = False
    s.worker_step[prefill] = WorkerStep.IDLE
    s.bootstrap_step[prefill] = BootstrapStep.IDLE
    s.scheduler_step[prefill] = SchedulerStep.IDLE
    for request in s.all(Request):
        if s.sender[prefill, request] != Sender.NONE:
            s.sender[prefill, request] = Sender.GONE
    for room in s.all(Room):
        s.status[prefill, room] = Status.MISSING
        s.outstanding[prefill, room] = 0
        s.poisoned[prefill, room] = False
        forget_targets(s, prefill, room)
        for decode in served(s, prefill):
            s.infos[prefill, room, decode] = NONE
    s.queue[prefill].clear()
    for decode in served(s, prefill):
        s.control[decode, prefill].clear()
        s.addressee[prefill, decode] = NONE
        s.completed[prefill, decode] = False


@action("decode {decode} process")
def decode_restarts(s: Drain, decode: DecodeRank) -> None:
    """The decode process dies and is started anew, once. Its requests are gone, and prefill hears nothing of it.

    Its memory is registered anew: writes in flight end without landing, and later ones to the old addresses fail.
    """
    require(s.restarts == 0)
    s.restarts = 1
    s.decode_step[decode] = DecodeStep.IDLE
    s.decode_request[decode] = 0
    s.generation[decode] = 0
    for request in s.all(Request):
        if s.life[decode, request] != Life.NEW:
            s.life[decode, request] = Life.GONE
        s.notified[decode, request] = False
        s.cancelled[decode, request] = False
        for chunk in s.all(Chunk):
            s.slot[decode, request, chunk] = NONE
            s.destination[decode, request, chunk] = NONE
    for room in s.all(Room):
        s.poll[decode, room] = Poll.MISSING
        s.tracker[decode, room] = False
        s.tracker_generation[decode, room] = 0
        for prefill in partners(s, decode):
            s.responded[decode, room, prefill] = False
            s.acked[decode, room, prefill] = False
    for slot in s.all(Slot):
        s.owner[decode, slot] = NONE
    for prefill in partners(s, decode):
        s.control[decode, prefill].clear()
        s.report[prefill, decode].clear()
        fail_writes(s, prefill, decode)


def fail_writes(s: Drain, prefill: int, decode: int) -> None:
    """Writes to memory that is no longer registered end without landing; a call that waits for one is over."""
    if waits_for(s, prefill, decode):
        s.completed[prefill, decode] = True
    s.nic[prefill, decode].clear()
