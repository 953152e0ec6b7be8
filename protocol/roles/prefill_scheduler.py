"""The prefill scheduler: computes chunks, hands them to the worker, and clears rooms that have ended.

disaggregation/prefill.py: PrefillBootstrapQueue, process_disagg_prefill_inflight_queue; common/conn.py:
CommonKVSender. Ranks poll together and take the minimum, so that one failed rank fails the room on all.
"""

from __future__ import annotations

from ..language import NONE, action, require
from .indices import Chunk, PrefillRank, Request
from .room_status import forget_targets, is_open, settle_targets, update_status, write_status
from .router import is_submitted
from .state import Drain
from .steps import SchedulerStep, Sender, Status
from .topology import room_of, served
from .transfer_queue import put

LANE = "prefill {prefill} scheduler"
GROUP = "prefill 0 scheduler"


@action(LANE)
def arrive(s: Drain, prefill: PrefillRank, request: Request) -> None:
    """The request reaches the rank, which opens the room; metadata may have opened it already.

    prefill.py: PrefillBootstrapQueue.create_sender.
    """
    require_new(s, prefill, request)
    s.sender[prefill, request] = Sender.QUEUED
    update_status(s, prefill, room_of(s, request), Status.BOOTSTRAPPING)


def require_new(s: Drain, prefill: int, request: int) -> None:
    """The client has sent the request, and the rank does not know it yet."""
    require(s.scheduler_step[prefill] == SchedulerStep.IDLE and s.sender[prefill, request] == Sender.NONE)
    require(is_submitted(s, request))


@action(LANE)
def look_at_room(s: Drain, prefill: PrefillRank, request: Request) -> None:
    """The request reaches the rank, which looks at the room's status before it opens it.

    This and `open_room` are `arrive` taken apart: common/conn.py: CommonKVManager.update_status reads, then writes.
    """
    require_new(s, prefill, request)
    s.scheduler_step[prefill] = SchedulerStep.OPEN
    s.scheduler_request[prefill] = request
    s.scheduler_seen[prefill] = s.status[prefill, room_of(s, request)]


@action(LANE)
def open_room(s: Drain, prefill: PrefillRank) -> None:
    """The rank opens the room by what it saw, whatever the bootstrap thread has written since."""
    require(s.scheduler_step[prefill] == SchedulerStep.OPEN)
    request = s.scheduler_request[prefill]
    write_status(s, prefill, room_of(s, request), s.scheduler_seen[prefill], Status.BOOTSTRAPPING)
    s.scheduler_seen[prefill] = Status.MISSING
    s.sender[prefill, request] = Sender.QUEUED
    go_idle(s, prefill)


@action(GROUP)
def start_prefill(s: Drain, request: Request) -> None:
    """Every rank has decode's metadata: the request leaves the bootstrap queue.

    prefill.py: PrefillBootstrapQueue.pop_bootstrapped.
    """
    for prefill in s.all(PrefillRank):
        require(s.scheduler_step[prefill] == SchedulerStep.IDLE and s.sender[prefill, request] == Sender.QUEUED)
        require(s.status[prefill, room_of(s, request)] == Status.WAITING)
    for prefill in s.all(PrefillRank):
        s.sender[prefill, request] = Sender.RUNNING


@action(LANE)
def produce(s: Drain, prefill: PrefillRank, request: Request) -> None:
    """A chunk is computed. The scheduler looks whether the room is open; if not, the chunk is dropped in silence.

    prefill.py: send_kv_chunk; mooncake/conn.py: add_transfer_request.
    """
    require(s.scheduler_step[prefill] == SchedulerStep.IDLE and s.sender[prefill, request] == Sender.RUNNING)
    if is_open(s, prefill, room_of(s, request)):
        s.scheduler_step[prefill] = SchedulerStep.PUT
        s.scheduler_request[prefill] = request
    else:
        after_chunk(s, prefill, request, is_last(s, request, s.produced[prefill, request]))


@action(LANE)
def put_chunk(s: Drain, prefill: PrefillRank) -> None:
    """The chunk goes to the worker, whatever has become of the room. mooncake/conn.py: add_transfer_request."""
    require(s.scheduler_step[prefill] == SchedulerStep.PUT)
    request = s.scheduler_request[prefill]
    chunk = s.produced[prefill, request]
    last = is_last(s, request, chunk)
    put(s, prefill, request, chunk, last)
    after_chunk(s, prefill, request, last)
    go_idle(s, prefill)


def is_last(s: Drain, request: int, chunk: int) -> int:
    """Whether nothing follows the chunk; of a stub, nothing follows the first."""
    if s.knobs.endless:
        return s.choose([False, True])
    return chunk == s.size(Chunk) - 1 or s.stub[request]


def after_chunk(s: Drain, prefill: int, request: int, last: int) -> None:
    """One chunk less to compute; after the last, the request waits for its transfer."""
    if last:
        s.sender[prefill, request] = Sender.INFLIGHT
    if not s.knobs.endless:
        s.produced[prefill, request] += 1


@action(GROUP)
def poll_failed(s: Drain, request: Request) -> None:
    """A rank's room has failed, so the room has failed on all: each begins to clear it. Counters are not asked.

    prefill.py: process_disagg_prefill_inflight_queue, handle_inflight_transfer_failure, handle_bootstrap_failure. A
    room that somebody else has cleared counts as failed (common/conn.py: CommonKVSender.poll).
    """
    require_polled(s, request)
    failed = 0
    for prefill in s.all(PrefillRank):
        status = s.status[prefill, room_of(s, request)]
        failed |= (status == Status.FAILED) | (status == Status.MISSING)
    require(failed)
    begin_clear(s, request)


@action(GROUP)
def poll_success(s: Drain, request: Request) -> None:
    """Every rank has sent its last chunk and none is counted any more: the room is cleared.

    mooncake/conn.py: MooncakeKVSender.poll withholds Success while a chunk is outstanding.
    """
    require_polled(s, request)
    for prefill in s.all(PrefillRank):
        room = room_of(s, request)
        require(s.status[prefill, room] == Status.SUCCESS and s.outstanding[prefill, room] <= 0)
    begin_clear(s, request)


@action(GROUP)
def bootstrap_timeout(s: Drain, request: Request) -> None:
    """Decode's metadata do not come: the request fails on every rank, and decode is not told.

    common/conn.py: CommonKVSender._check_bootstrap_timeout; prefill.py: handle_bootstrap_failure.
    """
    waiting = 0
    for prefill in s.all(PrefillRank):
        require(s.scheduler_step[prefill] == SchedulerStep.IDLE and s.sender[prefill, request] == Sender.QUEUED)
        waiting |= s.status[prefill, room_of(s, request)] == Status.BOOTSTRAPPING
    require(waiting)
    begin_clear(s, request)


@action(LANE)
def abort_at_prefill(s: Drain, prefill: PrefillRank, request: Request) -> None:
    """Prefill alone gives the request up while it runs: its room fails, decode is not told, nothing is cleared.

    prefill.py: release_aborted_prefill_waiting_req, process_pending_chunked_abort; common/conn.py:
    CommonKVSender.abort.
    """
    require(s.scheduler_step[prefill] == SchedulerStep.IDLE and s.sender[prefill, request] == Sender.RUNNING)
    require(not s.knobs.router or s.told_prefill[request])
    s.sender[prefill, request] = Sender.ABORTED
    update_status(s, prefill, room_of(s, request), Status.FAILED)


@action(LANE)
def abort_inflight(s: Drain, prefill: PrefillRank, request: Request) -> None:
    """The router's abort finds the request in the bootstrap or inflight queue: its room fails, to be polled.

    managers/scheduler.py: abort_request; common/conn.py: CommonKVSender.abort.
    """
    waiting = s.sender[prefill, request] == Sender.QUEUED or s.sender[prefill, request] == Sender.INFLIGHT
    require(s.scheduler_step[prefill] == SchedulerStep.IDLE and waiting)
    require(not s.knobs.router or s.told_prefill[request])
    require(s.status[prefill, room_of(s, request)] != Status.FAILED)
    update_status(s, prefill, room_of(s, request), Status.FAILED)


def require_polled(s: Drain, request: int) -> None:
    """All ranks are at a point where they poll the room: in the bootstrap queue or in the inflight queue."""
    for prefill in s.all(PrefillRank):
        require(s.scheduler_step[prefill] == SchedulerStep.IDLE)
        require(s.sender[prefill, request] == Sender.QUEUED or s.sender[prefill, request] == Sender.INFLIGHT)


def begin_clear(s: Drain, request: int) -> None:
    """Every rank turns to clearing the room; each goes on at its own pace."""
    for prefill in s.all(PrefillRank):
        s.scheduler_step[prefill] = SchedulerStep.POP_STATUS
        s.scheduler_request[prefill] = request


def cleared_room(s: Drain, prefill: int, step: SchedulerStep) -> int:
    """The room that the scheduler clears; disabled if it is elsewhere."""
    require(s.scheduler_step[prefill] == step)
    return room_of(s, s.scheduler_request[prefill])


@action(LANE)
def clear_status(s: Drain, prefill: PrefillRank) -> None:
    """Clearing, first step: the room's status is gone. common/conn.py: CommonKVSender.clear."""
    room = cleared_room(s, prefill, SchedulerStep.POP_STATUS)
    s.status[prefill, room] = Status.MISSING
    s.scheduler_step[prefill] = SchedulerStep.POP_INFOS


@action(LANE)
def clear_infos(s: Drain, prefill: PrefillRank) -> None:
    """Clearing, second step: decode's addresses are gone; a worker that reads them later sends nothing."""
    room = cleared_room(s, prefill, SchedulerStep.POP_INFOS)
    for decode in served(s, prefill):
        s.infos[prefill, room, decode] = NONE
    if s.knobs.prefill.acks_drain:
        s.scheduler_step[prefill] = SchedulerStep.CHECK_DRAIN
    else:
        end_clear(s, prefill)


@action(LANE)
def clear_target(s: Drain, prefill: PrefillRank) -> None:
    """Clearing, third step: an owed ack is dropped (up to 0.5.20), or sent if nothing is outstanding (#40645)."""
    room = cleared_room(s, prefill, SchedulerStep.CHECK_DRAIN)
    if not s.knobs.prefill.ack_target_survives_clear:
        forget_targets(s, prefill, room)
        end_clear(s, prefill)
    elif s.outstanding[prefill, room] > 0:
        end_clear(s, prefill)
    else:
        s.scheduler_step[prefill] = SchedulerStep.SEND_ACK


@action(LANE)
def clear_ack(s: Drain, prefill: PrefillRank) -> None:
    """Clearing, last step: nothing was outstanding, so owed acks are sent."""
    room = cleared_room(s, prefill, SchedulerStep.SEND_ACK)
    settle_targets(s, prefill, room)
    end_clear(s, prefill)


def end_clear(s: Drain, prefill: int) -> None:
    """The room has ended on this rank."""
    s.sender[prefill, s.scheduler_request[prefill]] = Sender.GONE
    go_idle(s, prefill)


def go_idle(s: Drain, prefill: int) -> None:
    """The scheduler can turn to something else."""
    s.scheduler_step[prefill] = SchedulerStep.IDLE
    s.scheduler_request[prefill] = 0
