"""Bounded model checking and k-induction on the guarded commands.

Bounded model checking asks for a run of k steps to a failure: k = 0 asks the initial states, so that a failure there
is not missed. k-induction asks for any k states in a row in which the property holds, reachable or not, and a step out
of them into a failure: if there are none, and no run of k steps or fewer from the start fails, none ever does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...protocol.language import DeclarationError
from ...protocol.language.model import Values
from ...protocol.language.property import Property
from .symbolic import Frame, Symbolic, z3

NO_FAULT = "no_fault"
"""The name under which it is asked that no step breaks the language's rules."""


@dataclass(frozen=True)
class Bounds:
    """When to give up: at so many steps, or after so many seconds."""

    depth: int = 30
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise DeclarationError(f"the depth is {self.depth}; allowed are whole numbers from 0")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise DeclarationError(f"the time limit is {self.seconds}; it must be greater than 0, and finite")


@dataclass(frozen=True)
class Unrolled:
    """What is known of one property.

    `states` is a run from an initial state to a failure, if there is one. Else no run of `depth` steps or fewer fails
    (-1: not even that was found out). `proved` says that no run does, of any length. `induction` is a row of states,
    possibly unreachable, that is in the way of a proof. `stopped` says why no more is known.
    """

    subject: str
    states: tuple[Values, ...] = ()
    depth: int = -1
    proved: bool = False
    induction: tuple[Values, ...] = ()
    stopped: str = ""
    seconds: float = 0.0
    times: tuple[float, ...] = field(default=())


Watch = Callable[[str, int, float], None]


class _Unrolling:
    """A row of frames joined by steps, in one solver that is asked again and again."""

    def __init__(self, symbolic: Symbolic, subject: Property | None, seconds: float | None) -> None:
        self.symbolic = symbolic
        self.subject = subject
        self.solver: Any = symbolic.solver()
        self.frames: list[Frame] = [symbolic.frame("0")]
        self.began = time.perf_counter()
        self._until = None if seconds is None else self.began + seconds

    def failure(self, frame: Frame) -> Any:
        """The property fails in the frame, or a step out of it breaks the language's rules."""
        if self.subject is not None:
            return self.symbolic.fails(self.subject, frame)
        parts = [self.symbolic.faults(command, frame, "fault") for command in self.symbolic.faulty_commands]
        return z3.Or(parts) if parts else z3.BoolVal(False)

    def extend(self) -> None:
        """One more frame, and a step to it."""
        number = len(self.frames)
        self.frames.append(self.symbolic.frame(str(number)))
        self.solver.add(self.symbolic.step(self.frames[-2], self.frames[-1], f"step {number}"))

    def ask(self, *further: Any) -> Any:
        """A solution of all that was added and of what is asked; None if there is none. TimeoutError if unknown."""
        self.solver.push()
        try:
            for each in further:
                self.solver.add(each)
            if self._until is not None:
                left = self._until - time.perf_counter()
                if left <= 0:
                    raise TimeoutError
                self.solver.set("timeout", max(1, int(left * 1000)))
            answer = self.solver.check()
            if answer == z3.unknown:
                raise TimeoutError
            return self.solver.model() if answer == z3.sat else None
        finally:
            self.solver.pop()

    def run_in(self, solution: Any) -> tuple[Values, ...]:
        """The states of the frames in a solution, the last one included."""
        return tuple(self.symbolic.values(solution, frame) for frame in self.frames)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.began


def subject_name(subject: Property | None) -> str:
    """The name of a property, or that of the language's own rules for None."""
    return subject.name if subject else NO_FAULT


def bounded_check(
    symbolic: Symbolic, subject: Property | None, bounds: Bounds = Bounds(), watch: Watch | None = None
) -> Unrolled:
    """Looks for the shortest run to a failure, up to a number of steps; None asks for a fault of the language."""
    base = _Unrolling(symbolic, subject, bounds.seconds)
    base.solver.add(symbolic.is_initial(base.frames[0]))
    name, times = subject_name(subject), list[float]()
    try:
        for depth in range(bounds.depth + 1):
            if depth:
                base.extend()
            solution = base.ask(base.failure(base.frames[-1]))
            times.append(base.seconds)
            if solution is not None:  # a solution is false where it has no constants
                return Unrolled(name, base.run_in(solution), depth, seconds=base.seconds, times=tuple(times))
            base.solver.add(z3.Not(base.failure(base.frames[-1])))
            if watch:
                watch(name, depth, base.seconds)
    except TimeoutError:
        stopped = f"time limit of {bounds.seconds:g} s reached"
        return Unrolled(name, (), len(times) - 1, stopped=stopped, seconds=base.seconds, times=tuple(times))
    stopped = f"no run of {bounds.depth} steps or fewer fails; longer ones were not asked"
    return Unrolled(name, (), bounds.depth, stopped=stopped, seconds=base.seconds, times=tuple(times))


def induction(
    symbolic: Symbolic,
    subject: Property | None,
    bounds: Bounds = Bounds(),
    *,
    simple_path: bool = False,
    watch: Watch | None = None,
) -> Unrolled:
    """k-induction for k = 1, 2, ...: a proof, a run that fails, or the row of states that was in the way of the last k.

    With `simple_path`, no state may come twice in a row of states: then there is an end to k in a finite model, at the
    price of larger questions. It also ends without a failure when there is no row of k + 1 different states at all.
    """
    name = subject_name(subject)
    base = _Unrolling(symbolic, subject, bounds.seconds)
    base.solver.add(symbolic.is_initial(base.frames[0]))
    step = _Unrolling(symbolic, subject, bounds.seconds)
    step.solver.add(symbolic.within(step.frames[0]))
    blocking: tuple[Values, ...] = ()
    depth, times = -1, list[float]()
    try:
        for k in range(bounds.depth + 1):
            if k:
                base.extend()
            solution = base.ask(base.failure(base.frames[-1]))
            if solution is not None:
                return Unrolled(name, base.run_in(solution), k, seconds=base.seconds, times=tuple(times))
            base.solver.add(z3.Not(base.failure(base.frames[-1])))
            depth = k
            step.solver.add(z3.Not(step.failure(step.frames[-1])))
            step.extend()
            if simple_path:
                for earlier in _distinct(step, k + 1):
                    step.solver.add(earlier)
            solution = step.ask(step.failure(step.frames[-1]))
            times.append(base.seconds)
            if solution is None:
                return Unrolled(name, (), k, True, seconds=base.seconds, times=tuple(times))
            blocking = step.run_in(solution)
            if watch:
                watch(name, k, base.seconds)
    except TimeoutError:
        stopped = f"time limit of {bounds.seconds:g} s reached"
        return Unrolled(name, (), depth, False, blocking, stopped, base.seconds, tuple(times))
    stopped = f"not inductive for k up to {bounds.depth + 1}"
    return Unrolled(name, (), depth, False, blocking, stopped, base.seconds, tuple(times))


def _distinct(unrolling: _Unrolling, newest: int) -> Iterator[Any]:
    """The newest frame differs from all before it."""
    for earlier in range(newest):
        yield z3.Not(unrolling.symbolic.is_same(unrolling.frames[earlier], unrolling.frames[newest]))
