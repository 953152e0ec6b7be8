"""The reference model: a deliberately small deferred release, the yardstick that every engine is held to.

Its counts are known from independent searches: 581,821 states and 1,983,016 transitions untimed;
76,396,202 states and 449,983,998 transitions with a hold of one tick (34,693,546 states after a late write).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ...protocol.language import (
    NONE,
    DeclarationError,
    Index,
    State,
    action,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    require,
    upto,
)
from ...protocol.language.model import Model, SlotView
from ...protocol.language.property import Kind, claim, invariant, probe


class Room(Index):
    """A request and its transfer."""


class PrefillRank(Index):
    """A prefill rank; each writes its own part of every slot."""


class Chunk(Index):
    """A part of a room's transfer; chunk c goes to the room's c-th slot."""


class Slot(Index):
    """A KV-cache slot of the decode engine."""


class Tick(Index):
    """A value of the hold timer; one tick means that there is no timer."""


class Phase(IntEnum):
    """Where a room is in its life, as decode sees it."""

    WAITING = 0
    TRANSFERRING = 1
    HELD = 2
    DECODING = 3
    DONE = 4
    ABORTED = 5


class Status(IntEnum):
    """What a prefill rank thinks of a room."""

    IDLE = 0
    ACTIVE = 1
    FAILED = 2


class Reference(State[None]):
    """The state; it starts with every field at its lowest value."""

    phase = field(Phase, Room, means="where the room is in its life")
    slot = field(maybe(Slot), Room, Chunk, means="the slots the room was given; kept after the release")
    owner = field(maybe(Room), Slot, means="the room that may use the slot")
    acked = field(flag, Room, PrefillRank, means="decode has this rank's drain ack")
    rank = field(Status, PrefillRank, Room, means="what the rank thinks of the room")
    left = field(upto(Chunk), PrefillRank, Room, means="chunks not yet produced")
    queued = field(upto(Chunk), PrefillRank, Room, means="chunks produced and not yet taken by the worker")
    call = field(flag, PrefillRank, Room, Chunk, means="a write is launched and has not landed")
    landed = field(upto(Chunk), PrefillRank, Room, means="chunks that have landed")
    target = field(flag, PrefillRank, Room, means="the rank owes decode an ack")
    abort_sent = field(flag, Room, PrefillRank, means="an ABORT is on its way to the rank")
    ack_sent = field(flag, Room, PrefillRank, means="an ack is on its way to decode")
    hold = field(Tick, Room, means="ticks since the room's slots were held")
    data = ghost(maybe(Room), Slot, PrefillRank, means="the room that wrote the rank's part last")
    bad = ghost(flag, means="a write has landed in another room's slot")


@action("decode")
def admit(s: Reference, q: Room) -> None:
    """Decode reserves the lowest free slots for the room, and every rank begins."""
    require(s.phase[q] == Phase.WAITING)
    chunk = 0
    for slot in s.all(Slot):
        if chunk < s.size(Chunk) and s.owner[slot] == NONE:
            s.owner[slot] = q
            s.slot[q, chunk] = slot
            chunk += 1
    require(chunk == s.size(Chunk))
    s.phase[q] = Phase.TRANSFERRING
    for p in s.all(PrefillRank):
        s.rank[p, q] = Status.ACTIVE
        s.left[p, q] = s.size(Chunk)


@action("prefill {p}")
def produce(s: Reference, p: PrefillRank, q: Room) -> None:
    """The rank puts its next chunk in the transfer queue."""
    require(s.rank[p, q] == Status.ACTIVE)
    require(s.left[p, q] > 0)
    s.left[p, q] -= 1
    s.queued[p, q] += 1


@action("prefill {p}", toward="NIC {p}")
def dequeue(s: Reference, p: PrefillRank, q: Room) -> None:
    """The worker takes the oldest chunk: dropped if the room has failed, else its write is launched."""
    require(s.queued[p, q] > 0)
    for c in s.all(Chunk):
        require(not s.call[p, q, c])
    chunk = s.size(Chunk) - s.left[p, q] - s.queued[p, q]
    s.queued[p, q] -= 1
    if s.rank[p, q] != Status.FAILED:
        s.call[p, q, chunk] = True


@action("NIC {p}", toward="decode")
def land(s: Reference, p: PrefillRank, q: Room, c: Chunk) -> None:
    """The write arrives in decode's memory, whoever owns the slot by now."""
    require(s.call[p, q, c])
    s.call[p, q, c] = False
    s.landed[p, q] += 1
    note_landing(s, p, q, s.slot[q, c])


@ghost_code
def note_landing(s: Reference, p: PrefillRank, q: Room, slot: int) -> None:
    """Keeps who wrote the slot, and whether it was somebody else's."""
    s.data[slot, p] = q
    if s.owner[slot] != NONE and s.owner[slot] != q:
        s.bad = True


@action("decode")
def succeed(s: Reference, q: Room) -> None:
    """All chunks of all ranks have arrived."""
    require(s.phase[q] == Phase.TRANSFERRING)
    for p in s.all(PrefillRank):
        require(s.landed[p, q] == s.size(Chunk))
    s.phase[q] = Phase.DECODING


@action("decode")
def finish(s: Reference, q: Room) -> None:
    """The request ends normally."""
    require(s.phase[q] == Phase.DECODING)
    s.phase[q] = Phase.DONE
    free_slots(s, q)


def free_slots(s: Reference, q: Room) -> None:
    """Gives the room's slots back to the allocator."""
    for slot in s.all(Slot):
        if s.owner[slot] == q:
            s.owner[slot] = NONE


@action("decode", toward="prefill")
def abort(s: Reference, q: Room) -> None:
    """The request dies while it is transferred: decode tells every rank and holds the slots."""
    require(s.phase[q] == Phase.TRANSFERRING)
    s.phase[q] = Phase.HELD
    s.hold[q] = 0
    for p in s.all(PrefillRank):
        s.abort_sent[q, p] = True


@action("prefill {p}")
def recv_abort(s: Reference, p: PrefillRank, q: Room) -> None:
    """The rank learns of the abort: it drops what is queued, and owes an ack."""
    require(s.abort_sent[q, p])
    s.abort_sent[q, p] = False
    s.rank[p, q] = Status.FAILED
    s.target[p, q] = True


@action("prefill {p}", toward="decode")
def send_ack(s: Reference, p: PrefillRank, q: Room) -> None:
    """Nothing of the room is in flight any more: the rank acknowledges the drain."""
    require(s.target[p, q])
    for c in s.all(Chunk):
        require(not s.call[p, q, c])
    s.target[p, q] = False
    s.ack_sent[q, p] = True


@action("decode")
def recv_ack(s: Reference, p: PrefillRank, q: Room) -> None:
    """Decode notes the rank's ack if it still holds the room."""
    require(s.ack_sent[q, p])
    s.ack_sent[q, p] = False
    if s.phase[q] == Phase.HELD:
        s.acked[q, p] = True


@action("network")
def drop_ack(s: Reference, p: PrefillRank, q: Room) -> None:
    """The ack is lost."""
    require(s.ack_sent[q, p])
    s.ack_sent[q, p] = False


@action("decode")
def drained(s: Reference, q: Room) -> None:
    """Every rank has acknowledged: the hold ends."""
    require(s.phase[q] == Phase.HELD)
    for p in s.all(PrefillRank):
        require(s.acked[q, p])
    s.phase[q] = Phase.ABORTED
    free_slots(s, q)


@action("decode")
def tick(s: Reference, q: Room) -> None:
    """Time passes for the held room."""
    require(s.phase[q] == Phase.HELD)
    require(s.hold[q] < s.size(Tick) - 1)
    s.hold[q] += 1


@action("decode")
def timeout(s: Reference, q: Room) -> None:
    """The hold ends by its timer, whatever is still in flight."""
    require(s.phase[q] == Phase.HELD)
    require(s.hold[q] == s.size(Tick) - 1)
    s.phase[q] = Phase.ABORTED
    free_slots(s, q)


def at_rest(s: Reference) -> int:
    """Terminal: nothing moves any more. A lost ack leaves a room held for ever, and others waiting for its slots."""
    held = any(s.phase[q] == Phase.HELD for q in s.all(Room))
    ended = (Phase.DONE, Phase.ABORTED, Phase.HELD)
    return all(any(s.phase[q] == end for end in ended) or (held and s.phase[q] == Phase.WAITING) for q in s.all(Room))


def slot_views(s: Reference) -> list[SlotView]:
    """Decode's memory: each slot with its owner and, for each rank, who wrote it last."""
    views: list[SlotView] = []
    for slot in s.all(Slot):
        owner = "free" if s.owner[slot] == NONE else f"room {s.owner[slot]}"
        writers = ["-" if s.data[slot, p] == NONE else f"room {s.data[slot, p]}" for p in s.all(PrefillRank)]
        views.append(SlotView(f"slot {slot}", owner, ", ".join(dict.fromkeys(writers))))
    return views


MAX_TIMER = 15

UNTIMED = (
    admit, produce, dequeue, land, succeed, finish, abort, recv_abort, send_ack, recv_ack, drop_ack, drained,
)  # fmt: skip


def reference(timer: int | None = None, *, rooms: int = 2, ranks: int = 2, chunks: int = 2, slots: int = 3) -> Model:
    """The reference model; `timer` is the hold in ticks, None for a hold that only acks can end."""
    if timer is not None and not 0 <= timer <= MAX_TIMER:
        raise DeclarationError(f"the timer is {timer} ticks; allowed are 0 to {MAX_TIMER}")
    sizes: dict[type[Any], int] = {Room: rooms, PrefillRank: ranks, Chunk: chunks, Slot: slots}
    sizes[Tick] = 1 if timer is None else timer + 1
    return Model(
        name="reference" if timer is None else f"reference timed T={timer}",
        state=Reference,
        actions=UNTIMED if timer is None else (*UNTIMED, tick, timeout),
        sizes=sizes,
        terminal=at_rest,
        slots=slot_views,
        bounds={
            "rooms": str(rooms),
            "prefill ranks": str(ranks),
            "chunks": str(chunks),
            "slots": str(slots),
            "release timer": "off" if timer is None else f"{timer} ticks",
        },
    )


@invariant(kind=Kind.MEMORY)
def no_late_write(s: Reference) -> None:
    """No write lands in a slot that another room owns."""
    claim(not s.bad, "no write has landed in another room's slot", bad=s.bad)


@probe
def drained_while_held(s: Reference) -> int:
    """A held room has the ack of every rank."""
    return any(s.phase[q] == Phase.HELD and all(s.acked[q, p] for p in s.all(PrefillRank)) for q in s.all(Room))
