"""A run of a model in place, by direct execution.

What a step can do in a state follows from the cells that it looks at. So each answer is kept until one of these cells
changes, and a walk through a large model executes, after each step, only what the step has touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from ...protocol.language import Access, State, every_choice, execute
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Probe, Property, truth_of
from ...protocol.language.state import Chooser, Store, no_choice

A = TypeVar("A")


class Glance:
    """The values of a state as one function sees and changes them: what it looks at is noted, what it sets kept apart.

    A cell that the function has set itself is not noted: what it finds there is its own.
    """

    __slots__ = ("_values", "looked_at", "written")

    def __init__(self, values: list[int]) -> None:
        self._values = values
        self.looked_at: set[int] = set()
        self.written: dict[int, int] = {}

    def __getitem__(self, position: int) -> int:
        if position in self.written:
            return self.written[position]
        self.looked_at.add(position)
        return self._values[position]

    def __setitem__(self, position: int, value: int) -> None:
        self.written[position] = value

    def __iter__(self) -> Iterator[int]:
        return (self[position] for position in range(len(self._values)))


class Kept(Generic[A]):
    """Answers to numbered questions about some values, each kept until a value changes that it was found by.

    `ask` answers a question, and gives the positions that it looked at.
    """

    def __init__(self, questions: int, cells: int, ask: Callable[[int], tuple[A, Iterable[int]]]) -> None:
        self._ask = ask
        self._answers: list[A | None] = [None] * questions
        self._askers: list[set[int]] = [set() for _ in range(cells)]

    def copy(self, ask: Callable[[int], tuple[A, Iterable[int]]]) -> Kept[A]:
        """The same answers about equal values, which others ask from now on."""
        made = Kept(0, 0, ask)
        made._answers = list(self._answers)
        made._askers = [set(askers) for askers in self._askers]
        return made

    def __getitem__(self, number: int) -> A:
        answer = self._answers[number]
        if answer is None:
            answer, positions = self._ask(number)
            self._answers[number] = answer
            for position in positions:
                self._askers[position].add(number)
        return answer

    def change(self, positions: Iterable[int]) -> set[int]:
        """Drops the answers that were found by one of these values, and says which."""
        dropped: set[int] = set()
        for position in positions:
            if self._askers[position]:
                dropped |= self._askers[position]
                self._askers[position] = set()
        for number in dropped:
            self._answers[number] = None
        return dropped


@dataclass(frozen=True, slots=True)
class Move:
    """One way in which an instance can step: the options it chose, and each cell that it sets, with the value."""

    chosen: tuple[int, ...]
    sets: tuple[tuple[int, int], ...]


class Walk:
    """One run of a model, which keeps its present state only. Instances and properties are named by their numbers.

    `taken` has the number and the choices of each step so far.
    """

    def __init__(self, model: Model, properties: Sequence[Property], initial: Values) -> None:
        self.model = model
        self.properties = properties
        self.initial = initial
        self.taken: list[tuple[int, tuple[int, ...]]] = []
        self._values = list(initial)
        self._moves = Kept(len(model.instances), len(initial), self._find_moves)
        self._holding = Kept(len(properties), len(initial), self._find_holding)
        self._unchecked = set(range(len(properties)))
        self._stale = set(range(len(model.instances)))
        self._enabled: set[int] = set()

    def fork(self) -> Walk:
        """A walk that goes on from here by itself; what is known of the state is not worked out again."""
        other = Walk(self.model, self.properties, self.initial)
        other.taken = list(self.taken)
        other._values = list(self._values)
        other._moves = self._moves.copy(other._find_moves)
        other._holding = self._holding.copy(other._find_holding)
        other._unchecked = set(self._unchecked)
        other._stale, other._enabled = set(self._stale), set(self._enabled)
        return other

    @property
    def values(self) -> Values:
        """The state that the run has come to."""
        return tuple(self._values)

    def moves(self, number: int) -> tuple[Move, ...]:
        """The ways in which an instance can step now: none if it is disabled. Raises ModelFault."""
        return self._moves[number]

    def enabled(self, excluded: Collection[int] = ()) -> list[int]:
        """The instances that can step now, but for the excluded ones, which are not tried. In the order of the model.

        Raises ModelFault.
        """
        for number in sorted(self._stale.difference(excluded)):
            if self._moves[number]:
                self._enabled.add(number)
            else:
                self._enabled.discard(number)
            self._stale.discard(number)
        return sorted(self._enabled.difference(excluded))

    def can_move(self) -> bool:
        """Whether any instance can step now. Raises ModelFault."""
        return bool(self._enabled - self._stale) or bool(self.enabled())

    def take(self, number: int, move: Move) -> set[int]:
        """Takes a step. Gives the numbers of the instances that may now be able to do something else."""
        self.taken.append((number, move.chosen))
        changed: list[int] = []
        for position, value in move.sets:
            if self._values[position] != value:
                self._values[position] = value
                changed.append(position)
        self._unchecked |= self._holding.change(changed)
        touched = self._moves.change(changed)
        self._stale |= touched
        return touched

    def violated(self) -> Property | None:
        """The first property that is false now. Only those are evaluated again that the last steps may have changed."""
        for number in sorted(self._unchecked):
            if not self._holding[number]:
                return self.properties[number]
        self._unchecked.clear()
        return None

    def reaches(self, probe: Probe) -> bool:
        """Whether the probe's predicate is true now."""
        return truth_of(probe.function, self._state(Glance(self._values), access=Access.PROPERTY), probe.name)

    def is_stuck(self) -> bool:
        """Whether nothing is possible, though the run may not end here."""
        if self.can_move():
            return False
        return not self.model.terminal(self._state(Glance(self._values), access=Access.PROPERTY))

    def recipe(self) -> list[tuple[str, tuple[int, ...]]]:
        """The steps so far, for `rerun`: the label of each instance and what it chose."""
        instances = self.model.instances
        return [(instances[number].label, chosen) for number, chosen in self.taken]

    def _state(self, values: Store, chooser: Chooser = no_choice, access: Access = Access.PROTOCOL) -> State[Any]:
        return self.model.state(self.model.layout, values, self.model.knobs, chooser, access)

    def _find_moves(self, number: int) -> tuple[tuple[Move, ...], Iterable[int]]:
        instance, looked_at = self.model.instances[number], set[int]()

        def run(chooser: Chooser) -> State[Any] | None:
            glance = Glance(self._values)
            try:
                return execute(instance, self._state(glance, chooser))
            finally:
                looked_at.update(glance.looked_at)

        moves = [
            Move(tuple(state.choices), tuple(cast(Glance, state.values).written.items())) for state in every_choice(run)
        ]
        return tuple(moves), looked_at

    def _find_holding(self, number: int) -> tuple[bool, Iterable[int]]:
        glance = Glance(self._values)
        holds = self.properties[number].evaluate(self._state(glance, access=Access.PROPERTY)) is None
        return holds, glance.looked_at
