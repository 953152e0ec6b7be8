"""Swarm simulation of a compiled model: many random walks at once, and how much of the model they covered.

A random run finds what goes wrong; it cannot find that nothing does. What it did is a function of the plan and of the
number of turns taken: not of the machine, nor of how many walkers are moved together.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any

import numpy as np

from ...protocol.language import DeclarationError
from ...protocol.language.check import Check
from ...protocol.language.model import Model, Values
from ..compile.native import Native
from ..search.search import INTERRUPTED, OPTIMISE_FROM, PROGRESS_SECONDS, Compiled, compile_check
from ..search.second_net import Executed, OneState, execute_again, only_compiled, sample
from . import swarm_kernel as kernel

BATCH = 256
"""Walkers moved together: their states and successors stay in the processor's cache."""
TURNS_AT_ONCE = 1 << 18
"""Turns of all walkers, about, between two looks at what was found, the time, and Ctrl-C."""
MAX_WALKS, MAX_DEPTH, MAX_CHANGES = 1 << 20, 1 << 24, 64


class Scheduler(StrEnum):
    """Who moves next: anybody; the lane of highest priority; the first for even walkers and the second for odd ones."""

    UNIFORM = "uniform"
    PRIORITY = "priority"
    MIXED = "mixed"


@dataclass(frozen=True)
class Plan:
    """How to walk, and for how long. Raises DeclarationError for a number that makes no sense.

    `walks` walkers walk at a time, each from a random initial state until no step is possible, but at most `depth`
    steps; then it starts anew. With priorities, a lane falls below the others at `changes` random points of a walk.
    `steps` are those of all walkers together, each return to the start counted as one; `seconds` is the time for them.
    Without either, the walk goes on until a property fails.
    """

    seed: int = 0
    walks: int = 1024
    depth: int = 200
    scheduler: Scheduler = Scheduler.MIXED
    changes: int = 3
    steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        ranges = {
            "seed": (self.seed, 0, 2**64 - 1),
            "walks": (self.walks, 1, MAX_WALKS),
            "depth": (self.depth, 1, MAX_DEPTH),
            "changes": (self.changes, 0, MAX_CHANGES),
            "steps": (1 if self.steps is None else self.steps, 1, 2**62),
        }
        for name, (value, least, most) in ranges.items():
            if not least <= value <= most:
                raise DeclarationError(f"{name} is {value}; allowed are whole numbers from {least} to {most}")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise DeclarationError(f"seconds={self.seconds} must be greater than 0, and finite")


@dataclass(frozen=True)
class Sighting:
    """Where something was seen: the walker, which of its walks, and how many steps from the start of that."""

    walker: int
    walk: int
    depth: int


@dataclass
class Simulation:
    """What was done and found.

    `stopped` says why it ended. `steps` are steps of the model, `turns` the returns to the start as well; `walks` is
    how many were begun, `deepest` the steps of the longest. `hits` counts steps for each action, `pairs` for two
    actions directly after each other, without those that never were. `counts` is how many of the visited states, not
    distinct ones, violate each property and satisfy each probe. `violated` has the properties that were seen to fail,
    each where the fewest steps led there in the round in which it was first seen; `deadlock` likewise. `executed` says
    how many of the states where walkers were at the end were executed directly as well. `path_to` walks there again:
    the states of the walk up to that one.
    """

    check: Check
    plan: Plan
    stopped: str = ""
    turns: int = 0
    steps: int = 0
    walks: int = 0
    deepest: int = 0
    seconds: float = 0.0
    hits: dict[str, int] = field(default_factory=dict[str, int])
    pairs: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    violated: dict[str, Sighting] = field(default_factory=dict[str, Sighting])
    deadlock: Sighting | None = None
    executed: Executed = field(default_factory=Executed)
    path_to: Callable[[Sighting], list[Values]] = lambda sighting: []

    @property
    def never_fired(self) -> list[str]:
        """Actions that never happened, though the model does not say that they may rest."""
        return [name for name, count in self.hits.items() if count == 0 and name not in self.check.model.may_rest]

    @property
    def never_reached(self) -> list[str]:
        """Probes that hold in no visited state."""
        return [probe.name for probe in self.check.probes if not self.counts[probe.name]]


def simulate(
    check: Check | Compiled,
    plan: Plan,
    *,
    until: Collection[str] | None = None,
    batch: int = BATCH,
    progress: Callable[[Simulation], None] | None = None,
) -> Simulation:
    """Walks until a property named in `until` (default: any) was seen to fail, or the plan's steps or time are up.

    Ctrl-C ends it with what is known. `batch` walkers are moved together, which changes nothing that is found. Raises
    ModelFault if an action breaks the language's rules in a state that was visited.
    """
    compiled = check if isinstance(check, Compiled) else compile_check(check)
    ends = {each.name for each in compiled.check.properties} if until is None else set(until)
    return _Swarm(compiled, plan, ends, batch, progress).run()


class _Swarm:
    """One running simulation."""

    def __init__(
        self,
        compiled: Compiled,
        plan: Plan,
        ends: set[str],
        batch: int,
        progress: Callable[[Simulation], None] | None,
    ) -> None:
        self._compiled, self._plan, self._ends, self._progress = compiled, plan, ends, progress
        self._model: Model = compiled.check.model
        self._shape = (0,) * compiled.packing.words
        self._batch = min(batch, plan.walks)
        self._tables = _tables(compiled)
        self._lanes = len({instance.lane for instance in self._model.instances})
        self._record = _record(compiled)
        self._wanted = (1 << len(compiled.check.properties)) - 1
        self._out = np.empty(self._batch * max(1, compiled.successors) * (compiled.packing.words + 1), np.uint64)
        self._walkers = self._new_walkers(0, plan.walks)
        self._code = _Code(compiled.quick)
        self._shown = time.perf_counter()
        self._result = Simulation(compiled.check, plan, path_to=self._path_to)

    def run(self) -> Simulation:
        """Walks; see `simulate`."""
        result = self._result
        try:
            result.stopped = self._rounds()
        except KeyboardInterrupt:
            result.stopped = INTERRUPTED
        self._count()
        if result.stopped != INTERRUPTED:
            try:
                result.executed = self._execute_again()
            except KeyboardInterrupt:
                result.stopped = INTERRUPTED
        return result

    def _execute_again(self) -> Executed:
        """Holds the states that walkers are in against direct execution; see second_net.py."""
        compiled, states = self._compiled, self._walkers.states
        one = OneState(compiled.check, compiled.packing, compiled.successors, self._code.native)
        return execute_again(one, ((tuple(states[at].tolist()), False) for at in sample([], len(states))))

    def _rounds(self) -> str:
        """Walks round by round; returns why it stopped."""
        result, plan = self._result, self._plan
        self._begin()
        stop = self._look()
        while not stop:
            if result.turns > OPTIMISE_FROM:
                self._code = _Code(self._compiled.optimised)
            began = time.perf_counter()
            self._round()
            result.seconds += time.perf_counter() - began
            stop = self._look()
            if not stop and result.turns == plan.steps:
                stop = f"{plan.steps:,} steps taken"
            if not stop and plan.seconds is not None and result.seconds >= plan.seconds:
                stop = f"{plan.seconds:g} s are over"
            if self._progress and time.perf_counter() - self._shown >= PROGRESS_SECONDS:
                self._shown = time.perf_counter()
                self._count()
                self._progress(result)
        return stop

    def _begin(self) -> None:
        """Puts every walker to the start of its first walk."""
        walkers, plan = self._walkers, self._plan
        kernel.start(walkers, self._tables, np.uint64(plan.seed), 0, self._shape, plan.depth)
        kernel.look(self._code.observe, walkers, self._record, 0, np.uint64(self._wanted))

    def _round(self) -> None:
        """Lets every walker take the same number of turns; where the plan's steps end, the first ones take one more."""
        result, plan = self._result, self._plan
        turns, more = max(1, TURNS_AT_ONCE // plan.walks), 0
        if plan.steps is not None and result.turns + turns * plan.walks > plan.steps:
            turns, more = divmod(plan.steps - result.turns, plan.walks)
        faults: list[tuple[int, int, int]] = []
        for count, many in ((turns, plan.walks), (1, more)):
            for first in range(0, many, self._batch):
                last = min(first + self._batch, many)
                part = kernel.Walkers(*(column[first:last] for column in self._walkers))
                if not self._advance(part, first, count):
                    numbers = [int(number) for number in self._record.numbers]
                    faults.append(
                        (numbers[kernel.FAULT_TURN], numbers[kernel.FAULT_WALKER], numbers[kernel.FAULT_CODE])
                    )
            if faults:
                self._raise_fault(*min(faults)[1:])
            result.turns += count * many

    def _advance(self, walkers: kernel.Walkers, first: int, turns: int) -> bool:
        code, plan = self._code, self._plan
        return kernel.advance(
            code.expand, code.observe, code.terminal, walkers, self._tables, self._record, np.uint64(plan.seed), first,
            self._shape, plan.depth, turns, np.uint64(self._wanted), self._result.deadlock is None, self._out,
        )  # fmt: skip

    def _look(self) -> str:
        """Keeps what was seen first in this round; a reason to stop, or an empty string."""
        result, sightings = self._result, self._record.sightings
        for number, prop in enumerate(self._compiled.check.properties):
            if self._wanted >> number & 1 and sightings[number, 0] != kernel.NEVER:
                self._wanted &= ~(1 << number)
                result.violated[prop.name] = _sighting(sightings[number])
        if result.deadlock is None and sightings[-1, 0] != kernel.NEVER:
            result.deadlock = _sighting(sightings[-1])
        return "violation found" if self._ends & result.violated.keys() else ""

    def _raise_fault(self, walker: int, code: int) -> None:
        """Runs the faulty step on integers, for a message with the values."""
        instance = self._model.instances[code]
        values = self._compiled.packing.unpack([int(word) for word in self._walkers.states[walker]])
        for _ in self._model.steps_of(instance, values):
            pass
        raise only_compiled(self._model, instance)

    def _path_to(self, sighting: Sighting) -> list[Values]:
        """Walks again, alone: the same key gives the same walk."""
        alone = self._new_walkers(sighting.walker, 1)
        alone.walks[0] = sighting.walk - 1
        record, self._record, wanted, self._wanted = self._record, _record(self._compiled), self._wanted, 0
        unpack = self._compiled.packing.unpack
        kernel.start(alone, self._tables, np.uint64(self._plan.seed), sighting.walker, self._shape, self._plan.depth)
        states = [unpack([int(word) for word in alone.states[0]])]
        for _ in range(sighting.depth):
            self._advance(alone, sighting.walker, 1)
            states.append(unpack([int(word) for word in alone.states[0]]))
        self._record, self._wanted = record, wanted
        return states

    def _new_walkers(self, first: int, many: int) -> kernel.Walkers:
        """Walkers from number `first` on, who have not started."""
        plan = self._plan
        numbers = np.arange(first, first + many)
        scheduled = {
            Scheduler.UNIFORM: numbers < 0,
            Scheduler.PRIORITY: numbers >= 0,
            Scheduler.MIXED: numbers % 2 == 1,
        }
        return kernel.Walkers(
            states=np.zeros((many, len(self._shape)), np.uint64),
            ages=np.zeros(many, np.int64),
            walks=np.full(many, -1, np.int64),
            keys=np.zeros(many, np.uint64),
            last=np.full(many, -1, np.int64),
            scheduled=scheduled[plan.scheduler],
            priorities=np.zeros((many, self._lanes), np.uint64),
            points=np.zeros((many, plan.changes), np.int64),
        )

    def _count(self) -> None:
        """Puts the counters of the kernel into the result."""
        result, record, names = self._result, self._record, [action.name for action in self._model.all_actions]
        result.hits = dict.fromkeys(names, 0)
        for instance, count in zip(self._model.instances, record.hits, strict=True):
            result.hits[instance.action.name] += int(count)
        result.pairs = {
            (first, then): int(record.pairs[i, j])
            for (i, first), (j, then) in product(enumerate(names), repeat=2)
            if record.pairs[i, j]
        }
        result.counts = {name: int(n) for name, n in zip(self._compiled.predicates, record.counts, strict=True)}
        result.steps = sum(result.hits.values())
        result.walks = int(self._walkers.walks.sum()) + len(self._walkers.walks)
        result.deepest = int(record.numbers[kernel.DEEPEST])


class _Code:
    """Addresses of a model's compiled functions, as the kernel takes them."""

    def __init__(self, native: Native) -> None:
        self.native = native
        observe: Any = native.observe
        self.expand, self.terminal = np.uint64(native.expand), np.uint64(native.terminal)
        self.observe = np.uint64(ctypes.cast(observe, ctypes.c_void_p).value or 0)


def _tables(compiled: Compiled) -> kernel.Tables:
    model = compiled.check.model
    lanes = {lane: number for number, lane in enumerate(dict.fromkeys(each.lane for each in model.instances))}
    actions = {action.name: number for number, action in enumerate(model.all_actions)}
    return kernel.Tables(
        initial=np.array([compiled.packing.pack(values) for values in compiled.initial], np.uint64),
        lanes=np.array([lanes[each.lane] for each in model.instances], np.int64),
        actions=np.array([actions[each.action.name] for each in model.instances], np.int64),
    )


def _record(compiled: Compiled) -> kernel.Record:
    model, predicates = compiled.check.model, len(compiled.predicates)
    return kernel.Record(
        hits=np.zeros(len(model.instances), np.int64),
        pairs=np.zeros((len(model.all_actions), len(model.all_actions)), np.int64),
        counts=np.zeros(predicates, np.uint64),
        sightings=np.full((predicates + 1, 3), kernel.NEVER, np.int64),
        seen=np.zeros(1, np.uint64),
        numbers=np.zeros(kernel.NUMBERS, np.int64),
    )


def _sighting(row: Any) -> Sighting:
    age, walker, walk = (int(number) for number in row)
    return Sighting(walker, walk, age)
