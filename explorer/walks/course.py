"""A random run that is looked at after each step: which steps are possible, and whether anything fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...protocol.language import ModelFault
from ...protocol.language.check import Check
from .failure import NO_DEADLOCK, NO_FAULT
from .pace import Possible, possible_steps
from .walk import Walk

Watch = Callable[[Walk], None]


class Course:
    """One run of a check. `failed` names what fails in the state it has come to: see Failure.

    `weights` are those of the instances, `budget` is how many steps of `unfair` instances there may still be. `watch`
    is called in each state.
    """

    def __init__(
        self,
        check: Check,
        walk: Walk,
        weights: Sequence[int],
        unfair: Collection[int],
        budget: int,
        watch: Watch | None = None,
    ) -> None:
        self.check = check
        self.walk = walk
        self.weights = weights
        self.budget = budget
        self.failed = ""
        self.possible: list[Possible] = []
        self._unfair = unfair
        self._watch = watch
        self._look()

    def take(self, step: Possible) -> None:
        """Takes a step."""
        self.budget -= step.number in self._unfair
        self.walk.take(step.number, step.move)
        self._look()

    def _look(self) -> None:
        if self._watch:
            self._watch(self.walk)
        self.failed = failure_in(self.check, self.walk)
        excluded = () if self.budget > 0 else self._unfair
        self.possible = [] if self.failed else possible_steps(self.walk, self.weights, excluded)


def failure_in(check: Check, walk: Walk) -> str:
    """What fails in the state that a walk has come to: a property, NO_FAULT or NO_DEADLOCK; empty if nothing does."""
    try:
        broken = walk.violated()
        stuck = check.deadlock and walk.is_stuck()
    except ModelFault:
        return NO_FAULT
    return broken.name if broken else NO_DEADLOCK if stuck else ""
