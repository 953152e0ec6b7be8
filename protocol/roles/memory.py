"""What else moves, copies or clears decode's memory: host tier, retraction, compaction, flush, checksum."""

from __future__ import annotations

from ..language import NONE, action, ghost_code, require
from .allocator import release
from .decode_scheduler import GROUP, all_idle, clear_receiver, fail_on_rank, idle, note_parting
from .indices import DecodeRank, Request, Room, Slot
from .state import Drain
from .steps import Copy, DecodeStep, Engine, Life, Restore, VictimLife
from .topology import partners


@action("decode {decode} host tier")
def restore_ends(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The rank has fetched its part of the prompt from the host tier."""
    require_restoring(s, decode, request)
    s.restore[decode, request] = Restore.DONE


def require_restoring(s: Drain, decode: int, request: int) -> None:
    """The request has its slots, and the fetch is running."""
    life = s.life[decode, request]
    require((life == Life.PREALLOCATED or life == Life.TRANSFERRING) and s.restore[decode, request] == Restore.RUNNING)


@action("decode {decode} host tier")
def restore_fails(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The rank cannot fetch its part of the prompt; other ranks may well."""
    require_restoring(s, decode, request)
    for other in s.all(DecodeRank):
        require(s.restore[other, request] != Restore.FAILED)
    s.restore[decode, request] = Restore.FAILED


@action("decode {decode} scheduler", toward="allocator")
def give_up_restore(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The rank takes its failed fetch as the end of the request, without asking the others (up to 0.5.21).

    decode_hicache_mixin.py. Up to 0.5.20 it frees the slots at once, though prefill writes to them; in 0.5.21 it does
    what is done after a failed transfer.
    """
    require(idle(s, decode) and s.restore[decode, request] == Restore.FAILED)
    require(s.life[decode, request] == Life.TRANSFERRING and not s.cancelled[decode, request])
    if s.size(DecodeRank) > 1:
        note_parting(s)
    if s.knobs.decode.restore_failure == "frees":
        clear_receiver(s, decode, request)
        release(s, decode, request)
        s.life[decode, request] = Life.GONE
    else:
        fail_on_rank(s, decode, request)


@action("decode {decode} host tier")
def start_copy(s: Drain, decode: DecodeRank, request: Request) -> None:
    """The pages of a decoding request begin to be copied to the host tier.

    managers/cache_controller and decode_kvcache_offload_manager.py: DecodeKVCacheOffloadManager.
    """
    require(s.life[decode, request] == Life.DECODING and s.copy[decode, request] == Copy.NONE)
    s.copy[decode, request] = Copy.RUNNING


@action("decode {decode} host tier", toward="decode {decode} memory")
def copy_reads(s: Drain, decode: DecodeRank, request: Request, slot: Slot) -> None:
    """The copy reads a page, the one that the request's first chunk was given, and is over."""
    require(s.copy[decode, request] == Copy.RUNNING and s.destination[decode, request, 0] == slot)
    s.copy[decode, request] = Copy.DONE
    note_copy(s, decode, request, slot)


@ghost_code
def note_copy(s: Drain, decode: int, request: int, slot: int) -> None:
    """Keeps whether the page was another's by then."""
    if s.owner[decode, slot] != NONE and s.owner[decode, slot] != request:
        s.foreign_copy[decode] = request


@action("decode 0 scheduler", toward="allocator")
def retract(s: Drain, request: Request) -> None:
    """Memory is short: a decoding request is taken out of the batch and its slots are freed.

    managers/schedule_batch.py: retract_decode; drain_before_retraction since 0.5.21 waits for copies (#24226).
    """
    require(all_idle(s))
    for decode in s.all(DecodeRank):
        require(s.life[decode, request] == Life.DECODING)
        require(not s.knobs.decode.retraction_waits or s.copy[decode, request] != Copy.RUNNING)
    for decode in s.all(DecodeRank):
        release(s, decode, request)
        s.life[decode, request] = Life.GONE


@action(GROUP, toward="allocator")
def drop_mismatch(s: Drain, decode: DecodeRank, request: Request) -> None:
    """A rank finds that the checksum of a page does not match, and the request is dropped: there, or on all ranks.

    decode.py: _verify_kv_checksums (#39500).
    """
    require(all_idle(s) and s.life[decode, request] == Life.DECODING)
    for other in s.all(DecodeRank):
        require(s.life[other, request] == Life.DECODING)
    agreed = s.knobs.decode.checksum == "agreed_drop"
    if not agreed and s.size(DecodeRank) > 1:
        note_parting(s)
    for other in s.all(DecodeRank):
        if other == decode or agreed:
            release(s, other, request)
            s.life[other, request] = Life.GONE


def is_fully_idle(s: Drain) -> bool:
    """Whether decode takes itself for idle. managers/scheduler.py: Scheduler.is_fully_idle; 0.5.23 counts holds."""
    if s.victim == VictimLife.RUNNING:
        return False
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            life = s.life[decode, request]
            if life == Life.HELD:
                if s.knobs.decode.idle_counts_holds:
                    return False
            elif life != Life.NEW and life != Life.GONE:
                return False
    return True


@action(GROUP, toward="allocator")
def flush(s: Drain) -> None:
    """Decode takes itself for idle, paused or not, and clears its pools: flush, weight update or memory release.

    managers/scheduler.py: flush_cache.
    """
    for decode in s.all(DecodeRank):
        require(s.decode_step[decode] == DecodeStep.IDLE)
    require(is_fully_idle(s))
    held = 0
    for decode in s.all(DecodeRank):
        for slot in s.all(Slot):
            held |= s.owner[decode, slot] != NONE
            s.owner[decode, slot] = NONE
    require(held)


@action(GROUP, toward="allocator")
def switch_role(s: Drain) -> None:
    """Decode takes itself for idle and becomes a prefill instance: its manager is torn down, acks find nobody.

    disaggregation/role_switch.py, since 0.5.21. The pool stays, and serves requests of the new role. A hold stays in
    its list, and there it ends by its timer only.
    """
    require(s.knobs.decode.role_switch)
    for decode in s.all(DecodeRank):
        require(s.decode_step[decode] == DecodeStep.IDLE)
    require(is_fully_idle(s))
    held = 0
    for decode in s.all(DecodeRank):
        for slot in s.all(Slot):
            held |= s.owner[decode, slot] != NONE
            s.owner[decode, slot] = NONE
        for room in s.all(Room):
            s.tracker[decode, room] = False
            s.tracker_generation[decode, room] = 0
            for prefill in partners(s, decode):
                s.acked[decode, room, prefill] = False
    require(held)


@action(GROUP)
def pause(s: Drain) -> None:
    """The engine is paused: no request is polled, and no hold is resolved. managers/scheduler.py: pause_generation."""
    require(all_idle(s) and s.engine == Engine.NOT_YET)
    s.engine = Engine.PAUSED


@action(GROUP)
def resume(s: Drain) -> None:
    """The engine goes on. managers/scheduler.py: continue_generation."""
    require(s.engine == Engine.PAUSED)
    s.engine = Engine.RESUMED


@action("decode {decode} scheduler", toward="decode {decode} memory")
def relocate(s: Drain, decode: DecodeRank, request: Request, slot: Slot) -> None:
    """Compaction moves a held page to a free slot, and the old slot is free; prefill still has the old address.

    disaggregation/utils.py: unified_memory_disagg_move_gate; with unified memory only.
    """
    require(idle(s, decode) and s.life[decode, request] == Life.HELD and s.owner[decode, slot] == NONE)
    require(not s.knobs.decode.compaction_sees_holds)
    for other in s.all(Request):
        require(s.life[decode, other] != Life.TRANSFERRING and s.life[decode, other] != Life.PREALLOCATED)
    old = s.slot[decode, request, 0]
    require(old != NONE)
    s.owner[decode, old] = NONE
    s.owner[decode, slot] = request
    s.slot[decode, request, 0] = slot
    note_move(s, decode, old, slot)


@ghost_code
def note_move(s: Drain, decode: int, old: int, new: int) -> None:
    """The content moves along."""
    for prefill in partners(s, decode):
        s.writer[decode, new, prefill] = s.writer[decode, old, prefill]
