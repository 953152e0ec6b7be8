"""The form of code that treats all ranks alike: what a step, a property or a start may do with ranks.

Code is read, not run: the syntax tree of every function is walked with values that say only what is known of them in
every model of the family. Sizes of other index types and knobs are the same in all of these, so what they decide is
decided here too, and loops over other things are unrolled. What is not recognised is refused, with the name of the
condition.

docs/proofs.md states the theorem whose conditions these are, and proves it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import ChainMap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from enum import Enum
from functools import reduce
from itertools import pairwise, product
from types import FunctionType, ModuleType
from typing import Any, cast

from ...protocol.language import (
    UNBOUNDED,
    Action,
    DeclarationError,
    DraincheckError,
    Index,
    Message,
    State,
    ghost_code,
    require,
)
from ...protocol.language.domain import Domain
from ...protocol.language.model import Model
from ...protocol.language.property import claim
from ...protocol.language.sources import Syntax, syntax_of
from .rank_values import (
    Abstract,
    Code,
    Data,
    Env,
    Frame,
    Generated,
    Items,
    Known,
    Loop,
    Many,
    Mark,
    Table,
    Wire,
    is_number,
    is_truth,
    join,
    merge,
)


class Refused(DraincheckError):
    """Code does not meet a condition of the theorem: which one, where, and why."""

    def __init__(self, condition: str, where: str, why: str) -> None:
        super().__init__(f"condition {condition}, at {where}: {why}")
        self.condition = condition


class Kind(Enum):
    """What is read: each may do something else."""

    STEP = "a step"
    START = "the start"
    PROPERTY = "a property"


PURE: tuple[Any, ...] = (
    abs,
    bool,
    enumerate,
    int,
    len,
    list,
    max,
    min,
    pairwise,
    range,
    tuple,
)
"""Functions of Python that may be called with values that are known."""

NUMBERS = (abs, bool, int, max, min)
"""Those of them that also make a number of numbers."""

READING = ("some", "count", "waiting", "peek")
CHANGING = ("send", "receive", "clear", "remove", "remove_last")
"""What may be done with a channel."""

OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}

GATHERS = (ast.BitOr, ast.BitAnd)
"""How a condition may be carried from one rank to the next."""

LONGEST = 4096
"""Turns of a loop; more of them are not unrolled."""

DEEPEST = 40
"""Calls within calls; more of them are taken for a recursion."""


@ghost_code
def _some_ghost_code(s: State[Any]) -> None:
    return None


def assigned(body: Sequence[ast.AST]) -> set[str]:
    """Names that statements assign."""
    nodes = (each for statement in body for each in ast.walk(statement))
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def gathered(body: Sequence[ast.AST]) -> set[str]:
    """Names that a body touches by |= only, or by &= only."""
    nodes = [each for statement in body for each in ast.walk(statement)]
    names = [each.id for each in nodes if isinstance(each, ast.Name)]
    carried = [
        (each.target.id, type(each.op))
        for each in nodes
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and isinstance(each.op, GATHERS)
    ]
    found = {name for name, _ in carried if names.count(name) == sum(each == name for each, _ in carried)}
    return {name for name in found if len({op for each, op in carried if each == name}) == 1}


class Reader:
    """Reads the code of one model's family, in which only the number of ranks, indices of type `kind`, differs."""

    def __init__(self, model: Model, kind: type[Index]) -> None:
        self._model = model
        self._kind = kind
        self._layout = model.layout
        self._parts = {name for bound in self._layout.channels.values() for name in bound.parts}
        self._what = Kind.STEP
        self._acting = False
        self._at = model.name
        self._depth = 0
        self._inside = False
        self._witnesses = 0
        self._asked_of_each = False
        self._asking = False
        self._looked_at: set[str] = set()
        self._written: dict[tuple[str, tuple[Any, ...]], Any] = {}

    # What is read.

    def action(self, action: Action) -> None:
        """Raises Refused unless the step treats all ranks alike."""
        kinds = [each for _, each in action.parameters]
        self._syntax(_plain(action.function))
        if kinds.count(self._kind) > 1:
            raise self._refused("one-actor", f"{action.name} has two parameters that are ranks")
        for values in product(*([None] if each is self._kind else range(self._model.sizes[each]) for each in kinds)):
            arguments = [Mark.RANK if value is None else Known(value) for value in values]
            self._begin(Kind.STEP, acting=self._kind in kinds)
            self._call(_plain(action.function), [Mark.STATE, *arguments], {})
            self._require_one_witness(action.name)

    def start(self) -> None:
        """Raises Refused unless the start treats all ranks alike."""
        self._begin(Kind.START)
        self._call(_plain(self._model.start), [Mark.STATE], {})
        self._require_one_witness("the start")

    def property(self, name: str, function: Callable[..., Any]) -> None:
        """Raises Refused unless a property says something of what is shared, and the same of each rank by itself."""
        self._begin(Kind.PROPERTY)
        self._call(_plain(function), [Mark.STATE], {})
        if self._witnesses:
            raise self._refused("goal-width", f"{name} gathers over ranks; say it of each rank by itself")

    def _begin(self, what: Kind, *, acting: bool = False) -> None:
        self._what, self._acting, self._witnesses, self._inside, self._depth = what, acting, 0, False, 0
        self._asking = self._asked_of_each = False

    def _require_one_witness(self, name: str) -> None:
        if self._witnesses > 1:
            raise self._refused(
                "one-witness",
                f"{name} looks {self._witnesses} times whether some rank is so; one rank cannot show both",
            )

    def _refused(self, condition: str, why: str) -> Refused:
        return Refused(condition, self._at, why)

    def _syntax(self, function: FunctionType) -> Syntax:
        try:
            syntax = syntax_of(function)
        except DeclarationError as error:
            raise self._refused("form", str(error)) from None
        self._at = syntax.at(syntax.node)
        return syntax

    # Calls.

    def _call(self, function: FunctionType, given: Sequence[Abstract], named: Mapping[str, Abstract]) -> Abstract:
        if function.__code__ is _plain(_some_ghost_code).__code__:
            function = _plain(inspect.unwrap(function))
        at, node = self._at, self._syntax(function).node
        self._at = at
        arguments = self._bind(node.args, function, given, named)
        if not isinstance(node, ast.Lambda) and any(isinstance(e, ast.Yield) for e in ast.walk(node)):
            return Generated(function, arguments)
        result = self._run(function, arguments)
        self._at = at
        return result

    def _run(
        self,
        function: FunctionType,
        arguments: Mapping[str, Abstract],
        on_yield: Callable[[Abstract], None] | None = None,
    ) -> Abstract:
        syntax = self._syntax(function)
        node = syntax.node
        frame = Frame(syntax, _names_of(function), dict(arguments), on_yield=on_yield)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._refused("form", f"{function.__name__} calls itself")
        if isinstance(node, ast.AsyncFunctionDef):
            raise self._refused("form", "async is not read")
        if isinstance(node, ast.Lambda):
            result = self._value(node.body, frame)
        else:
            live = self._block(node.body, frame)
            returns = [*frame.returns, *([Known(None)] if live else [])]
            result = reduce(join, returns) if returns else Known(None)
        self._depth -= 1
        return result

    def _bind(
        self, spec: ast.arguments, function: FunctionType, given: Sequence[Abstract], named: Mapping[str, Abstract]
    ) -> dict[str, Abstract]:
        if spec.kwarg or spec.posonlyargs:
            raise self._refused("form", f"{function.__name__} takes its arguments in a way that is not read")
        names = [each.arg for each in spec.args]
        bound: dict[str, Abstract] = dict(zip(names, given, strict=False))
        if spec.vararg:
            bound[spec.vararg.arg] = Items(tuple(given[len(names) :]))
        defaults = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
        defaults |= function.__kwdefaults__ or {}
        for name in [*names, *(each.arg for each in spec.kwonlyargs)]:
            if name in named:
                bound[name] = named[name]
            elif name not in bound and name in defaults:
                bound[name] = self._known(defaults[name], name)
            elif name not in bound:
                raise self._refused("form", f"{function.__name__} is called without {name}")
        return bound

    # Statements. Each says whether what follows it can be reached.

    def _block(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        return all(self._statement(each, frame) for each in body)

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        self._see(node, frame)
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Yield(value=value)):
                if frame.on_yield is None or value is None:
                    raise self._refused("form", "this generator is not looped over")
                frame.on_yield(self._value(value, frame))
                return True
            case ast.Expr(value=ast.Call() as called):
                self._value(called, frame)
                return True
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self._value(value, frame), frame)
                return True
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._value(value, frame), frame)
                return True
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if frame.env.get(name) is Mark.GATHERING:
                if not is_truth(self._value(value, frame)):
                    raise self._refused("loop-form", f"{name} gathers what is no condition, 0 or 1")
                return True
            case ast.AugAssign(target=target, op=op, value=value):
                before = self._value(_loaded(target), frame)
                self._assign(target, self._operation(op, before, self._value(value, frame)), frame)
                return True
            case ast.If(test=test, body=body, orelse=orelse):
                return self._branches(self._value(test, frame), body, orelse, frame)
            case ast.For(target=target, iter=iterated, body=body, orelse=[]):
                return self._for(target, self._value(iterated, frame), body, frame)
            case ast.Return(value=value):
                if any(each.ranks for each in frame.loops):
                    raise self._refused("loop-form", "a loop over ranks is left early")
                frame.returns.append(self._value(value, frame) if value else Known(None))
                return False
            case ast.Break() if frame.loops[-1].ranks:
                raise self._refused("loop-form", "a loop over ranks is left early")
            case ast.Break():
                frame.loops[-1].breaks.append(dict(frame.env))
                return False
            case ast.Continue():
                frame.loops[-1].continues.append(dict(frame.env))
                return False
            case _:
                raise self._refused("form", f"`{ast.unparse(node).splitlines()[0]}` is not of a form that is read")

    def _see(self, node: ast.AST, frame: Frame) -> None:
        if isinstance(node, ast.stmt | ast.expr):
            self._at = frame.syntax.at(node)

    def _branches(self, test: Abstract, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: Frame) -> bool:
        truth = self._truth(test)
        if truth is not None:
            return self._block(body if truth else orelse, frame)
        before, ends = dict(frame.env), list[Env]()
        for branch in (body, orelse):
            frame.env = dict(before)
            if self._block(branch, frame):
                ends.append(frame.env)
        frame.env = merge(ends) if ends else before
        return bool(ends)

    def _truth(self, value: Abstract) -> bool | None:
        """What a condition is, if that is known. Refused where it is none."""
        if isinstance(value, Known):
            return bool(value.value)
        if isinstance(value, Items):
            return bool(value.values)
        self._number(value, "a condition")
        return None

    def _assign(self, target: ast.expr, value: Abstract, frame: Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.env[name] = value
            case ast.Tuple(elts=targets):
                values = self._items(value)
                if values is None or len(values) != len(targets):
                    raise self._refused("form", "what is unpacked is no sequence of that length")
                for each, part in zip(targets, values, strict=True):
                    self._assign(each, part, frame)
            case ast.Subscript(value=table, slice=index):
                named = self._value(table, frame)
                if not isinstance(named, Table) or named.name in self._layout.channels:
                    raise self._refused("form", f"`{ast.unparse(target)}` is no cell of the state")
                self._write(named.name, self._indices(self._value(index, frame)), value)
            case ast.Attribute(value=owner, attr=name):
                if self._value(owner, frame) is not Mark.STATE or name not in self._layout.base:
                    raise self._refused("form", f"`{ast.unparse(target)}` is no cell of the state")
                self._write(name, (), value)
            case _:
                raise self._refused("form", f"`{ast.unparse(target)}` is assigned, which is not read")

    # Loops.

    def _for(self, target: ast.expr, iterated: Abstract, body: Sequence[ast.stmt], frame: Frame) -> bool:
        if iterated is Mark.RANKS:
            with_ranks = lambda: self._once(target, Mark.RANK, body, frame)  # noqa: E731
            self._over_ranks(with_ranks, [target, *body], frame)
            return True
        if isinstance(iterated, Many):
            return self._over_many(target, iterated.each, body, frame)
        loop = Loop(ranks=False)
        if isinstance(iterated, Generated):
            self._over_generator(target, iterated, body, frame, loop)
        else:
            frame.loops.append(loop)
            for each in self._some_items(iterated, "what is looped over"):
                if not self._plain_turn(target, each, body, frame, loop):
                    break
            frame.loops.pop()
        frame.env = merge([frame.env, *loop.breaks])
        return True

    def _plain_turn(
        self, target: ast.expr, value: Abstract, body: Sequence[ast.stmt], frame: Frame, loop: Loop
    ) -> bool:
        """One turn of a loop over something else than ranks; whether another one can follow."""
        loop.continues.clear()
        self._assign(target, value, frame)
        ends = [frame.env] if self._block(body, frame) else []
        ends += loop.continues
        if ends:
            frame.env = merge(ends)
        return bool(ends)

    def _once(self, target: ast.expr, value: Abstract, body: Sequence[ast.stmt], frame: Frame) -> None:
        self._assign(target, value, frame)
        self._block(body, frame)

    def _over_many(self, target: ast.expr, value: Abstract, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Any number of turns: what is known must hold however many there were."""
        loop, witnesses = Loop(ranks=False), self._witnesses
        frame.loops.append(loop)
        while True:
            before = dict(frame.env)
            self._plain_turn(target, value, body, frame, loop)
            frame.env = merge([before, frame.env, *loop.breaks])
            if frame.env == before:
                break
        frame.loops.pop()
        if self._witnesses > witnesses:
            self._witnesses += 1  # each turn may ask for another one
        return True

    def _over_generator(
        self, target: ast.expr, made: Generated, body: Sequence[ast.stmt], frame: Frame, loop: Loop
    ) -> None:
        inside, at = self._inside, self._at

        def turn(value: Abstract) -> None:
            if self._inside and not inside:  # the generator is in a loop over ranks, and so is what it yields to
                with_ranks = lambda: self._once(target, value, body, frame)  # noqa: E731
                self._carry(with_ranks, [target, *body], frame)
            else:
                frame.loops.append(loop)
                self._plain_turn(target, value, body, frame, loop)
                frame.loops.pop()

        self._run(_plain(made.called), made.arguments, turn)
        self._at = at

    def _over_ranks(self, turn: Callable[[], None], body: Sequence[ast.AST], frame: Frame) -> None:
        """One turn of a loop over ranks stands for all of them."""
        if self._inside:
            condition = "goal-width" if self._what is Kind.PROPERTY else "loop-form"
            raise self._refused(condition, "a loop over ranks is within another one")
        if self._acting:
            raise self._refused("one-actor", "a step of one rank goes over all ranks")
        self._inside, self._looked_at, self._written = True, set(), {}
        self._carry(turn, body, frame)
        self._inside = False
        for name, _ in self._written:
            if name in self._looked_at:
                raise self._refused("loop-form", f"{name} is written for every rank and looked at in the same loop")
        self._witnesses += len(self._written)

    def _carry(self, turn: Callable[[], None], body: Sequence[ast.AST], frame: Frame) -> None:
        """A turn of a loop over ranks, from which nothing goes on to the next but conditions that are gathered."""
        gathering = gathered(body)
        for name in gathering:
            if not is_truth(frame.env.get(name, Mark.UNSETTLED)):
                raise self._refused("loop-form", f"{name} gathers over ranks, and begins as no condition, 0 or 1")
        after: Env = {name: Data(True) if name in gathering else Mark.UNSETTLED for name in assigned(body)}
        outside = frame.env
        frame.env = {**outside, **after, **dict.fromkeys(gathering, Mark.GATHERING)}
        frame.loops.append(Loop(ranks=True))
        turn()
        frame.loops.pop()
        frame.env = {**outside, **after}
        self._witnesses += len(gathering)

    def _comprehension(
        self, node: ast.GeneratorExp | ast.ListComp, frame: Frame, *, gathers: bool
    ) -> tuple[list[Abstract], bool]:
        """The values of a comprehension, and whether it goes over ranks, which only any and all may."""
        outside, values, over_ranks = dict(frame.env), list[Abstract](), False

        def collect(clauses: Sequence[ast.comprehension]) -> None:
            nonlocal over_ranks
            if not clauses:
                values.append(self._value(node.elt, frame))
                return
            clause = clauses[0]
            iterated = self._value(clause.iter, frame)

            def turn(value: Abstract) -> None:
                self._assign(clause.target, value, frame)
                tests = [self._truth(self._value(each, frame)) for each in clause.ifs]
                if None in tests and not gathers:
                    raise self._refused("form", "how long a list is depends on the state")
                if False not in tests:
                    collect(clauses[1:])

            if iterated is Mark.RANKS and gathers:
                over_ranks = True
                with self._only_asking():
                    self._over_ranks(lambda: turn(Mark.RANK), [clause.target], frame)
            else:
                for each in self._some_items(iterated, "what is looped over"):
                    turn(each)

        collect(node.generators)
        frame.env = outside
        return values, over_ranks

    def _chosen_ranks(self, node: ast.ListComp, frame: Frame) -> Abstract | None:
        """All ranks, where a list of ranks leaves none out; None where it is a list of something else."""
        clause = node.generators[0]
        if len(node.generators) != 1 or self._value(clause.iter, frame) is not Mark.RANKS:
            return None
        outside = dict(frame.env)
        self._assign(clause.target, Mark.RANK, frame)
        with self._only_asking():
            keeps = [self._truth(self._value(each, frame)) for each in clause.ifs]
            same = self._value(node.elt, frame) is Mark.RANK
        frame.env = outside
        if not same or not all(keeps):
            raise self._refused("loop-form", "a list is made of ranks, and some may be left out")
        return Mark.RANKS

    @contextmanager
    def _only_asking(self) -> Generator[None]:
        """Walks what is evaluated so often as it takes for an answer: it has to have no other effect."""
        before, self._asking = self._asking, True
        yield
        self._asking = before

    def _has_effect(self) -> None:
        if self._asking:
            raise self._refused("loop-form", "what asks something of several ranks or messages has another effect")

    # Values.

    def _value(self, node: ast.expr, frame: Frame) -> Abstract:
        self._see(node, frame)
        match node:
            case ast.Constant(value=value):
                return self._known(value, repr(value))
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self._value(owner, frame), name)
            case ast.Subscript(value=owner, slice=index):
                return self._subscript(self._value(owner, frame), self._value(index, frame))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison([left, *others], ops, frame)
            case ast.BoolOp(op=op, values=values):
                return self._shortcut(isinstance(op, ast.And), values, frame)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self._value(operand, frame))
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(op, self._value(left, frame), self._value(right, frame))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = self._truth(self._value(test, frame))
                if truth is not None:
                    return self._value(body if truth else orelse, frame)
                return join(self._value(body, frame), self._value(orelse, frame))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return Items(tuple(self._spread(parts, frame)))
            case ast.ListComp():
                ranks = self._chosen_ranks(node, frame)
                return ranks or Items(tuple(self._comprehension(node, frame, gathers=False)[0]))
            case ast.GeneratorExp():
                return Items(tuple(self._comprehension(node, frame, gathers=False)[0]))
            case ast.Lambda():
                return Code(node, frame)
            case ast.Call():
                return self._called(node, frame)
            case _:
                raise self._refused("form", f"`{ast.unparse(node)}` is not of a form that is read")

    def _spread(self, parts: Sequence[ast.expr], frame: Frame) -> Iterator[Abstract]:
        for each in parts:
            if isinstance(each, ast.Starred):
                yield from self._some_items(self._value(each.value, frame), "what is spread")
            else:
                yield self._value(each, frame)

    def _name(self, name: str, frame: Frame) -> Abstract:
        if name in frame.env:
            value = frame.env[name]
            if value is Mark.UNSETTLED or value is Mark.GATHERING:
                raise self._refused(
                    "loop-form", f"{name} is carried from one rank to the next, or is not always one thing"
                )
            return value
        if name in frame.names:
            return self._known(frame.names[name], name)
        if hasattr(builtins, name):
            return Known(getattr(builtins, name))
        raise self._refused("form", f"{name} is not defined")

    def _known(self, value: Any, name: str) -> Abstract:
        if not _is_constant(value):
            raise self._refused("form", f"{name} is {type(value).__name__}, which is no constant")
        if isinstance(value, tuple):
            return Items(tuple(self._known(each, name) for each in cast(tuple[Any, ...], value)))
        return Known(value)

    def _attribute(self, owner: Abstract, name: str) -> Abstract:
        if owner is Mark.MESSAGE and name in self._parts:
            return Data()
        if isinstance(owner, Wire) and name == "length":
            return self._looks_at(owner.name, owner.shared, Data())
        if owner is Mark.STATE:
            if name == "knobs":
                return self._known(self._model.knobs, "knobs")
            if name in self._layout.tables or name in self._layout.channels:
                return Table(name)
            if name in self._layout.base:
                return self._read(name, ())
        if isinstance(owner, Known) and hasattr(owner.value, name):
            return self._known(getattr(owner.value, name), name)
        raise self._refused("form", f"`.{name}` is not read here")

    def _subscript(self, owner: Abstract, index: Abstract) -> Abstract:
        if isinstance(owner, Table):
            indices = self._indices(index)
            if owner.name in self._layout.channels:
                shape = self._layout.channels[owner.name].shape
                return Wire(owner.name, self._is_shared(owner.name, shape, indices))
            return self._read(owner.name, indices)
        values = self._items(owner)
        if values is None:
            condition = "loop-form" if owner is Mark.RANKS else "form"
            raise self._refused(condition, "one is picked out of what has no order here")
        if isinstance(index, Known) and isinstance(index.value, int) and -len(values) <= index.value < len(values):
            return values[index.value]
        raise self._refused("form", "which one is picked depends on the state")

    def _indices(self, index: Abstract) -> tuple[Abstract, ...]:
        return index.values if isinstance(index, Items) else (index,)

    def _is_shared(self, name: str, shape: Sequence[type[Index]], indices: Sequence[Abstract]) -> bool:
        """Whether a cell belongs to no rank. Refused if it belongs to another rank than the one in hand."""
        if len(shape) != len(indices):
            raise self._refused("form", f"{name} takes {len(shape)} indices")
        for each, index in zip(shape, indices, strict=True):
            if each is self._kind:
                if index is not Mark.RANK:
                    raise self._refused("own-rank", f"{name} is reached for a rank that is not in hand")
            else:
                self._number(index, f"an index of {name}")
        return self._kind not in shape

    def _read(self, name: str, indices: Sequence[Abstract]) -> Abstract:
        shape = self._layout.tables[name].shape if indices else ()
        shared = self._is_shared(name, shape, indices)
        return self._looks_at(name, shared, Data(_is_flag(self._layout.cells[self._layout.base[name]].domain)))

    def _looks_at(self, name: str, shared: bool, value: Data) -> Data:
        if shared and self._inside:
            self._looked_at.add(name)
        return value

    def _write(self, name: str, indices: Sequence[Abstract], value: Abstract) -> None:
        self._has_effect()
        shape = self._layout.tables[name].shape if indices else ()
        shared = self._is_shared(name, shape, indices)
        self._number(value, f"what is written to {name}")
        if not shared or not self._inside:
            return
        if not isinstance(value, Known) or not all(isinstance(each, Known) for each in indices):
            raise self._refused("own-rank", f"{name} belongs to no rank, and is written in a loop over ranks")
        cell = name, tuple(each.value for each in indices if isinstance(each, Known))
        if self._written.setdefault(cell, value.value) != value.value:
            raise self._refused("own-rank", f"{name} is written with several values in a loop over ranks")

    def _number(self, value: Abstract, what: str) -> None:
        """Refused unless a value is a number that is no rank."""
        if value is Mark.RANK or value is Mark.RANKS:
            raise self._refused("no-rank-values", f"{what} is a rank; ranks are only there to name what they keep")
        if not is_number(value):
            raise self._refused("form", f"{what} is no number")

    def _numbers(self, values: Sequence[Abstract], what: str) -> None:
        for each in values:
            self._number(each, what)

    def _comparison(self, nodes: Sequence[ast.expr], ops: Sequence[ast.cmpop], frame: Frame) -> Abstract:
        values = [self._value(each, frame) for each in nodes]
        if any(each is Mark.RANK or each is Mark.RANKS for each in values):
            raise self._refused("no-rank-values", "a rank is compared")
        results: list[Abstract] = []
        for op, (left, right) in zip(ops, pairwise(values), strict=True):
            known = [self._plain_value(each) for each in (left, right)]
            if all(each is not None for each in known):
                results.append(Known(self._compute(OPERATORS[type(op)], *(each.value for each in known if each))))
                continue
            if isinstance(op, ast.Is | ast.IsNot):
                raise self._refused("form", "`is` compares what the state decides; use ==")
            if isinstance(op, ast.In | ast.NotIn):
                self._numbers(self._some_items(right, "what is looked through"), "a value that is compared")
                self._number(left, "a value that is compared")
            else:
                self._numbers([left, right], "a value that is compared")
            results.append(Data(True))
        if all(isinstance(each, Known) for each in results):
            return Known(all(each.value for each in results if isinstance(each, Known)))
        return Known(False) if any(self._plain_is_false(each) for each in results) else Data(True)

    def _plain_is_false(self, value: Abstract) -> bool:
        return isinstance(value, Known) and not value.value

    def _plain_value(self, value: Abstract) -> Known | None:
        """The value as plain Python, if all of it is known."""
        if isinstance(value, Known):
            return value
        if isinstance(value, Items):
            parts = [self._plain_value(each) for each in value.values]
            return None if None in parts else Known(tuple(each.value for each in parts if each))
        return None

    def _shortcut(self, both: bool, nodes: Sequence[ast.expr], frame: Frame) -> Abstract:
        possible: list[Abstract] = []
        last: Abstract = Known(both)
        for node in nodes:
            last = self._value(node, frame)
            truth = self._truth(last)
            if truth is None:
                possible.append(last)
            elif truth is not both:
                break
        return reduce(join, possible, last)

    def _unary(self, op: ast.unaryop, value: Abstract) -> Abstract:
        if isinstance(op, ast.Not):
            truth = self._truth(value)
            return Data(True) if truth is None else Known(not truth)
        self._number(value, "an operand")
        if not isinstance(op, ast.USub):
            raise self._refused("form", "this operator is not read")
        return Known(-value.value) if isinstance(value, Known) else Data()

    def _operation(self, op: ast.operator, left: Abstract, right: Abstract) -> Abstract:
        if type(op) not in OPERATORS:
            raise self._refused("form", "this operator is not read")
        first, second = self._items(left), self._items(right)
        if isinstance(op, ast.Add) and first is not None and second is not None:
            return Items((*first, *second))
        self._numbers([left, right], "an operand")
        if isinstance(left, Known) and isinstance(right, Known):
            return Known(self._compute(OPERATORS[type(op)], left.value, right.value))
        return Data(isinstance(op, GATHERS) and is_truth(left) and is_truth(right))

    def _items(self, value: Abstract) -> Sequence[Abstract] | None:
        if isinstance(value, Items):
            return value.values
        if isinstance(value, Known) and isinstance(value.value, range):
            if len(value.value) > LONGEST:
                raise self._refused("form", f"a loop has more than {LONGEST:,} turns")
            return [Known(each) for each in value.value]
        return None

    def _some_items(self, value: Abstract, what: str) -> Sequence[Abstract]:
        values = self._items(value)
        if value is Mark.RANKS:
            raise self._refused("loop-form", "ranks are gone over in another way than by a loop of its own")
        if values is None:
            raise self._refused("form", f"{what} is not known here")
        return values

    # Calls within expressions.

    def _called(self, node: ast.Call, frame: Frame) -> Abstract:
        if isinstance(node.func, ast.Attribute):
            owner = self._value(node.func.value, frame)
            if owner is Mark.STATE and node.func.attr in ("all", "size", "choose"):
                return self._asked(node.func.attr, self._arguments(node, frame))
            if isinstance(owner, Wire):
                return self._on_wire(owner, node, frame)
        callee = self._value(node.func, frame)
        if isinstance(callee, Known) and (callee.value is any or callee.value is all) and len(node.args) == 1:
            return self._any_or_all(callee.value, node.args[0], frame)
        if isinstance(callee, Known) and callee.value is require:
            return self._require(node, frame)
        if isinstance(callee, Known) and callee.value is claim:
            return self._claim(node, frame)
        given, named = self._arguments(node, frame), self._named(node, frame)
        self._see(node, frame)
        if isinstance(callee, Code):
            return self._apply(callee, given)
        if not isinstance(callee, Known):
            raise self._refused("form", f"`{ast.unparse(node.func)}` is called, which is not read")
        function = callee.value
        if isinstance(function, FunctionType):
            return self._call(function, given, named)
        if isinstance(function, type) and issubclass(function, Message):
            return Mark.MESSAGE
        if isinstance(function, type) and issubclass(function, Enum) and len(given) == 1:
            self._number(given[0], "what is called by a name")
            return given[0]
        return self._builtin(function, given, named, node)

    def _arguments(self, node: ast.Call, frame: Frame) -> list[Abstract]:
        values: list[Abstract] = []
        for each in node.args:
            if isinstance(each, ast.Dict):
                # Only a message is made of one.
                self._numbers([self._value(part, frame) for part in each.values], "part of a message")
                values.append(Mark.MESSAGE)
            else:
                values += self._spread([each], frame)
        return values

    def _named(self, node: ast.Call, frame: Frame) -> dict[str, Abstract]:
        if any(each.arg is None for each in node.keywords):
            raise self._refused("form", "** is not read")
        return {each.arg: self._value(each.value, frame) for each in node.keywords if each.arg}

    def _asked(self, what: str, given: Sequence[Abstract]) -> Abstract:
        asked = given[0] if len(given) == 1 else Known(None)
        index = _index_type(asked)
        if asked is Mark.RANKS or index is self._kind:
            return self._asked_of_ranks(what)
        if what == "size" and index:
            return Known(self._model.sizes[index])
        if index and self._model.sizes[index] == UNBOUNDED:
            raise self._refused("form", f"there is no end of {index.__name__}")
        if what == "all" and index:
            return Known(range(self._model.sizes[index]))
        if what != "choose":
            raise self._refused("form", f"{what} is asked of something that is no index type")
        if self._inside:
            raise self._refused("loop-form", "something is chosen in a loop over ranks")
        options = self._some_items(Known(range(self._model.sizes[index])) if index else asked, "what is chosen from")
        self._numbers(options, "an option")
        return Data(all(map(is_truth, options)))

    def _asked_of_ranks(self, what: str) -> Abstract:
        if what == "all":
            return Mark.RANKS
        if what == "size":
            raise self._refused("no-rank-values", "it matters how many ranks there are")
        raise self._refused("no-rank-values", "a rank is chosen; make it a parameter of the step")

    def _on_wire(self, wire: Wire, node: ast.Call, frame: Frame) -> Abstract:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method not in (*READING, *CHANGING):
            raise self._refused("form", f"`.{method}` of a channel is not read")
        given, named = self._arguments(node, frame), self._named(node, frame)
        self._see(node, frame)
        if method in CHANGING:
            self._has_effect()
        if method in CHANGING and wire.shared and self._inside:
            raise self._refused("own-rank", f"{wire.name} belongs to no rank, and is changed in a loop over ranks")
        self._looks_at(wire.name, wire.shared, Data())
        self._numbers(list(named.values()), "part of a message")
        if method in ("some", "count"):
            (test,) = given
            if not isinstance(test, Code):
                raise self._refused("form", f"`.{method}` takes a lambda here")
            witnesses = self._witnesses
            with self._only_asking():
                answer = self._apply(test, [Mark.MESSAGE])
            if self._witnesses > witnesses:
                raise self._refused("one-witness", "it is asked of each message whether some rank is so")
            if not is_truth(answer):
                raise self._refused("form", "the test of a message is no condition, 0 or 1")
            return Data(method == "some")
        self._numbers(given, "a place in a channel")
        return {"waiting": Many(Mark.MESSAGE), "peek": Mark.MESSAGE, "receive": Mark.MESSAGE}.get(method, Known(None))

    def _apply(self, code: Code, given: Sequence[Abstract]) -> Abstract:
        names = [each.arg for each in code.node.args.args]
        if len(names) != len(given) or code.node.args.defaults:
            raise self._refused("form", "this lambda is not read")
        outer, arguments = code.frame, dict(zip(names, given, strict=True))
        return self._value(code.node.body, Frame(outer.syntax, outer.names, {**outer.env, **arguments}))

    def _any_or_all(self, which: Any, node: ast.expr, frame: Frame) -> Abstract:
        asked_of_each, self._asked_of_each = which is all and self._asked_of_each, False
        if not isinstance(node, ast.GeneratorExp | ast.ListComp):
            values, over_ranks = list(self._some_items(self._value(node, frame), "what is asked")), False
        else:
            values, over_ranks = self._comprehension(node, frame, gathers=True)
        self._witnesses += over_ranks and not asked_of_each
        truths = [self._truth(each) for each in values]
        if None in truths or over_ranks:
            return Data(True)
        return Known(which(truths))

    def _require(self, node: ast.Call, frame: Frame) -> Abstract:
        if self._what is Kind.PROPERTY:
            raise self._refused("form", "a property requires nothing; it claims")
        # `require(all(... for rank in ranks))` asks something of each rank: where it holds, nobody else is needed.
        first = node.args[0] if node.args else None
        self._asked_of_each = isinstance(first, ast.Call) and self._value(first.func, frame) == Known(all)
        (condition,) = self._arguments(node, frame)
        self._asked_of_each = False
        self._has_effect()
        self._truth(condition)
        return Known(None)

    def _claim(self, node: ast.Call, frame: Frame) -> Abstract:
        if self._what is not Kind.PROPERTY or len(node.args) != 2 or not isinstance(node.args[1], ast.Constant):
            raise self._refused("form", "claim(condition, text) is for properties, and the text is plain")
        self._has_effect()
        self._truth(self._value(node.args[0], frame))
        self._named(node, frame)  # shown, and nothing is decided by it: it may be a rank
        return Known(None)

    def _builtin(
        self, function: Any, given: Sequence[Abstract], named: Mapping[str, Abstract], node: ast.Call
    ) -> Abstract:
        if any(each is Mark.RANK or each is Mark.RANKS for each in given):
            raise self._refused("loop-form", f"`{ast.unparse(node)}` makes something of ranks")
        if function not in PURE or named:
            raise self._refused("form", f"`{ast.unparse(node.func)}` is called, which is not read")
        if function is enumerate and isinstance(given[0], Many):
            return Many(Items((Data(), given[0].each)))
        known = [self._plain_value(each) for each in given]
        if all(each is not None for each in known):
            return self._from_python(self._compute(function, *(each.value for each in known if each)))
        if function in NUMBERS:
            self._numbers(given, "an argument")
            return Data(function is bool)
        raise self._refused("form", f"`{ast.unparse(node)}` is not read")

    def _compute(self, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self._refused("form", str(error)) from None

    def _from_python(self, result: Any) -> Abstract:
        if isinstance(result, int | range):
            return Known(result)
        return Items(tuple(self._from_python(each) for each in result))


def _plain(function: Callable[..., Any]) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise Refused("form", repr(function), "this is no plain function")
    return function


def _index_type(value: Abstract) -> type[Index] | None:
    """The index type that a value is, if it is one."""
    kind: object = value.value if isinstance(value, Known) else None
    return kind if isinstance(kind, type) and issubclass(kind, Index) else None


def _loaded(target: ast.expr) -> ast.expr:
    """What an assignment assigns to, as an expression."""
    return ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)


def _names_of(function: FunctionType) -> Mapping[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return ChainMap({name: cell.cell_contents for name, cell in cells}, function.__globals__)


def _is_flag(domain: Domain) -> bool:
    return domain.lo >= 0 and domain.hi <= 1


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, cast(tuple[Any, ...], value)))
    if is_dataclass(value) and not isinstance(value, type):
        return bool(value.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    plain = int | str | float | None | Enum | type | range | FunctionType | ModuleType
    return isinstance(value, plain) or any(value is each for each in (*PURE, any, all))
