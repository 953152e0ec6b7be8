"""The transfer worker of a prefill rank: one thread that launches a room's writes, one chunk at a time.

mooncake/conn.py: transfer_worker. One call a chunk, and one work request a call; the call is synchronous.
"""

from __future__ import annotations

from ..language import action, require
from .knobs import Knobs
from .room_status import is_open, settle_target, update_status
from .state import Chunk, Drain, Fate, PrefillRank, ReportKind, SendFailure, SendFault, Status, WorkerStep

LANE = "prefill {rank} worker"


def at(s: Drain, rank: int, step: WorkerStep) -> int:
    """The room of the worker's chunk; disabled if the worker is elsewhere."""
    require(s.worker_step[rank] == step)
    return s.worker_room[rank]


@action(LANE)
def dequeue(s: Drain, rank: PrefillRank) -> None:
    """The worker takes the oldest chunk of its queue. Nothing counts it yet."""
    require(s.worker_step[rank] == WorkerStep.IDLE)
    chunk = s.queue[rank].receive()
    s.worker_room[rank] = chunk.room
    s.worker_chunk[rank] = chunk.chunk
    s.worker_step[rank] = WorkerStep.TAKEN if s.knobs.count_point == "before_test" else WorkerStep.COUNTED


@action(LANE)
def count(s: Drain, rank: PrefillRank) -> None:
    """The chunk counts as outstanding: before the room is looked at since 0.5.19, after it before."""
    before = s.knobs.count_point == "before_test"
    room = at(s, rank, WorkerStep.TAKEN if before else WorkerStep.TO_COUNT)
    s.outstanding[rank, room] += 1
    s.worker_step[rank] = WorkerStep.COUNTED if before else WorkerStep.TO_POST


@action(LANE)
def test_room(s: Drain, rank: PrefillRank) -> None:
    """The worker looks at the room. If it is gone or has failed, the chunk is dropped with the whole counter."""
    room = at(s, rank, WorkerStep.COUNTED)
    if is_open(s, rank, room):
        before = s.knobs.count_point == "before_test"
        s.worker_step[rank] = WorkerStep.TO_POST if before else WorkerStep.TO_COUNT
    else:
        s.outstanding[rank, room] = 0
        after_uncount(s, rank)


@action(LANE, toward="NIC {rank}")
def post(s: Drain, rank: PrefillRank) -> None:
    """The write is launched: from here on nobody can recall it. Without decode's addresses nothing is sent."""
    room = at(s, rank, WorkerStep.TO_POST)
    if s.infos[rank, room]:
        chunk = s.worker_chunk[rank]
        s.nic[rank].send(room=room, chunk=chunk, slot=s.destination[room, chunk])
        s.worker_step[rank] = WorkerStep.POSTED
    else:
        s.worker_step[rank] = WorkerStep.UNCOUNT


@action(LANE)
def call_returns(s: Drain, rank: PrefillRank) -> None:
    """The call returns 0: its writes have landed. After the last chunk the transfer is concluded."""
    at(s, rank, WorkerStep.POSTED)
    require(s.completed[rank])
    s.completed[rank] = False
    last = s.worker_chunk[rank] == s.size(Chunk) - 1
    s.worker_step[rank] = WorkerStep.SENT if last else WorkerStep.UNCOUNT


@action(LANE)
def call_fails(s: Drain, rank: PrefillRank) -> None:
    """The send fails. That need not say anything about its write, which may be dead or go on and land.

    After a timeout the slices are retried, and after a failed batch other tasks may be in flight (#43719). Some
    libraries report an error only when nothing is live; a refused post may have been posted in part.
    """
    at(s, rank, WorkerStep.POSTED)
    require(s.send_faults < s.size(SendFault))
    s.send_faults += 1
    failure = s.choose(failures(s.knobs))
    quiet = failure == SendFailure.ERROR and s.knobs.err_implies_quiet
    if s.choose([Fate.DEAD] if quiet else [Fate.LIVE, Fate.DEAD]) == Fate.DEAD:
        require(not s.completed[rank])
        s.nic[rank].remove_last()
    s.completed[rank] = False
    rejected = failure == SendFailure.REJECTED_POST
    poisons = s.knobs.poison_on_rejected_post if rejected else s.knobs.poison_on_error
    s.worker_step[rank] = WorkerStep.FAILED if poisons else WorkerStep.REPORT


def failures(knobs: Knobs) -> list[SendFailure]:
    """The ways to fail that the release tells apart."""
    alike = knobs.poison_on_error == knobs.poison_on_rejected_post and not knobs.err_implies_quiet
    return [SendFailure.ERROR] if alike else [SendFailure.ERROR, SendFailure.REJECTED_POST]


@action(LANE)
def poison(s: Drain, rank: PrefillRank) -> None:
    """The room must never be acknowledged as drained. mooncake/conn.py: _poison_unsettled_send (#43719)."""
    room = at(s, rank, WorkerStep.FAILED)
    s.poisoned[rank, room] = True
    s.target[rank, room] = False
    s.target_generation[rank, room] = 0
    s.worker_step[rank] = WorkerStep.REPORT


@action(LANE)
def report_failure(s: Drain, rank: PrefillRank) -> None:
    """The room fails, and decode is told; since 0.5.20 nobody is told about a room that was cleared.

    mooncake/conn.py: conclude_failure; common/conn.py: conclude_transfer.
    """
    room = at(s, rank, WorkerStep.REPORT)
    if s.status[rank, room] != Status.MISSING or not s.knobs.failed_terminal:
        update_status(s, rank, room, Status.FAILED)
        s.report[rank].send(kind=ReportKind.FAILED, room=room, generation=0)
    if s.knobs.failed_chunk_uncounted:
        s.worker_step[rank] = WorkerStep.UNCOUNT
    else:
        go_idle(s, rank)


@action(LANE)
def decide_outcome(s: Drain, rank: PrefillRank) -> None:
    """The last chunk is sent. The worker decides what to report: since 0.5.20 a failed room stays failed."""
    room = at(s, rank, WorkerStep.SENT)
    if s.knobs.failed_terminal and s.status[rank, room] == Status.MISSING:
        s.worker_step[rank] = WorkerStep.UNCOUNT
        return
    s.worker_success[rank] = not s.knobs.failed_terminal or is_open(s, rank, room)
    s.worker_step[rank] = WorkerStep.CONCLUDE


@action(LANE)
def report_outcome(s: Drain, rank: PrefillRank) -> None:
    """The decided outcome becomes the room's status and is sent; an ABORT in between changes only the status.

    common/conn.py: conclude_transfer.
    """
    room = at(s, rank, WorkerStep.CONCLUDE)
    if s.worker_success[rank]:
        update_status(s, rank, room, Status.SUCCESS)
        s.report[rank].send(kind=ReportKind.SUCCESS, room=room, generation=0)
    else:
        update_status(s, rank, room, Status.FAILED)
        s.report[rank].send(kind=ReportKind.FAILED, room=room, generation=0)
    s.worker_success[rank] = False
    s.worker_step[rank] = WorkerStep.UNCOUNT


@action(LANE)
def uncount(s: Drain, rank: PrefillRank) -> None:
    """The chunk is over, well or badly, and counts no more."""
    room = at(s, rank, WorkerStep.UNCOUNT)
    s.outstanding[rank, room] -= 1
    after_uncount(s, rank)


def after_uncount(s: Drain, rank: int) -> None:
    """With the drain ack the worker looks whether one is owed; without, it takes the next chunk."""
    if s.knobs.acks_drain:
        s.worker_step[rank] = WorkerStep.CHECK_DRAIN
    else:
        go_idle(s, rank)


@action(LANE)
def look_at_count(s: Drain, rank: PrefillRank) -> None:
    """The worker looks whether another chunk of the room is counted. common/conn.py: _maybe_ack_drained_abort."""
    room = at(s, rank, WorkerStep.CHECK_DRAIN)
    if s.outstanding[rank, room] > 0:
        go_idle(s, rank)
    else:
        s.worker_step[rank] = WorkerStep.SEND_ACK


@action(LANE)
def ack_drained(s: Drain, rank: PrefillRank) -> None:
    """Nothing of the room is counted: an ack that is owed is sent by the worker."""
    room = at(s, rank, WorkerStep.SEND_ACK)
    settle_target(s, rank, room)
    go_idle(s, rank)


def go_idle(s: Drain, rank: int) -> None:
    """The worker turns to its queue."""
    s.worker_step[rank] = WorkerStep.IDLE
    s.worker_room[rank] = 0
    s.worker_chunk[rank] = 0
