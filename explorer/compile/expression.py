"""Symbolic values: what the tracer puts into a state instead of integers.

An expression behaves like the integer it stands for. Where Python needs a truth value or an index, it asks its
`Decider`, which records the decision. Equal expressions are the same object, so they can be compared by `uid`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias, cast

from ...protocol.language import DeclarationError, Symbolic
from ...protocol.language.domain import Domain

Value: TypeAlias = "int | Expression"


LARGEST = 2**62
"""Compiled code computes in 64 bits; what could come near the limit is refused when it is traced."""


ENDLESS = cast(int, math.inf)
"""The bound of a number that has none. It is compared and added like a number; for products see `times`."""


class Decider(Protocol):
    """Whoever decides what a symbolic condition is on the path being traced."""

    def decide(self, condition: Expression) -> bool:
        """The truth of a condition on this path."""
        ...

    def pick(self, value: Expression) -> int:
        """The value of an index on this path."""
        ...


def _refusing(symbol: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise TypeError(f"{symbol} on a field is no part of the language; it has + - * == != < <= > >= & |")

    return refuse


@dataclass(eq=False, repr=False, slots=True, frozen=True)
class Expression(Symbolic):
    """An operation on cells of the state. `lo` and `hi` bound its value; `uid` is its identity.

    It answers what it can answer as the number would, and refuses everything else: it never guesses.
    """

    graph: Graph
    operation: str
    operands: tuple[Value, ...]
    lo: int
    hi: int
    uid: int

    def __bool__(self) -> bool:
        condition = truth(self)
        return bool(condition) if isinstance(condition, int) else self.graph.decider.decide(condition)

    def __index__(self) -> int:
        return self.graph.decider.pick(self)

    def __add__(self, other: Value) -> Value:
        return add(self, as_value(other))

    def __radd__(self, other: Value) -> Value:
        return add(self, as_value(other))

    def __sub__(self, other: Value) -> Value:
        return subtract(self, as_value(other))

    def __rsub__(self, other: Value) -> Value:
        return subtract(as_value(other), self)

    def __mul__(self, other: Value) -> Value:
        return multiply(self, as_value(other))

    def __rmul__(self, other: Value) -> Value:
        return multiply(as_value(other), self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return equal(self, as_value(other))

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return negate(equal(self, as_value(other)))

    def __lt__(self, other: Value) -> Value:
        return less(self, as_value(other))

    def __gt__(self, other: Value) -> Value:
        return less(as_value(other), self)

    def __le__(self, other: Value) -> Value:
        return negate(less(as_value(other), self))

    def __ge__(self, other: Value) -> Value:
        return negate(less(self, as_value(other)))

    def __neg__(self) -> Value:
        return subtract(0, self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return self if self >= 0 else -self

    def __and__(self, other: Value) -> Value:
        return both(self, other)

    def __rand__(self, other: Value) -> Value:
        return both(self, other)

    def __or__(self, other: Value) -> Value:
        return either(self, other)

    def __ror__(self, other: Value) -> Value:
        return either(self, other)

    __floordiv__ = __rfloordiv__ = _refusing("//")
    __truediv__ = __rtruediv__ = _refusing("/")
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _refusing("%")
    __pow__ = __rpow__ = _refusing("**")
    __lshift__ = __rlshift__ = _refusing("<<")
    __rshift__ = __rrshift__ = _refusing(">>")
    __xor__ = __rxor__ = _refusing("^")
    __invert__ = _refusing("~")
    __matmul__ = __rmatmul__ = _refusing("@")

    def __hash__(self) -> int:
        # Sets and dictionaries look members up by hash, which a symbolic value cannot have.
        raise TypeError("a field is looked up in a set or dictionary; compare it, or use a tuple")

    def __repr__(self) -> str:
        raise TypeError("the text of a field is not the same in every execution; give claim() the value")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # Python's own protocols ask whether there is one
        raise TypeError(f"a field is a number and has no .{name}")


class Graph:
    """Makes expressions, each only once."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider
        self._made: dict[tuple[object, ...], Expression] = {}

    def read(self, position: int, domain: Domain) -> Value:
        """The value of a cell; a constant if its domain has one value only."""
        if domain.lo == domain.hi:
            return domain.lo
        return self.make("read", (position,), domain.lo, domain.hi if domain.bounded else ENDLESS)

    def make(self, operation: str, operands: tuple[Value, ...], lo: int, hi: int) -> Value:
        """An operation; a plain integer where its bounds leave one value."""
        operands = tuple(int(each) if isinstance(each, int) else each for each in operands)  # a bool is a number
        if lo == hi:
            return int(lo)
        # What has no bound is never compiled: the cell that it comes from cannot be packed.
        if -ENDLESS < lo < -LARGEST or LARGEST < hi < ENDLESS:
            raise DeclarationError(
                f"a {operation} may exceed {LARGEST:,}, which compiled code cannot hold; use smaller domains"
            )
        key = (operation, *((x.uid, "e") if isinstance(x, Expression) else x for x in operands))
        if key not in self._made:
            self._made[key] = Expression(self, operation, operands, lo, hi, len(self._made))
        return self._made[key]


def as_value(value: object) -> Value:
    """An integer or expression; TypeError for anything else that meets one."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a field meets {_brief(value)}; compare and compute it with whole numbers and other fields")


def _brief(value: object) -> str:
    text = repr(value) if isinstance(value, str | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def bounds(value: Value) -> tuple[int, int]:
    """The least and the greatest value."""
    return (value.lo, value.hi) if isinstance(value, Expression) else (value, value)


def _graph(*values: Value) -> Graph:
    for value in values:
        if isinstance(value, Expression):
            return value.graph
    raise AssertionError("at least one operand is symbolic")


def add(a: Value, b: Value) -> Value:
    """a + b; constants are kept on the right and folded."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and isinstance(a, Expression):
        if b == 0:
            return a
        if a.operation == "add" and isinstance(a.operands[1], int):
            return add(a.operands[0], a.operands[1] + b)
        return a.graph.make("add", (a, int(b)), a.lo + b, a.hi + b)
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    return _graph(a, b).make("add", (a, b), alo + blo, ahi + bhi)


def subtract(a: Value, b: Value) -> Value:
    """a - b."""
    if isinstance(b, int):
        return add(a, -b)
    if a is b:
        return 0
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    return b.graph.make("sub", (a, b), alo - bhi, ahi - blo)


def multiply(a: Value, b: Value) -> Value:
    """a * b."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    corners = [times(x, y) for x in bounds(a) for y in bounds(b)]
    return _graph(a, b).make("mul", (a, b), min(corners), max(corners))


def times(x: int, y: int) -> int:
    """The product of two bounds: 0 times anything is 0, also where there is no bound."""
    return x * y if x and y else 0


def truth(value: Value) -> Value:
    """Whether a value is not zero, as 0 or 1."""
    if isinstance(value, int):
        return int(value != 0)
    if (value.lo, value.hi) == (0, 1):
        return value
    return negate(equal(value, 0))


def negate(value: Value) -> Value:
    """Whether a value is zero, as 0 or 1."""
    condition = truth(value)
    if isinstance(condition, int):
        return 1 - condition
    if condition.operation == "not":
        return condition.operands[0]
    return condition.graph.make("not", (condition,), 0, 1)


def equal(a: Value, b: Value) -> Value:
    """a == b, as 0 or 1; moved to the form "cell == constant" where that is possible."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) or a is b:
        return int(a is b or a == b)
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    if ahi < blo or bhi < alo:
        return 0
    if isinstance(b, int):
        left, right = a.operands if len(a.operands) == 2 else (0, 0)
        if a.operation == "add" and isinstance(right, int):
            return equal(left, b - right)
        if a.operation == "sub" and isinstance(left, int):
            return equal(right, left - b)
        if (a.lo, a.hi) == (0, 1):
            return a if b == 1 else negate(a)
    elif a.uid > b.uid:
        a, b = b, a
    return _graph(a).make("eq", (a, b), 0, 1)


def less(a: Value, b: Value) -> Value:
    """a < b, as 0 or 1; moved to the form "cell < constant" where that is possible."""
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    if ahi < blo:
        return 1
    if alo >= bhi:
        return 0
    if isinstance(b, int) and isinstance(a, Expression) and len(a.operands) == 2:
        left, right = a.operands
        if a.operation == "add" and isinstance(right, int):
            return less(left, b - right)
        if a.operation == "sub" and isinstance(left, int):
            return less(left - b, right)
    if isinstance(a, int) and isinstance(b, Expression) and len(b.operands) == 2:
        left, right = b.operands
        if b.operation == "add" and isinstance(right, int):
            return less(a - right, left)
        if b.operation == "sub" and isinstance(left, int):
            return less(right, left - a)
    return _graph(a, b).make("lt", (a, b), 0, 1)


def both(a: Value, b: Value) -> Value:
    """a and b, as 0 or 1, without a decision. TypeError unless both are truth values: there are no bits here."""
    a, b = _truth_value(a), _truth_value(b)
    if isinstance(a, int):
        return b if a else 0
    if isinstance(b, int):
        return a if b else 0
    if a is b:
        return a
    if a.uid > b.uid:
        a, b = b, a
    return a.graph.make("and", (a, b), 0, 1)


def either(a: Value, b: Value) -> Value:
    """a or b, as 0 or 1, without a decision. TypeError unless both are truth values."""
    return negate(both(negate(_truth_value(a)), negate(_truth_value(b))))


def _truth_value(value: Value) -> Value:
    value = as_value(value)
    lo, hi = bounds(value)
    if lo < 0 or hi > 1:
        raise TypeError("& and | join truth values, 0 or 1; a number has no bits: compare it before, as in (x != 0)")
    return value


def cells_of(value: Value) -> set[int]:
    """Positions of the cells that a value depends on."""
    if isinstance(value, int):
        return set()
    if value.operation == "read":
        position = value.operands[0]
        assert isinstance(position, int)
        return {position}
    found: set[int] = set()
    for operand in value.operands:
        found |= cells_of(operand)
    return found


def evaluate(value: Value, state: Sequence[int]) -> int:
    """The value in a state given as integers: the plain meaning that every back end must keep."""
    if isinstance(value, int):
        return value
    if value.operation == "read":
        position = value.operands[0]
        assert isinstance(position, int)
        return state[position]
    arguments = [evaluate(operand, state) for operand in value.operands]
    match value.operation:
        case "add":
            return arguments[0] + arguments[1]
        case "sub":
            return arguments[0] - arguments[1]
        case "mul":
            return arguments[0] * arguments[1]
        case "eq":
            return int(arguments[0] == arguments[1])
        case "lt":
            return int(arguments[0] < arguments[1])
        case "and":
            return arguments[0] & arguments[1]
        case "not":
            return 1 - arguments[0]
        case other:
            raise AssertionError(f"unknown operation {other}")
