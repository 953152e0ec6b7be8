"""A closed model: a state class and its actions under sizes, knobs and fault budgets. Ready to be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .action import Action, Instance, every_choice, execute
from .channel import Faults, fault_actions
from .domain import Index
from .errors import DeclarationError, Disabled, ModelFault
from .state import Access, Chooser, Event, Layout, State, lay_out, no_choice
from .whitelist import require_constant, require_language, require_methods

Values = tuple[int, ...]
"""A whole state: the value of each cell, in layout order."""

MAX_INSTANCES = 20_000
"""More steps than this come from sizes that no search will finish; they are refused before any work."""


@dataclass(frozen=True)
class Step:
    """One transition, executed directly: the instance, the options it chose (`choice` in words), where it leads."""

    instance: Instance
    chosen: tuple[int, ...]
    values: Values
    events: tuple[Event, ...] = ()
    choice: str = ""


@dataclass(frozen=True)
class SlotView:
    """A slot as diagrams show it: its name, who may use it, and who wrote it last."""

    name: str
    owner: str
    writer: str


def _step(instance: Instance, state: State[Any]) -> Step:
    choice = ", ".join(state.choice_names)
    return Step(instance, tuple(state.choices), tuple(state.values), tuple(state.events), choice)


def _no_slots(state: Any) -> Sequence[SlotView]:
    return ()


def _nothing(state: Any) -> None:
    return None


def _never(state: Any) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Model:
    """What an engine is given.

    `start` completes the initial state (and may choose among several). `terminal` says which states may have
    no step; a state without a step that is not terminal is a deadlock. `bounds` is what a verdict is limited
    to, in words, printed with it. `may_rest` names actions that need not fire in a full search. `slots` shows
    the memory of a state in diagrams. `untraceable` says why the model is too large for anything but direct
    execution, if it is.
    """

    name: str
    state: type[State[Any]]
    actions: tuple[Action, ...]
    sizes: Mapping[type[Index], int]
    knobs: Any = None
    start: Callable[[Any], None] = _nothing
    terminal: Callable[[Any], int] = _never
    faults: Mapping[str, Faults] = field(default_factory=dict[str, Faults])
    bounds: Mapping[str, str] = field(default_factory=dict[str, str])
    may_rest: frozenset[str] = frozenset()
    slots: Callable[[Any], Sequence[SlotView]] = _no_slots
    untraceable: str = ""

    def __post_init__(self) -> None:
        for each in self.actions:
            if not isinstance(each, Action):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DeclarationError(f"model {self.name}: {each!r} is no action; decorate it with @action(lane)")
            if not issubclass(self.state, each.state):
                raise DeclarationError(
                    f"model {self.name}: {each.name} acts on {each.state.__name__}, not on {self.state.__name__}"
                )
        names = [each.name for each in self.all_actions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DeclarationError(f"model {self.name}: two actions are called {', '.join(twice)}; rename one")
        unknown = sorted(self.may_rest - set(names))
        if unknown:
            raise DeclarationError(f"model {self.name}: may_rest names {', '.join(unknown)}, which is no action")
        count = 0
        for each in self.all_actions:
            product = 1
            for _, kind in each.parameters:
                product *= self.sizes.get(kind, 1)
            count += product
        if count > MAX_INSTANCES:
            raise DeclarationError(
                f"model {self.name}: its sizes give {count:,} action instances; at most {MAX_INSTANCES:,} are explored"
            )
        self._require_language()

    def _require_language(self) -> None:
        """Raises DeclarationError for a step that might not mean the same in every execution."""
        for each in self.actions:
            require_language(each.function, f"action {each.name}")
        require_language(self.start, f"the start of {self.name}")
        require_language(self.terminal, "the terminal predicate")
        require_methods(self.state, self.state.__name__)
        for channel in self.layout.channels.values():
            require_methods(channel.message, channel.message.__name__)
        require_constant(self.knobs, f"the knobs of {self.name}")

    @cached_property
    def layout(self) -> Layout:
        """The cells of the state under the model's sizes."""
        return lay_out(self.state, self.sizes, self.faults)

    @cached_property
    def all_actions(self) -> tuple[Action, ...]:
        """The declared actions, and the environment's own for each channel with a fault budget."""
        layout = lay_out(self.state, self.sizes, self.faults)
        made = [each for bound in layout.channels.values() for each in fault_actions(bound)]
        return (*self.actions, *made)

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Every action with every combination of its parameters."""
        return tuple(instance for each in self.all_actions for instance in each.instances(self.sizes))

    def state_of(
        self, values: Sequence[int], chooser: Chooser = no_choice, access: Access = Access.PROTOCOL
    ) -> State[Any]:
        """A state object over a copy of the values."""
        return self.state(self.layout, list(values), self.knobs, chooser, access)

    def initial_states(self) -> list[Values]:
        """The distinct initial states, found by direct execution. Raises DeclarationError if `start` allows none."""

        def run(chooser: Chooser) -> State[Any] | None:
            state = self.state_of(self.layout.initial, chooser)
            try:
                self.start(state)
            except Disabled:
                return None
            return state

        found = list(dict.fromkeys(tuple(state.values) for state in every_choice(run)))
        if not found:  # whatever is asked of such a model is true
            raise DeclarationError(f"model {self.name}: its start allows no initial state; loosen what it requires")
        return found

    def steps_of(self, instance: Instance, values: Sequence[int]) -> Iterator[Step]:
        """The transitions of one instance in one state, by direct execution: none if it is disabled."""
        for state in every_choice(lambda chooser: execute(instance, self.state_of(values, chooser))):
            yield _step(instance, state)

    def lawful_steps_of(self, instance: Instance, values: Sequence[int]) -> Iterator[Step]:
        """The transitions of one instance that break no rule of the language, where another option of it may."""

        def run(chooser: Chooser) -> State[Any] | None:
            with suppress(ModelFault):
                return execute(instance, self.state_of(values, chooser))

        for state in every_choice(run):
            yield _step(instance, state)

    def steps(self, values: Sequence[int]) -> Iterator[Step]:
        """Every transition out of a state, by direct execution."""
        for instance in self.instances:
            yield from self.steps_of(instance, values)

    def is_terminal(self, values: Sequence[int]) -> bool:
        """Whether the state may have no step."""
        return bool(self.terminal(self.state_of(values, access=Access.PROPERTY)))

    def slots_of(self, values: Sequence[int]) -> tuple[SlotView, ...]:
        """The memory of a state, for diagrams."""
        return tuple(self.slots(self.state_of(values, access=Access.PROPERTY)))

    def describe(self, values: Sequence[int]) -> dict[str, str]:
        """Each cell's name and its value in words."""
        return {cell.name: cell.domain.show(value) for cell, value in zip(self.layout.cells, values, strict=True)}
