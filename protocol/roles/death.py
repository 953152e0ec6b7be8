"""Threads that end by an exception, and processes that die."""

from __future__ import annotations

from ..language import action, require
from .indices import PrefillRank
from .state import Drain
from .steps import BootstrapStep, SchedulerStep, Status, WorkerStep
from .topology import room_of


@action("prefill {prefill} worker")
def worker_dies(s: Drain, prefill: PrefillRank) -> None:
    """The worker meets a room that vanishes between its two looks, and ends with KeyError; its chunk stays counted.

    mooncake/conn.py: transfer_worker looks whether the room is there, and then again for its status.
    """
    require(s.worker_step[prefill] == WorkerStep.COUNTED)
    require(s.status[prefill, room_of(s, s.worker_request[prefill])] == Status.MISSING)
    s.worker_step[prefill] = WorkerStep.DEAD


@action("prefill {prefill} process")
def prefill_dies(s: Drain, prefill: PrefillRank) -> None:
    """The whole process of a prefill rank dies. What its NIC has launched may land all the same."""
    require(not s.dead[prefill])
    s.dead[prefill] = True
    s.worker_step[prefill] = WorkerStep.DEAD
    s.bootstrap_step[prefill] = BootstrapStep.DEAD
    s.scheduler_step[prefill] = SchedulerStep.DEAD
