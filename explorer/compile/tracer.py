"""Tracing: an action is run on symbolic values, once for each combination of decisions, into a decision tree.

Each condition that Python asks for is recorded; the function is then run again with the other answer. What is
already known on a path (from earlier answers and from the domains) is not asked again, so a tree has no branch
that the answers before it exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ...protocol.language import (
    Access,
    AccessFault,
    DeclarationError,
    Instance,
    ModelFault,
    State,
    execute,
    require_language,
)
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Probe, Promise, Property, truth_of
from .expression import Expression, Graph, Value, cells_of, times

MAX_PATHS = 20_000
MAX_PICK = 256
MAX_QUESTIONS = 300
MAX_CAPACITY = 16
"""Messages in a channel: a traced step has a path for each number of them."""


@dataclass(frozen=True)
class Decision:
    """A condition, and what follows if it is true or false."""

    condition: Expression
    then: Tree
    otherwise: Tree


@dataclass(frozen=True)
class Choice:
    """A nondeterministic choice: every option is a transition of its own."""

    options: tuple[Tree, ...]


@dataclass(frozen=True)
class Update:
    """The action happens: the new value of each cell that it changes."""

    writes: tuple[tuple[int, Value], ...]


@dataclass(frozen=True)
class Blocked:
    """The action is disabled here."""


@dataclass(frozen=True)
class Fault:
    """The action breaks the language's rules here. The message is exact once it is run on integers."""

    message: str


@dataclass(frozen=True)
class Answer:
    """A predicate's value here."""

    value: bool


Tree: TypeAlias = "Decision | Choice | Update | Blocked | Fault | Answer"
Answered: TypeAlias = "tuple[Expression, bool] | tuple[int, int]"


class Known:
    """What a path already says about cells: bounds and excluded values."""

    def __init__(self) -> None:
        self._bounds: dict[int, tuple[int, int]] = {}
        self._excluded: dict[int, set[int]] = {}
        self._decided: dict[int, bool] = {}

    def bounds(self, value: Value) -> tuple[int, int]:
        """Bounds of a value on this path."""
        if isinstance(value, int):
            return value, value
        if value.uid in self._decided:
            decided = int(self._decided[value.uid])
            return decided, decided
        if value.operation == "read":
            return self._bounds.get(_position(value), (value.lo, value.hi))
        ranges = [self.bounds(operand) for operand in value.operands]
        lo, hi = _combine(value.operation, ranges)
        return max(lo, value.lo), min(hi, value.hi)

    def excludes(self, value: Expression, number: int) -> bool:
        """Whether a value is known to differ from a number."""
        lo, hi = self.bounds(value)
        if not lo <= number <= hi:
            return True
        return value.operation == "read" and number in self._excluded.get(_position(value), ())

    def assume(self, condition: Expression, truth: bool) -> None:
        """Adds an answer to what is known."""
        self._decided[condition.uid] = truth
        operands = condition.operands
        match condition.operation:
            case "not":
                assert isinstance(operands[0], Expression)
                self.assume(operands[0], not truth)
            case "and" if truth:
                for operand in operands:
                    assert isinstance(operand, Expression)
                    self.assume(operand, True)
            case "read":
                self._exclude(condition, 0 if truth else 1)
            case "eq" if isinstance(operands[1], int) and isinstance(operands[0], Expression):
                if truth:
                    self._narrow(operands[0], operands[1], operands[1])
                else:
                    self._exclude(operands[0], operands[1])
            case "lt":
                left, right = operands
                if isinstance(left, Expression) and isinstance(right, int):
                    self._narrow(left, right if not truth else left.lo, left.hi if not truth else right - 1)
                elif isinstance(right, Expression) and isinstance(left, int):
                    self._narrow(right, left + 1 if truth else right.lo, right.hi if truth else left)
            case _:
                pass

    def _narrow(self, value: Expression, lo: int, hi: int) -> None:
        if value.operation != "read":
            return
        old_lo, old_hi = self.bounds(value)
        lo, hi = max(lo, old_lo), min(hi, old_hi)
        excluded = self._excluded.get(_position(value), set())
        while lo in excluded and lo < hi:
            lo += 1
        while hi in excluded and lo < hi:
            hi -= 1
        self._bounds[_position(value)] = (lo, hi)

    def _exclude(self, value: Expression, number: int) -> None:
        if value.operation == "read":
            self._excluded.setdefault(_position(value), set()).add(number)
            self._narrow(value, value.lo, value.hi)


def _position(read: Expression) -> int:
    position = read.operands[0]
    assert isinstance(position, int)
    return position


def _combine(operation: str, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Bounds of an operation from the bounds of its operands."""
    (alo, ahi) = ranges[0]
    (blo, bhi) = ranges[1] if len(ranges) > 1 else (0, 0)
    match operation:
        case "add":
            return alo + blo, ahi + bhi
        case "sub":
            return alo - bhi, ahi - blo
        case "mul":
            corners = [times(x, y) for x in (alo, ahi) for y in (blo, bhi)]
            return min(corners), max(corners)
        case "eq":
            if ahi < blo or bhi < alo:
                return 0, 0
            return (1, 1) if alo == ahi == blo == bhi else (0, 1)
        case "lt":
            if ahi < blo:
                return 1, 1
            return (0, 0) if alo >= bhi else (0, 1)
        case "and":
            return min(alo, blo), min(ahi, bhi)
        case "not":
            return 1 - ahi, 1 - alo
        case other:
            raise AssertionError(f"unknown operation {other}")


class Path:
    """One run of a function: it answers as the prefix says, then takes the first answer, and notes all."""

    def __init__(self, prefix: Sequence[bool | int]) -> None:
        self._prefix = prefix
        self.taken: list[Answered] = []
        self.known = Known()

    def decide(self, condition: Expression) -> bool:
        """The truth of a condition: as known, as the prefix says, or true."""
        lo, hi = self.known.bounds(condition)
        if lo == hi:
            return bool(lo)
        at = len(self.taken)
        if at >= MAX_QUESTIONS:
            raise DeclarationError(
                f"one run asks more than {MAX_QUESTIONS} questions of the state; use smaller sizes or steps"
            )
        answer = bool(self._prefix[at]) if at < len(self._prefix) else True
        self.taken.append((condition, answer))
        self.known.assume(condition, answer)
        return answer

    def pick(self, value: Expression) -> int:
        """The value of an index: one path for each number it can be."""
        lo, hi = self.known.bounds(value)
        if hi - lo >= MAX_PICK:
            raise DeclarationError(f"an index could be any of {hi - lo + 1} numbers; narrow it with require()")
        candidates = [n for n in range(lo, hi + 1) if not self.known.excludes(value, n)]
        if not candidates:
            raise ModelFault("what the path asks of an index cannot all be true")
        for number in candidates[:-1]:
            if value == number:
                return number
        return candidates[-1]

    def choose(self, options: int) -> int:
        """The chooser of the state: one option, the others on other paths."""
        at = len(self.taken)
        option = int(self._prefix[at]) if at < len(self._prefix) else 0
        self.taken.append((options, option))
        return option


@dataclass(frozen=True)
class Command:
    """A guarded command: an instance's decision tree, and the cells it depends on and changes."""

    instance: Instance
    tree: Tree
    reads: frozenset[int]
    writes: frozenset[int]


class Tracer:
    """Traces the actions and properties of one model.

    `constants` gives the value of each cell that is known never to change; what is traced from then on is true only
    where the cells hold these values.
    """

    def __init__(self, model: Model) -> None:
        self.constants: Mapping[int, int] = {}
        self._model = model
        self._path = Path(())
        self._graph = Graph(self)
        self._symbols: list[Any] = [
            self._graph.read(position, cell.domain) for position, cell in enumerate(model.layout.cells)
        ]

    def take_as_constant(self, constants: Mapping[int, int]) -> None:
        """Replaces cells by their values in all that is traced from now on."""
        self.constants = constants
        for position, value in constants.items():
            self._symbols[position] = value

    def decide(self, condition: Expression) -> bool:
        """Asks the current path."""
        return self._path.decide(condition)

    def pick(self, value: Expression) -> int:
        """Asks the current path."""
        return self._path.pick(value)

    def command(self, instance: Instance) -> Command:
        """The guarded command of an instance."""

        def run() -> Tree:
            state = execute(instance, self._state(Access.PROTOCOL))
            return Blocked() if state is None else self._update(state)

        tree = self._trace(run, instance.label)
        return Command(instance, tree, frozenset(reads_of(tree)), frozenset(writes_of(tree)))

    def fails(self, prop: Property) -> Tree:
        """A tree that answers whether the property is false."""

        def run() -> Tree:
            return Answer(prop.evaluate(self._state(Access.PROPERTY)) is not None)

        return self._predicate(run, f"property {prop.name}", prop.function)

    def holds(self, probe: Probe) -> Tree:
        """A tree that answers whether the probe's predicate is true."""
        return self._truth(probe.function, f"probe {probe.name}")

    def pending(self, promise: Promise) -> Tree:
        """A tree that answers whether the promise is pending."""
        return self._truth(promise.function, f"promise {promise.name}")

    def terminal(self) -> Tree:
        """A tree that answers whether the model's states may end here."""
        return self._truth(self._model.terminal, "the terminal predicate")

    def _truth(self, function: Callable[[Any], int], label: str) -> Tree:
        return self._predicate(lambda: Answer(truth_of(function, self._state(Access.PROPERTY), label)), label, function)

    def _predicate(self, run: Callable[[], Tree], label: str, function: Callable[..., Any]) -> Tree:
        """A tree of answers. A predicate must have one in every state that the domains allow, reachable or not.

        What it says where it breaks the language's rules would be a guess, and a guess could hide a violation.
        """
        require_language(function, label)
        try:
            return self._trace(run, label, faults_allowed=False)
        except AccessFault:
            raise
        except ModelFault as fault:
            raise DeclarationError(
                f"{label}: {fault.message}, in a state that the domains allow; ask with if before, or with and"
            ) from None

    def _state(self, access: Access) -> State[Any]:
        return self._model.state_of(self._symbols, self._path.choose, access)

    def _update(self, state: State[Any]) -> Update:
        changed: list[tuple[int, Value]] = []
        for position, (value, before) in enumerate(zip(state.values, self._symbols, strict=True)):
            if value is before:
                continue
            lo, hi = self._path.known.bounds(value)
            old = self._path.known.bounds(before)
            if lo == hi and old == (lo, hi):
                continue  # it is assigned what the path says it holds
            changed.append((position, lo if lo == hi else value))
        return Update(tuple(changed))

    def _trace(self, run: Callable[[], Tree], label: str, faults_allowed: bool = True) -> Tree:
        paths = 0

        def grow(prefix: list[bool | int]) -> Tree:
            nonlocal paths
            paths += 1
            if paths > MAX_PATHS:
                raise DeclarationError(
                    f"{label} has more than {MAX_PATHS:,} paths; use smaller sizes, or split it into smaller steps"
                )
            self._path = path = Path(prefix)
            try:
                tree = run()
            except AccessFault:
                raise  # wrong in every state, reachable or not
            except ModelFault as fault:
                if not faults_allowed:
                    raise
                tree = Fault(str(fault))
            except DeclarationError as error:
                raise error if str(error).startswith(label) else DeclarationError(f"{label}: {error}") from None
            answers = [answer for _, answer in path.taken]
            for at in reversed(range(len(prefix), len(path.taken))):
                asked, answer = path.taken[at]
                if isinstance(asked, Expression):
                    tree = _decision(asked, tree, grow([*answers[:at], not answer]))
                else:
                    others = tuple(grow([*answers[:at], option]) for option in range(1, asked))
                    tree = Choice((tree, *others))
            return tree

        return grow([])


def _decision(condition: Expression, then: Tree, otherwise: Tree) -> Tree:
    if _same(then, otherwise):
        return then
    return Decision(condition, then, otherwise)


def _same(a: Tree, b: Tree) -> bool:
    if isinstance(a, Update) and isinstance(b, Update):
        return len(a.writes) == len(b.writes) and all(
            p == q and (v is w or (isinstance(v, int) and isinstance(w, int) and v == w))
            for (p, v), (q, w) in zip(a.writes, b.writes, strict=True)
        )
    return isinstance(a, Blocked | Answer) and type(a) is type(b) and a == b


T = TypeVar("T")


def _fold(tree: Tree, at_condition: Callable[[Expression], set[int]], at_leaf: Callable[[Tree], set[int]]) -> set[int]:
    match tree:
        case Decision(condition, then, otherwise):
            return (
                at_condition(condition) | _fold(then, at_condition, at_leaf) | _fold(otherwise, at_condition, at_leaf)
            )
        case Choice(options):
            return set[int]().union(*(_fold(option, at_condition, at_leaf) for option in options))
        case _:
            return at_leaf(tree)


def reads_of(tree: Tree) -> set[int]:
    """Positions of the cells that decide a tree or flow into its updates."""

    def leaf(tree: Tree) -> set[int]:
        values = tree.writes if isinstance(tree, Update) else ()
        return set[int]().union(*(cells_of(value) for _, value in values))

    return _fold(tree, cells_of, leaf)


def writes_of(tree: Tree) -> set[int]:
    """Positions of the cells that some leaf of a tree changes."""
    return _fold(tree, lambda _: set(), lambda leaf: {p for p, _ in leaf.writes} if isinstance(leaf, Update) else set())


def count_leaves(tree: Tree) -> int:
    """How many leaves a tree has: what compiling it costs."""
    match tree:
        case Decision(_, then, otherwise):
            return count_leaves(then) + count_leaves(otherwise)
        case Choice(options):
            return sum(map(count_leaves, options))
        case _:
            return 1


def most_successors(tree: Tree) -> int:
    """The largest number of successors that a tree gives any one state: a choice gives all its options."""
    match tree:
        case Decision(_, then, otherwise):
            return max(most_successors(then), most_successors(otherwise))
        case Choice(options):
            return sum(map(most_successors, options))
        case Update() | Fault():
            return 1
        case _:
            return 0


def trace(model: Model, initial: Collection[Values] = ()) -> tuple[Tracer, list[Command]]:
    """Every instance of a model as a guarded command, and the tracer for its properties.

    Given the initial states, the cells that keep their value in every run become constants of the tracer and of the
    commands. Without them, the commands say what the functions do in any state, reachable or not.
    """
    require_traceable(model)
    tracer = Tracer(model)
    commands = [tracer.command(instance) for instance in model.instances]
    while (constants := _constants(model, commands, initial)).keys() > tracer.constants.keys():
        # With what is constant now, branches fall away, and perhaps the last step that wrote another cell.
        fresh = constants.keys() - tracer.constants.keys()
        tracer.take_as_constant(constants)
        commands = [tracer.command(each.instance) if each.reads & fresh else each for each in commands]
    return tracer, commands


def require_traceable(model: Model) -> None:
    """Raises DeclarationError for sizes that can only be run directly."""
    reason = model.untraceable
    for bound in model.layout.channels.values():
        if bound.capacity > MAX_CAPACITY:
            reason = reason or f"{bound.name} holds up to {bound.capacity} messages; at most {MAX_CAPACITY} are traced"
    if reason:
        raise DeclarationError(f"{model.name}: {reason}; use smaller sizes, or run it directly: draincheck explore")


def _constants(model: Model, commands: Sequence[Command], initial: Collection[Values]) -> dict[int, int]:
    """The cells that have the same value in all initial states and that no command writes, with that value."""
    written = frozenset[int]().union(*(command.writes for command in commands))
    columns = enumerate(zip(*initial, strict=True))
    return {at: column[0] for at, column in columns if at not in written and len(set(column)) == 1}
