"""A model as a Hypothesis state machine: random runs by direct execution, which shrink to short ones when they fail.

    TestMine = state_machine(check).TestCase

in a test file is a test of the check. An example is a number of runs. Before each, Hypothesis draws how eager each
thread and each environment step is, and how many environment steps there may be: that leads to deep states, where
drawing among all that is possible would end early, and always in the same way. Then it draws the steps. A draw of 0 is
always the first that is possible in the order of the model, which tells its story.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random, SystemRandom
from zlib import crc32

from hypothesis import Phase, core, seed, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ...properties.case import Question
from ...protocol.language.check import Check
from .course import Course, Watch
from .failure import Failure
from .pace import DRAWS, Pace, pick_of
from .walk import Walk

STEPS = 50
"""Steps of an example, over all its runs, unless settings say otherwise."""
FAULTS = 6
"""Environment steps of a run, at most."""
BURST = 40
"""Steps by one draw, at most."""
NUMBERS = st.integers(0, DRAWS - 1)


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
    burst: int = BURST,
    seed_with: int | None = None,
    watch: Watch | None = None,
) -> type[RuleBasedStateMachine]:
    """A state machine whose test fails where a run breaks a property, the language's rules, or gets stuck.

    `faults` is the largest number of steps of `check.unfair_actions` in a run, `burst` that of steps by one draw;
    `seed_with` the seed of Hypothesis
    (default: the one that pytest is given, or a fresh one; each failure names it). `watch` is called at the beginning
    of each run and after each step.
    """
    check = asked.check if isinstance(asked, Question) else asked
    source: Mapping[str, object] = asked.source if isinstance(asked, Question) else {}
    pace = Pace(check)
    fresh = [Walk(check.model, check.properties, initial) for initial in check.model.initial_states()]
    seeded = _seed() if seed_with is None else seed_with
    kinds: dict[str, type[Failed]] = {}

    class Machine(RuleBasedStateMachine):
        """Runs of the model, one after the other."""

        def __init__(self) -> None:
            super().__init__()
            self.fired: set[str] = set()
            self.drawn = 0

        def scattered(self, draw: int) -> int:
            """A number that follows from all draws of the example so far; 0 stays 0.

            Hypothesis likes to make an example from parts of another one, which would be the same runs again.
            """
            self.drawn = crc32(b"%d %d" % (self.drawn, draw)) if draw else self.drawn
            return self.drawn % DRAWS if draw else 0

        def begin(self, draw: int) -> None:
            """A run begins; 0 is the calmest one, without environment steps."""
            start = fresh[self.scattered(draw) % len(fresh)]
            weights = pace.weights(self.scattered(draw))
            budget = 1 + self.scattered(draw) % faults if draw and faults else 0
            self.course = Course(check, start, weights, pace.unfair, budget, watch)
            self.course.walk = start.fork()  # what has been found out about the first state serves all runs
            self.check_course()

        def check_course(self) -> None:
            """Fails with a type of its own for each subject: Hypothesis takes what is alike for the same failure."""
            subject = self.course.failed
            if subject:
                kind = kinds.setdefault(subject, type(f"{subject}_fails", (Failed,), {}))
                walk = self.course.walk
                raise kind(Failure(check, subject, walk.initial, walk.recipe(), source, seeded))

        @initialize(draw=NUMBERS)
        def begin_first(self, draw: int) -> None:
            """The first run of the example."""
            self.begin(draw)

        @rule(pick=NUMBERS)
        def step(self, pick: int) -> None:
            """One of the possible steps; where there is none, the run is over, and another one begins."""
            if not self.course.possible:
                self.begin(pick)
                return
            step = pick_of(self.course.possible, self.scattered(pick), DRAWS)
            self.fired.add(check.model.instances[step.number].action.name)
            self.course.take(step)
            self.check_course()

        @rule(draw=NUMBERS, length=st.integers(1, burst))
        def go_on(self, draw: int, length: int) -> None:
            """Several steps by one draw, each looked at like any other."""
            chance = Random(self.scattered(draw))
            for _ in range(length):
                self.step(chance.randrange(DRAWS))

        @invariant()
        def properties_hold(self) -> None:
            """Every property of the check, no fault, no deadlock."""
            self.check_course()

        def teardown(self) -> None:
            """Hypothesis is told how much of the model the example has seen."""
            target(float(len(self.fired)), label="actions that fired")

    Machine.__name__ = Machine.__qualname__ = re.sub(r"\W+", "_", check.model.name)
    Machine.TestCase.settings = settings(
        Machine.TestCase.settings, stateful_step_count=STEPS, phases=set(Phase) - {Phase.shrink, Phase.explain}
    )
    return seed(seeded)(Machine)


def _seed() -> int:
    """The seed that Hypothesis is told to use for all tests, or a fresh one."""
    told = core.global_force_seed
    return SystemRandom().randrange(2**32) if told is None else int(told)
