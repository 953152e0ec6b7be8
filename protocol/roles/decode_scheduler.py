"""The decode scheduler: reserves slots, tells prefill where to write, and decides when slots are free again.

managers/scheduler.py: abort_request; disaggregation/decode.py: DecodePreallocQueue, DecodeTransferQueue;
disaggregation/common/conn.py: CommonKVReceiver. Decode's ranks schedule in lock-step: they poll together and take
the minimum, and in between each goes at its own pace.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..language import NONE, action, ghost_code, require
from .allocator import allocate, release, release_row
from .indices import Chunk, DecodeRank, Request
from .messages import ControlKind, ReportKind
from .router import is_submitted
from .state import Drain
from .steps import (
    BootstrapStep,
    Copy,
    DecodeStep,
    Engine,
    Life,
    Poll,
    Restore,
    SchedulerStep,
    Sender,
    Status,
    WorkerStep,
)
from .topology import numbers_come_again, partners, room_of, same_room, writers
from .transfer_queue import has_waiting_of

LANE = "decode {decode} scheduler"
GROUP = "decode 0 scheduler"


def idle(s: Drain, decode: int) -> int:
    """Whether the rank's scheduler can begin something: it is one thread, and does nothing while it is paused."""
    return (s.decode_step[decode] == DecodeStep.IDLE) & (s.engine != Engine.PAUSED)


def all_idle(s: Drain) -> bool:
    """Whether the ranks can do something together."""
    return all(idle(s, decode) for decode in s.all(DecodeRank))


def deciders(s: Drain, decode: int) -> Sequence[int]:
    """The ranks that decide about holds together with this one: all of them, begun by the first, or it alone."""
    if s.knobs.releases_together:
        require(decode == 0)
        return s.all(DecodeRank)
    return [decode]


@ghost_code
def note_parting(s: Drain) -> None:
    """Keeps that some ranks go on with a request and others do not."""
    s.parted = True


@action(LANE, toward="allocator")
def preallocate(s: Drain, decode: DecodeRank, request: Request) -> None:
    """Decode reserves slots for the request, and its receiver waits for the transfer.

    decode.py: DecodePreallocQueue.pop_preallocated.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.NEW and is_submitted(s, request))
    allocate(s, decode, request)
    s.life[decode, request] = Life.PREALLOCATED
    s.poll[decode, room_of(s, request)] = Poll.WAITING


@action(LANE)
def publish(s: Drain, decode: DecodeRank, request: Request) -> None:
    """Decode sends every prefill rank the metadata: from here on the slots can be written.

    common/conn.py: CommonKVReceiver.send_metadata.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.PREALLOCATED)
    for chunk in s.all(Chunk):
        s.destination[decode, request, chunk] = s.slot[decode, request, chunk]
    for prefill in partners(s, decode):
        room = room_of(s, request)
        if s.knobs.decode.transfers:
            s.control[decode, prefill].send(kind=ControlKind.METADATA, room=room, generation=0, request=request)
    s.life[decode, request] = Life.TRANSFERRING


@action(LANE)
def pretend_success(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The receiver of a backend that transfers nothing says that all has arrived. fake/conn.py: FakeKVReceiver.poll."""
    require(idle(s, decode) and s.life[decode, request] == Life.TRANSFERRING)
    require(s.poll[decode, room_of(s, request)] == Poll.WAITING)
    s.poll[decode, room_of(s, request)] = Poll.SUCCESS


@action(LANE)
def publish_in_part(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The first prefill rank gets the metadata, then a socket fails: the transfer fails where it has just begun.

    common/conn.py: CommonKVReceiver.send_metadata.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.PREALLOCATED)
    for chunk in s.all(Chunk):
        s.destination[decode, request, chunk] = s.slot[decode, request, chunk]
    room = room_of(s, request)
    first = partners(s, decode)[0]
    s.control[decode, first].send(kind=ControlKind.METADATA, room=room, generation=0, request=request)
    s.poll[decode, room] = Poll.FAILED
    s.life[decode, request] = Life.TRANSFERRING


@action(LANE)
def abort(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The client is gone: the receiver fails, and prefill will be told, once. Every rank gets the client's abort.

    managers/scheduler.py: abort_request; common/conn.py: CommonKVReceiver.abort.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.TRANSFERRING)
    require_published(s, request)
    require(not (s.knobs.router or s.knobs.router_drops) or s.told_decode[request])
    require(not s.cancelled[decode, request])
    s.cancelled[decode, request] = True
    s.poll[decode, room_of(s, request)] = Poll.FAILED
    if s.knobs.decode.transfers and not s.notified[decode, request]:
        begin_notification(s, decode, request)


def require_published(s: Drain, request: int) -> None:
    """Every rank of the group has published the request, which they do in the same turn of their loops.

    decode.py: process_decode_queue publishes, and then reduces the ranks' polls of what was published. Pipeline stages
    reduce theirs apart.
    """
    for decode in s.all(DecodeRank):
        unpublished = (s.life[decode, request] == Life.NEW) | (s.life[decode, request] == Life.PREALLOCATED)
        require(s.knobs.stages or not unpublished)


@action(GROUP)
def abort_unpublished(s: Drain, request: Request) -> None:
    """The client is gone before decode has reserved anything: prefill is told, without a generation, and that is all.

    managers/scheduler.py: abort_request, entry of the prealloc queue; a request without slots is not held. The ranks
    get the client's abort in the same turn of their loops, before anything is reserved in it.
    """
    require(not s.knobs.router or s.told_decode[request])
    for decode in s.all(DecodeRank):
        require(idle(s, decode) and s.life[decode, request] == Life.NEW and is_submitted(s, request))
    for decode in s.all(DecodeRank):
        for prefill in partners(s, decode):
            room = room_of(s, request)
            s.control[decode, prefill].send(kind=ControlKind.ABORT, room=room, generation=0, request=0)
        s.life[decode, request] = Life.GONE


@action(LANE)
def waiting_timeout(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The transfer takes too long: the receiver fails, by the clock of this rank, and prefill will be told.

    common/conn.py: CommonKVReceiver._check_waiting_timeout. Up to 0.5.20 nothing arms the tracker on this path.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.TRANSFERRING and not s.notified[decode, request])
    require_published(s, request)
    require(s.poll[decode, room_of(s, request)] == Poll.WAITING)
    s.poll[decode, room_of(s, request)] = Poll.FAILED
    begin_notification(s, decode, request)
    if s.knobs.decode.arm_order == "after":
        s.decode_step[decode] = DecodeStep.SEND_UNARMED


@action(LANE)
def see_node_failure(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The heartbeat finds a prefill process dead: the room fails.

    common/conn.py: _start_heartbeat_checker_thread, _handle_node_failure.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.TRANSFERRING)
    require(s.poll[decode, room_of(s, request)] == Poll.WAITING)
    dead = 0
    for prefill in partners(s, decode):
        dead |= s.dead[prefill]
    require(dead)
    s.poll[decode, room_of(s, request)] = Poll.FAILED


def begin_notification(s: Drain, decode: int, request: int) -> None:
    """The scheduler turns to telling prefill; when it arms the tracker differs between releases (#41402)."""
    s.decode_request[decode] = request
    arms_first = s.knobs.decode.hold_enabled and s.knobs.decode.arm_order == "before"
    s.decode_step[decode] = DecodeStep.ARM if arms_first else DecodeStep.SEND


@action(LANE)
def arm_tracker(s: Drain, decode: DecodeRank) -> None:
    """Decode begins to count acks of the room, from none.

    common/conn.py: register_deferred_abort_room; before the ABORT is sent since 0.5.21 (#41402).
    """
    require(s.decode_step[decode] == DecodeStep.ARM)
    room = room_of(s, s.decode_request[decode])
    s.generation[decode] += 1
    s.tracker[decode, room] = True
    s.tracker_generation[decode, room] = s.generation[decode]
    for prefill in partners(s, decode):
        s.acked[decode, room, prefill] = False
    if s.knobs.decode.arm_order == "before":
        s.decode_step[decode] = DecodeStep.SEND
    else:
        end_notification(s, decode)


@action(LANE)
def send_abort(s: Drain, decode: DecodeRank) -> None:
    """Decode sends ABORT to every prefill rank, with the generation if the release has tags.

    common/conn.py: CommonKVReceiver._send_abort_notification (#27372; tags: #37077).
    """
    unarmed = s.decode_step[decode] == DecodeStep.SEND_UNARMED
    require(unarmed or s.decode_step[decode] == DecodeStep.SEND)
    request = s.decode_request[decode]
    room = room_of(s, request)
    generation = s.tracker_generation[decode, room] if s.knobs.decode.gen_tags else 0
    for prefill in partners(s, decode):
        s.control[decode, prefill].send(kind=ControlKind.ABORT, room=room, generation=generation, request=0)
    s.notified[decode, request] = True
    arms_now = s.knobs.decode.arm_order == "after" and s.knobs.decode.hold_enabled
    if arms_now and not unarmed and s.life[decode, request] != Life.FAILING:
        s.decode_step[decode] = DecodeStep.ARM
    else:
        end_notification(s, decode)


def end_notification(s: Drain, decode: int) -> None:
    """Back to where the notification was begun from."""
    if s.life[decode, s.decode_request[decode]] == Life.FAILING:
        s.decode_step[decode] = DecodeStep.DISPOSE
    else:
        go_idle(s, decode)


def go_idle(s: Drain, decode: int) -> None:
    """The scheduler has finished with a request."""
    s.decode_step[decode] = DecodeStep.IDLE
    s.decode_request[decode] = 0


def require_polled(s: Drain, request: int) -> None:
    """The ranks poll the transfer together: all have it in the transfer queue, and all have had a client's abort."""
    for decode in s.all(DecodeRank):
        require(idle(s, decode) and s.life[decode, request] == Life.TRANSFERRING)
        require(s.cancelled[decode, request] == s.cancelled[0, request])


@action(GROUP)
def take_failed(s: Drain, request: Request) -> None:
    """A rank's transfer has failed, so it has failed on all; each clears its receiver and goes on by itself.

    decode.py: DecodeTransferQueue.pop_transferred; common/conn.py: CommonKVReceiver.clear. Since 0.5.21 a failure
    that decode did not start is notified here (#41404).
    """
    require_polled(s, request)
    room = room_of(s, request)
    failed = 0
    for decode in s.all(DecodeRank):
        failed |= (s.poll[decode, room] == Poll.FAILED) | (s.cancelled[decode, request] != 0)
        if s.knobs.restore and s.knobs.decode.restore_failure == "agreed":
            restored = s.restore[decode, request] != Restore.FAILED
            failed |= not restored and s.poll[decode, room] == Poll.SUCCESS
    require(failed)
    for decode in s.all(DecodeRank):
        fail_on_rank(s, decode, request)


def fail_on_rank(s: Drain, decode: int, request: int) -> None:
    """The rank clears the receiver of a failed transfer, and turns to notifying or to its memory.

    A receiver that lacks what is asked of it here ends the scheduler (fake/conn.py, #41618).
    """
    clear_receiver(s, decode, request)
    s.cancelled[decode, request] = False
    s.life[decode, request] = Life.FAILING
    note_failure(s, decode, request)
    if s.knobs.hisparse and not s.knobs.decode.hisparse_held:
        release(s, decode, request)
    knobs = s.knobs.decode
    if knobs.hold_enabled and not knobs.receiver_complete:
        s.decode_step[decode] = DecodeStep.CRASHED
    elif not s.notified[decode, request] and knobs.hold_enabled and knobs.hold_causes == "all" and knobs.transfers:
        begin_notification(s, decode, request)
    else:
        s.decode_request[decode] = request
        s.decode_step[decode] = DecodeStep.DISPOSE


@ghost_code
def note_failure(s: Drain, decode: int, request: int) -> None:
    """Keeps that the transfer has failed: its bytes are not to be trusted."""
    s.failed[decode, request] = True


def clear_receiver(s: Drain, decode: int, request: int) -> None:
    """The room's status and responses are dropped. common/conn.py: CommonKVReceiver.clear."""
    room = room_of(s, request)
    s.poll[decode, room] = Poll.MISSING
    for prefill in partners(s, decode):
        s.responded[decode, room, prefill] = False


@action(LANE, toward="allocator")
def dispose(s: Drain, decode: DecodeRank) -> None:
    """Either the slots are held until the writes have stopped, or they are free now.

    decode.py: DecodeTransferQueue.pop_transferred, _defer_release, _release_request (#35049, #41404). In 0.5.23 the
    ranks agree: if one holds, all do.
    """
    ranks = deciders(s, decode)
    request = s.decode_request[decode]
    notified = 0
    for each in ranks:
        require(s.decode_step[each] == DecodeStep.DISPOSE and s.decode_request[each] == request)
        notified |= s.notified[each, request]
    for each in ranks:
        if s.knobs.decode.holds and notified:
            s.life[each, request] = Life.HELD
        else:
            release(s, each, request, cache=s.knobs.decode.caches_failed)
            s.life[each, request] = Life.GONE
        go_idle(s, each)


@action(LANE, toward="allocator")
def release_drained(s: Drain, decode: DecodeRank, request: Request) -> None:
    """Every notified prefill rank has acknowledged: the hold ends.

    decode.py: DecodeTransferQueue.resolve_deferred_releases, _do_release; common/conn.py: is_abort_release_safe,
    which looks at whatever tracker the room has by now. In 0.5.23 the hold ends when all ranks are ready.
    """
    ranks = deciders(s, decode)
    room = room_of(s, request)
    for each in ranks:
        require(idle(s, each) and s.life[each, request] == Life.HELD)
        if s.notified[each, request]:
            require(s.tracker[each, room])
            for prefill in partners(s, each):
                require(s.acked[each, room, prefill])
    note_drained(s, request)
    for each in ranks:
        end_hold(s, each, request)


@ghost_code
def note_drained(s: Drain, request: int) -> None:
    """Keeps that the hold ended by acks."""
    s.drained[request] = True


@action(LANE, toward="allocator")
def release_expired(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The release timer fires: the hold ends, whatever is still in flight.

    decode.py: DecodeTransferQueue.resolve_deferred_releases. Time is abstract: the timer may fire at any moment.
    """
    ranks = deciders(s, decode)
    for each in ranks:
        require(idle(s, each) and s.life[each, request] == Life.HELD)
    for each in ranks:
        note_expiry(s, each, request)
        end_hold(s, each, request)


@action(LANE, toward="allocator")
def release_expired_late(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The release timer fires late enough: nothing of the request is in flight, and nothing more will be; what prefill
    has reported of it has arrived, its acks excepted.

    The guard is an assumption about time, not something that decode could see: T_hold > t_abort_propagation +
    t_remaining_chunks + t_in_flight_call.
    """
    ranks = deciders(s, decode)
    for each in ranks:
        require(idle(s, each) and s.life[each, request] == Life.HELD)
        for prefill in writers(s, each):
            require(writes_are_over(s, prefill, each, request))
    for each in ranks:
        note_expiry(s, each, request)
        end_hold(s, each, request)


def writes_are_over(s: Drain, prefill: int, decode: int, request: int) -> int:
    """Whether the prefill rank has no write in flight to what the request was given on the decode rank, and will
    launch none; and whether what it has reported has arrived. One condition, without a branch."""
    room = room_of(s, request)
    live = s.nic[prefill, decode].some(lambda write: write.addressee == request)
    unread = s.report[prefill, decode].some(
        lambda report: (report.room == room) & (report.kind != ReportKind.ABORT_ACK)
    )
    asked = s.control[decode, prefill].some(lambda message: message.room == room)
    bootstrap = s.bootstrap_step[prefill]
    asked |= (bootstrap != BootstrapStep.IDLE) & (bootstrap != BootstrapStep.DEAD) & (s.bootstrap_room[prefill] == room)
    worker, scheduler = s.worker_step[prefill], s.scheduler_step[prefill]
    known = s.infos[prefill, room, decode] != NONE
    sends_more = 0
    for other in same_room(s, room):
        sends_more |= has_waiting_of(s, prefill, other)
        working = (worker != WorkerStep.IDLE) & (worker != WorkerStep.DEAD)
        sends_more |= working & (s.worker_request[prefill] == other)
        sends_more |= (scheduler != SchedulerStep.IDLE) & (s.scheduler_request[prefill] == other)
        sender = s.sender[prefill, other]
        ended = (sender == Sender.INFLIGHT) | (sender == Sender.GONE) | (sender == Sender.ABORTED)
        # A room that is missing may still be opened, by the metadata of another decode rank.
        sends_more |= (ended == 0) & (s.status[prefill, room] != Status.FAILED) & known
    alive = s.dead[prefill] == 0
    return (live == 0) & (unread == 0) & ((alive & (asked | sends_more)) == 0)


@ghost_code
def note_expiry(s: Drain, decode: int, request: int) -> None:
    """Keeps whether a write of the request was live, or about to be launched, when the timer fired."""
    for prefill in writers(s, decode):
        for write in s.nic[prefill, decode].waiting():
            if write.addressee == request:
                s.released_live = request
        at_it = s.worker_step[prefill] == WorkerStep.TO_POST or s.worker_step[prefill] == WorkerStep.TO_COUNT
        if s.worker_request[prefill] == request and at_it:
            s.released_live = request


def end_hold(s: Drain, decode: int, request: int) -> None:
    """The memory is given back, the room's tracker is dropped, and the receiver is cleared a second time.

    decode.py: _do_release. Up to 0.5.22 the second clearing strikes whatever life the room has by now.
    """
    room = room_of(s, request)
    release(s, decode, request, cache=s.knobs.decode.caches_failed)
    s.life[decode, request] = Life.GONE
    s.tracker[decode, room] = False
    s.tracker_generation[decode, room] = 0
    for prefill in partners(s, decode):
        s.acked[decode, room, prefill] = False
    if s.knobs.decode.second_clear == "room":
        clear_receiver(s, decode, request)


@action(GROUP)
def commit(s: Drain, request: Request) -> None:
    """The transfer has succeeded on every rank: the request starts to decode.

    decode.py: DecodeTransferQueue._commit_transfer_to_req; common/conn.py: CommonKVReceiver.clear. Metadata content
    must have come to each rank's buffer (utils.py: _apply_metadata_gate), all chunks that go by a staging ring must
    have arrived (poll_and_all_reduce_with_staging), and with a host tier each rank's part must have been fetched.
    """
    require_polled(s, request)
    for decode in s.all(DecodeRank):
        require(s.poll[decode, room_of(s, request)] == Poll.SUCCESS)
        require(not s.knobs.metadata or s.row_content[decode] == request)
        require(not numbers_come_again(s) or s.filled[decode, request])
        if s.knobs.staging:
            for chunk in s.all(Chunk):
                require(s.arrived[decode, request, chunk])
        require(not s.knobs.restore or s.restore[decode, request] == Restore.DONE)
    for decode in s.all(DecodeRank):
        clear_receiver(s, decode, request)
        release_row(s, decode, request)
        s.life[decode, request] = Life.DECODING


@action(GROUP, toward="allocator")
def finish(s: Drain, request: Request) -> None:
    """The request has its last token: its slots are free, after copies of them have ended.

    mem_cache/common.py: release_kv_cache.
    """
    require(all_idle(s))
    decoding = 0
    for decode in s.all(DecodeRank):
        require(s.copy[decode, request] != Copy.RUNNING)
        if s.life[decode, request] == Life.DECODING:
            release(s, decode, request, cache=True)
            s.life[decode, request] = Life.GONE
            decoding += 1
    require(decoding > 0)
