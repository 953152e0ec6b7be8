"""A random run that is looked at after each step: which steps are possible, and whether anything fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..properties.check import Check
from ..protocol.language import ModelFault
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
        try:
            broken = self.walk.violated()
            self.possible = possible_steps(self.walk, self.weights, () if self.budget > 0 else self._unfair)
            stuck = not self.possible and self.check.deadlock and self.walk.is_stuck()
        except ModelFault:
            self.failed, self.possible = NO_FAULT, []
            return
        if broken or stuck:
            self.failed = broken.name if broken else NO_DEADLOCK
            self.possible = []
