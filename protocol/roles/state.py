"""The state of the abort/drain protocol: one decode rank, its prefill ranks, their NICs, and a victim request.

Names follow the releases where they have one: `status` is request_status of the prefill manager, `outstanding`
is _staging_outstanding, `target` is _deferred_ack_targets, `poisoned` is _deferred_ack_poisoned_rooms, `tracker`
is _deferred_abort_ack_tracker. docs/conformance.md maps every field and action.
"""

from __future__ import annotations

from enum import IntEnum

from ..language import Index, Message, State, between, channel, field, flag, ghost, maybe, part, upto
from .knobs import Knobs


class Room(Index):
    """A transfer of one request, known at both ends by its room number."""


class Request(Index):
    """Whoever can own slots: one request for each room, and last the victim, which only wants memory."""

    @classmethod
    def label(cls, value: int, size: int) -> str:
        return "victim" if value == size - 1 else f"room {value}"


class PrefillRank(Index):
    """A prefill rank: a process with a scheduler, a bootstrap thread, a transfer worker and a NIC."""


class Chunk(Index):
    """A part of a prompt's KV cache; chunk c of a room goes to the room's c-th slot."""


class Slot(Index):
    """A KV-cache slot of decode. Every prefill rank writes its own part of it."""


class SendFault(Index):
    """One send that may fail; their number is the fault budget."""


class Life(IntEnum):
    """A request on the decode side."""

    NEW = 0
    PREALLOCATED = 1
    TRANSFERRING = 2
    FAILING = 3
    HELD = 4
    DECODING = 5
    GONE = 6


class Poll(IntEnum):
    """What decode's receiver knows of a room; MISSING once it is cleared."""

    MISSING = 0
    WAITING = 1
    SUCCESS = 2
    FAILED = 3


class VictimLife(IntEnum):
    """The victim: it wants one slot, once."""

    WAITING = 0
    RUNNING = 1
    DONE = 2


class DecodeStep(IntEnum):
    """Where the decode scheduler is within a step that others can interleave with."""

    IDLE = 0
    ARM = 1
    SEND = 2
    DISPOSE = 3


class Status(IntEnum):
    """What a prefill rank knows of a room."""

    MISSING = 0
    BOOTSTRAPPING = 1
    WAITING = 2
    SUCCESS = 3
    FAILED = 4


class Sender(IntEnum):
    """A request on the prefill side."""

    NONE = 0
    QUEUED = 1
    RUNNING = 2
    INFLIGHT = 3
    GONE = 4


class SchedulerStep(IntEnum):
    """Where the prefill scheduler is within opening a room, putting a chunk or clearing a room."""

    IDLE = 0
    PUT = 1
    POP_STATUS = 2
    POP_INFOS = 3
    CHECK_DRAIN = 4
    SEND_ACK = 5
    OPEN = 6


class BootstrapStep(IntEnum):
    """Where the bootstrap thread is within handling an ABORT."""

    IDLE = 0
    MARK = 1
    REGISTER = 2
    CHECK_DRAIN = 3
    SEND_ACK = 4
    ANSWER = 5


class WorkerStep(IntEnum):
    """Where the transfer worker is within a chunk."""

    IDLE = 0
    TAKEN = 1
    TO_COUNT = 2
    COUNTED = 3
    TO_POST = 4
    POSTED = 5
    SENT = 6
    CONCLUDE = 7
    FAILED = 8
    REPORT = 9
    UNCOUNT = 10
    CHECK_DRAIN = 11
    SEND_ACK = 12


class Fate(IntEnum):
    """What becomes of the write of a call that has failed."""

    LIVE = 0
    DEAD = 1


class SendFailure(IntEnum):
    """How a send fails: it ends in an error, or it is refused when it is posted, perhaps in part."""

    ERROR = 0
    REJECTED_POST = 1


class ControlKind(IntEnum):
    """A message from decode to a prefill rank."""

    METADATA = 0
    ABORT = 1


class ReportKind(IntEnum):
    """A message from a prefill rank to decode."""

    SUCCESS = 0
    FAILED = 1
    ABORT_ACK = 2


class Control(Message):
    """Decode tells a prefill rank about a room; an ABORT may carry a generation, 0 for none."""

    kind = part(ControlKind)
    room = part(Room)
    generation = part(upto(Room))


class Report(Message):
    """A prefill rank tells decode about a room; an ack carries the generation of its ABORT."""

    kind = part(ReportKind)
    room = part(Room)
    generation = part(upto(Room))


class QueuedChunk(Message):
    """A chunk in the transfer queue. It carries the room number and nothing that tells one life from another."""

    room = part(Room)
    chunk = part(Chunk)


class Write(Message):
    """A work request on a queue pair: where it will land was fixed when it was posted."""

    room = part(Room)
    chunk = part(Chunk)
    slot = part(Slot)


class Drain(State[Knobs]):
    """Fields by the process and thread that writes them."""

    # decode: scheduler
    life = field(Life, Room, means="the request on the decode side")
    slot = field(maybe(Slot), Room, Chunk, means="the slots the request was given")
    destination = field(maybe(Slot), Room, Chunk, means="the slots that the room's metadata names, for good")
    notified = field(flag, Room, means="ABORT has been sent for the room (abort_notified)")
    generation = field(upto(Room), means="how many holds this decode process has armed")
    decode_step = field(DecodeStep, means="where the decode scheduler is")
    decode_room = field(Room, means="the room it is at")
    # decode: scheduler and receiver thread
    poll = field(Poll, Room, means="the receiver's status of the room (request_status)")
    responded = field(flag, Room, PrefillRank, means="the rank has reported success (prefill_response_tracker)")
    tracker = field(flag, Room, means="acks of the room are counted (tracker armed)")
    tracker_generation = field(upto(Room), Room, means="the generation whose acks count")
    acked = field(flag, Room, PrefillRank, means="the rank's ack has been counted")
    # decode: allocator
    owner = field(maybe(Request), Slot, means="the request that may use the slot; none if it is free")
    victim = field(VictimLife, means="the request that only wants memory")
    # prefill: scheduler
    sender = field(Sender, PrefillRank, Room, means="the request on the prefill side")
    produced = field(upto(Chunk), PrefillRank, Room, means="chunks computed so far")
    scheduler_step = field(SchedulerStep, PrefillRank, means="where the prefill scheduler is")
    scheduler_room = field(Room, PrefillRank, means="the room it is at")
    scheduler_seen = field(Status, PrefillRank, means="the status it saw before it opens the room")
    # prefill: shared by scheduler, bootstrap thread and worker, without locks
    status = field(Status, PrefillRank, Room, means="the rank's status of the room (request_status)")
    infos = field(flag, PrefillRank, Room, means="decode's metadata of the room is known (transfer_infos)")
    outstanding = field(
        between(-1, Chunk),
        PrefillRank,
        Room,
        means="chunks counted and not yet uncounted; a room opened anew can make it -1",
    )
    target = field(flag, PrefillRank, Room, means="an ack is owed to decode (deferred ack target)")
    target_generation = field(upto(Room), PrefillRank, Room, means="the generation that the ack will carry")
    poisoned = field(flag, PrefillRank, Room, means="the room must never be acknowledged as drained")
    # prefill: bootstrap thread
    bootstrap_step = field(BootstrapStep, PrefillRank, means="where the bootstrap thread is")
    bootstrap_room = field(Room, PrefillRank, means="the room of the ABORT it handles")
    bootstrap_active = field(flag, PrefillRank, means="the room was active when the thread looked")
    bootstrap_generation = field(upto(Room), PrefillRank, means="the generation of the ABORT it handles")
    # prefill: transfer worker
    worker_step = field(WorkerStep, PrefillRank, means="where the worker is within its chunk")
    worker_room = field(Room, PrefillRank, means="the room of its chunk")
    worker_chunk = field(Chunk, PrefillRank, means="its chunk")
    worker_success = field(flag, PrefillRank, means="the outcome it has decided to report")
    completed = field(flag, PrefillRank, means="the call in flight has all its completions")
    # environment
    send_faults = field(upto(SendFault), means="sends that have failed so far")
    # wires
    control = channel(
        Control,
        PrefillRank,
        capacity=lambda sizes: 2 * sizes[Room],
        means="decode to a prefill rank, one socket",
    )
    report = channel(
        Report,
        PrefillRank,
        capacity=lambda sizes: 2 * sizes[Room],
        means="a prefill rank to decode, one socket",
    )
    queue = channel(
        QueuedChunk,
        PrefillRank,
        capacity=lambda sizes: sizes[Room] * sizes[Chunk],
        means="transfer queue, scheduler to worker",
    )
    nic = channel(
        Write,
        PrefillRank,
        capacity=lambda sizes: 1 + sizes[SendFault],
        means="writes launched and not landed, in the order of their queue pair: nobody can recall them",
    )
    # ghosts: what really happened
    writer = ghost(maybe(Room), Slot, PrefillRank, means="the room that wrote the rank's part of the slot last")
    struck = ghost(maybe(Room), Slot, means="the room whose write landed while another request owned the slot")
    stray_free = ghost(maybe(Slot), means="a slot given back by a request that no longer owned it")
    released_live = ghost(maybe(Room), means="a room released by the timer while a write of it was live")
    landed_held = ghost(flag, Room, means="a write of the room has landed while its slots were held")
    drained = ghost(flag, Room, means="the hold ended because every rank had acknowledged")
