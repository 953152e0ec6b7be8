"""The abort/drain protocol under a profile, a scenario and a release timer: a model that can be checked."""

from __future__ import annotations

from dataclasses import dataclass
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

LARGEST = 8
"""More of anything than this is beyond exhaustive search."""


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
    rooms: int = 1
    ranks: int = 1
    chunks: int = 2
    slots: int | None = None

    def __post_init__(self) -> None:
        sizes = {"rooms": self.rooms, "prefill ranks": self.ranks, "chunks": self.chunks, "slots": self.pool}
        for name, size in sizes.items():
            if not 1 <= size <= LARGEST:
                raise DeclarationError(f"{name} is {size}; allowed are whole numbers from 1 to {LARGEST}")
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
    )
}
"""The scenarios that `draincheck verify` runs, by name."""

ALWAYS = (
    decode_scheduler.preallocate,
    decode_scheduler.publish,
    decode_scheduler.take_failed,
    decode_scheduler.dispose,
    decode_scheduler.commit,
    decode_scheduler.finish,
    decode_receiver.receive_status,
    prefill_scheduler.arrive,
    prefill_scheduler.start_prefill,
    prefill_scheduler.produce,
    prefill_scheduler.put_chunk,
    prefill_scheduler.poll_failed,
    prefill_scheduler.poll_success,
    prefill_scheduler.clear_status,
    prefill_scheduler.clear_infos,
    bootstrap_thread.receive_metadata,
    transfer_worker.dequeue,
    transfer_worker.count,
    transfer_worker.test_room,
    transfer_worker.post,
    transfer_worker.call_returns,
    transfer_worker.decide_outcome,
    transfer_worker.report_outcome,
    transfer_worker.uncount,
    nic.land,
    victim.victim_takes,
    victim.victim_finishes,
)
ABORT = (
    decode_scheduler.abort,
    decode_scheduler.send_abort,
    decode_receiver.receive_ack,
    bootstrap_thread.receive_abort,
    bootstrap_thread.mark_failed,
)
HOLD = (decode_scheduler.release_drained,)
ACK = (
    bootstrap_thread.register_target,
    bootstrap_thread.check_drained,
    bootstrap_thread.ack_at_once,
    prefill_scheduler.clear_target,
    transfer_worker.look_at_count,
    transfer_worker.ack_drained,
)


def actions_of(knobs: Knobs, scenario: Scenario, timer: bool) -> tuple[Action, ...]:
    """The steps that can occur at all: those of switched-off features are left out, so that each must fire."""
    actions = list(ALWAYS)
    if scenario.aborts or knobs.hold_causes == "all":
        actions += ABORT if scenario.aborts else ABORT[1:]
    if knobs.hold_enabled and knobs.arm_order != "never":
        actions.append(decode_scheduler.arm_tracker)
    if knobs.hold_enabled and knobs.hold_causes != "none":
        actions += HOLD
        if timer:
            actions.append(decode_scheduler.release_expired)
    if knobs.acks_drain:
        actions += ACK
        if knobs.ack_target_survives_clear:
            actions.append(prefill_scheduler.clear_ack)
    if scenario.send_faults:
        actions += [transfer_worker.call_fails, transfer_worker.report_failure]
        if knobs.poison_on_fail:
            actions.append(transfer_worker.poison)
    return tuple(actions)


def at_rest(s: Drain) -> int:
    """Terminal: every thread is idle, nothing is on its way, and each request has ended or is held.

    A hold may last for ever here: the timer can be off, and an ack can be withheld.
    """
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


def drain_model(name: str, knobs: Knobs, scenario: Scenario, *, timer: bool) -> Model:
    """The model of a profile's knobs in a scenario. `timer` lets a hold end by its timer, at any moment."""
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
            "release timer": "fires at any moment" if timer else "off",
        },
    )
