"""The bootstrap thread of a prefill rank: decode's metadata and ABORTs, in the order each decode rank sent them.

mooncake/conn.py: start_prefill_thread (up to 0.5.21), _handle_abort_notification (since 0.5.22);
common/conn.py: register_deferred_ack_target.
"""

from __future__ import annotations

from ..language import NONE, action, require
from .indices import DecodeRank, PrefillRank
from .messages import ControlKind, ReportKind
from .room_status import register, settle_targets, update_status
from .state import Drain
from .steps import BootstrapStep, Status
from .topology import served

LANE = "prefill {prefill} bootstrap"


@action(LANE)
def receive_metadata(s: Drain, prefill: PrefillRank, decode: DecodeRank) -> None:
    """A decode rank's addresses arrive. With those of every decode rank the room is complete and may be written to.

    A complete room that nobody knows yet is opened by this.
    """
    require(s.bootstrap_step[prefill] == BootstrapStep.IDLE)
    message = s.control[decode, prefill].peek()
    require(message.kind == ControlKind.METADATA)
    s.control[decode, prefill].receive()
    s.infos[prefill, message.room, decode] = message.request
    for other in served(s, prefill):
        if s.infos[prefill, message.room, other] == NONE:
            return
    update_status(s, prefill, message.room, Status.WAITING)


@action(LANE)
def receive_abort(s: Drain, prefill: PrefillRank, decode: DecodeRank) -> None:
    """An ABORT arrives. The thread looks whether the room is active: known, and not finished.

    A backend without a handler drops the message as malformed.
    """
    require(s.bootstrap_step[prefill] == BootstrapStep.IDLE)
    message = s.control[decode, prefill].peek()
    require(message.kind == ControlKind.ABORT)
    s.control[decode, prefill].receive()
    if not s.knobs.prefill.abort_handled:
        return
    status = s.status[prefill, message.room]
    s.bootstrap_step[prefill] = BootstrapStep.MARK
    s.bootstrap_room[prefill] = message.room
    s.bootstrap_from[prefill] = decode
    s.bootstrap_active[prefill] = (status != Status.MISSING) & (status != Status.SUCCESS)
    s.bootstrap_generation[prefill] = message.generation


@action(LANE)
def mark_failed(s: Drain, prefill: PrefillRank) -> None:
    """An active room fails: its queued chunks will be dropped. Before the drain ack, an ack is sent at once.

    In 0.5.21 a room with a counted chunk fails as well, finished or not.
    """
    require(s.bootstrap_step[prefill] == BootstrapStep.MARK)
    room = s.bootstrap_room[prefill]
    knobs = s.knobs.prefill
    looks_at_count = knobs.acks_drain and knobs.inactive_register == "if_counted"
    if s.bootstrap_active[prefill] or (looks_at_count and s.outstanding[prefill, room] > 0):
        update_status(s, prefill, room, Status.FAILED)
    if knobs.acks_drain:
        s.bootstrap_step[prefill] = BootstrapStep.REGISTER
    else:
        acknowledge(s, prefill, 0)


def acknowledge(s: Drain, prefill: int, generation: int) -> None:
    """The rank that sent the ABORT gets an ack, and the thread has done with it."""
    room = s.bootstrap_room[prefill]
    sender = s.bootstrap_from[prefill]
    s.report[prefill, sender].send(kind=ReportKind.ABORT_ACK, room=room, generation=generation, request=0)
    go_idle(s, prefill)


@action(LANE)
def register_target(s: Drain, prefill: PrefillRank) -> None:
    """The ack that decode waits for is noted. For a room that is not active, releases differ (#40645, #37077).

    A poisoned room takes no target, and an ABORT without generation is not acknowledged since 0.5.22.
    """
    require(s.bootstrap_step[prefill] == BootstrapStep.REGISTER)
    room = s.bootstrap_room[prefill]
    knobs = s.knobs.prefill
    untagged = knobs.gen_tags and s.bootstrap_generation[prefill] == 0
    if untagged or s.poisoned[prefill, room]:
        go_idle(s, prefill)
        return
    if not s.bootstrap_active[prefill] and knobs.inactive_register != "always":
        if s.outstanding[prefill, room] <= 0:
            s.bootstrap_step[prefill] = BootstrapStep.ANSWER
            return
        if knobs.inactive_register == "never":
            go_idle(s, prefill)  # up to 0.5.20 this ack is lost
            return
    register(s, prefill, room, s.bootstrap_from[prefill], s.bootstrap_generation[prefill])
    s.bootstrap_step[prefill] = BootstrapStep.CHECK_DRAIN


@action(LANE)
def answer_inactive(s: Drain, prefill: PrefillRank) -> None:
    """A room that was neither active nor counted is acknowledged without a target (up to 0.5.21)."""
    require(s.bootstrap_step[prefill] == BootstrapStep.ANSWER)
    acknowledge(s, prefill, s.bootstrap_generation[prefill] if s.knobs.prefill.gen_tags else 0)


@action(LANE)
def check_drained(s: Drain, prefill: PrefillRank) -> None:
    """The thread looks whether a chunk of the room is counted; if so, the worker will acknowledge."""
    require(s.bootstrap_step[prefill] == BootstrapStep.CHECK_DRAIN)
    if s.outstanding[prefill, s.bootstrap_room[prefill]] > 0:
        go_idle(s, prefill)
    else:
        s.bootstrap_step[prefill] = BootstrapStep.SEND_ACK


@action(LANE)
def ack_at_once(s: Drain, prefill: PrefillRank) -> None:
    """Nothing of the room was counted: the acks that are owed are sent by this thread."""
    require(s.bootstrap_step[prefill] == BootstrapStep.SEND_ACK)
    settle_targets(s, prefill, s.bootstrap_room[prefill])
    go_idle(s, prefill)


def go_idle(s: Drain, prefill: int) -> None:
    """The thread waits for its next message."""
    s.bootstrap_step[prefill] = BootstrapStep.IDLE
    s.bootstrap_room[prefill] = 0
    s.bootstrap_from[prefill] = 0
    s.bootstrap_active[prefill] = False
    s.bootstrap_generation[prefill] = 0
