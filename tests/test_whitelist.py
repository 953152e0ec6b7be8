"""What the language refuses before anything runs: with the step's name, file and line, and what to write instead."""

from __future__ import annotations

import functools
import importlib.util
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from draincheck.explorer.search.search import search
from draincheck.protocol.language import (
    AccessFault,
    DeclarationError,
    State,
    action,
    require_constant,
    require_language,
    require_methods,
)
from draincheck.protocol.language.check import Check
from draincheck.protocol.language.property import claim
from draincheck.protocol.language.sources import syntax_of
from world import World, model_of

HEAD = '''"""A model."""

import contextlib, copy, functools, itertools, math, operator, random
from dataclasses import dataclass
from enum import Enum, IntEnum
from fractions import Fraction

import numpy
from draincheck.protocol.language.model import Model
from draincheck.protocol.language.property import claim, invariant, probe
from draincheck.protocol.language import *
from world import Note, Thing, World

COUNT = [0]
CALLS = itertools.count()
HALF = Fraction(1, 2)
ONE = numpy.int64(1)
COLOURS = frozenset({"red", "blue"})
NAMES = {0: "a"}
PAIR = (1, 2)


class Colour(IntEnum):
    RED = 0
    BLUE = 1


@dataclass
class Loose:
    count: int = 0


LOOSE = Loose()


@dataclass(frozen=True)
class Shared:
    made = []


@functools.singledispatch
def kind(value):
    return 0


@kind.register
def _(value: int):
    return 1


@functools.cache
def cached(value):
    return value


def counting(value, seen=[]):
    seen.append(value)
    return len(seen)


def late():
    total = 0

    def more():
        nonlocal total
        total += 1
        return total

    return more


more = late()


'''


def load(folder: Path, body: str) -> ModuleType:
    """A module with a function `step` of the state `s`, in a file of its own."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    path = folder / "written.py"
    path.write_text(f"{HEAD}def step(s: World, k: int = 0):\n{indented}\n", "utf-8")
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFUSED = [
    ("s.level = s.level | 1", "& and [|] join truth values, and this is a number; compare it first"),
    ("s.level |= 1", "& and [|] join truth values"),
    ("s.level = s.level // 2", "// on a field is no part of the language; it has [+] - [*] and comparisons"),
    ("s.on[0] = s.level % 2", "% on a field is no part"),
    ("s.level = ~s.on[0]", "~ on a field is no part"),
    ("s.level == 1", "a value alone on its line does nothing; write require(...)"),
    ("any(s.on[thing] for thing in s.all(Thing))", "alone on its line does nothing"),
    ("require(s.chosen == None)", "None is no value of a field; a `maybe` field that points at nothing is NONE"),
    ("require(s.chosen is NONE)", "`is` compares objects, not values; compare with == or !="),
    ("require(s.level is not 1)", "`is not` compares objects"),
    ("s.level = 1 if s.chosen is None else 2", "`is` compares objects"),
    ("match s.level == 1:\n    case True:\n        s.level = 0", "`case` with True, False or None"),
    ("match s.level:\n    case int():\n        s.level = 0", "`case` with a class"),
    ("match {1: s.level}:\n    case {1: a}:\n        s.level = a", "`case` with a dictionary"),
    ("try:\n    s.level = 1\nexcept TypeError:\n    s.level = 2", "try would hide what the language refuses"),
    ("with contextlib.suppress(TypeError):\n    s.level = 1", "with runs code that may hide"),
    ("assert s.level < 2", r"assert is no part .* use require\(\) for a guard, or claim\(\)"),
    ("raise ValueError", r"raise is no part of the language; use require"),
    ("global COUNT\nCOUNT = 1", "what lives outside the state is not part of it; make it a field"),
    ("s.level = more()", "may not change the variables of another"),
    ("import random", "a step may not import"),
    ("del s.level", "del is no part of the language"),
    ("class A:\n    pass", "a step may not declare a class"),
    ("while s.level:\n    s.level -= 1", "a while loop may never end"),
    ("s.level = s.level / 2", "/ gives a fraction"),
    ("s.level = 1.0", "1.0 is no whole number"),
    ("s.level = HALF", "HALF: a Fraction is no part of the language"),
    ("s.level = ONE", "ONE: an int64 is no part of the language"),
    ("s.level = numpy.int64(1)", "int64 is no part of the language"),
    ("s.level = numpy.array([1])[0]", "array is no part of the language"),
    ("COUNT[0] += 1", "make it a field"),
    ("COUNT.append(1)", "COUNT: a list from outside the state can change; use a tuple"),
    ("s.level = NAMES[0] == 'a'", "NAMES: a dict from outside the state can change"),
    ("s.level = next(CALLS)", "next is no part of the language"),
    ("s.level = LOOSE.count", r"a Loose can change; declare it with @dataclass\(frozen=True\)"),
    ("s.level = len(Shared.made)", "made of Shared: a list from outside"),
    ("s.level = 'red' in COLOURS", "COLOURS: a frozenset has no order"),
    ("s.level = s.level in {1, 2}", "a set has no order; use a tuple"),
    ("s.level = counting(1)", "a list from outside the state can change"),
    ("s.level = random.randint(0, 1)", "randint is no part of the language"),
    ("s.level = math.floor(s.level)", "floor is no part of the language"),
    ("s.level = kind(s.level)", "kind is no part of the language"),
    ("s.level = cached(1)", "_lru_cache_wrapper is no part of the language"),
    ("s.level = copy.deepcopy(s).level", "copy.deepcopy is no part of the language"),
    ("s.level = operator.is_(s.level, 1)", "is_ is no part of the language"),
    ("step.times = 1", "what lives outside the state is not part of it"),
    ("s.level = step.times", "what lives outside the state is not part of it"),
    ("s.level = operator", "operator is a module"),
    ("s.level = operator.nothing", "there is no operator.nothing"),
    ("s.level = nowhere", "nowhere is not defined"),
    ("s.level = Colour(s.level)", r"Colour\(\) looks a value up"),
    ("s.level = s.level in Colour", "`in` with a class looks values up"),
    ("s.level = len(f'{s.level!r}')", "the text of a value"),
    ("s.level = '%d' % s.level == '1'", "the text of a value is not the same in every execution; compare the value"),
    ("s.level = s.level.real", r"\.real is no part of the language"),
    ("s.level = s.level.lo", r"\.lo is no part of the language"),
    ("s.level = s.level.__class__ == 1", r"\.__class__ is no part"),
    ("s.values[0] = 1", r"\.values is no part of the language"),
    ("s.events.append(1)", r"\.events is no part of the language"),
    ("s.level = s.post[0].peek().parts['about']", r"\.parts is no part of the language"),
    ("s.level = (lambda a: a is 1)(s.level)", "`is` compares objects"),
    ("def inner(a):\n    return a is 1\ns.level = inner(1)", "`is` compares objects"),
    ("s.level = sum(a is 1 for a in (1, 2))", "`is` compares objects"),
] + [
    (f"s.level = {name}(s.level{rest})", f"{name} is no part of the language")
    for name, rest in (
        ("isinstance", ", int"), ("type", ""), ("hasattr", ", 'a'"), ("getattr", ", 'a', 1"), ("id", ""), ("hash", ""),
        ("str", ""), ("repr", ""), ("format", ""), ("print", ""), ("vars", ""), ("setattr", ", 'a', 1"), ("set", ""),
        ("round", ""), ("divmod", ", 2"), ("pow", ", 2"), ("float", ""), ("eval", ""), ("open", ""), ("compile", ""),
        ("iter", ""), ("frozenset", ""), ("object", ""), ("super", ""), ("callable", ""), ("memoryview", ""),
    )
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[body for body, _ in REFUSED])
def test_outside_the_language_is_refused_with_file_and_line(tmp_path: Path, body: str, message: str) -> None:
    written = load(tmp_path, body)
    with pytest.raises(DeclarationError, match=rf"^action step: .*written\.py:\d+: .*{message}"):
        require_language(written.step, "action step")


ACCEPTED = [
    "s.level = max(0, min(3, s.level + abs(k)))",
    "for thing in s.all(Thing):\n    if s.on[thing] and thing != s.chosen:\n        continue\n    break",
    "require(any(s.on[thing] for thing in s.all(Thing)) or not s.level == 2)",
    "a, *rest = (s.level, 1, 2)\ns.level = rest[0] if a else rest[1]",
    "match s.level:\n    case 0 | 1:\n        s.level = 2\n    case other:\n        s.level = other",
    "def inner(a, b=1):\n    yield a + b\ns.level = sum(inner(0))",
    "s.level = Colour.BLUE.value + PAIR[0]",
    "found = []\nfor note in s.post[0].waiting():\n    found.append(note.about)\ns.level = len(found)",
    "total: int = 0\nfor a, b in zip(PAIR, reversed(PAIR)):\n    total += a * b\ns.level = total > 3",
    "if (m := s.level) > 1:\n    s.level = m - 1",
    "s.level = {1: 2}.get(k, 0)",
    "claim(s.level < 3, f'the level of {k} is low')",
    "s.level = s.knobs.write + s.knobs.bounds.lo",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_plain_python_is_the_language(tmp_path: Path, body: str) -> None:
    require_language(load(tmp_path, body).step, "action step")


@action("t")
def rise(s: World) -> None:
    """The level takes every value."""
    s.level = s.choose([0, 1, 2, 3])


def test_a_property_is_defined_in_every_state(tmp_path: Path) -> None:
    for body, message in (
        ("claim(s.on[s.chosen] == 0, 'off')", "on has no element at Thing -1 .*, in a state that the domains allow"),
        ("s.level = 2\nclaim(s.level, 'two')", "a property may not change the state; it assigns level"),
        ("if s.level == 3:\n    s.post[0].send(about=0)\nclaim(1, 'so')", "a property may not change the state"),
        ("claim('the level is low', 'a text')", r"claim\(\) was given a str"),
        ("claim([s.level], 'a list')", r"claim\(\) was given a list"),
        ("claim((s.level | 2) == 3, 'bits')", "& and [|] join truth values"),
        ("claim(s.level % 2 == 0, 'even')", "% on a field is no part of the language; it has"),
        ("claim(f'{s.level}' == '1', 'text')", "the text of a field is not the same"),
        ("claim('%s' % s.level == '1', 'text')", "the text of a value is not the same"),
        ("claim(s.level == 'a', 'text')", "a field meets 'a'"),
        ("claim(s.level.size == 1, 'text')", r"a field is a number and has no \.size"),
    ):  # fmt: skip
        written = load(tmp_path, body)
        linecache.clearcache()
        prop = written.invariant(_documented(written.step))
        with pytest.raises((DeclarationError, AccessFault), match=f"property step: .*{message}"):
            search(Check(model_of(rise), (prop,)))


def test_a_property_claims_something(tmp_path: Path) -> None:
    for body in ("low = s.level < 3", "require(s.level < 3)", "if s.level < 3:\n    pass"):
        written = load(tmp_path, body)
        linecache.clearcache()
        prop = written.invariant(_documented(written.step))
        with pytest.raises(DeclarationError, match="property step: it claims nothing, so it cannot fail"):
            Check(model_of(rise), (prop,))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("s.level = s.levle", "World declares no field levle; did you mean level[?]"),
        ("s.post[0].sned(about=1)", "a Fifo has no sned; did you mean send[?]"),
        ("s.level = s.on[0:1]", "on is indexed by slice"),
        ("s.post['a'].receive()", "post is indexed by 'a'; index it by whole numbers"),
        ("s.level = s.choose(2)", "choose[(][)] takes an index type, or a sequence"),
    ],
)
def test_what_is_found_when_a_step_runs_is_said_in_the_language_s_words(
    tmp_path: Path, body: str, message: str
) -> None:
    step = load(tmp_path, body).step

    @action("t")
    def does(s: World) -> None:
        """A step."""
        step(s)

    with pytest.raises(DeclarationError, match=message):
        search(Check(model_of(does), ()))


def _documented(function: object) -> object:
    function.__doc__ = "A property."  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class Knobs:
    """Settings, which may hold anything."""

    value: object = None
    others: tuple[object, ...] = field(default=())


def test_knobs_cannot_change() -> None:
    for wrong in ([1], {1: 2}, 1.5, (1, [2]), Knobs([1]), object()):
        with pytest.raises(DeclarationError, match=r"the knobs of world: .*(can change|whole number|no part)"):
            model_of(knobs=wrong)
    require_constant(Knobs(1, ("a", None, Knobs(2))), "knobs")


class Clever(State[None]):
    """A state with a method of its own."""

    def typed(self) -> bool:
        return isinstance(self, int)


def test_methods_of_the_state_are_read_too() -> None:
    with pytest.raises(DeclarationError, match=r"Clever: .*test_whitelist\.py:\d+: isinstance is no part"):
        require_methods(Clever, "Clever")


def test_a_step_that_is_no_function_is_refused() -> None:
    with pytest.raises(DeclarationError, match="write it as a function"):
        require_language(print, "action step")


def test_the_source_is_that_of_the_code_that_runs(tmp_path: Path) -> None:
    written = load(tmp_path, "s.level = 1")
    assert syntax_of(written.step).node.lineno == HEAD.count("\n") + 1
    path = tmp_path / "written.py"
    path.write_text(path.read_text("utf-8").replace("s.level = 1", "s.level = 2"), "utf-8")
    linecache.clearcache()
    with pytest.raises(DeclarationError, match=r"the source of step is not what runs; the file has changed since"):
        require_language(written.step, "action step")


def test_lambdas_on_one_line_are_told_apart() -> None:
    both = (lambda s: s.level == 1, lambda s: s.level is None, lambda s: (lambda: s.level)() == 1)
    require_language(both[0], "the first")
    require_language(both[2], "the last")
    with pytest.raises(DeclarationError, match="`is` compares"):
        require_language(both[1], "the second")


def test_code_without_source_is_refused() -> None:
    names: dict[str, object] = {}
    exec("def step(s): s.level = 1", names)
    with pytest.raises(DeclarationError, match="the source of step cannot be read; write the model in a file"):
        require_language(names["step"], "action step")  # type: ignore[arg-type]


class Pair(NamedTuple):
    """Two numbers, and a question that looks at a type."""

    first: int
    second: int = 2

    def both(self) -> int:
        return self.first + self.second

    def few(self, value: int) -> int:
        match value:
            case int():
                return value == 3
            case _:
                return 0


class Plain(NamedTuple):
    first: int

    def both(self) -> int:
        return self.first + 1


class Shade(Enum):
    """A member whose method looks at a type."""

    DARK = 0

    def bad(self, value: int) -> int:
        return isinstance(value, int) and value == 3


class Bag(tuple[int, ...]):
    """A tuple that looks at types."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and value == 3


class Listed(Enum):
    """A member that can change."""

    ALL = [0]  # noqa: RUF012


@dataclass(frozen=True)
class Late:
    """What is computed once can change."""

    count: int = 0

    @functools.cached_property
    def kept(self) -> list[int]:
        return [0]


@dataclass(frozen=True)
class Stuffed:
    count: int = 0


def counted() -> int:
    return 1


counted.calls = [0]  # type: ignore[attr-defined]
STUFFED = Stuffed()
object.__setattr__(STUFFED, "more", [0])
OUTSIDE: dict[str, Any] = {
    "`case` with a class": Pair(1),
    "isinstance is no part": Shade.DARK,
    "a list from outside the state can change": Listed.ALL,
    "a cached_property is no part": Late(),
    "more of Stuffed can change": STUFFED,
    "calls of counted lives outside the state": counted,
}


@pytest.mark.parametrize("message", OUTSIDE)
@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: (each,)], ids=["itself", "in a tuple"])
def test_the_class_of_a_value_from_outside_is_read(message: str, wrap: Callable[[Any], Any]) -> None:
    """Its methods are called without a name that could be looked up, and its parts may change."""
    value = wrap(OUTSIDE[message])

    def uses(s: World) -> None:
        given = value
        claim(given == s.level, "it is used")

    with pytest.raises(DeclarationError, match=message):
        require_language(uses, "property uses")
    with pytest.raises(DeclarationError, match=message):
        require_constant(value, "knobs")


def test_a_tuple_that_looks_at_types_is_refused() -> None:
    bag = Bag((9,))

    def uses(s: World) -> None:
        claim(s.level not in bag, "it is not in the bag")

    with pytest.raises(DeclarationError, match="isinstance is no part"):
        require_language(uses, "property uses")


def test_a_plain_named_tuple_is_of_the_language() -> None:
    plain = Plain(1)

    def uses(s: World) -> None:
        claim(s.level < plain.both() + plain.first, "it is small")

    require_language(uses, "property uses")


def test_what_a_state_s_class_shares_cannot_change() -> None:
    class Stash(State[None]):
        """A list that every state of the class has."""

        stash = [0]  # noqa: RUF012

    with pytest.raises(DeclarationError, match="stash of Stash: a list from outside the state can change"):
        require_methods(Stash, "Stash")
