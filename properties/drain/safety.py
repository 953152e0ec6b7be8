"""What must hold of decode's memory in the abort/drain protocol, whatever is aborted, fails or is late."""

from __future__ import annotations

from ...protocol.language import NONE
from ...protocol.language.property import Kind, claim, invariant, probe
from ...protocol.roles.indices import Chunk, DecodeRank, Owner, PrefillRank, Request, Slot
from ...protocol.roles.nic import write_is_live
from ...protocol.roles.state import Drain
from ...protocol.roles.steps import Life
from ...protocol.roles.topology import partners, writers


@invariant(kind=Kind.MEMORY)
def no_late_write(s: Drain) -> None:
    """No write lands in a slot that another request owns."""
    for decode in s.all(DecodeRank):
        for slot in s.all(Slot):
            claim(
                s.struck[decode, slot] == NONE,
                "no write landed in the slot while another request owned it",
                decode=decode,
                slot=slot,
                owner=s.owner[decode, slot],
                written_for=s.struck[decode, slot],
            )


@invariant(kind=Kind.MEMORY)
def no_late_metadata(s: Drain) -> None:
    """No metadata content lands in a buffer that another request owns."""
    for decode in s.all(DecodeRank):
        claim(
            s.struck_row[decode] == NONE,
            "no metadata landed in the buffer while another request owned it",
            decode=decode,
            owner=s.row_owner[decode],
            written_for=s.struck_row[decode],
        )


@invariant(kind=Kind.MEMORY)
def reads_what_was_written_for_it(s: Drain) -> None:
    """A request that decodes finds in each of its slots what every prefill rank wrote for it."""
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            if s.life[decode, request] == Life.DECODING:
                for chunk in s.all(Chunk):
                    for prefill in writers(s, decode):
                        slot = s.slot[decode, request, chunk]
                        claim(
                            slot == NONE or s.writer[decode, slot, prefill] == request,
                            "the prefill rank's part of the slot was written for the request that reads it",
                            decode=decode,
                            request=request,
                            chunk=chunk,
                            prefill=prefill,
                        )


@invariant(kind=Kind.MEMORY)
def held_within_bound(s: Drain) -> None:
    """Holds keep back what their requests were given, and no more: a slot for each chunk of each held request."""
    for decode in s.all(DecodeRank):
        held, kept = 0, 0
        for request in s.all(Request):
            is_held = s.life[decode, request] == Life.HELD
            held += is_held * s.size(Chunk)
            for slot in s.all(Slot):
                kept += is_held & (s.owner[decode, slot] == request)
        claim(kept <= held, "held slots are within the bound", decode=decode, kept=kept, bound=held)


@invariant(kind=Kind.MEMORY)
def frees_only_its_own(s: Drain) -> None:
    """A request gives back only slots that it owns, and each once."""
    for decode in s.all(DecodeRank):
        claim(
            s.stray_free[decode] == NONE,
            "no slot was given back by a request that did not own it",
            decode=decode,
            slot=s.stray_free[decode],
        )


@invariant(kind=Kind.MEMORY)
def owned_once(s: Drain) -> None:
    """What a request was given is its own until it gives it back: no slot has two owners, and none is taken away."""
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            for chunk in s.all(Chunk):
                slot = s.slot[decode, request, chunk]
                claim(
                    slot == NONE or s.owner[decode, slot] == request,
                    "the slot that the request was given is its own",
                    decode=decode,
                    request=request,
                    slot=slot,
                )


@invariant(kind=Kind.MEMORY)
def quarantined_never_cached(s: Drain) -> None:
    """What a failed transfer has left in slots never enters the radix tree."""
    for decode in s.all(DecodeRank):
        for slot in s.all(Slot):
            for request in s.all(Request):
                claim(
                    (s.cached[decode, slot] != request) | (s.failed[decode, request] == 0),
                    "the tree has nothing of a request whose transfer failed",
                    decode=decode,
                    slot=slot,
                    request=request,
                )


@invariant(kind=Kind.MEMORY)
def copies_read_their_own(s: Drain) -> None:
    """A copy to the host tier reads only slots that no other request has got meanwhile."""
    for decode in s.all(DecodeRank):
        claim(
            s.foreign_copy[decode] == NONE,
            "no copy read a slot that another request owned",
            decode=decode,
            copied_for=s.foreign_copy[decode],
        )


@invariant(kind=Kind.MEMORY)
def ranks_decide_alike(s: Drain) -> None:
    """Decode's ranks, which schedule together, admit the same requests."""
    claim(not s.parted, "every rank took the same decision")


@invariant(kind=Kind.MEANS)
def acks_are_true(s: Drain) -> None:
    """When an ack is counted, no write of its prefill rank for the request is in flight, and none is launched later."""
    for decode in s.all(DecodeRank):
        claim(
            s.false_ack[decode] == NONE,
            "no write was in flight or launched behind an ack that counted",
            decode=decode,
            request=s.false_ack[decode],
        )


@invariant(kind=Kind.MEANS)
def failed_rooms_stay_failed(s: Drain) -> None:
    """A room that has failed on a prefill rank stays failed until it is cleared."""
    for prefill in s.all(PrefillRank):
        claim(s.revived[prefill] == NONE, "no failed room was revived", prefill=prefill, room=s.revived[prefill])


@invariant(kind=Kind.MEANS)
def abort_stops_the_room(s: Drain) -> None:
    """A prefill rank that has taken an ABORT sends no further chunk of the room; what it was sending may go on."""
    for prefill in s.all(PrefillRank):
        claim(
            s.late_pass[prefill] == NONE,
            "no chunk was sent behind its ABORT",
            prefill=prefill,
            request=s.late_pass[prefill],
        )


@probe
def live_write_of_ended_request(s: Drain) -> int:
    """A write is in flight whose request has ended on decode, or is held."""
    for request in s.all(Request):
        for decode in s.all(DecodeRank):
            ended = s.life[decode, request] == Life.HELD or s.life[decode, request] == Life.GONE
            if ended and write_is_live(s, request):
                return True
    return False


@probe
def drained_hold(s: Drain) -> int:
    """A hold has ended because every rank acknowledged."""
    return any(s.drained[request] for request in s.all(Request))


@probe
def reuse_after_drain(s: Drain) -> int:
    """A write has landed in a held slot, every rank has acknowledged, and the victim has got the slot."""
    for request in s.all(Request):
        if s.landed_held[request] and s.drained[request]:
            for decode in s.all(DecodeRank):
                for slot in s.all(Slot):
                    for prefill in partners(s, decode):
                        taken = s.owner[decode, slot] == s.size(Owner) - 1
                        if taken and s.writer[decode, slot, prefill] == request:
                            return True
    return False


@probe
def release_under_live_write(s: Drain) -> int:
    """The release timer has fired while a write of the request was live."""
    return s.released_live != NONE


@probe
def transfer_finished(s: Drain) -> int:
    """A request decodes with what prefill has sent."""
    return any(s.life[0, request] == Life.DECODING for request in s.all(Request))
