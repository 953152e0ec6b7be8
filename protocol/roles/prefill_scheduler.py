"""The prefill scheduler: computes chunks, hands them to the worker, and clears rooms that have ended.

disaggregation/prefill.py: PrefillBootstrapQueue, process_disagg_prefill_inflight_queue; common/conn.py:
CommonKVSender. Ranks poll together and take the minimum, so that one failed rank fails the room on all.
"""

from __future__ import annotations

from ..language import action, require
from .room_status import is_open, settle_target, update_status, write_status
from .state import Chunk, Drain, PrefillRank, Room, SchedulerStep, Sender, Status

LANE = "prefill {rank} scheduler"
GROUP = "prefill 0 scheduler"


@action(LANE)
def arrive(s: Drain, rank: PrefillRank, room: Room) -> None:
    """The request reaches the rank, which opens the room; metadata may have opened it already.

    prefill.py: PrefillBootstrapQueue.create_sender.
    """
    require(s.scheduler_step[rank] == SchedulerStep.IDLE and s.sender[rank, room] == Sender.NONE)
    s.sender[rank, room] = Sender.QUEUED
    update_status(s, rank, room, Status.BOOTSTRAPPING)


@action(LANE)
def look_at_room(s: Drain, rank: PrefillRank, room: Room) -> None:
    """The request reaches the rank, which looks at the room's status before it opens it.

    This and `open_room` are `arrive` taken apart: common/conn.py: CommonKVManager.update_status reads, then writes.
    """
    require(s.scheduler_step[rank] == SchedulerStep.IDLE and s.sender[rank, room] == Sender.NONE)
    s.scheduler_step[rank] = SchedulerStep.OPEN
    s.scheduler_room[rank] = room
    s.scheduler_seen[rank] = s.status[rank, room]


@action(LANE)
def open_room(s: Drain, rank: PrefillRank) -> None:
    """The rank opens the room by what it saw, whatever the bootstrap thread has written since."""
    require(s.scheduler_step[rank] == SchedulerStep.OPEN)
    room = s.scheduler_room[rank]
    write_status(s, rank, room, s.scheduler_seen[rank], Status.BOOTSTRAPPING)
    s.scheduler_seen[rank] = Status.MISSING
    s.sender[rank, room] = Sender.QUEUED
    go_idle(s, rank)


@action(GROUP)
def start_prefill(s: Drain, room: Room) -> None:
    """Every rank has decode's metadata: the request leaves the bootstrap queue.

    prefill.py: PrefillBootstrapQueue.pop_bootstrapped.
    """
    for rank in s.all(PrefillRank):
        require(s.scheduler_step[rank] == SchedulerStep.IDLE and s.sender[rank, room] == Sender.QUEUED)
        require(s.status[rank, room] == Status.WAITING)
    for rank in s.all(PrefillRank):
        s.sender[rank, room] = Sender.RUNNING


@action(LANE)
def produce(s: Drain, rank: PrefillRank, room: Room) -> None:
    """A chunk is computed. The scheduler looks whether the room is open; if not, the chunk is dropped in silence.

    prefill.py: send_kv_chunk; mooncake/conn.py: add_transfer_request.
    """
    require(s.scheduler_step[rank] == SchedulerStep.IDLE and s.sender[rank, room] == Sender.RUNNING)
    if is_open(s, rank, room):
        s.scheduler_step[rank] = SchedulerStep.PUT
        s.scheduler_room[rank] = room
    else:
        after_chunk(s, rank, room)


@action(LANE)
def put_chunk(s: Drain, rank: PrefillRank) -> None:
    """The chunk goes into the transfer queue; an ABORT may have come since the scheduler looked."""
    require(s.scheduler_step[rank] == SchedulerStep.PUT)
    room = s.scheduler_room[rank]
    s.queue[rank].send(room=room, chunk=s.produced[rank, room])
    after_chunk(s, rank, room)
    go_idle(s, rank)


def after_chunk(s: Drain, rank: int, room: int) -> None:
    """One chunk less to compute; after the last, the request waits for its transfer."""
    s.produced[rank, room] += 1
    if s.produced[rank, room] == s.size(Chunk):
        s.sender[rank, room] = Sender.INFLIGHT


@action(GROUP)
def poll_failed(s: Drain, room: Room) -> None:
    """A rank's room has failed, so the room has failed on all: each begins to clear it. Counters are not asked.

    prefill.py: process_disagg_prefill_inflight_queue, handle_inflight_transfer_failure, handle_bootstrap_failure.
    """
    require_polled(s, room)
    failed = 0
    for rank in s.all(PrefillRank):
        failed |= s.status[rank, room] == Status.FAILED
    require(failed)
    begin_clear(s, room)


@action(GROUP)
def poll_success(s: Drain, room: Room) -> None:
    """Every rank has sent its last chunk and none is counted any more: the room is cleared.

    mooncake/conn.py: MooncakeKVSender.poll withholds Success while a chunk is outstanding.
    """
    require_polled(s, room)
    for rank in s.all(PrefillRank):
        require(s.status[rank, room] == Status.SUCCESS and s.outstanding[rank, room] <= 0)
    begin_clear(s, room)


def require_polled(s: Drain, room: Room) -> None:
    """All ranks are at a point where they poll the room: in the bootstrap queue or in the inflight queue."""
    for rank in s.all(PrefillRank):
        require(s.scheduler_step[rank] == SchedulerStep.IDLE)
        require(s.sender[rank, room] == Sender.QUEUED or s.sender[rank, room] == Sender.INFLIGHT)


def begin_clear(s: Drain, room: Room) -> None:
    """Every rank turns to clearing the room; each goes on at its own pace."""
    for rank in s.all(PrefillRank):
        s.scheduler_step[rank] = SchedulerStep.POP_STATUS
        s.scheduler_room[rank] = room


@action(LANE)
def clear_status(s: Drain, rank: PrefillRank) -> None:
    """Clearing, first step: the room's status is gone. common/conn.py: CommonKVSender.clear."""
    require(s.scheduler_step[rank] == SchedulerStep.POP_STATUS)
    s.status[rank, s.scheduler_room[rank]] = Status.MISSING
    s.scheduler_step[rank] = SchedulerStep.POP_INFOS


@action(LANE)
def clear_infos(s: Drain, rank: PrefillRank) -> None:
    """Clearing, second step: decode's addresses are gone; a worker that reads them later sends nothing."""
    require(s.scheduler_step[rank] == SchedulerStep.POP_INFOS)
    s.infos[rank, s.scheduler_room[rank]] = False
    if s.knobs.acks_drain:
        s.scheduler_step[rank] = SchedulerStep.CHECK_DRAIN
    else:
        end_clear(s, rank)


@action(LANE)
def clear_target(s: Drain, rank: PrefillRank) -> None:
    """Clearing, third step: an owed ack is dropped (up to 0.5.20), or sent if nothing is outstanding (#40645)."""
    require(s.scheduler_step[rank] == SchedulerStep.CHECK_DRAIN)
    room = s.scheduler_room[rank]
    if not s.knobs.ack_target_survives_clear:
        s.target[rank, room] = False
        s.target_generation[rank, room] = 0
        end_clear(s, rank)
    elif s.outstanding[rank, room] > 0:
        end_clear(s, rank)
    else:
        s.scheduler_step[rank] = SchedulerStep.SEND_ACK


@action(LANE)
def clear_ack(s: Drain, rank: PrefillRank) -> None:
    """Clearing, last step: nothing was outstanding, so the owed ack is sent."""
    require(s.scheduler_step[rank] == SchedulerStep.SEND_ACK)
    settle_target(s, rank, s.scheduler_room[rank])
    end_clear(s, rank)


def end_clear(s: Drain, rank: int) -> None:
    """The room has ended on this rank."""
    s.sender[rank, s.scheduler_room[rank]] = Sender.GONE
    go_idle(s, rank)


def go_idle(s: Drain, rank: int) -> None:
    """The scheduler can turn to something else."""
    s.scheduler_step[rank] = SchedulerStep.IDLE
    s.scheduler_room[rank] = 0
