"""The abort/drain protocol under two profiles, a scenario and a release timer: a model that can be checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...protocol.language import NONE, UNBOUNDED, Action, Faults
from ...protocol.language.model import Model, SlotView
from ...protocol.roles.indices import (
    Backlog,
    Chunk,
    DecodeRank,
    Deferral,
    Generation,
    Owner,
    PrefillRank,
    Request,
    Room,
    SendFault,
    Slot,
)
from ...protocol.roles.knobs import Knobs, Setting
from ...protocol.roles.router import is_submitted
from ...protocol.roles.state import Drain
from ...protocol.roles.steps import BootstrapStep, Copy, DecodeStep, Engine, Life, SchedulerStep, WorkerStep
from ...protocol.roles.topology import partners, served
from ...protocol.roles.transfer_queue import has_waiting
from .circumstances import CONDITIONS, RESTS, WITHOUT_TRANSFER, Circumstances, Timer
from .scenario import Scenario
from .story import STORY


def actions_of(case: Circumstances) -> tuple[Action, ...]:
    """The steps that can occur, in the order of the story. Without a transfer there are only those of decode."""
    steps = (action for action in STORY if action not in CONDITIONS or CONDITIONS[action](case))
    return tuple(action for action in steps if case.decode.transfers or action in WITHOUT_TRANSFER)


def without_effect(case: Circumstances) -> tuple[str, ...]:
    """Ends and events of the scenario that the releases have no step for: without them the steps are the same."""
    steps, scenario = actions_of(case), case.scenario
    fewer = {each: replace(scenario, ends=tuple(end for end in scenario.ends if end != each)) for each in scenario.ends}
    fewer |= {
        each: replace(scenario, events=tuple(event for event in scenario.events if event != each))
        for each in scenario.events
    }
    return tuple(each for each, rest in fewer.items() if actions_of(replace(case, scenario=rest)) == steps)


def quiet(s: Drain) -> int:
    """Every thread that lives is idle, and nothing is on its way that anybody will take.

    One condition without a branch: it is asked of every state, and a decision tree of it would be large.
    """
    busy = 0
    for sign in signs_of_work(s):
        busy |= sign
    return busy == 0


def signs_of_work(s: Drain) -> Iterator[int]:
    """What shows that somebody has something to do: a condition for each thread and each wire."""
    for decode in s.all(DecodeRank):
        step = s.decode_step[decode]
        yield (step != DecodeStep.IDLE) & (step != DecodeStep.CRASHED)
    yield s.engine == Engine.PAUSED
    for prefill in s.all(PrefillRank):
        worker, bootstrap = s.worker_step[prefill], s.bootstrap_step[prefill]
        scheduler = s.scheduler_step[prefill]
        yield (scheduler != SchedulerStep.IDLE) & (scheduler != SchedulerStep.DEAD)
        yield (bootstrap != BootstrapStep.IDLE) & (bootstrap != BootstrapStep.DEAD)
        yield (worker != WorkerStep.IDLE) & (worker != WorkerStep.DEAD)
        yield (worker != WorkerStep.DEAD) & has_waiting(s, prefill)
        for decode in served(s, prefill):
            yield (bootstrap != BootstrapStep.DEAD) & (s.control[decode, prefill].length != 0)
            yield s.report[prefill, decode].length != 0
            yield s.aux[prefill, decode].length != 0
            yield s.nic[prefill, decode].length != 0
    for decode in s.all(DecodeRank):
        for request in s.all(Request):
            yield s.copy[decode, request] == Copy.RUNNING


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
        staging=scenario.deferrals > 0,
        hisparse=scenario.hisparse,
        restore="restore-failure" in scenario.ends,
        router="router-cancel" in scenario.ends,
        router_drops="router-drop" in scenario.ends,
        reuse=scenario.reuse or "never",
        endless=scenario.endless_chunks,
        concludes_apart=scenario.endless_chunks,
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
        Generation: scenario.rooms,
        Backlog: 1,
    }
    if scenario.lives == "endless":
        sizes |= {Generation: UNBOUNDED, SendFault: UNBOUNDED}
    if scenario.endless_chunks:
        sizes[Backlog] = UNBOUNDED
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
        untraceable=scenario.untraceable,
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


STATUS_UPDATE, ONE_STEP, APART = "status update", "one step", "a look and a write"
"""The bound that says whether an update of a room's status is one step, and what it can be."""


def bounds_of(scenario: Scenario, timer: Timer) -> dict[str, str]:
    """What a verdict is limited to, in words."""
    bounds = {
        "decode ranks": str(scenario.decode_ranks),
        "prefill ranks": str(scenario.ranks),
        "rooms": f"1, used {scenario.rooms} times" if scenario.reuse else str(scenario.rooms),
        "victims": "1",
        "lives": "any number for each" if scenario.lives == "endless" else "1 for each",
        "chunks": "any number" if scenario.endless_chunks else str(scenario.chunks),
        "slots": str(scenario.pool),
        "aborts": "1 a room" if {"disconnect", "router-cancel"} & set(scenario.ends) else "none",
        "failing sends": "any number"
        if scenario.lives == "endless" and scenario.send_faults
        else str(scenario.send_faults),
        STATUS_UPDATE: APART if scenario.split_status else ONE_STEP,
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
