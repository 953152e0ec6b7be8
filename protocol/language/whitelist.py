"""What a step or a property may be written with, so that it means the same in every execution.

The same function runs on integers, and on symbolic values that stand for them. Most of Python means the same for both,
since it asks a value for its sum or its truth, and the value answers. What looks past that (`is`, the type of a value,
its text), what catches a refusal, and what lives outside the state would not. So the source of each function, and of
whatever it calls, is read when the model is made, and what is not known to mean the same is refused.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import itertools
import operator
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, NoReturn, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

from .domain import Index, NoValue
from .errors import DeclarationError
from .sources import FunctionNode, Syntax, syntax_of
from .state import FieldSpec, State

F = TypeVar("F", bound=Callable[..., Any])
Function = types.FunctionType

STATEMENTS: tuple[type[ast.AST], ...] = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.Break, ast.Continue,
    ast.Return, ast.Pass, ast.FunctionDef, ast.Match,
)  # fmt: skip
EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.IfExp, ast.Lambda, ast.Tuple, ast.List, ast.Dict,
    ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Subscript, ast.Slice, ast.Attribute,
    ast.Name, ast.Constant, ast.NamedExpr, ast.Starred, ast.Yield, ast.YieldFrom, ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
PARTS: tuple[type[ast.AST], ...] = (
    ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.comprehension, ast.arguments, ast.arg,
    ast.keyword, ast.match_case, ast.MatchValue, ast.MatchOr, ast.MatchAs, ast.MatchSequence, ast.MatchStar,
)  # fmt: skip

ALLOWED: tuple[type[ast.AST], ...] = (*STATEMENTS, *EXPRESSIONS, *PARTS)

_COMPARE = "compare with == or !="
_MEANT = "write require(...), claim(...), or an assignment"
REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Is: ("`is` compares objects, not values", _COMPARE),
    ast.IsNot: ("`is not` compares objects, not values", _COMPARE),
    ast.MatchSingleton: ("`case` with True, False or None compares objects, not values", "write the number, or an if"),
    ast.MatchClass: ("`case` with a class looks at the type of a value", "compare values with =="),
    ast.MatchMapping: ("`case` with a dictionary looks values up", "compare values with =="),
    ast.While: ("a while loop may never end", "write for ... in range(), and break"),
    ast.Try: ("try would hide what the language refuses", "ask with if before, or use require()"),
    ast.With: ("with runs code that may hide what the language refuses", "write the step without it"),
    ast.Raise: ("raise is no part of the language", "use require() for a guard, or claim() in a property"),
    ast.Assert: ("assert is no part of the language", "use require() for a guard, or claim() in a property"),
    ast.Global: ("what lives outside the state is not part of it", "make it a field"),
    ast.Nonlocal: ("a function may not change the variables of another", "return the value"),
    ast.Import: ("a step may not import", "import at the top of the module"),
    ast.ImportFrom: ("a step may not import", "import at the top of the module"),
    ast.ClassDef: ("a step may not declare a class", "declare it at the top of the module"),
    ast.Delete: ("del is no part of the language", "assign the value that the field begins with"),
    ast.Set: ("a set has no order", "use a tuple"),
    ast.SetComp: ("a set has no order", "use a tuple or a list"),
    ast.Div: ("/ gives a fraction", "the language has whole numbers: multiply the other side"),
    ast.MatMult: ("@ is no part of the language", "use + - *"),
}

_SIGNS: Mapping[type[ast.AST], str] = {
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitXor: "^",
    ast.Invert: "~",
}  # fmt: skip
NOT_OF_FIELDS = tuple(_SIGNS)
"""What fields have no sign for; between numbers that are not of the state it is Python's own."""
_ARITHMETIC = "it has + - * and comparisons; count in a field of its own, or write a table of cases"

DENIED = frozenset({
    "layout", "values", "access", "events", "choices", "choice_names", "labels", "read", "write", "accessing", "parts",
    "graph", "operation", "operands", "lo", "hi", "uid",
    "real", "imag", "numerator", "denominator", "conjugate", "bit_length", "bit_count", "to_bytes", "from_bytes",
    "as_integer_ratio", "is_integer", "function",
})  # fmt: skip
"""Attributes that only one of the executions has, or that are the language's own."""

CALLABLES: frozenset[object] = frozenset(
    getattr(module, name)
    for module, names in (
        (builtins, "range len min max sum any all abs bool int tuple list dict"),
        (builtins, "enumerate zip reversed sorted map filter"),
        (itertools, "chain pairwise product combinations permutations"),
        (operator, "add sub mul and_ or_ eq ne lt le gt ge not_"),
        (functools, "reduce"),
        (typing, "cast"),
    )
    for name in names.split()
)
"""What may be called besides the language and functions that are read themselves."""

_LISTED = "docs/language.md lists what may be called"
INSTEAD: Mapping[object, str] = {
    isinstance: _COMPARE, type: _COMPARE, id: _COMPARE, hash: _COMPARE, callable: _COMPARE,
    hasattr: "name the field", getattr: "name the field, or index a field by a value",
    setattr: "name the field, or index a field by a value", print: "claim() shows values, and so does every trace",
    float: "the language has whole numbers only", round: "the language has whole numbers only",
    set: "use a tuple", frozenset: "use a tuple",
}  # fmt: skip
"""What to write instead of what may not be called."""

_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_machinery: WeakSet[Callable[..., Any]] = WeakSet()
_reading: set[type] = set()
_passed: WeakKeyDictionary[Function, bool] = WeakKeyDictionary()
_calls: WeakKeyDictionary[Function, WeakKeyDictionary[Function, bool]] = WeakKeyDictionary()


def machinery(function: F) -> F:
    """Marks what belongs to the checker, and is written for integers and symbolic values alike: it is not read."""
    _machinery.add(function)
    return function


def require_language(function: Callable[..., Any], where: str) -> None:
    """Reads a function and all that it calls. Raises DeclarationError for what is outside the language.

    `where` names the step or property. The message says what is wrong, in which file and line, and what to write.
    """
    if not isinstance(function, Function):
        raise DeclarationError(f"{where}: it is {function!r}; write it as a function, with def or lambda")
    try:
        _read_all([function])
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error}") from None


def require_constant(value: object, where: str) -> None:
    """Raises DeclarationError unless a value, with all that it is made of, can never change."""
    waiting: list[Function] = []
    problem = _problem(value, waiting)
    if problem:
        raise DeclarationError(f"{where}: {problem}")
    try:
        _read_all(waiting)
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error}") from None


def require_methods(owner: type, where: str) -> None:
    """Reads the methods and properties that a class declares, and what its objects share; its bases included."""
    waiting = list(_methods(owner))
    if problem := _problem_of_shared(owner, waiting):
        raise DeclarationError(f"{where}: {problem}")
    try:
        _read_all(waiting)
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error}") from None


def calls(function: Function, sought: Function) -> bool:
    """Whether a function that is in the language calls another, itself or by one that it calls.

    Of the checker's own, which is not read, it is taken to be so.
    """
    known = _calls.setdefault(function, WeakKeyDictionary())
    if sought not in known:
        known[sought] = _is_machinery(function) or _reaches(function, sought)
    return known[sought]


def _reaches(function: Function, sought: Function) -> bool:
    waiting, seen = [function], set[Function]()
    while waiting:
        each = waiting.pop()
        if each is sought:
            return True
        if each not in seen and not _is_machinery(each):
            waiting.extend(_Reader(each).read())
        seen.add(each)
    return False


def _read_all(waiting: list[Function]) -> None:
    seen: set[Function] = set()
    while waiting:
        function = waiting.pop()
        if function in seen or function in _passed:
            continue
        seen.add(function)
        if _is_machinery(function):
            wrapped = vars(function).get("__wrapped__")
            if isinstance(wrapped, Function):
                waiting.append(wrapped)
            continue
        waiting.extend(_Reader(function).read())
    for function in seen:
        _passed[function] = True


def _is_machinery(function: Function) -> bool:
    module = str(function.__globals__.get("__name__", ""))
    return function in _machinery or module == __package__ or module.startswith(f"{__package__}.")


def _methods(owner: type) -> Iterator[Function]:
    for base in owner.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, property):
                value = value.fget
            if isinstance(value, classmethod | staticmethod):
                value = cast("object", value.__func__)  # pyright: ignore[reportUnknownMemberType]
            shows = issubclass(owner, Index) and name == "label"  # for people only
            if isinstance(value, Function) and not (shows or _is_generated(value)):
                yield value


def _is_generated(function: Function) -> bool:
    """Whether a class has a function from Python itself: enum, dataclasses, typing."""
    made = function.__code__.co_filename.startswith("<")
    return made or _is_standard(str(function.__globals__.get("__name__", "")))


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _problem(value: object, waiting: list[Function]) -> str:
    """Why a value from outside the state cannot be used, or an empty string. Its functions are added to `waiting`."""
    kind = type(value).__name__
    if value is None or type(value) in (bool, int, str, range):
        return ""
    if isinstance(value, Function):
        return _problem_of_function(value, waiting)
    if isinstance(value, type):
        return _problem_of_class(value, waiting)
    if isinstance(value, types.MethodType | types.BuiltinFunctionType):
        known = value in CALLABLES if isinstance(value, types.BuiltinFunctionType) else False
        return "" if known else f"{value.__qualname__} is no part of the language; {INSTEAD.get(value, _LISTED)}"
    if isinstance(value, tuple | Enum | Index):
        return _problem_of_instance(cast(object, value), waiting)
    if type(value) in _machinery:
        return ""
    if isinstance(value, float | complex):
        return f"{value!r} is no whole number; the language has whole numbers only"
    if is_dataclass(value):
        if not _is_frozen(type(value)):
            return f"{_a(kind)} can change; declare it with @dataclass(frozen=True)"
        # What made it has run already, and runs in no step.
        waiting.extend(each for each in _methods(type(value)) if each.__name__ != "__post_init__")
        for each in fields(value):
            found = _problem(getattr(value, each.name), waiting)
            if found:
                return f"{each.name} of {kind}: {found}"
        return _problem_of_class(type(value), waiting) or _problem_of_more(value, {each.name for each in fields(value)})
    if isinstance(value, set | frozenset):
        return f"{_a(kind)} has no order; use a tuple"
    if isinstance(value, list | dict):
        return f"{_a(kind)} from outside the state can change; use a tuple, or make it a field"
    return f"{_a(kind)} is no part of the language; use whole numbers, tuples, enumerations, functions"


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _problem_of_instance(value: object, waiting: list[Function]) -> str:
    """The same of a tuple, a member of an enumeration or an index: of what it is made of, and of its class."""
    kind: type = type(value)
    if isinstance(value, Enum) and (found := _problem(cast(object, value.value), waiting)):
        return f"{value.name} of {kind.__name__}: {found}"
    for member in cast("tuple[object, ...]", value) if isinstance(value, tuple) else ():
        if found := _problem(member, waiting):
            return found
    if kind is tuple:
        return ""
    own = {"_value_", "_name_", "__objclass__", "_sort_order_"} if isinstance(value, Enum) else set[str]()
    return _problem_of_class(kind, waiting) or _problem_of_more(cast(object, value), own)


def _problem_of_more(value: object, known: set[str]) -> str:
    """What an object has been given besides what its class declares can change."""
    more = sorted(getattr(value, "__dict__", {}).keys() - known)
    return f"{more[0]} of {type(value).__name__} can change; declare it in the class" if more else ""


def _is_frozen(kind: type) -> bool:
    return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _problem_of_function(value: Function, waiting: list[Function]) -> str:
    if value in CALLABLES:
        return ""
    module = str(value.__globals__.get("__name__", ""))
    if _is_standard(module) and not _is_machinery(value):
        return f"{module}.{value.__qualname__} is no part of the language; {_LISTED}"
    if more := sorted(vars(value).keys() - {"__wrapped__"}):
        return f"{more[0]} of {value.__name__} lives outside the state; make it a field"
    waiting.append(value)
    return ""


def _problem_of_class(value: type, waiting: list[Function]) -> str:
    if value in CALLABLES:
        return ""
    owner: type[Any] = value
    record = issubclass(owner, tuple) or (is_dataclass(owner) and _is_frozen(value))
    if value in INSTEAD:
        return f"{value.__name__} is no part of the language; {INSTEAD[value]}"
    if not (record or issubclass(owner, Enum | Index | NoValue)):
        return f"{value.__name__} is no part of the language; a NamedTuple or a frozen dataclass holds several values"
    if value in _reading:  # a class may hold objects of its own, as every enumeration does
        return ""
    _reading.add(value)
    try:
        waiting.extend(each for each in _methods(value) if each.__name__ != "__post_init__")
        members = cast("Iterable[Enum]", value) if issubclass(owner, Enum) else ()
        found = next((found for each in members if (found := _problem(each, waiting))), "")
        return found or _problem_of_shared(value, waiting)
    finally:
        _reading.discard(value)


def _problem_of_shared(owner: type, waiting: list[Function]) -> str:
    """Why what all objects of a class have in common cannot be used, or an empty string."""
    for base in owner.__mro__:
        if base.__module__ == "builtins" or _is_standard(base.__module__):
            continue
        for name, shared in _shared(base):
            found = _problem(shared, waiting)
            if found:
                return f"{name} of {base.__name__}: {found}"
    return ""


def _shared(owner: type) -> Iterator[tuple[str, object]]:
    """What all objects of a class have in common, but for functions and what is declared for the state."""
    for name, value in cast("Mapping[str, object]", vars(owner)).items():
        kind = type(value)
        declared = kind.__module__.startswith(__package__ or "?") or kind in _READ or isinstance(value, owner)
        if not (name.startswith("_") or declared):
            yield name, value


class _Pair(typing.NamedTuple):
    first: int


_READ = (
    Function, property, classmethod, staticmethod,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
    enum.property, type(_Pair.first),
)  # fmt: skip
"""What a class has that is read as a method, or is a slot."""


@dataclass(frozen=True)
class _Outside:
    """What a name or a dotted name stands for that the function finds outside itself."""

    value: object


class _Reader:
    """Reads one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._syntax: Syntax = syntax_of(function)
        self._waiting: list[Function] = []
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._closure = dict(cells)
        arguments = [each for each in ast.walk(self._syntax.node) if isinstance(each, ast.arg)]
        self._states = {each.arg: kind for each in arguments if (kind := self._state_of(each))}

    def read(self) -> list[Function]:
        """The functions that it uses. Raises DeclarationError for what is outside the language."""
        function, node = self._function, self._syntax.node
        if isinstance(node, ast.AsyncFunctionDef):
            self._refuse(node, "an async function is no part of the language", "write it with def")
        for name, value in self._defaults(function):
            self._use(node, name, value)
        self._body(node, frozenset())
        return self._waiting

    def _defaults(self, function: Function) -> Iterator[tuple[str, object]]:
        for value in function.__defaults__ or ():
            yield "a default", value
        yield from (function.__kwdefaults__ or {}).items()

    def _body(self, node: FunctionNode, outer: frozenset[str]) -> None:
        """The body of this function, or of one within it; `outer` are the names of the functions around it."""
        names = outer | _bound_in(node)
        for each in node.body if isinstance(node.body, list) else [node.body]:
            self._visit(each, names)

    def _visit(self, node: ast.AST, names: frozenset[str]) -> None:
        refused = REFUSED.get(type(node))
        if refused:
            self._refuse(node, *refused)
        if not isinstance(node, ALLOWED):
            self._refuse(
                node, f"{type(node).__name__} is no part of the language", "write it with what docs/language.md has"
            )
        match node:
            case ast.FunctionDef():
                if node.decorator_list:
                    self._refuse(node, "a function within a step has no decorator", "write it without one")
                self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)], names)
                self._body(node, names)
            case ast.Lambda():
                self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)], names)
                self._body(node, names)
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, names)
            case ast.AnnAssign():
                self._visit_all([node.target, *([node.value] if node.value else [])], names)
            case ast.Constant():
                self._constant(node)
            case ast.Name() | ast.Attribute():
                self._name(node, names)
            case ast.Expr():
                self._statement(node.value, names)
            case ast.Compare():
                self._compare(node, names)
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str()) | ast.JoinedStr()):
                self._refuse(node, "the text of a value is not the same in every execution", "compare the value itself")
            case ast.BinOp():
                self._arithmetic(node, node.op, (node.left, node.right))
                self._visit_all(ast.iter_child_nodes(node), names)
            case ast.AugAssign():
                self._arithmetic(node, node.op, (node.target, node.value))
                self._visit_all(ast.iter_child_nodes(node), names)
            case ast.UnaryOp():
                self._arithmetic(node, node.op, (node.operand,))
                self._visit_all(ast.iter_child_nodes(node), names)
            case ast.Call():
                called = self._outside(node.func, names)
                if called and isinstance(called.value, type) and issubclass(called.value, Enum):
                    self._refuse(node, f"{ast.unparse(node.func)}() looks a value up", _COMPARE)
                self._visit_all(ast.iter_child_nodes(node), names)
            case ast.FormattedValue() if node.conversion != -1:
                self._refuse(node, "the text of a value is not the same in every execution", "give claim() the value")
            case ast.Subscript() if isinstance(node.ctx, ast.Store):
                if self._outside(node.value, names) is not None:
                    self._refuse(node, "what lives outside the state is not part of it", "make it a field")
                self._visit_all(ast.iter_child_nodes(node), names)
            case _:
                self._visit_all(ast.iter_child_nodes(node), names)

    def _comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp, names: frozenset[str]) -> None:
        """What is gone through first is found outside the comprehension, whatever names it binds."""
        first, *others = node.generators
        self._visit(first.iter, names)
        inner = names | _bound_in(node)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_all([first.target, *first.ifs, *others, *results], inner)

    def _visit_all(self, nodes: Any, names: frozenset[str]) -> None:
        for each in nodes:
            self._visit(each, names)

    def _constant(self, node: ast.Constant) -> None:
        if not (node.value is None or isinstance(node.value, bool | int | str)):
            self._refuse(node, f"{node.value!r} is no whole number", "the language has whole numbers only")

    def _statement(self, node: ast.expr, names: frozenset[str]) -> None:
        """An expression alone on its line: a call, or it does nothing, where something was probably meant."""
        called = self._outside(node.func, names) if isinstance(node, ast.Call) else None
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if not isinstance(node, ast.Call | ast.Yield | ast.YieldFrom) and not text:
            self._refuse(node, "a value alone on its line does nothing", _MEANT)
        if called and isinstance(called.value, Hashable) and called.value in CALLABLES:
            self._refuse(node, f"{ast.unparse(node)} alone on its line does nothing", _MEANT)
        self._visit(node, names)

    def _compare(self, node: ast.Compare, names: frozenset[str]) -> None:
        for operand, compared in zip(node.ops, node.comparators, strict=True):
            self._locate_and_visit(operand, node, names)
            found = self._outside(compared, names)
            if any(isinstance(each, ast.Constant) and each.value is None for each in (node.left, compared)):
                self._refuse(node, "None is no value of a field", "a `maybe` field that points at nothing is NONE")
            if isinstance(operand, ast.In | ast.NotIn) and found and isinstance(found.value, type):
                self._refuse(node, "`in` with a class looks values up", "compare with == or with a tuple")
        self._visit_all([node.left, *node.comparators], names)

    def _locate_and_visit(self, part: ast.AST, at: ast.AST, names: frozenset[str]) -> None:
        refused = REFUSED.get(type(part))
        if refused:
            self._refuse(at, *refused)

    def _name(self, node: ast.Name | ast.Attribute, names: frozenset[str]) -> None:
        if isinstance(node, ast.Name) and (node.id in names or isinstance(node.ctx, ast.Store)):
            return
        found = self._outside(node, names)
        if found is not None:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self._refuse(node, "what lives outside the state is not part of it", "make it a field")
            self._use(node, ast.unparse(node), found.value)
            return
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            self._field(node)
        assert isinstance(node, ast.Attribute), "a name that is not bound here is found outside, or refused"
        if node.attr.startswith("_") or (node.attr in DENIED and not _is_of_knobs(node.value)):
            self._refuse(node, f".{node.attr} is no part of the language", "look at the fields of the state")
        self._visit(node.value, names)

    def _field(self, node: ast.Attribute) -> None:
        """Only the state's fields are assigned: what is called by another name may live outside it."""
        if not (isinstance(node.value, ast.Name) and node.value.id in self._states):
            self._refuse(
                node, f"{ast.unparse(node)} may be no field", "annotate the state it is assigned in with its class"
            )

    def _state_of(self, argument: ast.arg) -> type[State[Any]] | None:
        """The class of the state that an argument is, if it is one."""
        hint = argument.annotation
        if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
            hint = ast.parse(hint.value, mode="eval").body
        if isinstance(hint, ast.Subscript):
            hint = hint.value
        found: object = None
        if isinstance(hint, ast.Name):
            found = self._function.__globals__.get(hint.id)
        elif isinstance(hint, ast.Attribute) and isinstance(hint.value, ast.Name):
            found = getattr(self._function.__globals__.get(hint.value.id), hint.attr, None)
        return cast("type[State[Any]]", found) if isinstance(found, type) and issubclass(found, State) else None

    def _arithmetic(self, node: ast.AST, operation: ast.AST, operands: Iterable[ast.expr]) -> None:
        """Refuses what a field has no sign for, where it can be seen that it is one; the tracer sees the rest."""
        cells = [found for each in operands if (found := self._cell(each)) is not None]
        if not cells:
            return
        if isinstance(operation, NOT_OF_FIELDS):
            self._refuse(node, f"{_SIGNS[type(operation)]} on a field is no part of the language", _ARITHMETIC)
        if isinstance(operation, ast.BitOr | ast.BitAnd) and any(each.domain.counts for each in cells):
            self._refuse(node, "& and | join truth values, and this is a number", "compare it first: (s.x == 1) | ...")

    def _cell(self, node: ast.expr) -> FieldSpec | None:
        """The declared field that an expression reads, if it plainly does: `s.x`, `s.x[i]`."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return None
        owner = self._states.get(node.value.id)
        for base in owner.__mro__ if owner else ():
            declared = vars(base).get(node.attr)
            if isinstance(declared, FieldSpec):
                return declared
        return None

    def _outside(self, node: ast.AST, names: frozenset[str]) -> _Outside | None:
        """What a name, or a dotted one, stands for outside the function; None if it is the function's own."""
        if isinstance(node, ast.Name):
            return None if node.id in names else _Outside(self._look_up(node))
        if not isinstance(node, ast.Attribute):
            return None
        base = self._outside(node.value, names)
        if base is None:
            return None
        if not isinstance(base.value, types.ModuleType):
            self._use(node, ast.unparse(node.value), base.value)
        if isinstance(base.value, Function):
            self._refuse(node, "what lives outside the state is not part of it", "make it a field")
        if not isinstance(base.value, types.ModuleType | type | Enum) and not is_dataclass(base.value):
            return None
        if node.attr.startswith("_") or node.attr in DENIED:
            self._refuse(node, f".{node.attr} is no part of the language", "use what has a plain name")
        try:
            return _Outside(getattr(base.value, node.attr))
        except AttributeError:
            self._refuse(node, f"there is no {ast.unparse(node)}", "name what is there")

    def _look_up(self, node: ast.Name) -> object:
        name = node.id
        try:
            if name in self._closure:
                return self._closure[name].cell_contents
            return self._function.__globals__[name] if name in self._function.__globals__ else getattr(builtins, name)
        except (AttributeError, ValueError):
            self._refuse(node, f"{name} is not defined", "define it above the model")

    def _use(self, node: ast.AST, name: str, value: object) -> None:
        if isinstance(value, types.ModuleType):
            self._refuse(node, f"{name} is a module", "name what you use of it")
        problem = _problem(value, self._waiting)
        if problem:
            self._refuse(node, problem if name in problem else f"{name}: {problem}", "")

    def _refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        raise DeclarationError(f"{self._syntax.at(node)}: {what}" + (f"; {instead}" if instead else ""))


def _is_of_knobs(node: ast.AST) -> bool:
    """Whether something is `s.knobs`, or of it: a model names its knobs as it likes."""
    return isinstance(node, ast.Attribute) and (node.attr == "knobs" or _is_of_knobs(node.value))


def _bound_in(node: ast.AST) -> frozenset[str]:
    """The names that a function or comprehension binds itself, without those bound within inner ones."""
    found: set[str] = set()

    def collect(each: ast.AST) -> None:
        match each:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchAs(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name):
                found.add(name)
            case _:
                pass
        for inner in ast.iter_child_nodes(each):
            if not isinstance(inner, _SCOPES):
                collect(inner)
            elif isinstance(inner, ast.FunctionDef):
                found.add(inner.name)
            elif not isinstance(inner, ast.Lambda):
                found.update(walrus.target.id for walrus in ast.walk(inner) if isinstance(walrus, ast.NamedExpr))

    for each in ast.iter_child_nodes(node):
        if not isinstance(each, _SCOPES):
            collect(each)
        elif isinstance(each, ast.FunctionDef):
            found.add(each.name)
    return frozenset(found)
