"""The guarded commands as Z3 terms: the third way in which a model is run.

A frame is a state in terms: for each cell a variable, an expression, or a plain number. A frame of variables is any
state; `successor` gives the frame behind one command, in expressions over the frame it was given; `step` joins two
frames of variables. Numbers with bounds are bit vectors, as wide as the expression needs, so nothing wraps around;
truth values are booleans; numbers without bound are integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

from ...properties.solver import library
from ...protocol.language.model import Model, Values
from ...protocol.language.property import Property
from ..compile.expression import ENDLESS, Expression, Value
from ..compile.tracer import Answer, Choice, Command, Decision, Fault, Tree, Update, trace

z3: Any = library()
Term: TypeAlias = Any
"""A term of Z3, or a plain number."""
Frame: TypeAlias = tuple[Term, ...]
"""A state in terms, one for each cell."""
CHOICE_BITS = 16
"""More options than this can number are refused by the tracer long before."""


def width(lo: int, hi: int) -> int:
    """Bits of a signed number between two bounds."""
    return max(lo.bit_length() if lo >= 0 else (-lo - 1).bit_length(), hi.bit_length()) + 1


class Symbolic:
    """A model in terms.

    With `constants`, cells that no run changes are plain numbers: what is asked is then only true of states that
    agree with the initial ones there. All reachable states do. With `integers`, numbers with bounds are integers too.
    """

    def __init__(self, model: Model, *, constants: bool = True, integers: bool = False) -> None:
        self.model = model
        self._integers = integers
        self.initial_states = model.initial_states()
        self.tracer, self.commands = trace(model, self.initial_states if constants else ())
        self._fails: dict[str, Tree] = {}

    @property
    def bounded(self) -> bool:
        """Whether every cell that changes has finitely many values."""
        cells = enumerate(self.model.layout.cells)
        return all(cell.domain.bounded or at in self.tracer.constants for at, cell in cells)

    def solver(self) -> Any:
        """A solver for questions about this model."""
        return z3.SolverFor("QF_FD") if self.bounded and not self._integers else z3.Solver()

    def frame(self, name: str) -> Frame:
        """Any state: a variable for each cell that can change. Frames of different names are independent."""

        def variable(position: int) -> Term:
            if position in self.tracer.constants:
                return self.tracer.constants[position]
            cell = self.model.layout.cells[position]
            lo, hi = cell.domain.lo, cell.domain.hi
            label = f"{name}:{cell.name}"
            if lo == hi:
                return lo
            if (lo, hi) == (0, 1):
                return z3.Bool(label)
            return z3.Int(label) if self._integers or not cell.domain.bounded else z3.BitVec(label, width(lo, hi))

        return tuple(variable(position) for position in range(len(self.model.layout.cells)))

    def within(self, frame: Frame) -> Term:
        """Each variable of the frame holds a value of its cell's domain."""
        parts: list[Term] = []
        for cell, term in zip(self.model.layout.cells, frame, strict=True):
            if isinstance(term, int) or z3.is_bool(term):
                continue
            parts.append(term >= cell.domain.lo)
            if cell.domain.bounded:
                parts.append(term <= cell.domain.hi)
        return z3.And(parts)

    def is_initial(self, frame: Frame) -> Term:
        """The frame is one of the initial states."""
        return z3.Or([self.is_state(frame, values) for values in self.initial_states])

    def is_state(self, frame: Frame, values: Values) -> Term:
        """The frame is this state."""
        return z3.And([same(term, value) for term, value in zip(frame, values, strict=True)])

    def is_same(self, frame: Frame, other: Frame) -> Term:
        """The two frames are the same state."""
        return z3.And([same(a, b) for a, b in zip(frame, other, strict=True)])

    def fails(self, prop: Property, frame: Frame) -> Term:
        """The property is false in the frame."""
        if prop.name not in self._fails:
            self._fails[prop.name] = self.tracer.fails(prop)
        return Meaning(frame).truth(self._fails[prop.name])

    def faults(self, command: Command, frame: Frame, choices: str = "") -> Term:
        """The command breaks the language's rules in the frame."""
        return Meaning(frame, choices).leads_to(command.tree, Fault)

    def happens(self, command: Command, frame: Frame, choices: str = "") -> Term:
        """The command can happen in the frame, with the choices of that name."""
        return Meaning(frame, choices).leads_to(command.tree, Update)

    def successor(self, command: Command, frame: Frame, choices: str = "") -> Frame:
        """The frame behind the command, in terms of the frame before it; of use only where the command happens."""
        meaning = Meaning(frame, choices)
        return tuple(
            meaning.after(command.tree, position) if position in command.writes else before
            for position, before in enumerate(frame)
        )

    def step(self, before: Frame, after: Frame, name: str) -> Term:
        """Some command leads from one frame of variables to the other; `name` tells this step from others."""
        bits = max(1, (len(self.commands) - 1).bit_length())
        taken = z3.BitVec(f"{name}:command", bits)
        meaning = [Meaning(before, f"{name}:{number}") for number in range(len(self.commands))]
        chosen = [taken == number for number in range(len(self.commands))]
        parts = [
            z3.Implies(chosen[number], meaning[number].leads_to(command.tree, Update))
            for number, command in enumerate(self.commands)
        ]
        if len(self.commands) < 1 << bits:
            parts.append(z3.ULT(taken, len(self.commands)))
        for position, value in enumerate(before):
            for number, command in enumerate(self.commands):
                if position in command.writes:
                    new = meaning[number].after(command.tree, position)
                    value = either(chosen[number], new, value, before[position])
            parts.append(same(after[position], value))
        return z3.And(parts)

    @cached_property
    def faulty_commands(self) -> list[Command]:
        """Commands that break the language's rules in some state, reachable or not."""
        return [command for command in self.commands if _has_fault(command.tree)]

    def values(self, solution: Any, frame: Frame) -> Values:
        """The state that a frame is in a solution."""
        return tuple(term if isinstance(term, int) else _number_in(solution, term) for term in frame)


def _has_fault(tree: Tree) -> bool:
    match tree:
        case Decision(_, then, otherwise):
            return _has_fault(then) or _has_fault(otherwise)
        case Choice(options):
            return any(map(_has_fault, options))
        case _:
            return isinstance(tree, Fault)


def _number_in(solution: Any, term: Term) -> int:
    value = solution.eval(term, model_completion=True)
    if z3.is_bool(value):
        return int(z3.is_true(value))
    return int(value.as_signed_long() if z3.is_bv(value) else value.as_long())


class Meaning:
    """What expressions and trees say of one frame.

    `choices` names the variables that say which options are taken: one for the first choice of a step, one for the
    second, and so on. Branches that exclude each other share them.
    """

    def __init__(self, frame: Frame, choices: str = "") -> None:
        self._frame = frame
        self._choices = choices
        self._made: dict[int, Term] = {}

    def value(self, value: Value) -> Term:
        """A value in terms of the frame."""
        if isinstance(value, int):
            return value
        if value.uid not in self._made:
            self._made[value.uid] = self._operation(value)
        return self._made[value.uid]

    def _operation(self, value: Expression) -> Term:
        if value.operation == "read":
            return self._frame[cast(int, value.operands[0])]
        operands = [self.value(operand) for operand in value.operands]
        bounds = [(each, each) if isinstance(each, int) else (each.lo, each.hi) for each in value.operands]
        lo, hi = min(value.lo, *(lo for lo, _ in bounds)), max(value.hi, *(hi for _, hi in bounds))
        match value.operation:
            case "add" | "sub" | "mul":
                a, b = _alike(operands, lo, hi)
                return a + b if value.operation == "add" else a - b if value.operation == "sub" else a * b
            case "eq":
                return same(*operands)
            case "lt":
                a, b = _alike(operands, lo, hi)
                return a < b
            case "and":
                return z3.And(condition(operands[0]), condition(operands[1]))
            case "not":
                return z3.Not(condition(operands[0]))
            case other:
                raise AssertionError(f"unknown operation {other}")

    def truth(self, tree: Tree) -> Term:
        """The answer of a predicate's tree."""
        return self._fold(tree, lambda leaf: z3.BoolVal(isinstance(leaf, Answer) and leaf.value), z3.If)

    def leads_to(self, tree: Tree, kind: type) -> Term:
        """A tree leads to a leaf of this kind."""
        return self._fold(tree, lambda leaf: z3.BoolVal(isinstance(leaf, kind)), z3.If)

    def after(self, tree: Tree, position: int) -> Term:
        """The value of a cell behind a command's tree."""
        before = self._frame[position]

        def at_leaf(leaf: Tree) -> Term:
            # Every new value is in terms of the frame before: none sees what the same step writes elsewhere.
            writes = leaf.writes if isinstance(leaf, Update) else ()
            return next((self.value(value) for at, value in writes if at == position), before)

        return self._fold(tree, at_leaf, lambda decision, then, other: either(decision, then, other, before))

    def _fold(
        self, tree: Tree, at_leaf: Callable[[Tree], Term], join: Callable[[Term, Term, Term], Term], choice: int = 0
    ) -> Term:
        match tree:
            case Decision(asked, then, otherwise):
                branches = (self._fold(branch, at_leaf, join, choice) for branch in (then, otherwise))
                return join(condition(self.value(asked)), *branches)
            case Choice(options):
                *earlier, last = (self._fold(option, at_leaf, join, choice + 1) for option in options)
                pick = z3.BitVec(f"{self._choices}:choice {choice}", CHOICE_BITS)
                for number, option in reversed(list(enumerate(earlier))):
                    last = join(pick == number, option, last)
                return last
            case _:
                return at_leaf(tree)


def condition(term: Term) -> Term:
    """A term as a truth value: whether it is not 0."""
    if isinstance(term, int):
        return z3.BoolVal(term != 0)
    return term if z3.is_bool(term) else term != 0


def _alike(terms: Sequence[Term], lo: int, hi: int) -> list[Term]:
    """Terms as numbers of one kind, in which everything between the bounds can be said."""
    endless = not -ENDLESS < lo <= hi < ENDLESS
    if endless or any(not isinstance(term, int) and z3.is_int(term) for term in terms):
        return [_integer(term) for term in terms]
    return [_vector(term, width(lo, hi)) for term in terms]


def _vector(term: Term, bits: int) -> Term:
    if isinstance(term, int):
        return z3.BitVecVal(term, bits)
    if z3.is_bool(term):
        return z3.If(term, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    more = bits - term.size()
    # What is cut off are copies of the sign: the bounds say that the value fits.
    return z3.SignExt(more, term) if more > 0 else z3.Extract(bits - 1, 0, term) if more < 0 else term


def _integer(term: Term) -> Term:
    if isinstance(term, int):
        return z3.IntVal(term)
    if z3.is_bool(term):
        return z3.If(term, z3.IntVal(1), z3.IntVal(0))
    return z3.BV2Int(term, is_signed=True) if z3.is_bv(term) else term


def same(a: Term, b: Term) -> Term:
    """Two terms have the same value."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int):
        return z3.BoolVal(a == b)
    if z3.is_bool(a) and (isinstance(b, int) or z3.is_bool(b)):
        if isinstance(b, int):
            return a if b == 1 else z3.Not(a) if b == 0 else z3.BoolVal(False)
        return a == b
    bits = max(_bits(a), _bits(b))
    x, y = _alike((a, b), -(1 << bits - 1), (1 << bits - 1) - 1)
    return x == y


def _bits(term: Term) -> int:
    if isinstance(term, int):
        return width(min(term, 0), max(term, 0))
    return term.size() if z3.is_bv(term) else 2


def either(decision: Term, then: Term, otherwise: Term, like: Term) -> Term:
    """One of two values of a cell, as a term of the kind that `like` is, which stands for the cell."""
    if then is otherwise or (isinstance(then, int) and isinstance(otherwise, int) and then == otherwise):
        return then
    if z3.is_bool(like):
        return z3.If(decision, condition(then), condition(otherwise))
    if any(z3.is_int(term) for term in (like, then, otherwise) if not isinstance(term, int)):
        return z3.If(decision, _integer(then), _integer(otherwise))
    # A cell with one value is a plain number, and says nothing of the width.
    bits = max(_bits(then), _bits(otherwise)) if isinstance(like, int) else like.size()
    return z3.If(decision, _vector(then, bits), _vector(otherwise, bits))
