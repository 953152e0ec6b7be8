"""The transfer worker of a prefill rank: one thread that launches a room's writes, one chunk at a time.

mooncake/conn.py, nixl/conn.py: transfer_worker. One work request for each chunk and decode rank. A call is
synchronous, or all are posted before the worker waits for any. The worker goes through the decode ranks that it finds
at its first post, and looks at the room no more until the chunk is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..language import NONE, action, ghost_code, require
from .indices import Deferral, PrefillRank, SendFault
from .knobs import Knobs
from .messages import ReportKind, WriteKind
from .nic import awaits_acks, note_post, posts_at_once
from .room_status import is_open, settle_targets, update_status
from .state import Drain
from .steps import BootstrapStep, Fate, SendFailure, Status, WorkerStep
from .topology import numbers_come_again, room_of, served, writes
from .transfer_queue import take

LANE = "prefill {prefill} worker"


def at(s: Drain, prefill: int, step: WorkerStep) -> int:
    """The room of the worker's chunk; disabled if the worker is elsewhere."""
    require(s.worker_step[prefill] == step)
    return room_of(s, s.worker_request[prefill])


@action(LANE)
def dequeue(s: Drain, prefill: PrefillRank) -> None:
    """The worker takes the oldest chunk of its queue. Nothing counts it yet, unless it was put back."""
    require(s.worker_step[prefill] == WorkerStep.IDLE)
    chunk = take(s, prefill)
    s.worker_request[prefill] = chunk.request
    s.worker_chunk[prefill] = chunk.chunk
    s.worker_last[prefill] = chunk.last
    s.worker_counted[prefill] = chunk.counted
    s.worker_at[prefill] = served(s, prefill)[0]
    uncounted = s.knobs.prefill.count_point == "before_test" and not chunk.counted
    s.worker_step[prefill] = WorkerStep.TAKEN if uncounted else WorkerStep.COUNTED


@action(LANE)
def count(s: Drain, prefill: PrefillRank) -> None:
    """The chunk counts as outstanding: before the room is looked at since 0.5.19, after it before."""
    before = s.knobs.prefill.count_point == "before_test"
    room = at(s, prefill, WorkerStep.TAKEN if before else WorkerStep.TO_COUNT)
    s.outstanding[prefill, room] += 1
    s.worker_step[prefill] = WorkerStep.COUNTED if before else WorkerStep.TO_POST


@action(LANE)
def test_room(s: Drain, prefill: PrefillRank) -> None:
    """The worker looks at the room. If it is gone or has failed, the chunk is dropped with the whole counter."""
    room = at(s, prefill, WorkerStep.COUNTED)
    if is_open(s, prefill, room):
        note_pass(s, prefill, s.worker_request[prefill])
        counted = s.knobs.prefill.count_point == "before_test" or s.worker_counted[prefill]
        s.worker_step[prefill] = WorkerStep.TO_POST if counted else WorkerStep.TO_COUNT
    else:
        s.outstanding[prefill, room] = 0
        after_uncount(s, prefill)


@ghost_code
def note_pass(s: Drain, prefill: int, request: int) -> None:
    """Keeps whether the prefill rank sends a chunk of a request whose ABORT it has already taken."""
    room = room_of(s, request)
    for decode in served(s, prefill):
        unread = s.control[decode, prefill].some(lambda message: message.room == room)
        handling = s.bootstrap_step[prefill] != BootstrapStep.IDLE
        if awaits_acks(s, decode, request) & (unread == 0) & (handling == 0):
            s.late_pass[prefill] = request


def find_addressees(s: Drain, prefill: int, room: int) -> None:
    """The worker takes decode's addresses as it finds them, at its first post."""
    if s.worker_at[prefill] == served(s, prefill)[0]:
        for decode in served(s, prefill):
            s.addressee[prefill, decode] = s.infos[prefill, room, decode]


@action(LANE, toward="NIC {prefill}")
def post(s: Drain, prefill: PrefillRank) -> None:
    """The write to a decode rank is launched: from here on nobody can recall it.

    Without the rank's addresses nothing is sent to it. A dummy goes through the motions. To a process that is gone
    nothing can be posted.
    """
    room = at(s, prefill, WorkerStep.TO_POST)
    find_addressees(s, prefill, room)
    decode = s.worker_at[prefill]
    addressee = s.addressee[prefill, decode]
    if addressee == NONE or not writes(s, prefill):
        move_on(s, prefill)
        return
    chunk = s.worker_chunk[prefill]
    if s.destination[decode, addressee, chunk] == NONE:
        forget_addressees(s, prefill)
        s.worker_step[prefill] = WorkerStep.REPORT
        return
    s.nic[prefill, decode].send(
        kind=WriteKind.KV,
        request=s.worker_request[prefill],
        addressee=addressee,
        chunk=chunk,
        slot=s.destination[decode, addressee, chunk],
    )
    note_post(s, decode, prefill, addressee)
    if s.worker_last[prefill] and not s.knobs.prefill.aux_after_kv:
        fill_at_gate(s, decode, addressee)
    if posts_at_once(s) and decode != served(s, prefill)[-1]:
        move_on(s, prefill)
    else:
        s.worker_step[prefill] = WorkerStep.POSTED


def move_on(s: Drain, prefill: int) -> None:
    """To the next decode rank; after the last, the chunk is sent, if it was for anybody."""
    ranks = served(s, prefill)
    for decode, following in pairwise(ranks):
        if s.worker_at[prefill] == decode:
            s.worker_at[prefill] = following
            s.worker_step[prefill] = WorkerStep.TO_POST
            return
    addressed = 0
    for decode in ranks:
        addressed |= s.addressee[prefill, decode] != NONE
    if addressed and s.worker_last[prefill]:
        s.worker_step[prefill] = WorkerStep.SENT
    else:
        s.worker_step[prefill] = WorkerStep.UNCOUNT
        forget_addressees(s, prefill)


def forget_addressees(s: Drain, prefill: int) -> None:
    """The worker has done with decode's addresses."""
    for decode in served(s, prefill):
        s.addressee[prefill, decode] = NONE
        s.completed[prefill, decode] = False


def require_complete(s: Drain, prefill: int, ranks: Sequence[int]) -> None:
    """The calls to these decode ranks, as far as there are any, have all their completions."""
    for decode in ranks:
        require(s.addressee[prefill, decode] == NONE or s.completed[prefill, decode])


@action(LANE)
def call_returns(s: Drain, prefill: PrefillRank) -> None:
    """The call returns 0: its writes have landed. After the last chunk the transfer is concluded."""
    at(s, prefill, WorkerStep.POSTED)
    if posts_at_once(s):
        require_complete(s, prefill, served(s, prefill))
        s.worker_at[prefill] = served(s, prefill)[-1]
    else:
        require(s.completed[prefill, s.worker_at[prefill]])
    for decode in served(s, prefill):
        s.completed[prefill, decode] = False
    move_on(s, prefill)


@action(LANE)
def defer(s: Drain, prefill: PrefillRank) -> None:
    """The staging ring of the decode rank is full: the chunk goes back to the queue and stays counted.

    It will start again at its first decode rank. mooncake/conn.py, nixl/conn.py: _do_staging_transfer. What was
    posted to earlier ranks may be in flight, if the worker does not wait for each rank (NIXL up to 0.5.22).
    """
    room = at(s, prefill, WorkerStep.TO_POST)
    require(s.deferrals < s.size(Deferral))
    find_addressees(s, prefill, room)
    require(s.addressee[prefill, s.worker_at[prefill]] != NONE)
    s.deferrals += 1
    s.queue[prefill].send(
        request=s.worker_request[prefill],
        chunk=s.worker_chunk[prefill],
        last=s.worker_last[prefill],
        counted=True,
    )
    go_idle(s, prefill)


@action(LANE)
def call_fails(s: Drain, prefill: PrefillRank) -> None:
    """The send fails. That need not say anything about its write, which may be dead or go on and land.

    After a timeout the slices are retried, and after a failed batch other tasks may be in flight (#43719). Some
    libraries report an error only when nothing is live; a refused post may have been posted in part.
    """
    at(s, prefill, WorkerStep.POSTED)
    require(s.send_faults < s.size(SendFault))
    s.send_faults += 1
    decode = s.worker_at[prefill]
    knobs = s.knobs.prefill
    failure = s.choose(failures(knobs))
    quiet = failure == SendFailure.ERROR and knobs.err_implies_quiet
    fate = s.choose([Fate.DEAD]) if quiet else s.choose([Fate.LIVE, Fate.DEAD])
    if fate == Fate.DEAD:
        require(not s.completed[prefill, decode])
        s.nic[prefill, decode].remove_last()
    leave_call(s, prefill, rejected=failure == SendFailure.REJECTED_POST)


@action(LANE)
def part_fails(s: Drain, prefill: PrefillRank) -> None:
    """One part of the call fails and is over; its siblings go on. A release waits for them before it acts, or not.

    mooncake/conn.py: _await_transfer_futures; ascend/conn.py: send_kvcache returns on the first bad part.
    """
    at(s, prefill, WorkerStep.POSTED)
    require(s.send_faults < s.size(SendFault))
    s.send_faults += 1
    if s.knobs.prefill.wait_for_siblings:
        require(s.completed[prefill, s.worker_at[prefill]])
    leave_call(s, prefill, rejected=False)


def leave_call(s: Drain, prefill: int, rejected: int) -> None:
    """The worker gives up the chunk. Other calls that it has posted at once are waited for, or left."""
    decode = s.worker_at[prefill]
    for other in served(s, prefill):
        if posts_at_once(s) and s.knobs.prefill.wait_for_siblings and other != decode:
            require_complete(s, prefill, [other])
    forget_addressees(s, prefill)
    poisons = s.knobs.prefill.poison_on_rejected_post if rejected else s.knobs.prefill.poison_on_error
    s.worker_step[prefill] = WorkerStep.FAILED if poisons else WorkerStep.REPORT


def failures(knobs: Knobs) -> list[SendFailure]:
    """The ways to fail that the release tells apart."""
    alike = knobs.poison_on_error == knobs.poison_on_rejected_post and not knobs.err_implies_quiet
    return [SendFailure.ERROR] if alike else [SendFailure.ERROR, SendFailure.REJECTED_POST]


@action(LANE)
def poison(s: Drain, prefill: PrefillRank) -> None:
    """The room must never be acknowledged as drained. mooncake/conn.py: _poison_unsettled_send (#43719)."""
    room = at(s, prefill, WorkerStep.FAILED)
    s.poisoned[prefill, room] = True
    for decode in served(s, prefill):
        s.target[prefill, room, decode] = False
        s.target_generation[prefill, room, decode] = 0
    s.worker_step[prefill] = WorkerStep.REPORT


@action(LANE)
def report_failure(s: Drain, prefill: PrefillRank) -> None:
    """The room fails, and decode is told; since 0.5.20 nobody is told about a room that was cleared.

    mooncake/conn.py: conclude_failure; common/conn.py: conclude_transfer.
    """
    room = at(s, prefill, WorkerStep.REPORT)
    if s.status[prefill, room] != Status.MISSING or not s.knobs.prefill.failed_terminal:
        conclude(s, prefill, room, success=False)
    if s.knobs.prefill.failed_chunk_uncounted:
        s.worker_step[prefill] = WorkerStep.UNCOUNT
    else:
        go_idle(s, prefill)


def conclude(s: Drain, prefill: int, room: int, success: int) -> None:
    """The outcome becomes the room's status, and the decode ranks that are written to are told."""
    if success:
        update_status(s, prefill, room, Status.SUCCESS)
        kind = ReportKind.SUCCESS
    else:
        update_status(s, prefill, room, Status.FAILED)
        kind = ReportKind.FAILED
    if writes(s, prefill):
        for decode in served(s, prefill):
            s.report[prefill, decode].send(kind=kind, room=room, generation=0, request=0)


@action(LANE, toward="NIC {prefill}")
def send_aux(s: Drain, prefill: PrefillRank) -> None:
    """Behind the last chunk goes the metadata content: a write of its own, or a message.

    mooncake/conn.py: send_aux; mori/conn.py: send_aux, over TCP by default.
    """
    at(s, prefill, WorkerStep.SENT)
    request = s.worker_request[prefill]
    channel = s.knobs.prefill.aux_channel
    for decode in served(s, prefill):
        addressee = s.addressee[prefill, decode]
        if addressee == NONE or not writes(s, prefill):
            continue
        if channel == "in_chunk":
            s.nic[prefill, decode].send(kind=WriteKind.AUX, request=request, addressee=addressee, chunk=0, slot=0)
        elif channel == "fifo_tcp":
            room = room_of(s, request)
            s.report[prefill, decode].send(kind=ReportKind.AUX_DATA, room=room, generation=0, request=addressee)
        else:
            room = room_of(s, request)
            s.aux[prefill, decode].send(kind=ReportKind.AUX_DATA, room=room, generation=0, request=addressee)
    s.worker_step[prefill] = WorkerStep.AUX_POSTED if channel == "in_chunk" else WorkerStep.AUX_SENT


@action(LANE)
def aux_returns(s: Drain, prefill: PrefillRank) -> None:
    """The write of the metadata content has landed."""
    at(s, prefill, WorkerStep.AUX_POSTED)
    if writes(s, prefill):
        require_complete(s, prefill, served(s, prefill))
    for decode in served(s, prefill):
        s.completed[prefill, decode] = False
    s.worker_step[prefill] = WorkerStep.AUX_SENT


@action(LANE)
def decide_outcome(s: Drain, prefill: PrefillRank) -> None:
    """The last chunk is sent. The worker decides what to report: since 0.5.20 a failed room stays failed."""
    room = at(s, prefill, WorkerStep.AUX_SENT if s.knobs.metadata else WorkerStep.SENT)
    for decode in served(s, prefill):
        if s.addressee[prefill, decode] != NONE and writes(s, prefill):
            fill_at_gate(s, decode, s.addressee[prefill, decode])
    forget_addressees(s, prefill)
    terminal = s.knobs.prefill.failed_terminal
    if terminal and s.status[prefill, room] == Status.MISSING:
        s.worker_step[prefill] = WorkerStep.UNCOUNT
        return
    s.worker_success[prefill] = not terminal or is_open(s, prefill, room)
    s.worker_step[prefill] = WorkerStep.CONCLUDE


def fill_at_gate(s: Drain, decode: int, addressee: int) -> None:
    """Metadata content is in the buffer of whom the worker writes to; kept where the gate can matter.

    mooncake/conn.py: send_aux, behind the last chunk's call; nixl/conn.py and mori/conn.py send it beside the writes.
    """
    if numbers_come_again(s):
        s.filled[decode, addressee] = True


@action(LANE)
def report_outcome(s: Drain, prefill: PrefillRank) -> None:
    """The decided outcome becomes the room's status and is sent; an ABORT in between changes only the status.

    common/conn.py: conclude_transfer.
    """
    room = at(s, prefill, WorkerStep.CONCLUDE)
    conclude(s, prefill, room, s.worker_success[prefill])
    s.worker_success[prefill] = False
    s.worker_step[prefill] = WorkerStep.UNCOUNT


@action(LANE)
def uncount(s: Drain, prefill: PrefillRank) -> None:
    """The chunk is over, well or badly, and counts no more."""
    room = at(s, prefill, WorkerStep.UNCOUNT)
    s.outstanding[prefill, room] -= 1
    if tears_down(s):
        s.worker_sent[prefill] = True
    after_uncount(s, prefill)


def after_uncount(s: Drain, prefill: int) -> None:
    """With the drain ack the worker looks whether one is owed; without, it has done with the chunk."""
    if s.knobs.prefill.acks_drain:
        s.worker_step[prefill] = WorkerStep.CHECK_DRAIN
    else:
        finish_chunk(s, prefill)


def tears_down(s: Drain) -> bool:
    """Whether the worker's teardown of a room is part of the model: it drops what only a next life could miss."""
    return numbers_come_again(s) and s.knobs.prefill.teardown != "never"


def finish_chunk(s: Drain, prefill: int) -> None:
    """Behind a chunk that was not dropped, the worker looks whether the room is over; then it takes the next one."""
    if tears_down(s) and s.worker_sent[prefill]:
        s.worker_step[prefill] = WorkerStep.LOOK_AT_END
    else:
        go_idle(s, prefill)


@action(LANE)
def look_at_count(s: Drain, prefill: PrefillRank) -> None:
    """The worker looks whether another chunk of the room is counted. common/conn.py: _maybe_ack_drained_abort."""
    room = at(s, prefill, WorkerStep.CHECK_DRAIN)
    if s.outstanding[prefill, room] > 0:
        finish_chunk(s, prefill)
    else:
        s.worker_step[prefill] = WorkerStep.SEND_ACK


@action(LANE)
def ack_drained(s: Drain, prefill: PrefillRank) -> None:
    """Nothing of the room is counted: acks that are owed are sent by the worker."""
    room = at(s, prefill, WorkerStep.SEND_ACK)
    settle_targets(s, prefill, room)
    finish_chunk(s, prefill)


@action(LANE)
def look_at_end(s: Drain, prefill: PrefillRank) -> None:
    """The worker looks whether the room is over: none of its chunks counted, and it has ended on this rank.

    mooncake/conn.py, nixl/conn.py: the end of transfer_worker's loop. It compares nothing but the room number.
    """
    room = at(s, prefill, WorkerStep.LOOK_AT_END)
    status = s.status[prefill, room]
    over = (status == Status.SUCCESS) | ((status == Status.FAILED) & s.worker_last[prefill])
    if s.knobs.prefill.teardown == "concluded_or_gone":
        over |= status == Status.MISSING
    if over and s.outstanding[prefill, room] <= 0:
        s.worker_step[prefill] = WorkerStep.TEAR_DOWN
    else:
        go_idle(s, prefill)


@action(LANE)
def tear_down(s: Drain, prefill: PrefillRank) -> None:
    """The worker drops decode's addresses and the count of a room that is over, whosever they are by now."""
    room = at(s, prefill, WorkerStep.TEAR_DOWN)
    for decode in served(s, prefill):
        s.infos[prefill, room, decode] = NONE
    s.outstanding[prefill, room] = 0
    go_idle(s, prefill)


def go_idle(s: Drain, prefill: int) -> None:
    """The worker turns to its queue."""
    s.worker_step[prefill] = WorkerStep.IDLE
    s.worker_request[prefill] = 0
    s.worker_chunk[prefill] = 0
    s.worker_last[prefill] = False
    s.worker_counted[prefill] = False
    if tears_down(s):
        s.worker_sent[prefill] = False
    s.worker_at[prefill] = 0
    forget_addressees(s, prefill)
