"""When each step of the protocol is part of a model, and when it must fire: decided by profiles and scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...protocol.language import Action
from ...protocol.roles import (
    admission,
    bootstrap_thread,
    death,
    decode_receiver,
    decode_scheduler,
    lives,
    memory,
    prefill_scheduler,
    router,
    transfer_worker,
    victim,
)
from ...protocol.roles.knobs import Knobs, Setting
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
    def answers_nobody(self) -> bool:
        """Whether prefill acknowledges only ABORTs with a generation, and decode sends none."""
        return self.registers and self.prefill.gen_tags and not self.decode.gen_tags

    @property
    def poisons(self) -> bool:
        """Whether a failing send forbids the room's ack."""
        rejected = self.prefill.poison_on_rejected_post and not self.scenario.partial
        return self.scenario.send_faults > 0 and (self.prefill.poison_on_error or rejected)

    @property
    def tears_down(self) -> bool:
        """Whether the worker's teardown of a room can matter, and the release has it."""
        return self.scenario.reuse is not None and self.prefill.teardown != "never"

    @property
    def drains(self) -> bool:
        """Whether prefill can acknowledge a drain in a way that decode counts."""
        agree = self.decode.gen_tags == self.prefill.gen_tags
        return bool(self.holds and self.registers and agree and self.arms)

    @property
    def arms(self) -> bool:
        """Whether decode can come to count acks: with the tracker armed last, only where a client's abort tells it."""
        unstarted = self.ends("waiting-timeout", "restore-failure", "partial-publish")
        by_itself = unstarted or (self.scenario.send_faults and not self.poisons)
        told = self.ends("disconnect", "router-cancel", "router-drop")
        return told or (self.decode.arm_order == "before" and bool(by_itself))

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


def _lives_again(case: Circumstances) -> bool:
    return case.scenario.lives == "endless"


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
    decode_receiver.conclude_transfer: lambda case: case.setting.concludes_apart,
    lives.take_fresh_number: _lives_again,
    lives.use_number_again: _lives_again,
    lives.come_again: _lives_again,
    lives.arm_elsewhere: lambda case: _lives_again(case) and case.decode.gen_tags and case.holds,
    transfer_worker.send_aux: lambda case: case.scenario.metadata,
    transfer_worker.aux_returns: lambda case: case.scenario.metadata and case.prefill.aux_channel == "in_chunk",
    transfer_worker.defer: lambda case: case.scenario.deferrals > 0,
    transfer_worker.call_fails: lambda case: _sends_fail(case) and not case.scenario.partial,
    transfer_worker.part_fails: lambda case: _sends_fail(case) and case.scenario.partial,
    transfer_worker.poison: lambda case: case.poisons,
    transfer_worker.report_failure: lambda case: _sends_fail(case) or "decode-restart" in case.scenario.events,
    transfer_worker.look_at_count: lambda case: case.prefill.acks_drain,
    transfer_worker.ack_drained: lambda case: case.prefill.acks_drain,
    transfer_worker.look_at_end: lambda case: case.tears_down,
    transfer_worker.tear_down: lambda case: case.tears_down,
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
        case.notifies
        and case.decode.hold_enabled
        and (case.decode.arm_order == "before" or (case.decode.arm_order == "after" and case.arms))
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
    # An ABORT without generation is not acknowledged since 0.5.22.
    bootstrap_thread.check_drained: lambda case: case.answers_nobody,
    bootstrap_thread.ack_at_once: lambda case: case.answers_nobody,
    decode_receiver.receive_ack: lambda case: case.answers_nobody,
    # No ack comes, or none counts.
    decode_scheduler.release_drained: lambda case: not case.drains,
}
"""When a step that is part of the model need not fire."""
