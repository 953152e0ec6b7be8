"""The state of the abort/drain protocol: decode ranks, prefill ranks, their wires and NICs, and a victim request.

Names follow the releases where they have one: `status` is request_status of the prefill manager, `outstanding`
is _staging_outstanding, `target` is _deferred_ack_targets, `poisoned` is _deferred_ack_poisoned_rooms, `tracker`
is _deferred_abort_ack_tracker. docs/conformance.md maps every field and action.
"""

from __future__ import annotations

from ..language import UNBOUNDED, State, between, channel, field, flag, ghost, maybe, upto
from .indices import (
    Backlog,
    Chunk,
    DecodeRank,
    Deferral,
    Generation,
    Owner,
    PrefillRank,
    Request,
    Room,
    SendFault,
    Slot,
)
from .knobs import Setting
from .messages import Control, QueuedChunk, Report, Write
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
    VictimLife,
    WorkerStep,
)


class Drain(State[Setting]):
    """Fields by the process and thread that writes them."""

    # router
    told_decode = field(flag, Request, means="the router has sent the client's abort to decode")
    told_prefill = field(flag, Request, means="the router has sent the client's abort to prefill")
    # decode: scheduler
    life = field(Life, DecodeRank, Request, means="the request on the decode rank")
    slot = field(maybe(Slot), DecodeRank, Request, Chunk, means="the slots the request was given")
    destination = field(
        maybe(Slot), DecodeRank, Request, Chunk, means="the slots that the request's metadata names, for good"
    )
    notified = field(flag, DecodeRank, Request, means="ABORT has been sent for the request (abort_notified)")
    cancelled = field(
        flag, DecodeRank, Request, means="the rank has handled the client's abort; the next poll takes it"
    )
    generation = field(upto(Generation), DecodeRank, means="how many holds this decode process has armed")
    engine = field(Engine, means="whether decode is paused")
    decode_step = field(DecodeStep, DecodeRank, means="where the decode scheduler is")
    decode_request = field(Request, DecodeRank, means="the request it is at")
    # decode: scheduler and receiver thread
    poll = field(Poll, DecodeRank, Room, means="the receiver's status of the room (request_status)")
    responded = field(
        flag, DecodeRank, Room, PrefillRank, means="the rank has reported success (prefill_response_tracker)"
    )
    tracker = field(flag, DecodeRank, Room, means="acks of the room are counted (tracker armed)")
    tracker_generation = field(upto(Generation), DecodeRank, Room, means="the generation whose acks count")
    acked = field(flag, DecodeRank, Room, PrefillRank, means="the prefill rank's ack has been counted")
    # decode: memory
    owner = field(maybe(Owner), DecodeRank, Slot, means="whoever may use the slot; none if it is free")
    row_owner = field(maybe(Owner), DecodeRank, means="whoever may use the metadata buffer; none if it is free")
    row_content = field(maybe(Request), DecodeRank, means="the request whose metadata content the buffer holds")
    filled = field(
        flag, DecodeRank, Request, means="metadata content has come to the request's buffer, from whichever life"
    )
    arrived = field(flag, DecodeRank, Request, Chunk, means="the chunk has come to the staging ring, and is scattered")
    restore = field(Restore, DecodeRank, Request, means="the host tier's part of the prompt")
    copy = field(Copy, DecodeRank, Request, means="the copying of the request's pages to the host tier")
    victim = field(VictimLife, means="the request that only wants memory")
    # prefill: scheduler
    sender = field(Sender, PrefillRank, Request, means="the request on the prefill rank")
    produced = field(upto(Chunk), PrefillRank, Request, means="chunks computed so far")
    stub = field(flag, Request, means="prefill has rejected the request and hands off a stub of one page")
    scheduler_step = field(SchedulerStep, PrefillRank, means="where the prefill scheduler is")
    scheduler_request = field(Request, PrefillRank, means="the request it is at")
    scheduler_seen = field(Status, PrefillRank, means="the status it saw before it opens the room")
    # prefill: shared by scheduler, bootstrap thread and worker, without locks
    status = field(Status, PrefillRank, Room, means="the rank's status of the room (request_status)")
    infos = field(
        maybe(Request), PrefillRank, Room, DecodeRank, means="whose metadata are known for the room (transfer_infos)"
    )
    outstanding = field(
        between(-1, Chunk),
        PrefillRank,
        Room,
        means="chunks counted and not yet uncounted; a room opened anew can make it -1",
    )
    target = field(flag, PrefillRank, Room, DecodeRank, means="an ack is owed to the decode rank (deferred ack target)")
    target_generation = field(
        upto(Generation), PrefillRank, Room, DecodeRank, means="the generation that the ack will carry"
    )
    poisoned = field(flag, PrefillRank, Room, means="the room must never be acknowledged as drained")
    # prefill: bootstrap thread
    bootstrap_step = field(BootstrapStep, PrefillRank, means="where the bootstrap thread is")
    bootstrap_room = field(Room, PrefillRank, means="the room of the ABORT it handles")
    bootstrap_from = field(DecodeRank, PrefillRank, means="the decode rank whose ABORT it handles")
    bootstrap_active = field(flag, PrefillRank, means="the room was active when the thread looked")
    bootstrap_generation = field(upto(Generation), PrefillRank, means="the generation of the ABORT it handles")
    # prefill: transfer worker
    worker_step = field(WorkerStep, PrefillRank, means="where the worker is within its chunk")
    worker_request = field(Request, PrefillRank, means="the request whose pages its chunk reads")
    worker_chunk = field(Chunk, PrefillRank, means="its chunk")
    worker_last = field(flag, PrefillRank, means="it is the last chunk of the request")
    worker_counted = field(flag, PrefillRank, means="the chunk was counted before it was put back")
    worker_at = field(DecodeRank, PrefillRank, means="the decode rank it writes to now")
    worker_sent = field(flag, PrefillRank, means="its chunk was not dropped, so the room may be torn down behind it")
    worker_success = field(flag, PrefillRank, means="the outcome it has decided to report")
    addressee = field(
        maybe(Request), PrefillRank, DecodeRank, means="whose memory it writes to, as it found it for the chunk"
    )
    completed = field(flag, PrefillRank, DecodeRank, means="the call in flight has all its completions")
    # prefill: the transfer queue, where chunks are not told apart
    backlog = field(upto(Backlog), PrefillRank, means="chunks that wait for the worker, the request's last excepted")
    last_waits = field(flag, PrefillRank, means="the request's last chunk waits, behind the others")
    # environment
    dead = field(flag, PrefillRank, means="the process of the prefill rank has died")
    restarts = field(upto(Request), means="restarts of decode so far")
    send_faults = field(upto(SendFault), means="sends that have failed so far")
    deferrals = field(upto(Deferral), means="chunks put back so far because a staging ring was full")
    # wires
    control = channel(
        Control,
        DecodeRank,
        PrefillRank,
        capacity=lambda sizes: 2 * sizes[Request],
        means="a decode rank to a prefill rank, one socket",
    )
    report = channel(
        Report,
        PrefillRank,
        DecodeRank,
        capacity=lambda sizes: (4 if sizes[Generation] == UNBOUNDED else 3) * sizes[Request],
        means="a prefill rank to a decode rank, one socket",
    )
    aux = channel(
        Report,
        PrefillRank,
        DecodeRank,
        capacity=lambda sizes: sizes[Request],
        means="metadata content on a socket of its own",
    )
    queue = channel(
        QueuedChunk,
        PrefillRank,
        capacity=lambda sizes: sizes[Request] * sizes[Chunk],
        means="transfer queue, scheduler to worker",
    )
    nic = channel(
        Write,
        PrefillRank,
        DecodeRank,
        capacity=lambda sizes: 1 + (1 if sizes[SendFault] == UNBOUNDED else sizes[SendFault]) + sizes[Deferral],
        means="writes launched and not landed, in the order of their queue pair: nobody can recall them",
    )
    # ghosts: what really happened
    writer = ghost(
        maybe(Request), DecodeRank, Slot, PrefillRank, means="whose KV cache the rank's part of the slot has"
    )
    struck = ghost(maybe(Request), DecodeRank, Slot, means="whose write landed while another owned the slot")
    struck_row = ghost(maybe(Request), DecodeRank, means="whose metadata landed while another owned the buffer")
    cached = ghost(maybe(Request), DecodeRank, Slot, means="the request whose KV cache the radix tree has of the slot")
    failed = ghost(flag, DecodeRank, Request, means="the request's transfer has failed on the rank")
    stray_free = ghost(maybe(Slot), DecodeRank, means="a slot given back by a request that no longer owned it")
    foreign_copy = ghost(maybe(Request), DecodeRank, means="a request whose copy to the host tier read another's slot")
    false_ack = ghost(maybe(Request), DecodeRank, means="a request with a write in flight or launched behind its ack")
    late_pass = ghost(maybe(Request), PrefillRank, means="a request whose chunk passed the test behind an ABORT")
    revived = ghost(maybe(Room), PrefillRank, means="a room that had failed and was given another status")
    released_live = ghost(maybe(Request), means="a request released by the timer while a write of it was live")
    landed_held = ghost(flag, Request, means="a write for the request has landed while its slots were held")
    drained = ghost(flag, Request, means="the hold ended because every rank had acknowledged")
    parted = ghost(flag, means="decode's ranks have taken different decisions")
