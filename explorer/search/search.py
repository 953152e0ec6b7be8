"""Exhaustive breadth-first search of a compiled model: the shortest way to each violation, and honest counts."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...protocol.language import DeclarationError, ModelFault
from ...protocol.language.check import Check
from ...protocol.language.model import Model, Values
from ..compile.native import MAX_PREDICATES, Native, compile_native, emit
from ..compile.packing import Packing, packing_of
from ..compile.tracer import Answer, most_successors, trace
from . import kernel
from .budget import available_address_space, available_memory, process_memory
from .partition import Edges, Positions
from .second_net import Executed, OneState, execute_again, only_compiled, sample
from .visited import VisitedSet

CHUNK = 1 << 16
STEPS_AT_ONCE = 1 << 22
"""States, and successors at most, between two looks at limits and Ctrl-C."""
PROGRESS_SECONDS = 0.1
MEMORY_SHARE = 0.7
LEAST_MEMORY = 16 << 20
RESERVE = 64 << 20
"""Bytes of a process's limit that are not for states: code is compiled, and traces are made."""
OUT_OF_MEMORY = ("memory limit of", "memory ran out")
"""How the reason begins why a search without memory stopped."""
BROKEN_RULES = "a step breaks the language's rules"
"""How the reason begins why a search met a fault of the model."""
INTERRUPTED = "interrupted"
"""The reason where Ctrl-C ended a search."""
OPTIMISE_FROM = 3_000_000
"""States from which on optimised code is worth waiting for."""


@dataclass(frozen=True)
class Limits:
    """When to give up. `seconds` are wall-clock time, `memory` bytes.

    The limit of memory is one for the process: what it has already, before the search begins, counts. Without it a
    search takes up to 70 % of what is available.
    """

    states: int | None = None
    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("states", self.states), ("seconds", self.seconds), ("memory", self.memory)):
            if value is not None and not 0 < value < float("inf"):
                raise DeclarationError(f"the limit {name}={value} must be greater than 0, and finite")
        if self.memory is not None and self.memory < LEAST_MEMORY:
            raise DeclarationError(
                f"the limit memory={self.memory} is below {LEAST_MEMORY} bytes, which every search needs"
            )


@dataclass(frozen=True)
class Progress:
    """Where a running search is. `frontier` counts states found and not yet expanded."""

    states: int
    transitions: int
    depth: int
    frontier: int
    seconds: float


@dataclass(frozen=True)
class StateGraph:
    """The explored states as a graph, made again from the states when it is asked for.

    `edges_from` gives the steps out of some positions, `marks` a word for each position of a range, in which bit n
    says whether promise n is pending. `spare` is how many bytes of the limit the search has left.
    """

    edges_from: Callable[[Positions], Edges]
    marks: Callable[[int, int], np.ndarray[Any, np.dtype[np.uint64]]]
    spare: int


@dataclass(frozen=True)
class Faulty:
    """A state in which a step breaks the language's rules, by its position, and what the step says there."""

    position: int
    fault: ModelFault


@dataclass
class Exploration:
    """What a search found. Positions number states in the order of discovery.

    `stopped` is empty if every reachable state was expanded; otherwise it says why not. `depth` is the
    number of steps to the farthest state expanded. `violated` and `reached` give the first, and so nearest,
    state of each property and probe. `counts` gives in how many states a property fails or a probe holds.
    `hits` counts transitions for each action. `deadlock` is the first state without a step that is not terminal.
    `faulty` is the first state in which a step breaks the language's rules: the search ends there. `executed` says how
    many of the states were executed directly as well; its seconds are not in `seconds`.
    `path_to` gives the states of a shortest path to a position, `state_at` the state there, `position_of` the position
    of a state, None if it was not found. `graph` has the steps between the states.
    """

    check: Check
    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    bytes_used: int = 0
    stopped: str = ""
    violated: dict[str, int] = field(default_factory=dict[str, int])
    reached: dict[str, int] = field(default_factory=dict[str, int])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    hits: dict[str, int] = field(default_factory=dict[str, int])
    deadlock: int | None = None
    faulty: Faulty | None = None
    executed: Executed = field(default_factory=Executed)
    path_to: Callable[[int], list[Values]] = lambda position: []
    state_at: Callable[[int], Values] = lambda position: ()
    position_of: Callable[[Values], int | None] = lambda values: None
    graph: StateGraph | None = None

    @property
    def complete(self) -> bool:
        """Whether every reachable state was expanded."""
        return not self.stopped


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C in the midst of a search; `found` is what it found until then."""

    def __init__(self, found: Exploration) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class Compiled:
    """A check as LLVM IR, ready to be searched any number of times.

    `predicates` are properties, then probes; no state has more than `successors` successors.
    """

    check: Check
    initial: Sequence[Values]
    packing: Packing
    text: str
    successors: int
    predicates: tuple[str, ...]

    @cached_property
    def quick(self) -> Native:
        """Unoptimised machine code: there at once, and enough for small models."""
        return compile_native(self.text, 0)

    @cached_property
    def optimised(self) -> Native:
        """Optimised machine code: takes about a second, and pays from some millions of states on."""
        return compile_native(self.text, 2)


def compile_check(check: Check, *, constants: bool = True) -> Compiled:
    """Traces a check. Raises DeclarationError if it has more predicates than a word has bits.

    Cells that never change are left out of the packed states, unless `constants` is false. That changes nothing that
    is found, only what it costs.
    """
    initial = check.model.initial_states()
    tracer, commands = trace(check.model, initial if constants else ())
    trees = [tracer.fails(prop) for prop in check.properties] + [tracer.holds(probe) for probe in check.probes]
    if len(trees) > MAX_PREDICATES:
        raise DeclarationError(f"{check.model.name}: at most {MAX_PREDICATES} properties and probes in one check")
    promises = [tracer.pending(promise) for promise in check.promises]
    if len(promises) > MAX_PREDICATES:
        raise DeclarationError(f"{check.model.name}: at most {MAX_PREDICATES} promises in one check")
    terminal = tracer.terminal() if check.deadlock else Answer(True)
    packing = packing_of(check.model.layout, tracer.constants)
    successors = sum(most_successors(command.tree) for command in commands)
    names = tuple(each.name for each in (*check.properties, *check.probes))
    text = emit(packing, commands, trees, promises, terminal)
    return Compiled(check, initial, packing, text, successors, names)


def search(
    check: Check | Compiled,
    limits: Limits = Limits(),
    *,
    until: Collection[str] | None = None,
    beyond: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Explores every reachable state, breadth first.

    The search ends at the first state that violates one of the properties named in `until` (default: any), but not
    before `beyond` states are found; an empty collection makes it go on to the end and count. So does a step that
    breaks the language's rules. Raises SearchInterrupted for Ctrl-C, with what is known.
    """
    compiled = check if isinstance(check, Compiled) else compile_check(check)
    ends = {each.name for each in compiled.check.properties} if until is None else set(until)
    return _Search(compiled, limits, ends, beyond, progress).run()


def memory_share(searches: int = 1) -> int:
    """Bytes for each of so many searches at a time: together 70 % of what is available, but enough to begin with."""
    return max(LEAST_MEMORY, int(available_memory() * MEMORY_SHARE / searches))


def _memory_for_states(limits: Limits) -> int:
    if limits.memory is None:
        return memory_share()
    left = min(limits.memory - process_memory() - RESERVE, int(available_address_space() * MEMORY_SHARE))
    return max(LEAST_MEMORY, left)


class _Search:
    """One running search."""

    def __init__(
        self,
        compiled: Compiled,
        limits: Limits,
        ends: set[str],
        beyond: int,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._compiled = compiled
        self._model: Model = compiled.check.model
        self._limits = limits
        self._ends = ends
        self._beyond = beyond
        self._progress = progress
        self._native = compiled.quick
        memory = _memory_for_states(limits)
        self._memory = limits.memory or memory
        self._visited = VisitedSet(compiled.packing.words, len(self._model.instances), compiled.successors, memory)
        self._result = Exploration(
            compiled.check, path_to=self._path_to, state_at=self._state_at, position_of=self._position_of
        )
        self._chunk_size = max(256, min(CHUNK, STEPS_AT_ONCE // max(1, compiled.successors)))
        self._started = time.perf_counter()
        self._shown = self._started
        names = compiled.predicates
        self._wanted = (1 << len(names)) - 1
        self._counts = (ctypes.c_uint64 * max(1, len(names)))()
        self._seen = ctypes.c_uint64()
        self._observed = 0

    def run(self) -> Exploration:
        """Explores from the initial states; see `search`."""
        for values in self._compiled.initial:
            self._visited.add_root(self._compiled.packing.pack(values))
        result = self._result
        try:
            result.stopped = self._levels()
        except KeyboardInterrupt:
            result.stopped = INTERRUPTED
        except MemoryError:
            result.stopped = OUT_OF_MEMORY[1]
        self._finish()
        if result.stopped != INTERRUPTED:
            try:
                self._execute_again()
            except KeyboardInterrupt:
                result.stopped = INTERRUPTED
        if result.stopped == INTERRUPTED:
            raise SearchInterrupted(result)
        return result

    def _execute_again(self) -> None:
        """Holds states, those that matter most before all others, against direct execution; see second_net.py."""
        result, visited, compiled = self._result, self._visited, self._compiled
        stuck = () if result.deadlock is None else (result.deadlock,)
        nearest = (*result.violated.values(), *stuck, *result.reached.values())
        first = (*nearest, visited.cursor - 1, visited.count - 1, *range(min(8, len(compiled.initial))))
        states = ((visited.state(at), at < visited.cursor) for at in sample(first, visited.count))
        one = OneState(compiled.check, compiled.packing, compiled.successors, self._native)
        result.executed = execute_again(
            one, states, lambda values: self._position_of(values) is not None, result.seconds
        )
        if result.complete and result.executed.states == result.states:
            result.executed.add_up(compiled.check, result.hits, result.counts, visited.stuck)

    def _levels(self) -> str:
        """Searches level by level; returns why it stopped, or an empty string."""
        stop = self._observe()
        while not stop and self._visited.cursor < self._visited.count:
            level_end = self._visited.count
            while not stop and self._visited.cursor < level_end:
                stop = self._chunk(min(level_end, self._visited.cursor + self._chunk_size))
            if not stop and self._visited.cursor < self._visited.count:
                self._result.depth += 1
        return stop

    def _chunk(self, until: int) -> str:
        visited, limits = self._visited, self._limits
        if visited.count > OPTIMISE_FROM:
            self._native = self._compiled.optimised
        reason = visited.advance(self._native, until)
        found = self._observe()
        if reason == kernel.FAULTED:
            self._result.faulty = faulty = self._fault()
            found = f"{BROKEN_RULES}: {faulty.fault}"
        if found:
            return found
        if reason == kernel.FULL:
            return f"{OUT_OF_MEMORY[0]} {self._memory / 2**20:,.0f} MiB reached"
        seconds = time.perf_counter() - self._started
        if self._progress and time.perf_counter() - self._shown >= PROGRESS_SECONDS:
            self._shown = time.perf_counter()
            frontier = visited.count - visited.cursor
            self._progress(Progress(visited.count, visited.transitions, self._result.depth, frontier, seconds))
        if limits.states and visited.count >= limits.states and visited.cursor < visited.count:
            return f"limit of {limits.states:,} states reached"
        if limits.seconds and seconds >= limits.seconds and visited.cursor < visited.count:
            return f"time limit of {limits.seconds:g} s reached"
        return ""

    def _observe(self) -> str:
        """Evaluates properties and probes on the new states; a reason to stop, or an empty string."""
        result, names = self._result, self._compiled.predicates
        properties = len(self._compiled.check.properties)
        while True:
            position = self._native.observe(
                self._visited.address, self._observed, self._visited.count, self._wanted,
                ctypes.addressof(self._counts), ctypes.addressof(self._seen),
            )  # fmt: skip
            if position == self._visited.count:
                self._observed = position
                break
            self._observed = position + 1
            for number, name in enumerate(names):
                if self._seen.value & self._wanted & (1 << number):
                    self._wanted &= ~(1 << number)
                    (result.violated if number < properties else result.reached)[name] = position
        enough = self._visited.count >= self._beyond
        return "violation found" if enough and self._ends & result.violated.keys() else ""

    def _fault(self) -> Faulty:
        """Runs the faulty step on integers, for a message with the values. Raises EngineDisagreement if none breaks."""
        position, code = self._visited.event
        instance = self._model.instances[code]
        values = self._state_at(position)
        try:
            for _ in self._model.steps_of(instance, values):
                pass
        except ModelFault as fault:
            return Faulty(position, fault)
        raise only_compiled(self._model, instance)

    def _path_to(self, position: int) -> list[Values]:
        return [self._state_at(at) for at in self._visited.path(position)]

    def _state_at(self, position: int) -> Values:
        return self._compiled.packing.unpack(self._visited.state(position))

    def _position_of(self, values: Values) -> int | None:
        packing = self._compiled.packing
        return self._visited.find(packing.pack(values)) if packing.holds(values) else None

    def _finish(self) -> None:
        result, visited = self._result, self._visited
        result.states, result.transitions = visited.count, visited.transitions
        result.seconds = time.perf_counter() - self._started
        result.bytes_used = visited.bytes_used
        result.deadlock = visited.deadlock
        result.graph = StateGraph(
            edges_from=lambda positions: visited.edges(self._native, positions),
            marks=lambda begin, end: visited.marks(self._native, begin, end),
            spare=visited.memory - visited.bytes_used,
        )
        result.counts = {name: int(n) for name, n in zip(self._compiled.predicates, self._counts, strict=False)}
        for instance, count in zip(self._model.instances, visited.hits, strict=False):
            name = instance.action.name
            result.hits[name] = result.hits.get(name, 0) + int(count)


def never_fired(exploration: Exploration) -> Sequence[str]:
    """Actions that never happened, though the model does not say that they may rest."""
    resting = exploration.check.model.may_rest
    return [name for name, count in exploration.hits.items() if count == 0 and name not in resting]
