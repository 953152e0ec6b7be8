"""A run that goes wrong, made shorter by direct execution: what a random run did besides is left out.

Three things are tried until none helps: to cut a loop (the same state twice), to leave out steps in blocks of halving
size, and to leave out any two steps. Steps that are no longer possible without those that were left out fall away
with them. Nothing is random, and every run that is kept was executed, and goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from ...protocol.language import Instance
from ...protocol.language.model import Model, Step, Values
from ..traces.trace import ReplayError

PAIRS_UP_TO = 60
"""Steps of a run in which leaving out two at once is tried: it takes as many executions as there are pairs."""


def shorten(model: Model, initial: Values, taken: Sequence[Step], still_fails: Callable[[Values], bool]) -> list[Step]:
    """A shorter run from `initial` to a state that `still_fails`, perhaps the shortest, never a longer one.

    It ends at the first such state. No step of it can be left out, and no two of up to PAIRS_UP_TO. Raises ReplayError
    if the model does not take `taken`, or none of its states fails.
    """
    runner = _Runner(model, initial, still_fails)
    run = runner.run(taken)
    if run is None or [step.values for step in run] != [step.values for step in taken[: len(run)]]:
        raise ReplayError(f"{model.name}: the run that is to be shortened does not go wrong, or is none")
    run = runner.without_loops(run)
    while shorter := runner.first_shorter(run):
        run = shorter
    return run


class _Runner:
    """Executes runs of one model from one state, and remembers the steps it has met."""

    def __init__(self, model: Model, initial: Values, still_fails: Callable[[Values], bool]) -> None:
        self._model = model
        self._initial = initial
        self._still_fails = still_fails
        self._steps: dict[tuple[Instance, Values], dict[tuple[int, ...], Step]] = {}
        self._failing: dict[Values, bool] = {}

    def run(self, taken: Sequence[Step]) -> list[Step] | None:
        """The steps of `taken` that are possible, up to a state that fails; None if there is no such state."""
        values, run = self._initial, list[Step]()
        for wanted in taken:
            if self._fails(values):
                return run
            step = self._options(wanted.instance, values).get(wanted.chosen)
            if step is not None:
                run.append(step)
                values = step.values
        return run if self._fails(values) else None

    def first_shorter(self, run: Sequence[Step]) -> list[Step] | None:
        """The first of the runs with fewer steps that still goes wrong, without loops; None if there is none."""
        for kept in _with_less(run):
            shorter = self.run(kept)
            if shorter is not None:
                return self.without_loops(shorter)
        return None

    def without_loops(self, run: Sequence[Step]) -> list[Step]:
        """The run without what it does between two visits of the same state."""
        before: dict[Values, tuple[Values, Step] | None] = {self._initial: None}
        values = self._initial
        for step in run:
            before.setdefault(step.values, (values, step))
            values = step.values
        steps: list[Step] = []
        while (last := before[values]) is not None:
            values, step = last
            steps.append(step)
        return steps[::-1]

    def _fails(self, values: Values) -> bool:
        if values not in self._failing:
            self._failing[values] = self._still_fails(values)
        return self._failing[values]

    def _options(self, instance: Instance, values: Values) -> dict[tuple[int, ...], Step]:
        key = (instance, values)
        if key not in self._steps:
            self._steps[key] = {step.chosen: step for step in self._model.steps_of(instance, values)}
        return self._steps[key]


def _with_less(run: Sequence[Step]) -> Iterator[list[Step]]:
    """The run without a block of its steps, large blocks first; then without any two."""
    size = len(run) // 2
    while size:
        for at in range(0, len(run), size):
            yield [*run[:at], *run[at + size :]]
        size //= 2
    if len(run) <= PAIRS_UP_TO:
        for first, second in combinations(range(len(run)), 2):
            yield [*run[:first], *run[first + 1 : second], *run[second + 1 :]]
