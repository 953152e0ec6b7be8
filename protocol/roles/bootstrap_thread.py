"""The bootstrap thread of a prefill rank: decode's metadata and ABORTs, in the order they were sent.

mooncake/conn.py: start_prefill_thread (up to 0.5.21), _handle_abort_notification (since 0.5.22);
common/conn.py: register_deferred_ack_target.
"""

from __future__ import annotations

from ..language import action, require
from .room_status import settle_target, update_status
from .state import BootstrapStep, ControlKind, Drain, PrefillRank, ReportKind, Status

LANE = "prefill {rank} bootstrap"


@action(LANE)
def receive_metadata(s: Drain, rank: PrefillRank) -> None:
    """Decode's addresses arrive; the room is complete and may be written to. It may be opened by this."""
    require(s.bootstrap_step[rank] == BootstrapStep.IDLE)
    message = s.control[rank].peek()
    require(message.kind == ControlKind.METADATA)
    s.control[rank].receive()
    s.infos[rank, message.room] = True
    update_status(s, rank, message.room, Status.WAITING)


@action(LANE)
def receive_abort(s: Drain, rank: PrefillRank) -> None:
    """An ABORT arrives. The thread looks whether the room is active: known, and not finished.

    A backend without a handler drops the message as malformed.
    """
    require(s.bootstrap_step[rank] == BootstrapStep.IDLE)
    message = s.control[rank].peek()
    require(message.kind == ControlKind.ABORT)
    s.control[rank].receive()
    if not s.knobs.abort_handled:
        return
    status = s.status[rank, message.room]
    s.bootstrap_step[rank] = BootstrapStep.MARK
    s.bootstrap_room[rank] = message.room
    s.bootstrap_active[rank] = (status != Status.MISSING) & (status != Status.SUCCESS)
    s.bootstrap_generation[rank] = message.generation


@action(LANE)
def mark_failed(s: Drain, rank: PrefillRank) -> None:
    """An active room fails: its queued chunks will be dropped. Before the drain ack, an ack is sent at once.

    In 0.5.21 a room with a counted chunk fails as well, finished or not.
    """
    require(s.bootstrap_step[rank] == BootstrapStep.MARK)
    room = s.bootstrap_room[rank]
    looks_at_count = s.knobs.acks_drain and s.knobs.inactive_register == "if_counted"
    if s.bootstrap_active[rank] or (looks_at_count and s.outstanding[rank, room] > 0):
        update_status(s, rank, room, Status.FAILED)
    if s.knobs.acks_drain:
        s.bootstrap_step[rank] = BootstrapStep.REGISTER
    else:
        s.report[rank].send(kind=ReportKind.ABORT_ACK, room=room, generation=0)
        go_idle(s, rank)


@action(LANE)
def register_target(s: Drain, rank: PrefillRank) -> None:
    """The ack that decode waits for is noted. For a room that is not active, releases differ (#40645, #37077).

    A poisoned room takes no target, and an ABORT without generation is not acknowledged since 0.5.22.
    """
    require(s.bootstrap_step[rank] == BootstrapStep.REGISTER)
    room = s.bootstrap_room[rank]
    untagged = s.knobs.gen_tags and s.bootstrap_generation[rank] == 0
    if untagged or s.poisoned[rank, room]:
        go_idle(s, rank)
        return
    if not s.bootstrap_active[rank] and s.knobs.inactive_register != "always":
        if s.outstanding[rank, room] <= 0:
            s.bootstrap_step[rank] = BootstrapStep.ANSWER
            return
        if s.knobs.inactive_register == "never":
            go_idle(s, rank)  # up to 0.5.20 this ack is lost
            return
    s.target[rank, room] = True
    s.target_generation[rank, room] = s.bootstrap_generation[rank]
    s.bootstrap_step[rank] = BootstrapStep.CHECK_DRAIN


@action(LANE)
def answer_inactive(s: Drain, rank: PrefillRank) -> None:
    """A room that was neither active nor counted is acknowledged without a target (up to 0.5.21)."""
    require(s.bootstrap_step[rank] == BootstrapStep.ANSWER)
    generation = s.bootstrap_generation[rank]
    s.report[rank].send(kind=ReportKind.ABORT_ACK, room=s.bootstrap_room[rank], generation=generation)
    go_idle(s, rank)


@action(LANE)
def check_drained(s: Drain, rank: PrefillRank) -> None:
    """The thread looks whether a chunk of the room is counted; if so, the worker will acknowledge."""
    require(s.bootstrap_step[rank] == BootstrapStep.CHECK_DRAIN)
    if s.outstanding[rank, s.bootstrap_room[rank]] > 0:
        go_idle(s, rank)
    else:
        s.bootstrap_step[rank] = BootstrapStep.SEND_ACK


@action(LANE)
def ack_at_once(s: Drain, rank: PrefillRank) -> None:
    """Nothing of the room was counted: the ack is sent by this thread."""
    require(s.bootstrap_step[rank] == BootstrapStep.SEND_ACK)
    settle_target(s, rank, s.bootstrap_room[rank])
    go_idle(s, rank)


def go_idle(s: Drain, rank: int) -> None:
    """The thread waits for its next message."""
    s.bootstrap_step[rank] = BootstrapStep.IDLE
    s.bootstrap_room[rank] = 0
    s.bootstrap_active[rank] = False
    s.bootstrap_generation[rank] = 0
