"""How a prefill rank's status of a room may change, and how the rank acknowledges a drain.

common/conn.py: CommonKVManager.update_status, _maybe_ack_drained_abort. All three prefill threads come here.
"""

from __future__ import annotations

from ..language import NONE, ghost_code
from .messages import ReportKind
from .state import Drain
from .steps import Status
from .topology import served


def update_status(s: Drain, prefill: int, room: int, new: Status) -> None:
    """Sets the rank's status of a room by the release's rule, in one step."""
    write_status(s, prefill, room, s.status[prefill, room], new)


def write_status(s: Drain, prefill: int, room: int, old: int, new: Status) -> None:
    """Sets the status by the rule, as one who saw `old` does. No release locks between the look and the write.

    Since 0.5.20 Failed is terminal, and only Bootstrapping and WaitingForInput create a missing room. Before, the
    larger value won, and Failed counted as the smallest. Since 0.5.22 creation drops what an earlier life left.
    """
    knobs = s.knobs.prefill
    if old == Status.MISSING:
        creates = new in (Status.BOOTSTRAPPING, Status.WAITING) or not knobs.failed_terminal
        if creates and new != Status.FAILED:
            set_status(s, prefill, room, new)
            if knobs.reopen_resets:
                forget_targets(s, prefill, room)
                s.poisoned[prefill, room] = False
                s.outstanding[prefill, room] = 0
    elif new == Status.FAILED:
        set_status(s, prefill, room, new)
    elif old == Status.FAILED:
        if not knobs.failed_terminal:
            set_status(s, prefill, room, new)
    else:
        set_status(s, prefill, room, max(old, new))  # even where it is the old one, over what came between


def set_status(s: Drain, prefill: int, room: int, value: int) -> None:
    """Writes the rank's status of a room."""
    note_revival(s, prefill, room, value)
    s.status[prefill, room] = value


@ghost_code
def note_revival(s: Drain, prefill: int, room: int, value: int) -> None:
    """Keeps whether a failed room gets another status before it is cleared."""
    if (s.status[prefill, room] == Status.FAILED) & (value != Status.FAILED):
        s.revived[prefill] = room


def is_open(s: Drain, prefill: int, room: int) -> bool:
    """Whether the room is known and has not failed."""
    return s.status[prefill, room] != Status.MISSING and s.status[prefill, room] != Status.FAILED


def forget_targets(s: Drain, prefill: int, room: int) -> None:
    """Whoever was owed an ack for the room is owed none."""
    for decode in served(s, prefill):
        s.target[prefill, room, decode] = False
        s.target_generation[prefill, room, decode] = 0


def register(s: Drain, prefill: int, room: int, decode: int, generation: int) -> None:
    """Notes that a decode rank is owed an ack (#41402, #37077).

    Up to 0.5.20 a room has one target, the last to ask; 0.5.21 owes every peer of the room its ack; since 0.5.22
    each decode rank has a target of its own, with its generation.
    """
    rule = s.knobs.prefill.ack_target
    for other in served(s, prefill):
        if other == decode:
            s.target[prefill, room, other] = True
            s.target_generation[prefill, room, other] = generation if s.knobs.prefill.gen_tags else 0
        elif rule == "single":
            s.target[prefill, room, other] = False
        elif rule == "broadcast":
            s.target[prefill, room, other] = s.infos[prefill, room, other] != NONE


def settle_targets(s: Drain, prefill: int, room: int) -> None:
    """Sends the acks that are owed, if any are; a poisoned room loses its targets instead (#43719)."""
    peers = served(s, prefill)
    owed = 0
    for decode in peers:
        owed |= s.target[prefill, room, decode]
    if not owed:
        return
    for decode in peers:
        everybody = s.knobs.prefill.ack_target == "broadcast" and s.infos[prefill, room, decode] != NONE
        if (s.target[prefill, room, decode] or everybody) and not s.poisoned[prefill, room]:
            generation = s.target_generation[prefill, room, decode]
            s.report[prefill, decode].send(kind=ReportKind.ABORT_ACK, room=room, generation=generation, request=0)
    forget_targets(s, prefill, room)
