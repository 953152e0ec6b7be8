"""The abort/drain protocol under a profile, a scenario and a release timer: a model that can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..protocol.language import NONE, Action, DeclarationError
from ..protocol.roles import (
    bootstrap_thread,
    decode_receiver,
    decode_scheduler,
    nic,
    prefill_scheduler,
    transfer_worker,
    victim,
)
from ..protocol.roles.knobs import Knobs
from ..protocol.roles.state import (
    BootstrapStep,
    Chunk,
    DecodeStep,
    Drain,
    Life,
    PrefillRank,
    Request,
    Room,
    SchedulerStep,
    SendFault,
    Slot,
    WorkerStep,
)
from .model import Model, SlotView

LARGEST_QUEUE = 16
LARGEST_FANS = 1000
"""Combinations of queue lengths that a step meets which sends to every prefill rank."""

LARGEST = 8
"""More of anything than this is beyond exhaustive search."""


class Timer(StrEnum):
    """When a hold can end by its release timer."""

    OFF = "off"
    LATE = "fires once the writes of the room are over"
    ANY = "fires at any moment"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happens to the transfers, and in which topology: the environment of a check, and its bounds.

    `slots` is decode's pool; None makes it just large enough for one request, so that reuse is immediate.
    Raises DeclarationError for a size that cannot be meant.
    """

    name: str
    sentence: str
    aborts: bool = True
    send_faults: int = 0
    split_status: bool = False
    rooms: int = 1
    ranks: int = 1
    chunks: int = 2
    slots: int | None = None

    def __post_init__(self) -> None:
        sizes = {"rooms": self.rooms, "prefill ranks": self.ranks, "chunks": self.chunks, "slots": self.pool}
        for name, size in sizes.items():
            if not 1 <= size <= LARGEST:
                raise DeclarationError(f"{name} is {size}; allowed are whole numbers from 1 to {LARGEST}")
        if self.rooms * self.chunks > LARGEST_QUEUE:
            raise DeclarationError(
                f"{self.rooms} rooms of {self.chunks} chunks: the transfer queue takes at most {LARGEST_QUEUE}"
            )
        if (2 * self.rooms + 1) ** self.ranks > LARGEST_FANS:
            raise DeclarationError(f"{self.rooms} rooms on {self.ranks} prefill ranks are too many to be traced")
        if not 0 <= self.send_faults <= LARGEST:
            raise DeclarationError(f"failing sends is {self.send_faults}; allowed are 0 to {LARGEST}")
        if self.pool < self.chunks:
            raise DeclarationError(f"{self.chunks} chunks need as many slots; the pool has {self.pool}")

    @property
    def pool(self) -> int:
        """Slots of decode's pool."""
        return self.chunks if self.slots is None else self.slots


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="abort", sentence="the client goes while writes are in flight"),
        Scenario(
            name="failed-send",
            sentence="a send fails while its write stays live, and the client may go",
            send_faults=1,
        ),
        Scenario(
            name="split-status",
            sentence="the client goes, and a rank that opens a room looks at its status and writes it in two steps",
            split_status=True,
        ),
    )
}
"""The scenarios by name."""

DEFAULT = ("abort", "failed-send")
"""Those that `draincheck verify` runs unless others are named."""

TRANSFER = (
    decode_scheduler.preallocate,
    decode_scheduler.publish,
    prefill_scheduler.arrive,
    prefill_scheduler.look_at_room,
    prefill_scheduler.open_room,
    bootstrap_thread.receive_metadata,
    prefill_scheduler.start_prefill,
    prefill_scheduler.produce,
    prefill_scheduler.put_chunk,
    transfer_worker.dequeue,
    transfer_worker.count,
    transfer_worker.test_room,
    transfer_worker.post,
    transfer_worker.call_returns,
    transfer_worker.decide_outcome,
    transfer_worker.report_outcome,
    transfer_worker.uncount,
    decode_receiver.receive_status,
    decode_scheduler.commit,
    decode_scheduler.finish,
)
SEND_FAULT = (transfer_worker.call_fails, transfer_worker.poison, transfer_worker.report_failure)
FAILURE = (decode_scheduler.take_failed, decode_scheduler.dispose)
NOTIFICATION = (
    decode_scheduler.arm_tracker,
    decode_scheduler.send_abort,
    bootstrap_thread.receive_abort,
    bootstrap_thread.mark_failed,
)
CLEARING = (
    prefill_scheduler.poll_failed,
    prefill_scheduler.poll_success,
    prefill_scheduler.clear_status,
    prefill_scheduler.clear_infos,
)
DRAIN_ACK = (
    bootstrap_thread.register_target,
    bootstrap_thread.answer_inactive,
    bootstrap_thread.check_drained,
    bootstrap_thread.ack_at_once,
    prefill_scheduler.clear_target,
    prefill_scheduler.clear_ack,
    transfer_worker.look_at_count,
    transfer_worker.ack_drained,
)
BY_ABORT = (
    bootstrap_thread.register_target,
    bootstrap_thread.answer_inactive,
    bootstrap_thread.check_drained,
    bootstrap_thread.ack_at_once,
)
EXPIRY = {Timer.LATE: decode_scheduler.release_expired_late, Timer.ANY: decode_scheduler.release_expired}
RELEASE = (decode_receiver.receive_ack, decode_scheduler.release_drained, *EXPIRY.values())
MEMORY = (victim.victim_takes, victim.victim_finishes, nic.land)
STORY = (
    *TRANSFER, *SEND_FAULT, decode_scheduler.abort, *FAILURE, *NOTIFICATION, *CLEARING, *DRAIN_ACK, *RELEASE, *MEMORY,
)  # fmt: skip
"""Every step, in the order in which a story is best told: of several shortest traces the first in it is shown."""


def impossible(knobs: Knobs, scenario: Scenario, timer: Timer) -> set[Action]:
    """Steps of features that are switched off or absent. They are left out, so that each of the others must fire."""
    gone: set[Action] = set()
    holds = knobs.hold_enabled and knobs.hold_causes != "none"
    notifies = scenario.aborts or (knobs.hold_enabled and knobs.hold_causes == "all")
    if not scenario.aborts:
        gone.add(decode_scheduler.abort)
    if not notifies:
        gone |= {*NOTIFICATION, decode_receiver.receive_ack, *BY_ABORT}
    if not knobs.hold_enabled or knobs.arm_order == "never":
        gone.add(decode_scheduler.arm_tracker)
    if not holds:
        gone.add(decode_scheduler.release_drained)
    gone |= {action for when, action in EXPIRY.items() if not holds or when is not timer}
    if not knobs.acks_drain:
        gone |= set(DRAIN_ACK)
    if not knobs.ack_target_survives_clear:
        gone.add(prefill_scheduler.clear_ack)
    if knobs.inactive_register == "always":
        gone.add(bootstrap_thread.answer_inactive)
    if scenario.split_status:
        gone.add(prefill_scheduler.arrive)
    else:
        gone |= {prefill_scheduler.look_at_room, prefill_scheduler.open_room}
    if not scenario.send_faults:
        gone |= set(SEND_FAULT)
    if not (knobs.poison_on_error or knobs.poison_on_rejected_post):
        gone.add(transfer_worker.poison)
    if not knobs.abort_handled:
        gone |= {bootstrap_thread.mark_failed, *BY_ABORT, decode_receiver.receive_ack}
    return gone


def actions_of(knobs: Knobs, scenario: Scenario, timer: Timer) -> tuple[Action, ...]:
    """The steps that can occur, in the order of the story."""
    gone = impossible(knobs, scenario, timer)
    return tuple(action for action in STORY if action not in gone)


def quiet(s: Drain) -> bool:
    """Every thread is idle and nothing is on its way."""
    if s.decode_step != DecodeStep.IDLE:
        return False
    for rank in s.all(PrefillRank):
        threads = (
            s.scheduler_step[rank] == SchedulerStep.IDLE
            and s.bootstrap_step[rank] == BootstrapStep.IDLE
            and s.worker_step[rank] == WorkerStep.IDLE
        )
        wires = s.control[rank].length + s.report[rank].length + s.queue[rank].length + s.nic[rank].length
        if not threads or wires != 0:
            return False
    return True


def at_rest(s: Drain) -> int:
    """Terminal: all is quiet, and each request has ended or is held.

    A hold may last for ever here: the timer can be off, and an ack can be withheld.
    """
    if not quiet(s):
        return False
    held = any(s.life[room] == Life.HELD for room in s.all(Room))
    for room in s.all(Room):
        ended = s.life[room] == Life.GONE or s.life[room] == Life.HELD
        if not ended and not (held and s.life[room] == Life.NEW):
            return False
    return True


def slot_views(s: Drain) -> list[SlotView]:
    """The memory of decode: each slot with its owner and, for each rank, who wrote it last."""
    views: list[SlotView] = []
    for slot in s.all(Slot):
        owner = "free" if s.owner[slot] == NONE else Request.label(s.owner[slot], s.size(Request))
        rooms = [s.writer[slot, rank] for rank in s.all(PrefillRank)]
        writers = ["-" if room == NONE else Room.label(room, s.size(Room)) for room in rooms]
        views.append(SlotView(f"slot {slot}", owner, ", ".join(dict.fromkeys(writers))))
    return views


def drain_model(name: str, knobs: Knobs, scenario: Scenario, *, timer: Timer) -> Model:
    """The model of a profile's knobs in a scenario. `timer` says when a hold can end by its timer."""
    sizes: dict[type[Any], int] = {
        Room: scenario.rooms,
        Request: scenario.rooms + 1,
        PrefillRank: scenario.ranks,
        Chunk: scenario.chunks,
        Slot: scenario.pool,
        SendFault: max(1, scenario.send_faults),
    }
    return Model(
        name=f"{name} / {scenario.name}",
        state=Drain,
        actions=actions_of(knobs, scenario, timer),
        sizes=sizes,
        knobs=knobs,
        terminal=at_rest,
        slots=slot_views,
        bounds={
            "decode ranks": "1",
            "prefill ranks": str(scenario.ranks),
            "rooms": str(scenario.rooms),
            "victims": "1",
            "chunks": str(scenario.chunks),
            "slots": str(scenario.pool),
            "aborts": "1 a room" if scenario.aborts else "none",
            "failing sends": str(scenario.send_faults),
            "status update": "a look and a write" if scenario.split_status else "one step",
            "release timer": timer.value,
        },
    )
