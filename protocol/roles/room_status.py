"""How a prefill rank's status of a room may change, and how the rank acknowledges a drain.

common/conn.py: CommonKVManager.update_status, _maybe_ack_drained_abort. All three prefill threads come here.
"""

from __future__ import annotations

from .state import Drain, ReportKind, Status


def update_status(s: Drain, rank: int, room: int, new: Status) -> None:
    """Sets the rank's status of a room by the release's rule, in one step."""
    write_status(s, rank, room, s.status[rank, room], new)


def write_status(s: Drain, rank: int, room: int, old: int, new: Status) -> None:
    """Sets the status by the rule, as one who saw `old` does. No release locks between the look and the write.

    Since 0.5.20 Failed is terminal, and only Bootstrapping and WaitingForInput create a missing room. Before, the
    larger value won, and Failed counted as the smallest. Since 0.5.22 creation drops what an earlier life left.
    """
    if old == Status.MISSING:
        creates = new in (Status.BOOTSTRAPPING, Status.WAITING) or not s.knobs.failed_terminal
        if creates and new != Status.FAILED:
            s.status[rank, room] = new
            if s.knobs.reopen_resets:
                s.target[rank, room] = False
                s.target_generation[rank, room] = 0
                s.poisoned[rank, room] = False
                s.outstanding[rank, room] = 0
    elif new == Status.FAILED:
        s.status[rank, room] = new
    elif old == Status.FAILED:
        if not s.knobs.failed_terminal:
            s.status[rank, room] = new
    else:
        s.status[rank, room] = max(old, new)  # written even where it is the old one, over what came between


def is_open(s: Drain, rank: int, room: int) -> bool:
    """Whether the room is known and has not failed."""
    return s.status[rank, room] != Status.MISSING and s.status[rank, room] != Status.FAILED


def settle_target(s: Drain, rank: int, room: int) -> None:
    """Sends the ack that is owed, if one is; a poisoned room loses its target instead (#43719)."""
    if not s.target[rank, room]:
        return
    generation = s.target_generation[rank, room]
    s.target[rank, room] = False
    s.target_generation[rank, room] = 0
    if not s.poisoned[rank, room]:
        s.report[rank].send(kind=ReportKind.ABORT_ACK, room=room, generation=generation)
