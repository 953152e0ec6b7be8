"""The client and the router: when a request is sent, and whom the router tells that the client has gone.

The router gives a request to both ends. When the client goes, a router that pairs aborts tells both (#19524, #29017,
#39461, #41612); one that does not tells only one of them.
"""

from __future__ import annotations

from ..language import action, require
from .indices import DecodeRank, PrefillRank, Request
from .state import Drain
from .steps import BootstrapStep, Life, SchedulerStep, Sender, WorkerStep
from .topology import room_of, same_room, served
from .transfer_queue import has_waiting


def is_submitted(s: Drain, request: int) -> int:
    """Whether the client has sent the request.

    When a room number is used again for the next request is a setting.
    """
    submitted = 1
    for earlier in same_room(s, room_of(s, request)):
        if earlier < request:
            submitted &= has_ended(s, earlier)
    return submitted


def has_ended(s: Drain, request: int) -> int:
    """Whether the client may use the request's room number again."""
    ended = 1
    for decode in s.all(DecodeRank):
        life = s.life[decode, request]
        ended &= (life == Life.GONE) | ((s.knobs.reuse == "early") & (life == Life.HELD))
    for prefill in s.all(PrefillRank):
        sender = s.sender[prefill, request]
        if s.knobs.reuse != "early":
            ended &= (sender == Sender.GONE) | (sender == Sender.ABORTED)
        if s.knobs.reuse == "late":
            ended &= is_forgotten(s, prefill)
    return ended


def is_forgotten(s: Drain, prefill: int) -> int:
    """Whether the prefill rank has nothing left of any request: every thread waits for work, and there is none."""
    busy = s.scheduler_step[prefill] != SchedulerStep.IDLE
    busy |= s.bootstrap_step[prefill] != BootstrapStep.IDLE
    busy |= s.worker_step[prefill] != WorkerStep.IDLE
    busy |= has_waiting(s, prefill)
    for decode in served(s, prefill):
        busy |= s.control[decode, prefill].length != 0
        busy |= s.nic[prefill, decode].length != 0
    return busy == 0


@action("router")
def cancel_both_legs(s: Drain, request: Request) -> None:
    """The client has gone, and the router tells decode and prefill."""
    require(s.knobs.decode.router_aborts == "both_legs" and not s.told_decode[request])
    s.told_decode[request] = True
    s.told_prefill[request] = True


@action("router")
def drop_decode_leg(s: Drain, request: Request) -> None:
    """Prefill's half of the request has ended, and the router, which sees it, drops the decode half.

    It does so if prefill has failed; that prefill has ended is all that is asked here.
    """
    require(s.knobs.router_drops and not s.told_decode[request])
    ended = 0
    for prefill in s.all(PrefillRank):
        ended |= (s.sender[prefill, request] == Sender.ABORTED) | (s.sender[prefill, request] == Sender.GONE)
    require(ended)
    s.told_decode[request] = True


@action("router")
def cancel_decode_leg(s: Drain, request: Request) -> None:
    """The client has gone, and the router tells decode only."""
    require(s.knobs.decode.router_aborts == "one_leg" and not s.told_decode[request] and not s.told_prefill[request])
    s.told_decode[request] = True


@action("router")
def cancel_prefill_leg(s: Drain, request: Request) -> None:
    """The client has gone, and the router tells prefill only; or it dies before it tells decode."""
    require(not s.told_decode[request] and not s.told_prefill[request])
    s.told_prefill[request] = True
