"""The abort/drain protocol under two profiles, a scenario and a release timer: a model that can be checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..protocol.language import NONE, Action, Faults
from ..protocol.roles import (
    admission,
    bootstrap_thread,
    death,
    decode_receiver,
    decode_scheduler,
    memory,
    nic,
    prefill_scheduler,
    router,
    transfer_worker,
    victim,
)
from ..protocol.roles.indices import (
    Chunk,
    DecodeRank,
    Deferral,
    Owner,
    PrefillRank,
    Request,
    Room,
    SendFault,
    Slot,
)
from ..protocol.roles.knobs import Knobs, Setting
from ..protocol.roles.router import is_submitted
from ..protocol.roles.state import Drain
from ..protocol.roles.steps import BootstrapStep, Copy, DecodeStep, Engine, Life, SchedulerStep, WorkerStep
from ..protocol.roles.topology import partners, served
from .model import Model, SlotView
from .scenario import Scenario


class Timer(StrEnum):
    """When a hold can end by its release timer."""

    OFF = "off"
    LATE = "fires once the writes of the room are over"
    ANY = "fires at any moment"


@dataclass(frozen=True)
class Circumstances:
    """What a model is made from: the releases and topology, what may happen, and the release timer."""

    setting: Setting
    scenario: Scenario
    timer: Timer

    @property
    def decode(self) -> Knobs:
        """The release of decode."""
        return self.setting.decode

    @property
    def prefill(self) -> Knobs:
        """The release of prefill."""
        return self.setting.prefill

    def ends(self, *names: str) -> bool:
        """Whether a request may end in one of these ways."""
        return any(name in self.scenario.ends for name in names)

    @property
    def fails(self) -> bool:
        """Whether a transfer can fail that has been published."""
        decode_ends = (
            "disconnect",
            "router-cancel",
            "router-drop",
            "waiting-timeout",
            "node-failure",
            "partial-publish",
        )
        restore = self.ends("restore-failure") and self.decode.restore_failure != "frees"
        return self.ends(*decode_ends) or bool(self.scenario.send_faults) or self.tells_failure or restore

    @property
    def tells_failure(self) -> bool:
        """Whether prefill alone can fail a room and the worker then tell decode."""
        return self.ends("prefill-abort")

    @property
    def notifies(self) -> bool:
        """Whether decode can send an ABORT for a room that is published."""
        if not self.decode.transfers:
            return False
        starts = self.ends("disconnect", "router-cancel", "router-drop", "waiting-timeout")
        return starts or (self.fails and self.decode.hold_enabled and self.decode.hold_causes == "all")

    @property
    def aborts(self) -> bool:
        """Whether an ABORT can reach a prefill that acts on it."""
        told = self.notifies or self.ends("early-disconnect")
        return told and self.prefill.abort_handled and self.decode.transfers

    @property
    def registers(self) -> bool:
        """Whether an ABORT can be owed an ack that waits for the drain."""
        return self.aborts and self.prefill.acks_drain

    @property
    def poisons(self) -> bool:
        """Whether a failing send forbids the room's ack."""
        rejected = self.prefill.poison_on_rejected_post and not self.scenario.partial
        return self.scenario.send_faults > 0 and (self.prefill.poison_on_error or rejected)

    @property
    def drains(self) -> bool:
        """Whether prefill can acknowledge a drain in a way that decode counts."""
        agree = self.decode.gen_tags == self.prefill.gen_tags
        unstarted = self.ends("waiting-timeout", "restore-failure", "partial-publish")
        by_itself = unstarted or (self.scenario.send_faults and not self.poisons)
        told = self.ends("disconnect", "router-cancel", "router-drop")
        armed = told or (self.decode.arm_order == "before" and by_itself)
        return bool(self.holds and self.registers and agree and armed)

    @property
    def writes_outlive(self) -> bool:
        """Whether a write can be in flight for a request that has ended or is held."""
        failing = bool(self.scenario.send_faults) and not (self.scenario.partial and self.prefill.wait_for_siblings)
        ends = self.ends("disconnect", "router-cancel", "router-drop", "waiting-timeout", "node-failure")
        return self.decode.transfers and (ends or failing)

    @property
    def holds(self) -> bool:
        """Whether a hold can come about."""
        return self.fails and self.decode.holds and self.notifies


def _ends(*names: str) -> Callable[[Circumstances], bool]:
    return lambda case: case.ends(*names)


def _sends_fail(case: Circumstances) -> bool:
    return case.scenario.send_faults > 0


CONDITIONS: Mapping[Action, Callable[[Circumstances], bool]] = {
    router.cancel_both_legs: lambda case: case.ends("router-cancel") and case.decode.router_aborts == "both_legs",
    router.cancel_decode_leg: lambda case: case.ends("router-cancel") and case.decode.router_aborts == "one_leg",
    router.cancel_prefill_leg: lambda case: (
        case.ends("router-cancel") and (case.decode.router_aborts == "one_leg" or case.ends("router-death"))
    ),
    admission.reject: _ends("reject"),
    prefill_scheduler.arrive: lambda case: not case.scenario.split_status,
    prefill_scheduler.look_at_room: lambda case: case.scenario.split_status,
    prefill_scheduler.open_room: lambda case: case.scenario.split_status,
    prefill_scheduler.bootstrap_timeout: _ends("bootstrap-timeout"),
    prefill_scheduler.abort_at_prefill: _ends("prefill-abort", "router-cancel"),
    prefill_scheduler.abort_inflight: _ends("prefill-abort", "router-cancel"),
    prefill_scheduler.clear_target: lambda case: case.prefill.acks_drain,
    prefill_scheduler.clear_ack: lambda case: case.prefill.acks_drain and case.prefill.ack_target_survives_clear,
    transfer_worker.send_aux: lambda case: case.scenario.metadata,
    transfer_worker.aux_returns: lambda case: case.scenario.metadata and case.prefill.aux_channel == "in_chunk",
    transfer_worker.defer: lambda case: case.scenario.deferrals > 0,
    transfer_worker.call_fails: lambda case: _sends_fail(case) and not case.scenario.partial,
    transfer_worker.part_fails: lambda case: _sends_fail(case) and case.scenario.partial,
    transfer_worker.poison: lambda case: case.poisons,
    transfer_worker.report_failure: lambda case: _sends_fail(case) or "decode-restart" in case.scenario.events,
    transfer_worker.look_at_count: lambda case: case.prefill.acks_drain,
    transfer_worker.ack_drained: lambda case: case.prefill.acks_drain,
    bootstrap_thread.receive_abort: lambda case: case.notifies or case.ends("early-disconnect"),
    bootstrap_thread.mark_failed: lambda case: case.aborts,
    bootstrap_thread.register_target: lambda case: case.registers,
    bootstrap_thread.answer_inactive: lambda case: case.registers and case.prefill.inactive_register != "always",
    bootstrap_thread.check_drained: lambda case: case.registers,
    bootstrap_thread.ack_at_once: lambda case: case.registers,
    decode_receiver.receive_ack: lambda case: case.aborts,
    decode_receiver.receive_aux: lambda case: case.scenario.metadata and case.prefill.aux_channel == "unordered_tcp",
    decode_receiver.receive_aux_in_order: lambda case: (
        case.scenario.metadata and case.prefill.aux_channel == "fifo_tcp"
    ),
    decode_scheduler.abort: _ends("disconnect", "router-cancel", "router-drop"),
    decode_scheduler.pretend_success: lambda case: not case.decode.transfers,
    router.drop_decode_leg: _ends("router-drop"),
    decode_scheduler.abort_unpublished: _ends("early-disconnect", "router-cancel"),
    decode_scheduler.waiting_timeout: _ends("waiting-timeout"),
    decode_scheduler.publish_in_part: _ends("partial-publish"),
    decode_scheduler.see_node_failure: _ends("node-failure"),
    decode_scheduler.arm_tracker: lambda case: (
        case.notifies and case.decode.hold_enabled and case.decode.arm_order != "never"
    ),
    decode_scheduler.send_abort: lambda case: case.notifies,
    decode_scheduler.take_failed: lambda case: case.fails,
    decode_scheduler.dispose: lambda case: case.fails,
    decode_scheduler.release_drained: lambda case: case.holds,
    decode_scheduler.release_expired: lambda case: case.holds and case.timer is Timer.ANY,
    decode_scheduler.release_expired_late: lambda case: case.holds and case.timer is Timer.LATE,
    memory.restore_ends: _ends("restore-failure"),
    memory.restore_fails: _ends("restore-failure"),
    memory.give_up_restore: lambda case: case.ends("restore-failure") and case.decode.restore_failure != "agreed",
    memory.start_copy: lambda case: case.scenario.host_copies,
    memory.copy_reads: lambda case: case.scenario.host_copies,
    memory.retract: _ends("preemption"),
    memory.drop_mismatch: lambda case: case.ends("checksum-mismatch") and case.decode.checksum != "absent",
    memory.flush: lambda case: "flush" in case.scenario.events,
    memory.relocate: lambda case: "compaction" in case.scenario.events,
    memory.switch_role: lambda case: "role-switch" in case.scenario.events and case.decode.role_switch,
    death.prefill_restarts: lambda case: "prefill-restart" in case.scenario.events,
    death.decode_restarts: lambda case: "decode-restart" in case.scenario.events,
    memory.pause: lambda case: "pause" in case.scenario.events,
    memory.resume: lambda case: "pause" in case.scenario.events,
    death.worker_dies: _ends("worker-death"),
    death.prefill_dies: _ends("node-failure"),
    victim.victim_takes_buffer: lambda case: case.scenario.metadata,
}
"""When a step is part of the model; a step that is not listed always is. What is left must fire."""

WITHOUT_TRANSFER = frozenset(
    {
        decode_scheduler.preallocate,
        decode_scheduler.publish,
        decode_scheduler.pretend_success,
        decode_scheduler.abort,
        decode_scheduler.take_failed,
        decode_scheduler.dispose,
        decode_scheduler.commit,
        decode_scheduler.finish,
        victim.victim_takes,
        victim.victim_finishes,
    }
)
"""Steps of a backend that transfers nothing."""

RESTS: Mapping[Action, Callable[[Circumstances], bool]] = {
    # Decode fails only what prefill has finished, or prefill itself clears what it rejects.
    prefill_scheduler.poll_failed: lambda case: (
        not case.scenario.send_faults
        and not case.ends("disconnect", "router-cancel", "waiting-timeout", "early-disconnect", "prefill-abort")
        and not (case.ends("partial-publish") and case.notifies)
    ),
    # A scheduler that crashes where a transfer has failed gets no further.
    decode_scheduler.dispose: lambda case: case.decode.hold_enabled and not case.decode.receiver_complete,
    # Decode is idle only if nobody has memory.
    memory.flush: lambda case: case.decode.idle_counts_holds,
    memory.switch_role: lambda case: case.decode.idle_counts_holds,
    # No ack comes, or none counts.
    decode_scheduler.release_drained: lambda case: not case.drains,
}
"""When a step that is part of the model need not fire."""

STORY = (
    decode_scheduler.preallocate,
    decode_scheduler.publish,
    prefill_scheduler.arrive,
    prefill_scheduler.look_at_room,
    prefill_scheduler.open_room,
    bootstrap_thread.receive_metadata,
    admission.reject,
    prefill_scheduler.start_prefill,
    prefill_scheduler.produce,
    prefill_scheduler.put_chunk,
    memory.restore_ends,
    transfer_worker.dequeue,
    transfer_worker.count,
    transfer_worker.test_room,
    transfer_worker.post,
    transfer_worker.call_returns,
    transfer_worker.send_aux,
    transfer_worker.aux_returns,
    transfer_worker.decide_outcome,
    transfer_worker.report_outcome,
    transfer_worker.uncount,
    decode_receiver.receive_status,
    decode_receiver.receive_aux,
    decode_receiver.receive_aux_in_order,
    decode_scheduler.pretend_success,
    decode_scheduler.commit,
    memory.start_copy,
    memory.copy_reads,
    decode_scheduler.finish,
    transfer_worker.defer,
    transfer_worker.call_fails,
    transfer_worker.part_fails,
    transfer_worker.poison,
    transfer_worker.report_failure,
    router.cancel_both_legs,
    router.cancel_decode_leg,
    router.cancel_prefill_leg,
    router.drop_decode_leg,
    decode_scheduler.abort,
    decode_scheduler.abort_unpublished,
    decode_scheduler.publish_in_part,
    decode_scheduler.waiting_timeout,
    prefill_scheduler.bootstrap_timeout,
    prefill_scheduler.abort_at_prefill,
    prefill_scheduler.abort_inflight,
    memory.restore_fails,
    memory.give_up_restore,
    memory.retract,
    memory.drop_mismatch,
    death.worker_dies,
    death.prefill_dies,
    decode_scheduler.see_node_failure,
    decode_scheduler.take_failed,
    decode_scheduler.dispose,
    decode_scheduler.arm_tracker,
    decode_scheduler.send_abort,
    bootstrap_thread.receive_abort,
    bootstrap_thread.mark_failed,
    prefill_scheduler.poll_failed,
    prefill_scheduler.poll_success,
    prefill_scheduler.clear_status,
    prefill_scheduler.clear_infos,
    bootstrap_thread.register_target,
    bootstrap_thread.answer_inactive,
    bootstrap_thread.check_drained,
    bootstrap_thread.ack_at_once,
    prefill_scheduler.clear_target,
    prefill_scheduler.clear_ack,
    transfer_worker.look_at_count,
    transfer_worker.ack_drained,
    decode_receiver.receive_ack,
    decode_scheduler.release_drained,
    decode_scheduler.release_expired_late,
    decode_scheduler.release_expired,
    death.prefill_restarts,
    death.decode_restarts,
    memory.pause,
    memory.resume,
    memory.switch_role,
    memory.flush,
    memory.relocate,
    victim.victim_takes,
    victim.victim_takes_buffer,
    victim.victim_finishes,
    nic.land,
)
"""Every step, in the order in which a story is best told: of several shortest traces the first in it is shown."""


ENVIRONMENT = frozenset(
    {
        router.cancel_both_legs,
        router.cancel_decode_leg,
        router.cancel_prefill_leg,
        router.drop_decode_leg,
        admission.reject,
        decode_scheduler.abort,
        decode_scheduler.abort_unpublished,
        decode_scheduler.waiting_timeout,
        decode_scheduler.publish_in_part,
        prefill_scheduler.bootstrap_timeout,
        prefill_scheduler.abort_at_prefill,
        prefill_scheduler.abort_inflight,
        transfer_worker.defer,
        transfer_worker.call_fails,
        transfer_worker.part_fails,
        memory.restore_fails,
        memory.start_copy,
        memory.retract,
        memory.drop_mismatch,
        memory.flush,
        memory.relocate,
        memory.pause,
        memory.switch_role,
        death.prefill_restarts,
        death.decode_restarts,
        death.worker_dies,
        death.prefill_dies,
        victim.victim_takes,
        victim.victim_takes_buffer,
    }
)
"""Steps that need never happen: clients, faults, and whoever else wants memory. All others happen if they can."""


def actions_of(case: Circumstances) -> tuple[Action, ...]:
    """The steps that can occur, in the order of the story. Without a transfer there are only those of decode."""
    steps = (action for action in STORY if action not in CONDITIONS or CONDITIONS[action](case))
    return tuple(action for action in steps if case.decode.transfers or action in WITHOUT_TRANSFER)


def quiet(s: Drain) -> int:
    """Every thread that lives is idle, and nothing is on its way that anybody will take.

    One condition without a branch: it is asked of every state, and a decision tree of it would be large.
    """
    busy = 0
    for decode in s.all(DecodeRank):
        step = s.decode_step[decode]
        busy |= (step != DecodeStep.IDLE) & (step != DecodeStep.CRASHED)
    busy |= s.engine == Engine.PAUSED
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            busy |= s.copy[decode, request] == Copy.RUNNING
    for prefill in s.all(PrefillRank):
        worker, bootstrap = s.worker_step[prefill], s.bootstrap_step[prefill]
        scheduler = s.scheduler_step[prefill]
        busy |= (scheduler != SchedulerStep.IDLE) & (scheduler != SchedulerStep.DEAD)
        busy |= (bootstrap != BootstrapStep.IDLE) & (bootstrap != BootstrapStep.DEAD)
        busy |= (worker != WorkerStep.IDLE) & (worker != WorkerStep.DEAD)
        busy |= (worker != WorkerStep.DEAD) & (s.queue[prefill].length != 0)
        for decode in served(s, prefill):
            busy |= (bootstrap != BootstrapStep.DEAD) & (s.control[decode, prefill].length != 0)
            busy |= s.report[prefill, decode].length != 0
            busy |= s.aux[prefill, decode].length != 0
            busy |= s.nic[prefill, decode].length != 0
    return busy == 0


def at_rest(s: Drain) -> int:
    """Terminal: all is quiet, and each request has ended, is held, or waits for a transfer that does not come.

    Properties say whether it may. One that waits may keep others from their slots, or from their room number.
    """
    waiting, stuck, new = 0, 0, 0
    for decode in s.all(DecodeRank):
        crashed = s.decode_step[decode] == DecodeStep.CRASHED
        waiting |= crashed
        for request in s.all(Request):
            life = s.life[decode, request]
            waits = (life == Life.HELD) | (life == Life.TRANSFERRING)
            waiting |= waits
            new |= (life == Life.NEW) & is_submitted(s, request)
            stuck |= (life != Life.GONE) & (life != Life.NEW) & (waits == 0) & (crashed == 0)
    return quiet(s) & (stuck == 0) & ((new == 0) | (waiting != 0))


def slot_views(s: Drain) -> list[SlotView]:
    """The memory of decode: each slot with its owner and, for each prefill rank, who wrote it last."""
    views: list[SlotView] = []
    for decode in s.all(DecodeRank):
        where = f"decode {decode} " if s.size(DecodeRank) > 1 else ""
        for slot in s.all(Slot):
            owner = "free" if s.owner[decode, slot] == NONE else Owner.label(s.owner[decode, slot], s.size(Owner))
            requests = [s.writer[decode, slot, prefill] for prefill in partners(s, decode)]
            writers = ["-" if each == NONE else Owner.label(each, s.size(Owner)) for each in requests]
            views.append(SlotView(f"{where}slot {slot}", owner, ", ".join(dict.fromkeys(writers))))
        if s.knobs.metadata:
            owner = "free" if s.row_owner[decode] == NONE else Owner.label(s.row_owner[decode], s.size(Owner))
            content = s.row_content[decode]
            writer = "-" if content == NONE else Owner.label(content, s.size(Owner))
            views.append(SlotView(f"{where}metadata buffer", owner, writer))
    return views


def setting_of(decode: Knobs, prefill: Knobs, scenario: Scenario) -> Setting:
    """The releases in the topology of a scenario, with the features that it uses."""
    return Setting(
        decode=decode,
        prefill=prefill,
        paired=scenario.paired,
        dummies=scenario.dummies,
        stages=scenario.stages,
        metadata=scenario.metadata,
        hisparse=scenario.hisparse,
        restore="restore-failure" in scenario.ends,
        router="router-cancel" in scenario.ends,
        router_drops="router-drop" in scenario.ends,
        reuse=scenario.reuse or "ended",
    )


def drain_model(name: str, decode: Knobs, prefill: Knobs, scenario: Scenario, *, timer: Timer) -> Model:
    """The model of two releases in a scenario. `timer` says when a hold can end by its timer."""
    sizes: dict[type[Any], int] = {
        Request: scenario.rooms,
        Room: 1 if scenario.reuse else scenario.rooms,
        Owner: scenario.rooms + 1,
        PrefillRank: scenario.ranks,
        DecodeRank: scenario.decode_ranks,
        Chunk: scenario.chunks,
        Slot: scenario.pool,
        SendFault: max(1, scenario.send_faults),
        Deferral: max(1, scenario.deferrals),
    }
    setting = setting_of(decode, prefill, scenario)
    around = Circumstances(setting, scenario, timer)
    actions = actions_of(around)
    return Model(
        name=f"{name} / {scenario.name}",
        state=Drain,
        actions=actions,
        may_rest=frozenset(each.name for each in actions if each in RESTS and RESTS[each](around)),
        sizes=sizes,
        knobs=setting,
        terminal=at_rest,
        faults=faults_of(scenario),
        slots=slot_views,
        bounds=bounds_of(scenario, timer),
    )


def faults_of(scenario: Scenario) -> dict[str, Faults]:
    """The fault budgets of the wires."""
    faults: dict[str, Faults] = {}
    if scenario.lost_controls:
        faults["control"] = Faults(loss=scenario.lost_controls)
    if scenario.lost_reports or scenario.doubled_reports or scenario.swapped_reports:
        faults["report"] = Faults(
            loss=scenario.lost_reports, duplication=scenario.doubled_reports, reordering=scenario.swapped_reports
        )
    return faults


def bounds_of(scenario: Scenario, timer: Timer) -> dict[str, str]:
    """What a verdict is limited to, in words."""
    bounds = {
        "decode ranks": str(scenario.decode_ranks),
        "prefill ranks": str(scenario.ranks),
        "rooms": f"1, used {scenario.rooms} times" if scenario.reuse else str(scenario.rooms),
        "victims": "1",
        "chunks": str(scenario.chunks),
        "slots": str(scenario.pool),
        "aborts": "1 a room" if {"disconnect", "router-cancel"} & set(scenario.ends) else "none",
        "failing sends": str(scenario.send_faults),
        "status update": "a look and a write" if scenario.split_status else "one step",
        "release timer": timer.value,
    }
    further = [each for each in scenario.ends if each != "disconnect"]
    for name, value in (
        ("further ends", ", ".join(further)),
        ("events", ", ".join(scenario.events)),
        ("deferred chunks", scenario.deferrals),
        ("lost messages to prefill", scenario.lost_controls),
        ("lost messages to decode", scenario.lost_reports),
        ("doubled messages to decode", scenario.doubled_reports),
        ("swapped messages to decode", scenario.swapped_reports),
    ):
        if value:
            bounds[name] = str(value)
    return bounds
