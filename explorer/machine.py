"""A model as a Hypothesis state machine: random runs by direct execution, which shrink to short ones when they fail.

    TestMine = state_machine(check).TestCase

in a test file is a test of the check. An example is a number of runs. Before each, Hypothesis draws how eager each
thread and each environment step is, and how many environment steps there may be: that leads to deep states, where
drawing among all that is possible would end early, and always in the same way. Then it draws the steps. A draw of 0 is
always the first that is possible in the order of the model, which tells its story.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import SystemRandom
from typing import NoReturn

from hypothesis import core, seed, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ..properties.cases import Question
from ..properties.check import Check
from ..protocol.language import ModelFault
from .failure import Failure
from .pace import SLOWEST, STEEPNESS, Pace, pick_of, possible_steps
from .walk import Walk

STEPS = 200
"""Steps of an example, over all its runs, unless settings say otherwise."""
FAULTS = 6
"""Environment steps of a run, at most."""
PICKS = 2**16


class Failed(AssertionError):
    """A run fails. As text it is the run, shortened, and how to have it again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return self.failure.text


def state_machine(
    asked: Check | Question,
    *,
    faults: int = FAULTS,
    seed_with: int | None = None,
    watch: Callable[[Walk], None] | None = None,
) -> type[RuleBasedStateMachine]:
    """A state machine whose test fails where a run breaks a property, the language's rules, or gets stuck.

    `faults` is the largest number of steps of `check.unfair_actions` in a run; `seed_with` the seed of Hypothesis
    (default: the one that pytest is given, or a fresh one; each failure names it). `watch` is called at the beginning
    of each run and after each step.
    """
    check, source = (asked.check, asked.source) if isinstance(asked, Question) else (asked, {})
    pace = Pace(check)
    fresh = [Walk(check.model, check.properties, initial) for initial in check.model.initial_states()]
    seeded = _seed() if seed_with is None else seed_with
    kinds: dict[str, type[Failed]] = {}
    beginning = {
        "initial": st.integers(0, len(fresh) - 1),
        "steepness": st.sampled_from(STEEPNESS),
        "slowness": st.lists(st.integers(0, SLOWEST), min_size=pace.count, max_size=pace.count),
        "faults": st.integers(0, faults),
    }

    class Machine(RuleBasedStateMachine):
        """Runs of the model, one after the other."""

        walk: Walk

        def __init__(self) -> None:
            super().__init__()
            self.fired: set[str] = set()

        def start(self, initial: int, steepness: int, slowness: list[int], faults: int) -> None:
            """A run begins."""
            self.walk = fresh[initial]
            self.weights = pace.weights(steepness, slowness)
            self.faults = faults
            self.properties_hold()
            self.look()
            self.walk = self.walk.fork()  # what has just been found out about the state serves all runs from it

        def look(self) -> None:
            """Finds what is possible now."""
            if watch:
                watch(self.walk)
            try:
                excluded = () if self.faults else pace.unfair
                self.possible = possible_steps(self.walk, self.weights, excluded)
                stuck = not self.possible and check.deadlock and self.walk.is_stuck()
            except ModelFault:
                self.fail("no_fault")
            if stuck:
                self.fail("no_deadlock")

        def fail(self, subject: str) -> NoReturn:
            """Hypothesis takes failures of the same type and place for the same: each subject has a type."""
            kind = kinds.setdefault(subject, type(f"{subject}_fails", (Failed,), {}))
            raise kind(Failure(check, subject, self.walk.initial, self.walk.recipe(), source, seeded))

        @initialize(**beginning)
        def begin(self, initial: int, steepness: int, slowness: list[int], faults: int) -> None:
            """The first run."""
            self.start(initial, steepness, slowness, faults)

        @precondition(lambda self: not self.possible)
        @rule(**beginning)
        def begin_again(self, initial: int, steepness: int, slowness: list[int], faults: int) -> None:
            """A run is over; another one begins."""
            self.start(initial, steepness, slowness, faults)

        @precondition(lambda self: bool(self.possible))
        @rule(pick=st.integers(0, PICKS - 1))
        def step(self, pick: int) -> None:
            """One of the possible steps."""
            step = pick_of(self.possible, pick, PICKS)
            self.fired.add(check.model.instances[step.number].action.name)
            self.faults -= step.number in pace.unfair
            self.walk.take(step.number, step.move)
            self.look()

        @invariant()
        def properties_hold(self) -> None:
            """Every property of the check."""
            try:
                broken = self.walk.violated()
            except ModelFault:
                self.fail("no_fault")
            if broken:
                self.fail(broken.name)

        def teardown(self) -> None:
            """Hypothesis is told how much of the model the example has seen."""
            target(float(len(self.fired)), label="actions that fired")

    Machine.__name__ = Machine.__qualname__ = re.sub(r"\W+", "_", check.model.name)
    Machine.TestCase.settings = settings(Machine.TestCase.settings, stateful_step_count=STEPS)
    return seed(seeded)(Machine)


def _seed() -> int:
    """The seed that Hypothesis is told to use for all tests, or a fresh one."""
    told = core.global_force_seed
    return SystemRandom().randrange(2**32) if told is None else int(told)
