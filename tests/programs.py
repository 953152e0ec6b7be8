"""Random programs in the modelling language, and just outside it, as source text.

The grammar is data, in grammar.txt: templates with holes. `$n` is a number, `$t` a truth value, `$i` and `$r` indices
of a node and a room, `$c` a colour, `$w` a fresh variable, `$b` a block of statements on lines of its own. In every
function `u`, `v` and `k` are bound, and `m` in templates that go through messages.

A program is equal in all executions, or it is refused. Templates outside of the language have a name, so that a
difference says what it comes from.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from draincheck.protocol.language import (
    Index,
    Message,
    State,
    between,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    upto,
)


class Node(Index):
    """A process."""


class Room(Index):
    """A transfer."""


class Color(IntEnum):
    """Three values."""

    RED = 0
    GREEN = 1
    BLUE = 2


class Note(Message):
    """A message of three parts."""

    kind = part(Color)
    about = part(Node)
    n = part(upto(3))


@dataclass(frozen=True)
class Knobs:
    """Settings that a program may ask."""

    limit: int = 2
    on: bool = True
    name: str = "plain"


class World(State[Knobs]):
    """A field of every kind."""

    x = field(upto(5), means="a number")
    y = field(between(-2, 3), means="a number that may be negative")
    on = field(flag, means="a truth value")
    color = field(Color, means="a member of an enumeration")
    at = field(Node, means="an index")
    who = field(maybe(Node), means="an index, or none")
    level = field(upto(3), Node, means="a number for each node")
    grid = field(flag, Node, Room, means="a truth value for each node and room")
    owner = field(maybe(Room), Node, means="an index, or none, for each node")
    post = channel(Note, Node, capacity=2, means="to a node")
    line = channel(Note, capacity=2, means="one channel")
    seen = ghost(upto(3), means="what no code knows")
    wrote = ghost(flag, Node, means="what no code knows, for each node")


SIZES = {Node: 2, Room: 2}


@ghost_code
def remember(s: World, value: int) -> None:
    """Keeps a ghost up to date."""
    if value > s.seen:
        s.seen = min(3, value)


HEADER = '''"""A generated program."""

import contextlib
import copy
import functools
import itertools
import math
import operator
import random
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy
from draincheck.protocol.language.property import claim, invariant, probe, promise
from draincheck.protocol.language import (
    NONE, Disabled, DomainFault, Index, IndexFault, ModelFault, action, ghost_code, require
)
from programs import Color, Node, Note, Room, World, remember

counter = 0
calls = []
table = {}
memory = {"n": 0}
SMALL = (0, 1, 2)


@dataclass(frozen=True)
class Odd:
    held: int = 1
    tall: ClassVar[int] = 0

    def label(self):
        calls.append(1)
        return len(calls)


class Pair(NamedTuple):
    first: int
    second: int = 2


class Slot(Index):
    seen = 0


class Shade(IntEnum):
    DARK = 0
    LIGHT = 1

    def other(self):
        return 1 - self


ODD = Odd()
PAIR = Pair(1)

def larger(s, a, b):
    return a if a > b else b


larger.times = 0


def bump(f):
    f.times = f.times + 1
    return f.times


def is_busy(s, node):
    return (s.level[node] > 1) | s.on


def total(s):
    found = 0
    for node in s.all(Node):
        found += s.level[node]
    return found


def first_set(s, node):
    for room in s.all(Room):
        if s.grid[node, room]:
            return room
    return NONE


def put(s, node, value):
    require(value <= 3)
    s.level[node] = max(0, value)


def counted():
    global counter
    counter += 1
    return counter


def grown(value, found=[]):
    found.append(value)
    return len(found)


def levels(s):
    for node in s.all(Node):
        yield s.level[node]


@functools.lru_cache
def cached(value):
    return value + 1


@functools.singledispatch
def kind_of(value):
    return 0


@kind_of.register
def _(value: int):
    return 1


class Box:
    shared = 0

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    @property
    def double(self):
        return self.value * 2


'''


def _grammar() -> dict[str, list[str]]:
    """The templates of each section of grammar.txt."""
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("grammar.txt").read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"\[\[(.*)\]\]", line):
            sections[heading[1]] = []
        elif line and not line.startswith("#"):
            list(sections.values())[-1].append(line.replace("\\n", "\n"))
    return sections


GRAMMAR = _grammar()


OUTSIDE: dict[str, dict[str, list[str]]] = {
    what: {name.split(": ")[1]: each for name, each in GRAMMAR.items() if name.startswith(f"{what}: ")}
    for what in ("numbers", "truths", "statements", "claims", "predicates")
}
"""The templates outside of the language, by what they give and by kind."""


SHORT_TRUTHS = ["s.on", "$n == $n", "$n < $n", "s.color == $c", "s.grid[$i, $r]"]
COLORS = ["Color.RED", "Color.GREEN", "Color.BLUE", "s.color", "Color.BLUE"]
INDICES = ["n", "n", "0", "1", "k", "s.at", "1 - n"]
ROOMS = ["0", "1", "0", "1"]
KINDS = ("action", "property", "probe", "terminal", "promise")


@dataclass(frozen=True)
class Program:
    """A function as source text, in a module of its own. `outside` names what it uses beyond the language."""

    name: str
    kind: str
    source: str
    outside: tuple[str, ...]

    @property
    def text(self) -> str:
        """The function alone, without what every module begins with."""
        return self.source.removeprefix(HEADER)


class Writer:
    """Writes one random program. `strange` is how likely a piece comes from outside of the language."""

    def __init__(self, seed: int, strange: float) -> None:
        self._chance = random.Random(seed)
        self._strange = strange
        self._outside: list[str] = []
        self._messages = 0
        self._fresh = 0
        self._kind = ""

    def program(self, kind: str, name: str) -> Program:
        """A program of this kind: an action, or a predicate of the state."""
        self._kind = kind
        start = f"u = {self.number(1)}\n" if self._chance.random() < 0.5 else ""
        text = start + self._block(3 if kind in ("action", "property") else 1)
        answer = "" if kind in ("action", "property") else f"\nreturn {self._truth(2)}"
        return self._declared(name, kind, text + answer)

    def around(self, name: str, kind: str, template: str, outside: str) -> Program:
        """A program of little more than one template."""
        self._kind = kind
        self._outside.append(outside)
        return self._declared(name, kind, self._fill(template, 0))

    def _declared(self, name: str, kind: str, body: str) -> Program:
        head = {
            "action": '@action("node {n}")\n' + f"def {name}(s: World, n: Node) -> None:",
            "property": f"@invariant\ndef {name}(s: World) -> None:",
            "probe": f"@probe\ndef {name}(s: World) -> int:",
            "promise": f"@promise\ndef {name}(s: World) -> int:",
            "terminal": f"def {name}(s: World) -> int:",
        }[kind]
        lines = ["k = 0", "u = 1", "v = s.x", *([] if kind == "action" else ["n = 1"]), *body.split("\n")]
        text = "\n".join(f"    {line}" for line in lines)
        return Program(name, kind, f'{HEADER}{head}\n    """A {kind}."""\n{text}\n', tuple(self._outside))

    def number(self, depth: int) -> str:
        """An expression for a number."""
        inside = GRAMMAR["numbers" if depth and self._chance.random() < 0.6 else "leaves"]
        return self._fill(self._pick("numbers", inside), depth - 1)

    def _truth(self, depth: int) -> str:
        return self._fill(
            self._pick("truths", GRAMMAR["truths"]) if depth else self._chance.choice(SHORT_TRUTHS), depth - 1
        )

    def _block(self, depth: int) -> str:
        many = self._chance.choice((1, 1, 2, 2, 3) if depth > 2 else (1, 1, 2))
        return "\n".join(self._statement(depth - 1) for _ in range(many))

    def _statement(self, depth: int) -> str:
        kind = {"action": "statements", "property": "claims"}.get(self._kind, "predicates")
        inside = GRAMMAR[kind] if depth > 0 else [each for each in GRAMMAR[kind] if "$b" not in each]
        return self._fill(self._pick(kind, inside), max(depth, 0))

    def _pick(self, what: str, inside: list[str]) -> str:
        """A template: one of those given, or, if there was none yet, one from outside of the language."""
        if not self._outside and self._chance.random() < self._strange:
            name = self._chance.choice(list(OUTSIDE[what]))
            self._outside.append(name)
            return self._chance.choice(OUTSIDE[what][name])
        return self._chance.choice(inside)

    def _fill(self, template: str, depth: int) -> str:
        """The template with its holes filled."""
        self._fresh += 1
        template = template.replace("$w", f"w{self._fresh}")
        messages = bool(re.search(r"for m in|lambda m|m = ", template))
        self._messages += messages
        depth = max(depth, 0)

        def hole(found: re.Match[str]) -> str:
            match found[1]:
                case "n":
                    if self._messages and self._chance.random() < 0.3:
                        return self._chance.choice(("m.n", "m.about", "m.kind"))
                    text = self.number(depth)
                    return text if re.fullmatch(r"[\w.]+|[\w.]+\([^()]*\)|\([^()]*\)", text) else f"({text})"
                case "t":
                    return f"({self._truth(depth)})"
                case "c":
                    return self._chance.choice(COLORS)
                case "i":
                    return self._chance.choice(INDICES)
                case "r":
                    return self._chance.choice(ROOMS)
                case other:
                    raise AssertionError(other)

        lines: list[str] = []
        for line in template.split("\n"):
            indent = len(line) - len(line.lstrip())
            if line.strip() == "$b":
                lines += [" " * indent + each for each in self._block(depth).split("\n")]
            else:
                lines.append(re.sub(r"\$(\w)", hole, line))
        self._messages -= messages
        return "\n".join(lines)


def programs(seed: int, strange: float = 0.15) -> list[Program]:
    """Programs enough for one model: some actions, and predicates of each kind."""
    kinds = ["action"] * 8 + ["property"] * 4 + ["probe"] * 3 + ["terminal", "promise"]
    return [Writer(seed * 100 + number, strange).program(kind, f"{kind}_{number}") for number, kind in enumerate(kinds)]


def pieces(seed: int) -> list[Program]:
    """A program for each piece outside of the language, in which what the piece gives is all that matters."""
    found: list[Program] = []
    uses = [
        (OUTSIDE["numbers"], "action", "s.x = min(5, max(0, $piece))"),
        (OUTSIDE["numbers"], "action", "require(($piece) > 1)\ns.x = 0 if s.x else 1"),
        (OUTSIDE["numbers"], "property", "claim(($piece) != 1, 'number')"),
        (OUTSIDE["truths"], "action", "s.on = $piece"),
        (OUTSIDE["truths"], "action", "if $piece:\n    s.x = 0 if s.x else 1"),
        (OUTSIDE["truths"], "property", "claim($piece, 'truth')"),
        (OUTSIDE["truths"], "probe", "return $piece"),
        (OUTSIDE["statements"], "action", "$piece"),
        (OUTSIDE["statements"], "action", "$piece\ns.x = min(5, max(0, u))\ns.y = min(3, max(-2, v))"),
        (OUTSIDE["claims"], "property", "$piece\nclaim(u < 3, 'u')"),
        (OUTSIDE["predicates"], "probe", "$piece\nreturn u"),
        (OUTSIDE["predicates"], "promise", "$piece\nreturn u"),
    ]
    for table, kind, use in uses:
        for name, templates in table.items():
            for template in templates:
                number = len(found)
                text = use.replace("$piece", template)
                found.append(Writer(seed * 10_000 + number, 0.0).around(f"{kind}_{number}", kind, text, name))
    return found
