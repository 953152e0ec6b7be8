"""Requests that prefill rejects at its intake: too long, or no room in the queue.

prefill.py: PrefillBootstrapQueue.add, process_batch_result_disagg_prefill (#36988, #38935).
"""

from __future__ import annotations

from ..language import action, require
from .indices import DecodeRank, PrefillRank, Request
from .prefill_scheduler import GROUP
from .room_status import update_status
from .state import Drain
from .steps import Life, SchedulerStep, Sender, Status
from .topology import room_of


@action(GROUP)
def reject(s: Drain, request: Request) -> None:
    """The request is rejected: by both ends at their doors, after prefill's forward pass, or not in time.

    Up to 0.5.19 its one-page stub is handed off as if it were the request. 0.5.20 fails its room after the forward
    pass, and decode is not told. Since 0.5.21 both ends reject it by the same rule before anything is reserved.
    """
    rule = s.knobs.prefill.reject
    at_door = rule == "at_door" and s.knobs.decode.reject == "at_door"
    for prefill in s.all(PrefillRank):
        require(s.scheduler_step[prefill] == SchedulerStep.IDLE and not s.stub[request])
        require(s.sender[prefill, request] == (Sender.NONE if at_door else Sender.RUNNING))
        require(s.produced[prefill, request] == 0)
    if at_door:
        for decode in s.all(DecodeRank):
            require(s.life[decode, request] == Life.NEW)
            s.life[decode, request] = Life.GONE
        for prefill in s.all(PrefillRank):
            s.sender[prefill, request] = Sender.GONE
    elif rule == "handed_off":
        s.stub[request] = True
    else:
        for prefill in s.all(PrefillRank):
            s.sender[prefill, request] = Sender.ABORTED
            update_status(s, prefill, room_of(s, request), Status.FAILED)
