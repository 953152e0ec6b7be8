"""Lemmas about the drain in endless lives: together with its safety they are inductive, which proves the safety.

Each says what is true in every reachable state of models/drain/endless.py: one decode rank, one room at a time
that is used any number of times, any number of chunks, generations, failing sends and victims. Each is about decode and
one prefill rank, so that together they say it of any number of ranks. None is an assumption: `draincheck prove` checks
that no step breaks any of them. They hold for a release that counts before it looks, keeps failed rooms failed, poisons
failed sends, tags generations and holds whatever fails; of others some step breaks one, and the proof fails there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.language import NONE
from ...protocol.language.channel import Fifo
from ...protocol.language.property import claim, invariant
from ...protocol.roles.indices import Chunk, DecodeRank, PrefillRank, Slot
from ...protocol.roles.messages import Control, ControlKind, Report, ReportKind
from ...protocol.roles.state import Drain
from ...protocol.roles.steps import BootstrapStep, DecodeStep, Life, Poll, SchedulerStep, Sender, Status, WorkerStep
from ...protocol.roles.topology import served
from .safety import acks_are_true, frees_only_its_own, no_late_write, owned_once

REQUEST = 0
ROOM = 0

UNDER_WAY = (Life.TRANSFERRING, Life.FAILING, Life.HELD)
"""Where a request is on decode while prefill may write for it."""

COUNTED = (
    WorkerStep.COUNTED,
    WorkerStep.TO_POST,
    WorkerStep.POSTED,
    WorkerStep.SENT,
    WorkerStep.CONCLUDE,
    WorkerStep.FAILED,
    WorkerStep.REPORT,
    WorkerStep.UNCOUNT,
)
"""Where the worker is while its chunk counts as outstanding."""

SENDING = (WorkerStep.TO_POST, WorkerStep.POSTED)
CONCLUDING = (WorkerStep.SENT, WorkerStep.CONCLUDE)
PASSED = (*SENDING, *CONCLUDING, WorkerStep.FAILED, WorkerStep.REPORT)
"""Where the worker is once it has found the room open, until its chunk is over."""

STATUS_GONE = (SchedulerStep.POP_INFOS, SchedulerStep.CHECK_DRAIN, SchedulerStep.SEND_ACK)
"""Where the scheduler is within clearing, once the room's status is gone."""

CLOSING = (WorkerStep.IDLE, WorkerStep.UNCOUNT, WorkerStep.CHECK_DRAIN, WorkerStep.SEND_ACK)
"""Where the worker is when the last chunk has been concluded."""


def implies(condition: int, consequence: int) -> int:
    """Whether one thing holds where the other does, as one condition."""
    return (condition == 0) | consequence


def is_one_of(value: int, *options: int) -> int:
    """Whether a value is one of several, as one condition."""
    found = 0
    for option in options:
        found |= value == option
    return found


def links(s: Drain) -> Iterator[tuple[int, int]]:
    """Each prefill rank with each decode rank that it serves."""
    for prefill in s.all(PrefillRank):
        for decode in served(s, prefill):
            yield prefill, decode


def has_metadata(s: Drain, prefill: int, decode: int) -> int:
    """Decode's metadata are on their way to the rank."""
    return s.control[decode, prefill].some(lambda message: message.kind == ControlKind.METADATA)


def has_ended_there(s: Drain, prefill: int) -> int:
    """The rank has cleared the room's status, or is done with the request."""
    return (s.sender[prefill, REQUEST] == Sender.GONE) | is_one_of(s.scheduler_step[prefill], *STATUS_GONE)


def has_waiting(s: Drain, prefill: int) -> int:
    """A chunk waits for the worker."""
    return (s.backlog[prefill] != 0) | (s.last_waits[prefill] != 0)


def has_chunks(s: Drain, prefill: int) -> int:
    """The rank has begun to compute, queue or send."""
    working = (s.worker_step[prefill] != WorkerStep.IDLE) | (s.scheduler_step[prefill] == SchedulerStep.PUT)
    begun = is_one_of(s.sender[prefill, REQUEST], Sender.RUNNING, Sender.INFLIGHT)
    return has_waiting(s, prefill) | working | begun


def is_closed(s: Drain, prefill: int, decode: int) -> int:
    """The worker will find the room failed or gone, or has nothing left to look for: no further write is launched."""
    status = s.status[prefill, ROOM]
    finished = (status == Status.SUCCESS) & (s.sender[prefill, REQUEST] == Sender.INFLIGHT)
    finished &= (has_waiting(s, prefill) == 0) & is_one_of(s.worker_step[prefill], *CLOSING)
    cleared = (status == Status.MISSING) & has_ended_there(s, prefill)
    return (has_metadata(s, prefill, decode) == 0) & ((status == Status.FAILED) | finished | cleared)


def is_drained(s: Drain, prefill: int, decode: int) -> int:
    """Nothing of the request is in flight, and nothing will be: what an ack says."""
    idle = (s.nic[prefill, decode].length == 0) & (is_one_of(s.worker_step[prefill], *SENDING) == 0)
    return idle & is_closed(s, prefill, decode)


def is_unpublished(s: Drain, prefill: int, decode: int) -> int:
    """The rank has none of decode's addresses, and has begun nothing for which it would need them."""
    early = is_one_of(s.status[prefill, ROOM], Status.MISSING, Status.BOOTSTRAPPING, Status.FAILED)
    nothing = (has_chunks(s, prefill) == 0) & (s.nic[prefill, decode].length == 0)
    return early & nothing & (s.infos[prefill, ROOM, decode] == NONE)


def acks_of(s: Drain, prefill: int, decode: int, generation: int) -> int:
    """An ack of the generation is on its way to decode."""
    return s.report[prefill, decode].some(
        lambda report: (report.kind == ReportKind.ABORT_ACK) & (report.generation == generation)
    )


def carries_from(wire: Fifo[Control] | Fifo[Report], generation: int) -> int:
    """A message with this generation or a later one is on the wire."""
    return wire.some(lambda message: message.generation >= generation)


def other_tags(s: Drain, prefill: int, decode: int) -> int:
    """An ABORT with another generation than the tracker's is on its way to the rank."""
    current = s.tracker_generation[decode, ROOM]
    return s.control[decode, prefill].some(
        lambda message: (
            (message.kind == ControlKind.ABORT) & (message.generation != 0) & (message.generation != current)
        )
    )


def is_handling(s: Drain, prefill: int, decode: int) -> int:
    """The rank's bootstrap thread handles the ABORT whose acks decode counts."""
    current = s.bootstrap_generation[prefill] == s.tracker_generation[decode, ROOM]
    return (s.tracker[decode, ROOM] != 0) & current & (s.bootstrap_step[prefill] != BootstrapStep.IDLE)


def is_owed(s: Drain, prefill: int, decode: int) -> int:
    """The rank owes decode an ack that decode will count."""
    current = s.target_generation[prefill, ROOM, decode] == s.tracker_generation[decode, ROOM]
    return (s.tracker[decode, ROOM] != 0) & current


def is_acknowledged(s: Drain, prefill: int, decode: int) -> int:
    """The rank's ack is on its way or counted."""
    generation = s.tracker_generation[decode, ROOM]
    counted = s.acked[decode, ROOM, prefill] != 0
    return (s.tracker[decode, ROOM] != 0) & (acks_of(s, prefill, decode, generation) | counted)


def awaits_abort(s: Drain, prefill: int, decode: int) -> int:
    """The ABORT whose acks decode counts is on its way to the rank."""
    generation = s.tracker_generation[decode, ROOM]
    asked = s.control[decode, prefill].some(
        lambda message: (message.kind == ControlKind.ABORT) & (message.generation == generation)
    )
    return (s.tracker[decode, ROOM] != 0) & asked


@invariant
def memory_is_the_requests(s: Drain) -> None:
    """From its reservation to its end a request owns its slots, and prefill was told just these."""
    for decode in s.all(DecodeRank):
        life = s.life[decode, REQUEST]
        for chunk in s.all(Chunk):
            slot, named = s.slot[decode, REQUEST, chunk], s.destination[decode, REQUEST, chunk]
            claim((slot == NONE) == is_one_of(life, Life.NEW, Life.GONE), "it has slots while it lives", life=life)
            for each in s.all(Slot):
                claim(implies(slot == each, s.owner[decode, each] == REQUEST), "it owns its slots", slot=each)
            for other in s.all(Chunk):
                claim(
                    (chunk == other) | (slot == NONE) | (slot != s.slot[decode, REQUEST, other]),
                    "no slot is given twice",
                )
            told = is_one_of(life, *UNDER_WAY, Life.DECODING)
            claim(implies(told, named == slot), "prefill was told its slots", life=life)
            untold = is_one_of(life, Life.NEW, Life.PREALLOCATED)
            claim(implies(untold, named == NONE), "prefill was told nothing before", life=life)


@invariant
def decode_goes_in_order(s: Drain) -> None:
    """Decode notifies a transfer that failed or was aborted, once, before it holds; nothing is held without."""
    for decode in s.all(DecodeRank):
        life, step, poll = s.life[decode, REQUEST], s.decode_step[decode], s.poll[decode, ROOM]
        notified = s.notified[decode, REQUEST] != 0
        telling = is_one_of(step, DecodeStep.ARM, DecodeStep.SEND)
        claim(telling | is_one_of(step, DecodeStep.IDLE, DecodeStep.DISPOSE), "it is at one of four steps", step=step)
        ending = is_one_of(life, Life.TRANSFERRING, Life.FAILING)
        claim(implies(telling, ending & (notified == 0)), "it tells once", step=step)
        claim(implies((telling | notified) & (life == Life.TRANSFERRING), poll == Poll.FAILED), "it fails first")
        claim(implies(step == DecodeStep.DISPOSE, (life == Life.FAILING) & notified), "it tells before it disposes")
        claim(implies(life == Life.FAILING, step != DecodeStep.IDLE), "it goes on with what fails")
        claim(implies(notified, is_one_of(life, *UNDER_WAY, Life.GONE)), "it tells of what is under way", life=life)
        claim(implies(life == Life.HELD, notified), "it holds what it has told")
        cancelled = s.cancelled[decode, REQUEST] != 0
        claim(implies(cancelled, (life == Life.TRANSFERRING) & (telling | notified)), "a client's abort is told")
        polled = is_one_of(life, Life.PREALLOCATED, Life.TRANSFERRING)
        claim((poll != Poll.MISSING) == polled, "it polls what is under way", poll=poll, life=life)
        claim(implies(life == Life.PREALLOCATED, poll == Poll.WAITING), "nothing is reported before it is asked for")


@invariant
def tracker_is_armed_in_time(s: Drain) -> None:
    """The tracker is armed before the ABORT is sent and until the request is gone, with a generation of its own."""
    for decode in s.all(DecodeRank):
        notified = s.notified[decode, REQUEST] != 0
        armed = (s.decode_step[decode] == DecodeStep.SEND) | (notified & (s.life[decode, REQUEST] != Life.GONE))
        generation = s.tracker_generation[decode, ROOM]
        claim((s.tracker[decode, ROOM] != 0) == armed, "it is armed while acks can come")
        claim((generation != 0) == armed, "it then has a generation", generation=generation)
        claim(generation <= s.generation[decode], "no generation is ahead of the counter")
    for prefill, decode in links(s):
        counted = (s.tracker[decode, ROOM] != 0) & (s.notified[decode, REQUEST] != 0)
        claim(implies(s.acked[decode, ROOM, prefill] != 0, counted), "acks are counted behind the ABORT")


@invariant
def generations_are_known(s: Drain) -> None:
    """Nothing carries a generation that decode has not given out; while an ABORT is not sent yet, nor its own."""
    for prefill, decode in links(s):
        given, armed = s.generation[decode], s.decode_step[decode] == DecodeStep.SEND
        unsent = s.tracker_generation[decode, ROOM]
        for generation in (s.bootstrap_generation[prefill], s.target_generation[prefill, ROOM, decode]):
            claim(generation <= given, "prefill knows what was given out")
            claim(implies(armed, generation < unsent), "prefill does not know what was not sent")
        for wire in (s.control[decode, prefill], s.report[prefill, decode]):
            claim(carries_from(wire, given + 1) == 0, "wires carry what was given out")
            claim(implies(armed, carries_from(wire, unsent) == 0), "wires do not carry what was not sent")


@invariant
def control_wire_is_in_order(s: Drain) -> None:
    """To prefill go the metadata of the request, once, and behind them one ABORT."""
    for prefill, decode in links(s):
        wire, life = s.control[decode, prefill], s.life[decode, REQUEST]
        notified = s.notified[decode, REQUEST] != 0
        for place, message in enumerate(wire.waiting()):
            claim((place == 0) | (message.kind == ControlKind.ABORT), "metadata come first")
        aborts = wire.count(lambda message: message.kind == ControlKind.ABORT)
        claim(aborts <= 1, "one ABORT")
        metadata = has_metadata(s, prefill, decode)
        claim(implies(metadata, is_one_of(life, *UNDER_WAY)), "metadata are those of a request under way", life=life)
        tagged = wire.some(lambda message: (message.kind == ControlKind.ABORT) & (message.generation != 0))
        claim(
            implies(tagged, notified & is_one_of(life, *UNDER_WAY)),
            "an ABORT with a generation is of a hold",
            life=life,
        )
        stray = other_tags(s, prefill, decode)
        claim(stray == 0, "its generation is the tracker's")
        untagged = wire.some(lambda message: (message.kind == ControlKind.ABORT) & (message.generation == 0))
        claim(implies(untagged, (life == Life.GONE) & (notified == 0)), "one without was sent before any reservation")


@invariant
def prefill_needs_metadata(s: Drain) -> None:
    """Without decode's metadata a rank does nothing but wait; with them it knows the room until it clears it."""
    for prefill, decode in links(s):
        life, status = s.life[decode, REQUEST], s.status[prefill, ROOM]
        metadata, ended = has_metadata(s, prefill, decode), has_ended_there(s, prefill)
        early = is_one_of(life, Life.NEW, Life.PREALLOCATED) | metadata
        claim(
            implies(early, is_unpublished(s, prefill, decode)), "it has no addresses before", life=life, status=status
        )
        known = is_one_of(life, *UNDER_WAY) & (metadata == 0)
        unknown = is_one_of(status, Status.MISSING, Status.BOOTSTRAPPING)
        claim(implies(known & unknown, (status == Status.MISSING) & ended), "it knows the room after", status=status)
        open_ = is_one_of(status, Status.WAITING, Status.SUCCESS)
        claim(implies(open_ & (ended == 0), s.infos[prefill, ROOM, decode] != NONE), "an open room has addresses")


@invariant
def nothing_is_written_behind_the_end(s: Drain) -> None:
    """Of a request that has left the transfer nothing is in flight, and nothing will be."""
    for prefill, decode in links(s):
        over = is_one_of(s.life[decode, REQUEST], Life.DECODING, Life.GONE)
        never = is_unpublished(s, prefill, decode) & (has_metadata(s, prefill, decode) == 0)
        claim(implies(over, is_drained(s, prefill, decode) | never), "prefill is done with it, or never began")


@invariant
def count_is_the_workers(s: Drain) -> None:
    """The counter says whether the worker is at a chunk of the room, between counting and uncounting it."""
    for prefill in s.all(PrefillRank):
        at_it = is_one_of(s.worker_step[prefill], *COUNTED)
        claim(s.outstanding[prefill, ROOM] == at_it, "one chunk at most is counted")


@invariant
def writes_are_for_the_request(s: Drain) -> None:
    """One write at most is in flight, to a slot of the request; one that nobody waits for has poisoned the room."""
    for prefill, decode in links(s):
        flying, step = s.nic[prefill, decode].length, s.worker_step[prefill]
        completed = s.completed[prefill, decode] != 0
        calling = (step == WorkerStep.POSTED) & (completed == 0)
        claim(flying <= 1, "one write at most is in flight")
        claim(implies(calling, flying == 1), "a call in flight has its write in flight")
        claim(implies(completed, (step == WorkerStep.POSTED) & (flying == 0)), "a complete call has none")
        left = (flying == 1) & (calling == 0)
        poisoned = (s.poisoned[prefill, ROOM] != 0) | (step == WorkerStep.FAILED)
        claim(implies(left, poisoned), "a write that outlives its call poisons the room")
        ending = is_one_of(step, WorkerStep.FAILED, WorkerStep.REPORT)
        closed = is_closed(s, prefill, decode) & (s.status[prefill, ROOM] != Status.SUCCESS)
        claim(implies(left, ending | closed), "its room is closed, or about to be", step=step)
        claim(implies(left, is_one_of(step, *SENDING, *CONCLUDING) == 0), "the worker sends nothing more", step=step)
        life = s.life[decode, REQUEST]
        claim(implies(flying != 0, is_one_of(life, *UNDER_WAY)), "writes are of a request under way", life=life)
        for write in s.nic[prefill, decode].waiting():
            for chunk in s.all(Chunk):
                named = write.slot == s.destination[decode, REQUEST, chunk]
                claim(implies(write.chunk == chunk, named), "they go where decode said")
        addressed = is_one_of(step, WorkerStep.POSTED, WorkerStep.SENT)
        claim((s.addressee[prefill, decode] != NONE) == addressed, "the worker has an address while it needs it")


@invariant
def chunks_go_in_order(s: Drain) -> None:
    """Chunks are put by a running request, taken in order, and the last one comes last."""
    for prefill in s.all(PrefillRank):
        step, sender, status = s.worker_step[prefill], s.sender[prefill, REQUEST], s.status[prefill, ROOM]
        scheduler, waiting = s.scheduler_step[prefill], has_waiting(s, prefill)
        idle = step == WorkerStep.IDLE
        at_last = (idle == 0) & (s.worker_last[prefill] != 0)
        steps = is_one_of(step, *COUNTED, WorkerStep.TAKEN, WorkerStep.CHECK_DRAIN, WorkerStep.SEND_ACK)
        claim(idle | steps, "the worker is at a step of a transfer", step=step)
        claim(implies(idle, s.worker_last[prefill] == 0), "an idle worker has no chunk")
        put = is_one_of(sender, Sender.INFLIGHT, Sender.GONE, Sender.ABORTED)
        claim(
            implies((s.last_waits[prefill] != 0) | at_last, put), "nothing is computed behind the last", sender=sender
        )
        claim(implies(at_last, waiting == 0), "nothing waits behind the last")
        claim(implies(is_one_of(step, *CONCLUDING), s.worker_last[prefill] != 0), "the last concludes", step=step)
        claim(implies(scheduler == SchedulerStep.PUT, sender == Sender.RUNNING), "a running request puts chunks")
        new = is_one_of(sender, Sender.NONE, Sender.QUEUED)
        claim(implies(new, (waiting == 0) & idle), "before it runs there are none", sender=sender)
        coming = (s.last_waits[prefill] != 0) | (
            at_last & is_one_of(step, WorkerStep.TAKEN, WorkerStep.COUNTED, *PASSED)
        )
        unsent = (sender == Sender.INFLIGHT) & (status == Status.WAITING) & (has_ended_there(s, prefill) == 0)
        claim(implies(unsent, coming), "a room that waits for its transfer gets it", step=step)


@invariant
def rooms_are_cleared_in_order(s: Drain) -> None:
    """Clearing is of a request that waits; behind it nothing of the room is sent, even if its status comes back."""
    for prefill in s.all(PrefillRank):
        scheduler, sender, status = s.scheduler_step[prefill], s.sender[prefill, REQUEST], s.status[prefill, ROOM]
        claim(is_one_of(scheduler, SchedulerStep.OPEN, SchedulerStep.DEAD) == 0, "opening is one step", step=scheduler)
        clearing = is_one_of(scheduler, SchedulerStep.POP_STATUS, *STATUS_GONE)
        polled = is_one_of(sender, Sender.QUEUED, Sender.INFLIGHT)
        claim(implies(clearing, polled), "what is polled is cleared", sender=sender)
        claim(implies(sender == Sender.ABORTED, status == Status.FAILED), "what prefill gave up has failed")
        sending = is_one_of(s.worker_step[prefill], *PASSED)
        claim(implies(scheduler == SchedulerStep.SEND_ACK, sending == 0), "nothing was counted, and nothing is")
        nothing = (has_waiting(s, prefill) == 0) & (s.worker_step[prefill] == WorkerStep.IDLE)
        reopened = nothing & (status != Status.SUCCESS)
        ended = has_ended_there(s, prefill)
        claim(
            implies(ended, (status == Status.MISSING) | reopened), "a room taken up again has no chunks", status=status
        )


@invariant
def success_is_true(s: Drain) -> None:
    """Success says that everything has landed; decode takes it for granted only when every rank has said so."""
    for prefill, decode in links(s):
        flying, status = s.nic[prefill, decode].length, s.status[prefill, ROOM]
        landed = is_closed(s, prefill, decode) & (flying == 0)
        claim(implies(status == Status.SUCCESS, landed), "the rank's status is true")
        responded = s.responded[decode, ROOM, prefill] != 0
        told = s.report[prefill, decode].some(lambda report: report.kind == ReportKind.SUCCESS) | responded
        claim(implies(told, is_drained(s, prefill, decode)), "what the rank has reported is true")
        claim(implies(is_one_of(s.worker_step[prefill], *CONCLUDING), flying == 0), "it concludes when all has landed")
        life = s.life[decode, REQUEST]
        claim(implies(responded, life == Life.TRANSFERRING), "responses are those of the transfer", life=life)
        succeeded = s.poll[decode, ROOM] == Poll.SUCCESS
        claim(implies(succeeded, responded), "a transfer succeeds when every rank has responded")


@invariant
def reports_fit_their_wire(s: Drain) -> None:
    """To decode goes one result, behind the last write; and three acks: one left over, one owed, one to come."""
    for prefill, decode in links(s):
        wire, life, step = s.report[prefill, decode], s.life[decode, REQUEST], s.bootstrap_step[prefill]
        claim(is_one_of(step, BootstrapStep.ANSWER, BootstrapStep.DEAD) == 0, "every ABORT is registered", step=step)
        results = wire.count(lambda report: report.kind != ReportKind.ABORT_ACK)
        claim(results <= 1, "one result")
        over = is_closed(s, prefill, decode) & (is_one_of(s.worker_step[prefill], *PASSED) == 0)
        claim(implies(results != 0, over), "nothing is sent behind the result")
        early = is_one_of(life, Life.NEW, Life.PREALLOCATED) | has_metadata(s, prefill, decode)
        claim(implies(results != 0, early == 0), "a result is that of this request", life=life)
        acks = wire.count(lambda report: report.kind == ReportKind.ABORT_ACK)
        asked = s.control[decode, prefill].count(lambda message: message.kind == ControlKind.ABORT)
        taken = is_one_of(step, BootstrapStep.MARK, BootstrapStep.REGISTER)
        ended = is_one_of(life, Life.HELD, Life.DECODING, Life.GONE)
        to_come = (s.notified[decode, REQUEST] == 0) & (ended == 0)
        owed = s.target[prefill, ROOM, decode]
        claim(acks + owed + asked + taken + to_come <= 3, "one ack for each ABORT", acks=acks, owed=owed)


@invariant
def aborts_close_the_room(s: Drain) -> None:
    """A rank that has taken the ABORT launches nothing more, and acknowledges when nothing is in flight."""
    for prefill, decode in links(s):
        step, closed = s.bootstrap_step[prefill], is_closed(s, prefill, decode)
        claim(implies(step == BootstrapStep.IDLE, s.bootstrap_generation[prefill] == 0), "an idle thread has no ABORT")
        owes = s.target[prefill, ROOM, decode] != 0
        claim(implies(owes == 0, s.target_generation[prefill, ROOM, decode] == 0), "no target, no generation")
        handling, owed = is_handling(s, prefill, decode), is_owed(s, prefill, decode)
        acknowledged, pending = is_acknowledged(s, prefill, decode), awaits_abort(s, prefill, decode)
        active = handling & (step == BootstrapStep.MARK) & (s.bootstrap_active[prefill] != 0)
        notified = s.notified[decode, REQUEST] != 0
        holding = notified & is_one_of(s.life[decode, REQUEST], *UNDER_WAY)
        claim(implies(holding & (pending == 0) & (active == 0), closed), "a room whose ABORT was taken is closed")
        claim(implies(handling, has_metadata(s, prefill, decode) == 0), "the ABORT came behind the metadata")
        claim(implies(handling | owed | acknowledged, notified), "the ABORT was sent")
        claim(implies(pending, (handling | owed | acknowledged) == 0), "one ABORT is answered once")
        claim(implies(owed, closed), "an ack is owed for a closed room")
        ready = step == BootstrapStep.SEND_ACK
        ready |= (s.scheduler_step[prefill] == SchedulerStep.SEND_ACK) | (s.worker_step[prefill] == WorkerStep.SEND_ACK)
        sending = is_one_of(s.worker_step[prefill], *PASSED)
        claim(implies(owed & ready, sending == 0), "nothing was counted, and nothing is")
        claim(implies(acknowledged, is_drained(s, prefill, decode)), "an ack is true")


GOALS = (no_late_write, acks_are_true, owned_once, frees_only_its_own)
"""What is to be proved."""

LEMMAS = (
    memory_is_the_requests,
    decode_goes_in_order,
    tracker_is_armed_in_time,
    generations_are_known,
    control_wire_is_in_order,
    prefill_needs_metadata,
    nothing_is_written_behind_the_end,
    count_is_the_workers,
    writes_are_for_the_request,
    chunks_go_in_order,
    rooms_are_cleared_in_order,
    success_is_true,
    reports_fit_their_wire,
    aborts_close_the_room,
)
"""What it takes."""
