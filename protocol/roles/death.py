"""Threads that end by an exception, and processes that die."""

from __future__ import annotations

from ..language import action, require
from .indices import PrefillRank
from .state import Drain
from .steps import BootstrapStep, SchedulerStep, WorkerStep


@action("prefill {prefill} worker")
def worker_dies(s: Drain, prefill: PrefillRank) -> None:
    """The worker meets a room that vanished between its two looks, and ends with KeyError; its chunk stays counted.

    mooncake/conn.py: transfer_worker, "not in request_status or check_status == Failed".
    """
    require(s.worker_step[prefill] == WorkerStep.COUNTED)
    s.worker_step[prefill] = WorkerStep.DEAD


@action("prefill {prefill} process")
def prefill_dies(s: Drain, prefill: PrefillRank) -> None:
    """The whole process of a prefill rank dies. What its NIC has launched may land all the same."""
    require(not s.dead[prefill])
    s.dead[prefill] = True
    s.worker_step[prefill] = WorkerStep.DEAD
    s.bootstrap_step[prefill] = BootstrapStep.DEAD
    s.scheduler_step[prefill] = SchedulerStep.DEAD
