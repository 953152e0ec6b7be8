"""A decode rank's receiver thread: what prefill ranks report, beside the scheduler and without a lock.

mooncake/conn.py: start_decode_thread; common/conn.py: apply_prefill_status, handle_abort_ack_message.
"""

from __future__ import annotations

from ..language import action, require
from .indices import DecodeRank, PrefillRank, Room
from .messages import ReportKind
from .nic import fill_buffer, note_ack
from .state import Drain
from .steps import Poll
from .topology import writers

LANE = "decode {decode} receiver"


@action(LANE)
def receive_status(s: Drain, decode: DecodeRank, prefill: PrefillRank) -> None:
    """The rank's success or failure arrives. A room that is cleared takes neither; a failed one stays failed.

    Success counts once for each rank, and the room succeeds with the last of those that write.
    """
    report = s.report[prefill, decode].peek()
    require(report.kind == ReportKind.SUCCESS or report.kind == ReportKind.FAILED)
    s.report[prefill, decode].receive()
    room = report.room
    if s.poll[decode, room] == Poll.MISSING:
        return
    if report.kind == ReportKind.FAILED:
        s.poll[decode, room] = Poll.FAILED
        return
    s.responded[decode, room, prefill] = True
    if s.knobs.concludes_apart:
        return
    for other in writers(s, decode):
        if not s.responded[decode, room, other]:
            return
    if s.poll[decode, room] != Poll.FAILED:
        s.poll[decode, room] = Poll.SUCCESS


@action(LANE)
def conclude_transfer(s: Drain, decode: DecodeRank, room: Room) -> None:
    """The last of the ranks that write has reported success, so the room succeeds.

    The end of `receive_status` as a step of its own: common/conn.py: apply_prefill_status counts, and then writes the
    room's status.
    """
    require(s.poll[decode, room] == Poll.WAITING)
    for prefill in writers(s, decode):
        require(s.responded[decode, room, prefill])
    s.poll[decode, room] = Poll.SUCCESS


@action(LANE)
def receive_ack(s: Drain, decode: DecodeRank, prefill: PrefillRank) -> None:
    """The rank's ABORT_ACK arrives: it counts if the room's tracker is armed, and for the same generation.

    An ack of the old format is not counted by any release, nor is one without the rank. Generations are compared
    since 0.5.22, which takes no ack without one (#37077).
    """
    ack = s.report[prefill, decode].peek()
    require(ack.kind == ReportKind.ABORT_ACK)
    s.report[prefill, decode].receive()
    drains = s.knobs.prefill.acks_drain and s.knobs.decode.hold_enabled
    if drains and s.tracker[decode, ack.room] and counts(s, decode, ack.room, ack.generation):
        s.acked[decode, ack.room, prefill] = True
        note_ack(s, decode, prefill, ack.room)


def counts(s: Drain, decode: int, room: int, generation: int) -> bool:
    """Whether an ack of a generation is one that the room waits for."""
    return not s.knobs.decode.gen_tags or generation == s.tracker_generation[decode, room]


@action(LANE, toward="decode {decode} memory")
def receive_aux_in_order(s: Drain, decode: DecodeRank, prefill: PrefillRank) -> None:
    """Metadata content arrives behind what the rank sent before, and goes to the buffer unasked."""
    message = s.report[prefill, decode].peek()
    require(message.kind == ReportKind.AUX_DATA)
    s.report[prefill, decode].receive()
    fill_buffer(s, decode, message.request)


@action(LANE, toward="decode {decode} memory")
def receive_aux(s: Drain, decode: DecodeRank, prefill: PrefillRank) -> None:
    """Metadata content arrives on a socket of its own, and goes to the buffer unasked.

    mori/conn.py: _handle_aux_data, over _connect_threadsafe.
    """
    message = s.aux[prefill, decode].receive()
    fill_buffer(s, decode, message.request)
