"""Decode's receiver thread: what prefill ranks report, beside the scheduler and without a lock.

mooncake/conn.py: start_decode_thread; common/conn.py: apply_prefill_status, handle_abort_ack_message.
"""

from __future__ import annotations

from ..language import action, require
from .state import Drain, Poll, PrefillRank, ReportKind

LANE = "decode receiver"


@action(LANE)
def receive_status(s: Drain, rank: PrefillRank) -> None:
    """The rank's success or failure arrives. A room that is cleared takes neither; a failed one stays failed.

    Success counts once for each rank, and the room succeeds with the last of them.
    """
    report = s.report[rank].peek()
    require(report.kind != ReportKind.ABORT_ACK)
    s.report[rank].receive()
    room = report.room
    if s.poll[room] == Poll.MISSING:
        return
    if report.kind == ReportKind.FAILED:
        s.poll[room] = Poll.FAILED
        return
    s.responded[room, rank] = True
    for other in s.all(PrefillRank):
        if not s.responded[room, other]:
            return
    if s.poll[room] != Poll.FAILED:
        s.poll[room] = Poll.SUCCESS


@action(LANE)
def receive_ack(s: Drain, rank: PrefillRank) -> None:
    """The rank's ABORT_ACK arrives: it counts if the room's tracker is armed, and for the same generation.

    An ack of the old format is not counted by any release. Generations are compared since 0.5.22 (#37077).
    """
    ack = s.report[rank].peek()
    require(ack.kind == ReportKind.ABORT_ACK)
    s.report[rank].receive()
    if s.knobs.acks_drain and s.tracker[ack.room] and counts(s, ack.room, ack.generation):
        s.acked[ack.room, rank] = True


def counts(s: Drain, room: int, generation: int) -> bool:
    """Whether an ack of a generation is one that the room waits for."""
    return not s.knobs.gen_tags or generation == s.tracker_generation[room]
