"""The decode scheduler: reserves slots, tells prefill where to write, and decides when slots are free again.

managers/scheduler.py: abort_request; disaggregation/decode.py: DecodePreallocQueue, DecodeTransferQueue;
disaggregation/common/conn.py: CommonKVReceiver.
"""

from __future__ import annotations

from ..language import action, ghost_code, require
from .allocator import allocate, release
from .room_status import is_open
from .state import (
    BootstrapStep,
    Chunk,
    ControlKind,
    DecodeStep,
    Drain,
    Life,
    Poll,
    PrefillRank,
    Room,
    SchedulerStep,
    Sender,
    WorkerStep,
)

LANE = "decode scheduler"


def idle(s: Drain) -> bool:
    """Whether the scheduler can begin something: it is one thread."""
    return s.decode_step == DecodeStep.IDLE


@action(LANE, toward="allocator")
def preallocate(s: Drain, room: Room) -> None:
    """Decode reserves slots for the request, and its receiver waits for the transfer.

    decode.py: DecodePreallocQueue.pop_preallocated.
    """
    require(idle(s) and s.life[room] == Life.NEW)
    allocate(s, room)
    s.life[room] = Life.PREALLOCATED
    s.poll[room] = Poll.WAITING


@action(LANE)
def publish(s: Drain, room: Room) -> None:
    """Decode sends every prefill rank the metadata: from here on the slots can be written.

    common/conn.py: CommonKVReceiver.send_metadata.
    """
    require(idle(s) and s.life[room] == Life.PREALLOCATED)
    for chunk in s.all(Chunk):
        s.destination[room, chunk] = s.slot[room, chunk]
    for rank in s.all(PrefillRank):
        s.control[rank].send(kind=ControlKind.METADATA, room=room, generation=0)
    s.life[room] = Life.TRANSFERRING


@action(LANE)
def abort(s: Drain, room: Room) -> None:
    """The client is gone: the receiver fails, and prefill will be told.

    managers/scheduler.py: abort_request; common/conn.py: CommonKVReceiver.abort.
    """
    require(idle(s) and s.life[room] == Life.TRANSFERRING and not s.notified[room])
    s.poll[room] = Poll.FAILED
    begin_notification(s, room)


def begin_notification(s: Drain, room: int) -> None:
    """The scheduler turns to telling prefill; when it arms the tracker differs between releases (#41402)."""
    s.decode_room = room
    arms_first = s.knobs.hold_enabled and s.knobs.arm_order == "before"
    s.decode_step = DecodeStep.ARM if arms_first else DecodeStep.SEND


@action(LANE)
def arm_tracker(s: Drain) -> None:
    """Decode begins to count acks of the room, from none.

    common/conn.py: register_deferred_abort_room; before the ABORT is sent since 0.5.21 (#41402).
    """
    require(s.decode_step == DecodeStep.ARM)
    room = s.decode_room
    s.generation += 1
    s.tracker[room] = True
    s.tracker_generation[room] = s.generation
    for rank in s.all(PrefillRank):
        s.acked[room, rank] = False
    if s.knobs.arm_order == "before":
        s.decode_step = DecodeStep.SEND
    else:
        end_notification(s)


@action(LANE)
def send_abort(s: Drain) -> None:
    """Decode sends ABORT to every prefill rank, with the generation if the release has tags.

    common/conn.py: CommonKVReceiver._send_abort_notification (#27372; tags: #37077).
    """
    require(s.decode_step == DecodeStep.SEND)
    room = s.decode_room
    generation = s.tracker_generation[room] if s.knobs.gen_tags else 0
    for rank in s.all(PrefillRank):
        s.control[rank].send(kind=ControlKind.ABORT, room=room, generation=generation)
    s.notified[room] = True
    if s.knobs.arm_order == "after" and s.life[room] != Life.FAILING and s.knobs.hold_enabled:
        s.decode_step = DecodeStep.ARM
    else:
        end_notification(s)


def end_notification(s: Drain) -> None:
    """Back to where the notification was begun from."""
    if s.life[s.decode_room] == Life.FAILING:
        s.decode_step = DecodeStep.DISPOSE
    else:
        go_idle(s)


def go_idle(s: Drain) -> None:
    """The scheduler has finished with a room."""
    s.decode_step = DecodeStep.IDLE
    s.decode_room = 0


@action(LANE)
def take_failed(s: Drain, room: Room) -> None:
    """The scheduler sees that the transfer has failed, and clears the receiver.

    decode.py: DecodeTransferQueue.pop_transferred; common/conn.py: CommonKVReceiver.clear. Since 0.5.21 a failure
    that decode did not start is notified here (#41404).
    """
    require(idle(s) and s.life[room] == Life.TRANSFERRING and s.poll[room] == Poll.FAILED)
    s.poll[room] = Poll.MISSING
    for rank in s.all(PrefillRank):
        s.responded[room, rank] = False
    s.life[room] = Life.FAILING
    if not s.notified[room] and s.knobs.hold_enabled and s.knobs.hold_causes == "all":
        begin_notification(s, room)
    else:
        s.decode_room = room
        s.decode_step = DecodeStep.DISPOSE


@action(LANE, toward="allocator")
def dispose(s: Drain) -> None:
    """Either the slots are held until the writes have stopped, or they are free now.

    decode.py: DecodeTransferQueue.pop_transferred, _defer_release, _release_request (#35049, #41404).
    """
    require(s.decode_step == DecodeStep.DISPOSE)
    room = s.decode_room
    if s.knobs.hold_enabled and s.knobs.hold_causes != "none" and s.notified[room]:
        s.life[room] = Life.HELD
    else:
        release(s, room)
        s.life[room] = Life.GONE
    go_idle(s)


@action(LANE, toward="allocator")
def release_drained(s: Drain, room: Room) -> None:
    """Every notified rank has acknowledged: the hold ends.

    decode.py: DecodeTransferQueue.resolve_deferred_releases, _do_release.
    """
    require(idle(s) and s.life[room] == Life.HELD and s.tracker[room])
    for rank in s.all(PrefillRank):
        require(s.acked[room, rank])
    note_drained(s, room)
    end_hold(s, room)


@ghost_code
def note_drained(s: Drain, room: int) -> None:
    """Keeps that the hold ended by acks."""
    s.drained[room] = True


@action(LANE, toward="allocator")
def release_expired(s: Drain, room: Room) -> None:
    """The release timer fires: the hold ends, whatever is still in flight.

    decode.py: DecodeTransferQueue.resolve_deferred_releases. Time is abstract: the timer may fire at any moment.
    """
    require(idle(s) and s.life[room] == Life.HELD)
    note_expiry(s, room)
    end_hold(s, room)


@action(LANE, toward="allocator")
def release_expired_late(s: Drain, room: Room) -> None:
    """The release timer fires late enough: nothing of the room is in flight, and nothing more will be.

    The guard is an assumption about time, not something that decode could see: T_hold > t_abort_propagation +
    t_remaining_chunks + t_in_flight_call.
    """
    require(idle(s) and s.life[room] == Life.HELD)
    for rank in s.all(PrefillRank):
        require(writes_are_over(s, rank, room))
    note_expiry(s, room)
    end_hold(s, room)


def writes_are_over(s: Drain, rank: int, room: int) -> bool:
    """Whether the rank has no write of the room in flight and will launch none."""
    for message in s.control[rank].waiting():
        if message.room == room:
            return False
    for chunk in s.queue[rank].waiting():
        if chunk.room == room:
            return False
    for write in s.nic[rank].waiting():
        if write.room == room:
            return False
    worker = s.worker_step[rank] != WorkerStep.IDLE and s.worker_room[rank] == room
    bootstrap = s.bootstrap_step[rank] != BootstrapStep.IDLE and s.bootstrap_room[rank] == room
    scheduler = s.scheduler_step[rank] != SchedulerStep.IDLE and s.scheduler_room[rank] == room
    if worker or bootstrap or scheduler:
        return False
    has_sent = s.sender[rank, room] == Sender.INFLIGHT or s.sender[rank, room] == Sender.GONE
    return has_sent or not is_open(s, rank, room)


@ghost_code
def note_expiry(s: Drain, room: int) -> None:
    """Keeps whether a write of the room was live, or about to be launched, when the timer fired."""
    for rank in s.all(PrefillRank):
        for write in s.nic[rank].waiting():
            if write.room == room:
                s.released_live = room
        at_it = s.worker_step[rank] == WorkerStep.TO_POST or s.worker_step[rank] == WorkerStep.TO_COUNT
        if s.worker_room[rank] == room and at_it:
            s.released_live = room


def end_hold(s: Drain, room: int) -> None:
    """The slots are given back, and the tracker and the receiver are cleared."""
    release(s, room)
    s.life[room] = Life.GONE
    s.tracker[room] = False
    s.tracker_generation[room] = 0
    for rank in s.all(PrefillRank):
        s.acked[room, rank] = False
    s.poll[room] = Poll.MISSING


@action(LANE)
def commit(s: Drain, room: Room) -> None:
    """The transfer has succeeded: the request starts to decode.

    decode.py: DecodeTransferQueue._commit_transfer_to_req; common/conn.py: CommonKVReceiver.clear.
    """
    require(idle(s) and s.life[room] == Life.TRANSFERRING and s.poll[room] == Poll.SUCCESS)
    s.poll[room] = Poll.MISSING
    for rank in s.all(PrefillRank):
        s.responded[room, rank] = False
    s.life[room] = Life.DECODING


@action(LANE, toward="allocator")
def finish(s: Drain, room: Room) -> None:
    """The request has its last token: its slots are free. mem_cache/common.py: release_kv_cache."""
    require(idle(s) and s.life[room] == Life.DECODING)
    release(s, room)
    s.life[room] = Life.GONE
