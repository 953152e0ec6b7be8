"""Two copies of a model, or of two variants of it, as one model: what is said of two runs is then said of one state.

The environment is the same for both. A step of one name with the same parameters is one step of the pair: both copies
take it if both can, and if only one can, that one takes it alone and the other waits. Both take the same options, as
far as both are asked alike. So each copy still has all of its own runs, and while nothing tells the copies apart they
stay equal.

The pair is a model of the language like any other: it is executed, traced, searched, unrolled and proved unchanged. Its
fields and channels are those of the copies, each under the name of its copy: `left life[0,0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from .action import Action, Instance, execute, require
from .channel import BoundChannel, ChannelSpec, Faults
from .errors import DeclarationError
from .model import Model, SlotView
from .state import Chooser, FieldSpec, Scalar, State, Table, no_choice
from .whitelist import machinery


@dataclass(frozen=True)
class Copied:
    """One of the two copies: what it is called, its model, and where its cells begin in the state of the pair."""

    name: str
    model: Model
    begin: int

    def view(self, s: State[Any], chooser: Chooser = no_choice) -> State[Any]:
        """The copy's own state, as it is in the pair's."""
        end = self.begin + len(self.model.layout.cells)
        own = [s.values[position] for position in range(self.begin, end)]
        view = self.model.state_of(own, chooser, s.access)
        view.labels = s.labels
        return view

    def put(self, s: State[Any], view: State[Any]) -> None:
        """Writes the copy's state, and what it did to its channels, into the pair's."""
        for position, value in enumerate(view.values, self.begin):
            s.values[position] = value
        s.events += [replace(event, channel=self.label(event.channel)) for event in view.events]
        s.choice_names[:] = dict.fromkeys([*s.choice_names, *view.choice_names])

    def label(self, name: str) -> str:
        """What something of the copy is called in the pair."""
        return f"{self.name} {name}"


@machinery
@dataclass(frozen=True)
class Pair:
    """The knobs of a model that is a pair: its two copies."""

    left: Copied
    right: Copied

    @property
    def copies(self) -> tuple[Copied, Copied]:
        """Both, in the order in which they take a step."""
        return self.left, self.right


@machinery
def views(s: State[Pair]) -> tuple[Any, Any]:
    """The states of the two copies in a state of the pair, for properties and probes; changes to them are lost."""
    return s.knobs.left.view(s), s.knobs.right.view(s)


def pair_of(left: Model, right: Model, names: tuple[str, str] = ("left", "right")) -> Model:
    """The model whose runs are pairs of runs of two models in the same environment.

    Both need the same sizes, and actions of one name the same parameters: else DeclarationError is raised. The state
    may rest where both may. `bounds` says of each bound what it is, or what it is for each.
    """
    if dict(left.sizes) != dict(right.sizes):
        raise DeclarationError(f"{left.name} and {right.name} have different sizes; a pair needs the same ones")
    pair = Pair(Copied(names[0], left, 0), Copied(names[1], right, len(left.layout.cells)))
    return Model(
        name=f"{left.name} with {right.name}" if left.name != right.name else f"{left.name}, twice",
        state=_state_class(pair),
        actions=tuple(_actions(pair)),
        sizes=left.sizes,
        knobs=pair,
        start=_start,
        terminal=_terminal,
        bounds=_bounds(pair),
        may_rest=frozenset(name for name in _names(pair) if all(_rests(each, name) for each in pair.copies)),
        slots=_slots,
    )


class _Wire:
    """A channel of one copy. What befalls it is a step of that copy; the pair as such has no channel faults."""

    def __init__(self, spec: ChannelSpec[Any], faults: Faults | None) -> None:
        self._spec = copy(spec)
        self._faults = faults

    def declare(self, owner: type, name: str) -> None:
        """Takes the name it has in the pair."""
        self._spec.declare(owner, name)

    def bind(self, sizes: Any, faults: None) -> tuple[list[Table | Scalar], BoundChannel[Any]]:
        """The fields of the copy's channel. Prompt delivery is looked after where the copy takes its steps."""
        fields, bound = self._spec.bind(sizes, self._faults)
        return fields, replace(bound, faults=Faults(), prompt=False)


def _state_class(pair: Pair) -> type[State[Pair]]:
    """A state class that declares what either copy has; laid out, it is the one state behind the other."""
    declared: dict[str, object] = {"__doc__": "The state of one copy, and that of the other."}
    for each in pair.copies:
        model = each.model
        for name in dict.fromkeys(cell.field.partition(".")[0] for cell in model.layout.cells):
            spec = _declared(model.state, name)
            own = copy(spec) if isinstance(spec, FieldSpec) else _Wire(spec, model.faults.get(name))
            declared[each.label(name)] = own
    return type("PairState", (State,), declared)


def _declared(state: type[State[Any]], name: str) -> Any:
    return next(vars(base)[name] for base in state.__mro__ if name in vars(base))


def _names(pair: Pair) -> Sequence[str]:
    return list(dict.fromkeys(action.name for each in pair.copies for action in each.model.all_actions))


def _rests(copied: Copied, name: str) -> bool:
    """Whether the copy need not take the step: it does not have it, or may rest."""
    return name in copied.model.may_rest or name not in {action.name for action in copied.model.all_actions}


def _actions(pair: Pair) -> list[Action]:
    """A step of the pair for each name; it is told as the first copy that has it tells it."""
    known = [{action.name: action for action in each.model.all_actions} for each in pair.copies]
    made: list[Action] = []
    for name in _names(pair):
        own = tuple(actions.get(name) for actions in known)
        told = next(action for action in own if action is not None)
        if any(action is not None and action.parameters != told.parameters for action in own):
            raise DeclarationError(f"{name} has other parameters in one copy than in the other; rename one")
        function = _step(own)
        function.__doc__ = told.doc
        made.append(Action(name, function, told.parameters, told.lane, told.toward))
    return made


def _step(own: Sequence[Action | None]) -> Callable[..., None]:
    """What a step does: each copy that has it and can take it does."""

    @machinery
    def step(s: State[Pair], *arguments: int) -> None:
        options, moved = _Options(s), False
        for copied, action in zip(s.knobs.copies, own, strict=True):
            if action is None:
                continue
            view = copied.view(s, options.for_next_copy())
            if execute(Instance(action, arguments), view) is not None:
                copied.put(s, view)
                moved = True
        require(moved)

    return step


class _Options:
    """The options of one step of the pair: what one copy has drawn, the other is given."""

    def __init__(self, s: State[Pair]) -> None:
        self._s = s
        self._drawn: list[tuple[int, int]] = []

    def for_next_copy(self) -> Chooser:
        """A chooser that repeats what was drawn before, and draws where the other copy was not asked, or otherwise."""
        before = iter(self._drawn)
        self._drawn = []

        def choose(options: int) -> int:
            asked, option = next(before, (0, 0))
            if asked != options:
                option = self._draw(options)
            self._drawn.append((options, option))
            return option

        return choose

    def _draw(self, options: int) -> int:
        names = list(self._s.choice_names)
        option = self._s.choose(range(options))
        self._s.choice_names[:] = names  # the copy says in its own words what it has chosen
        return option


@machinery
def _start(s: State[Pair]) -> None:
    options = _Options(s)
    for copied in s.knobs.copies:
        view = copied.view(s, options.for_next_copy())
        copied.model.start(view)
        copied.put(s, view)


@machinery
def _terminal(s: State[Pair]) -> int:
    """Where neither copy has a step, each must be one that may end."""
    ended = [copied.model.terminal(view) for copied, view in zip(s.knobs.copies, views(s), strict=True)]
    return (ended[0] != 0) & (ended[1] != 0)


def _slots(s: State[Pair]) -> list[SlotView]:
    return [
        replace(slot, name=copied.label(slot.name))
        for copied, view in zip(s.knobs.copies, views(s), strict=True)
        for slot in copied.model.slots(view)
    ]


def _bounds(pair: Pair) -> dict[str, str]:
    """What limits both; where they differ, what limits each."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(name for each in pair.copies for name in each.model.bounds):
        own = [each.model.bounds.get(name, "none") for each in pair.copies]
        told = [f"{each.name}: {value}" for each, value in zip(pair.copies, own, strict=True)]
        found[name] = own[0] if own[0] == own[1] else ", ".join(told)
    return found
